//! Products of one matrix that a stack holds become products of matrices: tiles `[1, M, K]` of a batch are multiplied as
//! `[M, K]` ones, which is what a pipeline brings and warpgroups multiply.
//!
//! The sums that a loop adds up are matrices in it, too: a value that a loop carries, and that all its turns take and give
//! reshaped, is reshaped before the loop and behind it.

use crate::analysis::uses::Uses;
use crate::dim::Dim;
use crate::gpu::shape_of;
use crate::insert::Inserter;
use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::loc::Loc;
use crate::ops::Op;
use crate::passes;
use crate::target::TargetDesc;
use crate::types::Type;

/// Axes of a matrix.
const MATRIX: usize = 2;

/// The products of stacks of one matrix, where a target has instructions of warpgroups.
pub(in crate::gpu) fn needed(kernel: &Kernel, target: &TargetDesc) -> Vec<OpId> {
    let is_one = |&value: &ValueId| {
        let shape = shape_of(kernel, value).expect("verified: a product is of tiles");
        let stack = &shape[..shape.len() - MATRIX];
        !stack.is_empty() && stack.iter().all(|&extent| extent == 1)
    };
    let is_needed = |&op: &OpId| {
        let data = kernel.op(op);
        data.op == Op::Mma && data.operands.iter().all(is_one)
    };
    let ops = if target.warpgroup_matrix.is_empty() { Vec::new() } else { kernel.walk() };
    ops.into_iter().filter(is_needed).collect()
}

/// Makes matrices of the operands of these products, and of what loops carry of their sums.
pub(in crate::gpu) fn run(kernel: &mut Kernel, products: &[OpId]) {
    for &op in products {
        let mut place = Inserter::before(kernel, op);
        for operand in 0..place.kernel.op(op).operands.len() {
            let stack = place.kernel.op(op).operands[operand];
            let shape = matrix_of(place.kernel, stack);
            let matrix = reshaped(&mut place, stack, shape);
            place.kernel.op_mut(op).operands[operand] = matrix;
        }
        let result = place.kernel.op(op).results[0];
        let shape = matrix_of(place.kernel, result);
        let matrix = place.kernel.new_value(with_shape(place.kernel, result, shape), None);
        place.kernel.op_mut(op).results = vec![matrix];
        // Behind the product.
        place.at += 1;
        define(&mut place, result, matrix);
    }
    // What an inner loop begins with is reshaped in the outer one.
    for op in kernel.walk().into_iter().rev() {
        for carried in 0..kernel.op(op).results.len() {
            carry_reshaped(kernel, op, carried);
        }
    }
    passes::canonicalize(kernel);
    passes::remove_unused(kernel);
}

/// Has a loop carry a value in the shape that its turns take and give it in, if they do.
fn carry_reshaped(kernel: &mut Kernel, op: OpId, carried: usize) {
    let data = kernel.op(op);
    let (Op::For, &[body]) = (&data.op, data.regions.as_slice()) else { return };
    let first = data.operands.len() - data.results.len();
    let (initial, result) = (data.operands[first + carried], data.results[carried]);
    // The first parameter is the counter.
    let parameter = kernel.region(body).params[1 + carried];
    let end = *kernel.region(body).ops.last().expect("a loop's region ends");
    let given = kernel.op(end).operands[carried];
    let Some(shape) = shape_in_turns(kernel, parameter, given) else { return };
    let ty = with_shape(kernel, parameter, shape.clone());
    let [inner, outer] = [(); 2].map(|()| kernel.new_value(ty.clone(), None));
    kernel.region_mut(body).params[1 + carried] = inner;
    define(&mut Inserter::new(kernel, body, 0), parameter, inner);
    let next = reshaped(&mut Inserter::before(kernel, end), given, shape.clone());
    kernel.op_mut(end).operands[carried] = next;
    let start = reshaped(&mut Inserter::before(kernel, op), initial, shape);
    let data = kernel.op_mut(op);
    (data.operands[first + carried], data.results[carried]) = (start, outer);
    define(&mut Inserter::behind(kernel, op), result, outer);
}

/// The other shape in which all uses of a loop's parameter take it, and in which what the loop gives for the next turn was
/// before it was reshaped.
fn shape_in_turns(kernel: &Kernel, parameter: ValueId, given: ValueId) -> Option<Vec<Dim>> {
    let next = kernel.definition(given).filter(|data| matches!(data.op, Op::Reshape(_)))?;
    let before = &kernel.ty(next.operands[0]).as_tile()?.shape;
    let uses = Uses::of(kernel);
    let users: Vec<&Op> = uses.of_value(parameter).iter().map(|&user| &kernel.op(user).op).collect();
    let [Op::Reshape(shape), others @ ..] = users.as_slice() else { return None };
    let is_same = |other: &&Op| matches!(other, Op::Reshape(other) if other == shape);
    (others.iter().all(is_same) && before == shape).then(|| shape.clone())
}

/// The extents of a stack's matrices.
fn matrix_of(kernel: &Kernel, stack: ValueId) -> Vec<Dim> {
    let shape = &kernel.ty(stack).as_tile().expect("verified: a product is of tiles").shape;
    shape[shape.len() - MATRIX..].to_vec()
}

/// The type of a tile, with another shape.
fn with_shape(kernel: &Kernel, tile: ValueId, shape: Vec<Dim>) -> Type {
    let mut ty = kernel.ty(tile).as_tile().expect("it is a tile").clone();
    ty.shape = shape;
    Type::Tile(ty)
}

fn reshaped(place: &mut Inserter<'_>, tile: ValueId, shape: Vec<Dim>) -> ValueId {
    let ty = with_shape(place.kernel, tile, shape.clone());
    place.emit(Op::Reshape(shape), vec![tile], ty)
}

/// Adds the reshape that gives a value, which had another definition before.
fn define(place: &mut Inserter<'_>, value: ValueId, of: ValueId) {
    let shape = place.kernel.ty(value).as_tile().expect("it is a tile").shape.clone();
    let (operands, results, regions) = (vec![of], vec![value], Vec::new());
    place.insert(OpData { op: Op::Reshape(shape), operands, results, regions, loc: Loc::UNKNOWN });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Elements;
    use crate::{Array, DType, Instance, interp, text};

    /// A batch of products, and what else a turn does with the sums.
    fn batched(more: &str, next: &str) -> Instance {
        let source = format!(
            "\
kernel @batched(%a: tensor<b x m x k x f32>, %b: tensor<b x k x n x f32>, %c: mut tensor<b x m x n x f32>) {{
  %va = partition %a [1, 4, 8] : partition<b x m x k x f32, [1, 4, 8]>
  %vb = partition %b [1, 8, 4] : partition<b x k x n x f32, [1, 8, 4]>
  %vc = partition %c [1, 4, 4] : mut partition<b x m x n x f32, [1, 4, 4]>
  %i, %j, %l = block_index %vc : index, index, index
  %pad = constant 0.0 : f32
  %zero = splat %pad : tile<1 x 4 x 4 x f32>
  %0 = constant 0 : index
  %end = extent ceil_div(k, 8) : index
  %sum = for %p = %0 to %end carry (%acc = %zero) : tile<1 x 4 x 4 x f32> {{
    %ta = load_masked %va[%i, %j, %p] pad %pad : tile<1 x 4 x 8 x f32>
    %tb = load_masked %vb[%i, %p, %l] pad %pad : tile<1 x 8 x 4 x f32>
    %product = mma %ta, %tb, %acc : tile<1 x 4 x 4 x f32>
{more}    yield {next}
  }}
  store_masked %vc, %sum
}}
"
        );
        Instance::parse(&source, &[]).unwrap_or_else(|error| panic!("{error}\n{source}"))
    }

    fn rewritten(instance: Instance) -> Instance {
        let target = TargetDesc::named("sm_90a").unwrap();
        let products = needed(&instance, target);
        assert_eq!(products.len(), 1);
        instance.rewrite("single", |kernel| run(kernel, &products))
    }

    #[test]
    fn sums_that_a_loop_adds_up_are_matrices() {
        insta::assert_snapshot!(text::print(&rewritten(batched("", "%product"))));
    }

    #[test]
    fn sums_that_a_turn_looks_at_stay_stacks_outside_of_the_product() {
        let more = "    %half = constant 0.5 : f32\n    %halves = splat %half : tile<1 x 4 x 4 x f32>\n    \
                    %less = mul %acc, %halves : tile<1 x 4 x 4 x f32>\n    \
                    %next = add %product, %less : tile<1 x 4 x 4 x f32>\n";
        let other = text::print(&rewritten(batched(more, "%next")));
        assert!(other.contains("carry (%acc = %zero) : tile<1 x 4 x 4 x f32>"), "{other}");
        assert!(other.contains("= mma") && other.contains(": tile<4 x 4 x f32>"), "{other}");
    }

    #[test]
    fn products_are_what_they_were() {
        let tensor = |shape: &[usize], step: usize| {
            let numbers = (0..shape.iter().product::<usize>()).map(|i| (i * step % 7) as f64);
            Array::new(DType::F32, shape.to_vec(), Elements::Float(numbers.collect()))
        };
        let given = [tensor(&[2, 6, 20], 3), tensor(&[2, 20, 5], 5), tensor(&[2, 6, 5], 0)];
        let (mut plain, mut other) = (given.to_vec(), given.to_vec());
        let instance = batched("", "%product");
        interp::run(&instance, &mut plain).unwrap();
        interp::run(&rewritten(instance), &mut other).unwrap();
        assert_eq!(plain[2].to_bytes(), other[2].to_bytes());
    }
}
