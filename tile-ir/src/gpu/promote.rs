//! Products of 8-bit floats begin at zero in every turn of a pipeline, and are added to the sums besides.
//!
//! Hopper's tensor cores align what they add of such products to the largest of it and keep about 14 bits (DeepSeek-V3
//! Technical Report, section 3.3.2), whatever the format of the sums. Over a long depth that is too few for sums of f32:
//! so a turn's depth is all that is added up in this way, and additions of f32 do the rest, at the price of registers for
//! both sums. That is what libraries do without "fast accumulation", which a kernel can ask for
//! ([`Kernel::fast_accumulation`]).
//!
//! Products of tensor memory add in f32, but no thread can change their sums there: those that a loop changes are rewritten so
//! ([`super::pipeline`]).

use super::Pipelines;
use super::copies::is_zero_tile;
use crate::dtype::DType;
use crate::insert::Inserter;
use crate::kernel::{FastAccumulation, Kernel, OpId};
use crate::ops::{BinaryOp, Literal, Op};
use crate::types::Type;

/// Whether a product of a pipeline is of 8-bit floats, and adds to something, in a kernel that doesn't say that fewer bits will
/// do ([`Kernel::fast_accumulation`]).
pub(super) fn is_needed(kernel: &Kernel, pipelines: &Pipelines, op: OpId) -> bool {
    let data = kernel.op(op);
    kernel.fast_accumulation != FastAccumulation::Yes
        && data.op == Op::Mma
        && pipelines.factors(op).is_some()
        && super::dtype_of(kernel, data.operands[0]).is_float()
        && super::dtype_of(kernel, data.operands[0]).bits() == 8
        && !is_zero_tile(kernel, data.operands[2])
}

/// Rewrites these products.
pub(super) fn run(kernel: &mut Kernel, products: &[OpId]) {
    for &op in products {
        let region = kernel.region_of(op).expect("a product stands in a region");
        let at = kernel.region(region).ops.iter().position(|&other| other == op);
        let at = at.expect("the product stands in its region");
        let (sums, result) = (kernel.op(op).operands[2], kernel.op(op).results[0]);
        let ty = kernel.ty(result).clone();
        let mut place = Inserter::new(kernel, region, at);
        let elem = ty.elem().clone();
        let is_float = elem.known().is_none_or(DType::is_float);
        let value = if is_float { Literal::Float(0.0) } else { Literal::Int(0) };
        let constant = Op::Constant { value, elem: elem.clone() };
        let zero = place.emit(constant, Vec::new(), Type::scalar(elem));
        let shape = ty.as_tile().expect("verified: a product is a tile").shape.clone();
        let zeros = place.emit(Op::Splat(shape), vec![zero], ty.clone());
        let own = place.kernel.new_value(ty, None);
        let loc = place.kernel.op(op).loc;
        let data = place.kernel.op_mut(op);
        data.operands[2] = zeros;
        data.results = vec![own];
        place.at += 1;
        let (op, operands) = (Op::Binary(BinaryOp::Add), vec![sums, own]);
        let (results, regions) = (vec![result], Vec::new());
        place.insert(crate::kernel::OpData { op, operands, results, regions, loc });
    }
}
