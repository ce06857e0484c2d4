//! The reference evaluator: executes any [`Instance`] on dense arrays, block by block.
//!
//! Views hold no data: a moved tensor or a partition is a place in an argument. Nothing here is fast; everything follows
//! the definition of the op. Here is what runs a grid; `evaluation.rs` is a block, `accesses.rs` what it does to tensors.

mod accesses;
mod evaluation;

use crate::abi::{BindError, KernelAbi, REFERENCE_BLOCKS, Sharing};
use crate::array::{Array, Elements};
use crate::dim::Dim;
use crate::kernel::ValueId;
use crate::log::Event;
use crate::ops::Op;
use crate::specialize::Instance;
use crate::types::Type;
use crate::view::{GivenTensor, Source};
use evaluation::{Evaluation, Turns};
use std::collections::HashMap;
use tile_layout::multi_index;

/// Runs every block of the grid, in order. `arguments` are the kernel's arguments (scalars have rank 0);
/// mutable tensors are updated in place.
///
/// # Errors
/// [`BindError`] where the shapes don't fit the kernel.
///
/// # Panics
/// If an argument's format isn't the declared one, or there are too few arguments.
pub fn run(instance: &Instance, arguments: &mut [Array]) -> Result<(), BindError> {
    run_logged(instance, arguments).map(drop)
}

/// [`run`], and what the kernel printed and which assertions failed, in order. A failed assertion stops nothing.
///
/// # Errors
/// As [`run`].
///
/// # Panics
/// As [`run`].
pub fn run_logged(instance: &Instance, arguments: &mut [Array]) -> Result<Vec<Event>, BindError> {
    run_shared(instance, arguments, Sharing::default())
}

/// [`run_logged`], with a word on how blocks share the tiles of a persistent kernel.
///
/// # Errors
/// As [`run`], and where the word makes no sense.
///
/// # Panics
/// As [`run`].
pub fn run_shared(
    instance: &Instance,
    arguments: &mut [Array],
    sharing: Sharing,
) -> Result<Vec<Event>, BindError> {
    let shapes = tensor_shapes(instance, arguments);
    let tensors: Vec<GivenTensor<'_>> = shapes.iter().map(|shape| GivenTensor::dense(shape)).collect();
    run_tensors(instance, arguments, &tensors, sharing)
}

/// [`run_shared`] of tensors that lie as the instance is made for: each is given, and its argument is the memory that it
/// lies in, from [`GivenTensor::offset`] elements before its first one on, as an array of any shape.
///
/// # Errors
/// As [`run_shared`].
///
/// # Panics
/// As [`run`], or if a tensor reaches out of its memory.
pub fn run_tensors(
    instance: &Instance,
    arguments: &mut [Array],
    given: &[GivenTensor<'_>],
    sharing: Sharing,
) -> Result<Vec<Event>, BindError> {
    run_until(instance, arguments, given, sharing, &mut Turns::unbounded())
}

/// How many turns the loops of a [`run`] take, those of all blocks together. Loops end once there are `most`: such a number
/// says that there would be as many or more, perhaps without end, and what the arguments hold then is nothing of worth.
///
/// # Errors
/// As [`run`].
///
/// # Panics
/// As [`run`].
pub fn turns(instance: &Instance, arguments: &mut [Array], most: u64) -> Result<u64, BindError> {
    let shapes = tensor_shapes(instance, arguments);
    let tensors: Vec<GivenTensor<'_>> = shapes.iter().map(|shape| GivenTensor::dense(shape)).collect();
    let mut turns = Turns { taken: 0, most };
    run_until(instance, arguments, &tensors, Sharing::default(), &mut turns)?;
    Ok(turns.taken)
}

/// [`run_tensors`], whose loops end where there are no more turns.
fn run_until(
    instance: &Instance,
    arguments: &mut [Array],
    given: &[GivenTensor<'_>],
    sharing: Sharing,
    turns: &mut Turns,
) -> Result<Vec<Event>, BindError> {
    assert_eq!(arguments.len(), instance.params().len(), "every argument is given");
    for (argument, &param) in arguments.iter().zip(instance.params()) {
        assert_eq!(
            Some(argument.dtype()),
            instance.ty(param).elem().known(),
            "arguments have the declared formats"
        );
    }
    let abi = KernelAbi::of(instance);
    let number = |position: usize| match arguments[position].elements() {
        Elements::Int(values) => u64::try_from(*values.first()?).ok(),
        Elements::Float(_) => None,
    };
    let bound = abi.share(abi.bind_tensors(given, &number)?, sharing, REFERENCE_BLOCKS)?;
    let sizes = abi.sizes.iter().cloned().zip(bound.sizes.iter().map(|&size| size as i64)).collect();
    let (views, tensors) = (views(instance), tensors(instance));
    let mut log = Vec::new();
    for number in 0..bound.blocks() {
        let values = vec![None; instance.value_count()];
        let block = multi_index(number, &bound.grid);
        let mut evaluation = Evaluation {
            instance,
            arguments,
            sizes: &sizes,
            views: &views,
            tensors: &tensors,
            number,
            log: &mut log,
            turns,
            bound: &bound,
            tile: block.clone(),
            block,
            values,
        };
        evaluation.bind_arguments();
        evaluation.region(instance.body());
    }
    Ok(log)
}

fn tensor_shapes(instance: &Instance, arguments: &[Array]) -> Vec<Vec<usize>> {
    let pairs = arguments.iter().zip(instance.params());
    pairs
        .filter(|&(_, &param)| matches!(instance.ty(param), Type::Tensor(_)))
        .map(|(argument, _)| argument.shape().to_vec())
        .collect()
}

/// The tensor that each partition view cuts.
fn views(instance: &Instance) -> HashMap<ValueId, ValueId> {
    let ops = instance.walk().into_iter().map(|op| instance.op(op));
    ops.filter(|data| matches!(data.op, Op::Partition(_)))
        .map(|data| (data.results[0], data.operands[0]))
        .collect()
}

/// Every tensor value: the argument that it shows, by position, and how.
fn tensors(instance: &Instance) -> HashMap<ValueId, (usize, Source)> {
    let tensors = instance.value_ids().filter(|&value| matches!(instance.ty(value), Type::Tensor(_)));
    let placed = tensors.filter_map(|tensor| {
        let source = Source::of(instance, tensor);
        let argument = instance.params().iter().position(|param| *param == source.argument)?;
        Some((tensor, (argument, source)))
    });
    placed.collect()
}

/// The numbers that an instance's tile extents are.
pub(crate) fn extents(dims: &[Dim]) -> Vec<usize> {
    dims.iter()
        .map(|dim| dim.as_const().and_then(|extent| usize::try_from(extent).ok()))
        .collect::<Option<_>>()
        .expect("an instance's tile extents are positive numbers")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Elements;
    use crate::dtype::DType;
    use crate::ops::Literal;
    use tile_test_edit::Edit;

    fn instance(text: &str, constants: &[(&str, usize)]) -> Instance {
        Instance::parse(text, constants).unwrap()
    }

    const MATMUL: &str = "\
kernel @matmul<BM, BN, BK>(%a: tensor<m x k x f32>, %b: tensor<k x n x f32>, %c: mut tensor<m x n x f32>) {
  %va = partition %a [BM, BK] : partition<m x k x f32, [BM, BK]>
  %vb = partition %b [BK, BN] : partition<k x n x f32, [BK, BN]>
  %vc = partition %c [BM, BN] : mut partition<m x n x f32, [BM, BN]>
  %i, %j = block_index %vc : index, index
  %0 = constant 0.0 : f32
  %zero = splat %0 : tile<BM x BN x f32>
  %1 = constant 0 : index
  %2 = extent ceil_div(k, BK) : index
  %acc_2 = for %p = %1 to %2 carry (%acc = %zero) : tile<BM x BN x f32> {
    %4 = load_masked %va[%i, %p] pad %0 : tile<BM x BK x f32>
    %6 = load_masked %vb[%p, %j] pad %0 : tile<BK x BN x f32>
    %7 = mma %4, %6, %acc : tile<BM x BN x f32>
    yield %7
  }
  store_masked %vc, %acc_2
}
";

    fn ramp(shape: &[usize], f: impl Fn(usize) -> f64) -> Array {
        let count = shape.iter().product();
        Array::new(DType::F32, shape.to_vec(), Elements::Float((0..count).map(f).collect()))
    }

    #[test]
    fn matmul_of_ragged_shapes() {
        let instance = instance(MATMUL, &[("BM", 4), ("BN", 8), ("BK", 2)]);
        let (m, n, k) = (5, 9, 3);
        let (a, b) = (ramp(&[m, k], |i| (i % 7) as f64 - 3.0), ramp(&[k, n], |i| (i % 5) as f64));
        let mut arguments = [a.clone(), b.clone(), ramp(&[m, n], |_| -7.0)];
        run(&instance, &mut arguments).unwrap();
        for i in 0..m {
            for j in 0..n {
                let expected: f64 = (0..k).map(|p| a.get_f64(i * k + p) * b.get_f64(p * n + j)).sum();
                assert_eq!(arguments[2].get_f64(i * n + j), expected, "({i}, {j})");
            }
        }
    }

    #[test]
    fn shapes_that_disagree_are_named() {
        let instance = instance(MATMUL, &[("BM", 4), ("BN", 8), ("BK", 2)]);
        let mut arguments = [ramp(&[4, 3], |_| 0.0), ramp(&[2, 8], |_| 0.0), ramp(&[4, 8], |_| 0.0)];
        assert_eq!(
            run(&instance, &mut arguments).unwrap_err().to_string(),
            "`k` of kernel `matmul` is 3 (axis 1 of `a`) and 2 (axis 0 of `b`); axes that share a name must have \
             equal extents"
        );
    }

    const CUT: &str = "\
kernel @cut(%x: tensor<m x n x f32>, %y: mut tensor<n x m x f32>) {
  %t = view %x permute [1, 0] : tensor<n x m x f32, strided [1, n]>
  %vx = partition %t [2, 4] : partition<n x m x f32, strided [1, n], [2, 4]>
  %vy = partition %y [2, 4] : mut partition<n x m x f32, [2, 4]>
  %i, %j = block_index %vy : index, index
  %0 = load %vx[%i, %j] : tile<2 x 4 x f32>
  store %vy, %0
}
";

    #[test]
    fn bounds_are_checked_before_anything_runs() {
        let instance = instance(CUT, &[]);
        let x = ramp(&[4, 6], |i| i as f64);
        let mut arguments = [x.clone(), ramp(&[6, 4], |_| -7.0)];
        run(&instance, &mut arguments).unwrap();
        assert_eq!(arguments[1].elements(), x.permute(&[1, 0]).elements());
        let mut arguments = [ramp(&[4, 5], |i| i as f64), ramp(&[5, 4], |_| -7.0)];
        assert_eq!(
            run(&instance, &mut arguments).unwrap_err().to_string(),
            "kernel `cut`: `load` of a view of `x`: tile 2 of axis 0 ends at element 6, but the axis has 5 elements (n); \
             use `load_masked`, which is defined for every index"
        );
        assert_eq!(arguments[1].elements(), ramp(&[5, 4], |_| -7.0).elements());
        let mut empty = [ramp(&[3, 0], |_| 0.0), ramp(&[0, 3], |_| 0.0)];
        run(&instance, &mut empty).unwrap();
    }

    #[test]
    fn turns_are_counted_up_to_a_limit() {
        let text = "\
kernel @k(%y: mut tensor<n x i32>) {
  %v = partition %y [4] : mut partition<n x i32, [4]>
  %0 = constant 0 : i32
  %1 = load_masked %v pad %0 : tile<4 x i32>
  %start = constant 0 : index
  %end = extent n : index
  %2 = for %i = %start to %end carry (%t = %1) : tile<4 x i32> {
    %3 = neg %t : tile<4 x i32>
    yield %3
  }
  %true = constant true : bool
  %goes_on = constant GOES_ON : bool
  %6 = while %true carry (%s = %2) : tile<4 x i32> {
    %7 = neg %s : tile<4 x i32>
    yield %goes_on, %7
  }
  store_masked %v, %6
}
";
        // Two blocks, each with six turns and one.
        let ends = instance(&text.edit("GOES_ON", "false"), &[]);
        let mut arguments = [Array::iota(DType::I32, &[6], 0)];
        assert_eq!(turns(&ends, &mut arguments, u64::MAX), Ok(14));
        assert_eq!(arguments[0].elements(), &Elements::Int(vec![0, -1, -2, -3, -4, -5]));
        assert_eq!(turns(&ends, &mut arguments, 13), Ok(13));
        let endless = instance(&text.edit("GOES_ON", "true"), &[]);
        assert_eq!(turns(&endless, &mut arguments, 1000), Ok(1000));
    }

    #[test]
    fn empty_grids_and_branches() {
        let text = "\
kernel @k(%flag: bool, %y: mut tensor<n x i32>) {
  %v = partition %y [4] : mut partition<n x i32, [4]>
  %0 = constant 7 : i32
  %1 = load_masked %v pad %0 : tile<4 x i32>
  %2 = if %flag : tile<4 x i32> {
    %3 = neg %1 : tile<4 x i32>
    yield %3
  } else {
    yield %1
  }
  store_masked %v, %2
}
";
        let instance = instance(text, &[]);
        let y = Array::iota(DType::I32, &[6], 0);
        let mut arguments = [Array::scalar(DType::Bool, Literal::Int(1)), y];
        run(&instance, &mut arguments).unwrap();
        assert_eq!(arguments[1].elements(), &Elements::Int(vec![0, -1, -2, -3, -4, -5]));
        let mut none = [Array::scalar(DType::Bool, Literal::Int(1)), Array::iota(DType::I32, &[0], 0)];
        run(&instance, &mut none).unwrap();
    }
}
