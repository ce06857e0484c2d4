//! Along which axis of the grid tiles have more and more to do: that on whose index the bounds of loops depend, as those of
//! causal attention and of triangular matrices do.

use crate::kernel::{Kernel, OpData, ValueId};
use crate::ops::{BinaryOp, Op};
use std::collections::HashMap;

/// The axis; `None` where no loop depends on the tile's index, where loops depend on several axes, and where it isn't
/// known that they take more turns as the index grows.
pub(super) fn axis(kernel: &Kernel) -> Option<usize> {
    let growing = growing(kernel);
    let loops = kernel.walk().into_iter().map(|op| kernel.op(op)).filter(|data| data.op == Op::For);
    let mut axes = 0;
    for bounds in loops.map(|data| &data.operands[..2]) {
        if *growing.get(&bounds[0])? != 0 {
            return None;
        }
        axes |= growing.get(&bounds[1])?;
    }
    (axes.count_ones() == 1).then(|| axes.trailing_zeros() as usize)
}

/// The axes, a bit each, on whose index each number depends, and only so that it grows; without those of which that isn't
/// known. A number that loops count or carry is none of the tile's index alone.
fn growing(kernel: &Kernel) -> HashMap<ValueId, u64> {
    let mut known = HashMap::new();
    for data in kernel.walk().into_iter().map(|op| kernel.op(op)) {
        if data.op == Op::BlockIndex {
            known.extend(data.results.iter().enumerate().map(|(axis, &result)| (result, 1 << axis)));
        } else if let (Some(axes), &[result]) = (growing_with(&known, data), &data.results[..]) {
            known.insert(result, axes);
        }
    }
    known
}

/// The axes with which what an op gives grows, of whose operands that is known.
fn growing_with(known: &HashMap<ValueId, u64>, data: &OpData) -> Option<u64> {
    let of = |operand: &ValueId| known.get(operand).copied();
    let all = || data.operands.iter().try_fold(0, |axes, operand| Some(axes | of(operand)?));
    match &data.op {
        // Indices, extents and counts are never negative.
        Op::Binary(BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max) => all(),
        Op::Binary(BinaryOp::Div | BinaryOp::DivFloor | BinaryOp::DivCeil) => {
            all().filter(|_| of(&data.operands[1]) == Some(0))
        }
        op if data.operands.is_empty() && op.is_leaf() => Some(0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Instance, passes};

    /// The axis for a kernel whose loop has these bounds, which are made of the tile's index `%i`, `%j` by `ops`.
    fn axis_of(ops: &str, [from, to]: [&str; 2]) -> Option<usize> {
        let text = format!(
            "kernel @k(%x: tensor<m x n x f32>, %y: mut tensor<m x n x f32>) {{
  %vx = partition %x [4, 4] : partition<m x n x f32, [4, 4]>
  %vy = partition %y [4, 4] : mut partition<m x n x f32, [4, 4]>
  %i, %j = block_index %vy : index, index
  %zero = constant 0 : index
  %one = constant 1 : index
  %two = constant 2 : index
  %end = extent ceil_div(n, 4) : index
{ops}  %none = constant 0.0 : f32
  %zeros = splat %none : tile<4 x 4 x f32>
  %sum = for %p = {from} to {to} carry (%acc = %zeros) : tile<4 x 4 x f32> {{
    %t = load_masked %vx[%i, %p] pad %none : tile<4 x 4 x f32>
    %next = add %acc, %t : tile<4 x 4 x f32>
    yield %next
  }}
  store_masked %vy, %sum
}}
"
        );
        let instance = Instance::parse(&text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
        axis(&passes::optimize(instance))
    }

    #[test]
    fn loops_grow_along_the_axis_of_their_end() {
        assert_eq!(axis_of("", ["%zero", "%end"]), None);
        assert_eq!(axis_of("", ["%zero", "%j"]), Some(1));
        let up_to = "  %after = add %i, %one : index\n  %last = mul %after, %two : index\n";
        assert_eq!(axis_of(up_to, ["%zero", "%last"]), Some(0));
        let least = "  %after = add %j, %one : index\n  %last = min %after, %end : index\n";
        assert_eq!(axis_of(least, ["%zero", "%last"]), Some(1));
    }

    /// Each is the sum of the two before it, of which the first two grow with the tile's index.
    #[test]
    fn an_end_may_be_made_of_many_sums() {
        let mut sums = "  %s0 = add %i, %one : index\n  %s1 = mul %i, %two : index\n".to_owned();
        for k in 2..90 {
            sums += &format!("  %s{k} = add %s{}, %s{} : index\n", k - 1, k - 2);
        }
        assert_eq!(axis_of(&sums, ["%zero", "%s89"]), Some(0));
    }

    #[test]
    fn what_falls_or_depends_on_both_axes_has_none() {
        assert_eq!(axis_of("", ["%i", "%end"]), None);
        assert_eq!(axis_of("  %both = add %i, %j : index\n", ["%zero", "%both"]), None);
        assert_eq!(axis_of("  %left = sub %end, %i : index\n", ["%zero", "%left"]), None);
        assert_eq!(axis_of("  %part = div %end, %j : index\n", ["%zero", "%part"]), None);
    }
}
