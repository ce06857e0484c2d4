//! Sums over the block's own tile of a line that are divided by the tile's extent: means that count what pads the tile.
//!
//! `x.mean(1)` of a tile with 1024 columns divides by 1024, and so does `x.sum(1) / COLUMNS as f32`, or `* (1.0 / COLUMNS as
//! f32)`. Where the line has 200
//! elements, a tile with 256 columns gives another mean. That may be meant, but of such instances none is as good as another.

use super::joined::Joined;
use super::own_part::own_load;
use crate::dim::Dim;
use crate::kernel::{Kernel, OpData, ValueId};
use crate::loc::Loc;
use crate::ops::{BinaryOp, Effect, Op, ReduceOp};

/// A sum over the block's own tile of a line, divided by an extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnMean {
    /// The division.
    pub loc: Loc,
    /// The tensor that the line is of, as a message names it.
    pub tensor: String,
    /// Along which of its axes the line goes.
    pub axis: usize,
    /// How long the line is.
    pub line: Dim,
    /// What the sum is divided by: the same in all blocks, and made of the kernel's parameters.
    pub divisor: Dim,
}

/// The means over own tiles in a kernel, each once. Blocks that tell each other something by atomics see more than that.
pub fn own_means(kernel: &Kernel) -> Vec<OwnMean> {
    let mut means = Vec::new();
    let ops = || kernel.walk().into_iter().map(|op| kernel.op(op));
    if ops().any(|data| data.op.effect() == Effect::ReadsAndWrites) {
        return means;
    }
    let joined = Joined::of(kernel);
    for data in ops() {
        let Some((dividend, divisor)) = quotient(kernel, data) else { continue };
        let Some((summed, axis)) = sum(kernel, dividend) else { continue };
        let Some(load) = own_load(kernel, &joined, summed, axis) else { continue };
        let found = OwnMean {
            loc: data.loc,
            tensor: kernel.tensor_name(load.data.operands[0]),
            axis: load.axis,
            line: load.view.tensor.extents[load.axis].clone(),
            divisor: divisor.clone(),
        };
        if !means.contains(&found) {
            means.push(found);
        }
    }
    means
}

/// What an op divides, and the extent by which.
fn quotient<'k>(kernel: &'k Kernel, data: &OpData) -> Option<(ValueId, &'k Dim)> {
    match data.op {
        Op::Binary(BinaryOp::Div) => Some((data.operands[0], extent(kernel, data.operands[1])?)),
        Op::Binary(BinaryOp::Mul) => [[0, 1], [1, 0]].into_iter().find_map(|[factor, other]| {
            let other = origin(kernel, data.operands[other])?;
            let is_quotient = other.op == Op::Binary(BinaryOp::Div);
            is_quotient.then(|| Some((data.operands[factor], extent(kernel, other.operands[1])?)))?
        }),
        _ => None,
    }
}

/// The tile that a value is the sum of, and along which axis.
fn sum(kernel: &Kernel, value: ValueId) -> Option<(ValueId, usize)> {
    let data = origin(kernel, value)?;
    match data.op {
        Op::Reduce { op: ReduceOp::Sum, axis } => Some((data.operands[0], axis)),
        _ => None,
    }
}

/// The extent of the kernel's parameters that a value is.
fn extent(kernel: &Kernel, value: ValueId) -> Option<&Dim> {
    match &origin(kernel, value)?.op {
        Op::Extent(dim) if dim.is_static() && dim.as_const().is_none() => Some(dim),
        _ => None,
    }
}

/// What gives a value, which then changes its format and its shape alone.
fn origin(kernel: &Kernel, mut value: ValueId) -> Option<&OpData> {
    loop {
        let data = kernel.definition(value)?;
        match data.op {
            Op::Cast(_) | Op::Splat(_) | Op::Broadcast(_) | Op::Reshape(_) | Op::Permute(_) | Op::Item => {
                value = data.operands[0];
            }
            _ => return Some(data),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VerifiedKernel;

    /// Of a kernel of rows in tiles [1, B], with `%row` the block's own tile of x and `%sum` its sum: lines and divisors.
    fn found(body: &str) -> Vec<String> {
        let text = format!(
            "\
kernel @k<B>(%x: tensor<m x n x f32>, %y: mut tensor<m x n x f32>) {{
  %vx = partition %x [1, B] : partition<m x n x f32, [1, B]>
  %vy = partition %y [1, B] : mut partition<m x n x f32, [1, B]>
  %i, %j = block_index %vy : index, index
  %zero = constant 0.0 : f32
  %first = extent 0 : index
  %row = load_masked %vx[%i, %j] pad %zero : tile<1 x B x f32>
  %sum = reduce sum %row axis 1 : tile<1 x 1 x f32>
{body}  %all = broadcast %mean : tile<1 x B x f32>
  %result = sub %row, %all : tile<1 x B x f32>
  store_masked %vy, %result
}}
"
        );
        let kernel = VerifiedKernel::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let said = |it: &OwnMean| format!("{} along {} of {} by {}", it.line, it.axis, it.tensor, it.divisor);
        own_means(&kernel).iter().map(said).collect()
    }

    const BY_TILE: &str = "  %extent = extent B : index
  %count = cast %extent : f32
  %counts = splat %count : tile<1 x 1 x f32>
  %mean = div %sum, %counts : tile<1 x 1 x f32>
";

    #[test]
    fn sums_that_are_divided_by_the_tiles_extent_are_found() {
        assert_eq!(found(BY_TILE), ["n along 1 of `x` by B"]);
        let as_a_scalar = "  %extent = extent B : index
  %count = cast %extent : f32
  %item = item %sum : f32
  %one = div %item, %count : f32
  %mean = splat %one : tile<1 x 1 x f32>
";
        assert_eq!(found(as_a_scalar), ["n along 1 of `x` by B"]);
        let multiplied = "  %extent = extent B : index
  %count = cast %extent : f32
  %unit = constant 1.0 : f32
  %part = div %unit, %count : f32
  %parts = splat %part : tile<1 x 1 x f32>
  %mean = mul %parts, %sum : tile<1 x 1 x f32>
";
        assert_eq!(found(multiplied), ["n along 1 of `x` by B"]);
    }

    #[test]
    fn other_quotients_are_none() {
        assert_eq!(found(&BY_TILE.replace("extent B", "extent n")), [""; 0]);
        assert_eq!(found(&BY_TILE.replace("extent B", "extent 4")), [""; 0]);
        assert_eq!(found(&BY_TILE.replace("div %sum, %counts", "div %counts, %sum")), [""; 0]);
        assert_eq!(found(&BY_TILE.replace("div %sum", "mul %sum")), [""; 0]);
        // Another tile of the row is read as well, as where a loop goes through it.
        let beside = "  %other = load_masked %vx[%i, %first] pad %zero : tile<1 x B x f32>\n";
        assert_eq!(found(&format!("{beside}{BY_TILE}")), [""; 0]);
    }
}
