//! Products that begin at zero in every turn of a pipeline, and are added to the sums by an addition of their own.
//!
//! Two kinds of product need that:
//!
//! * Those of 8-bit floats on Hopper, whose tensor cores align the terms of such a sum to the largest one and keep about 14
//!   bits (DeepSeek-V3 Technical Report, section 3.3.2), whatever the format of the sums. Over a long depth that is too few
//!   for sums of f32. So only a turn's depth is added up that way, and additions of f32 do the rest, at the price of
//!   registers for both sums. Libraries do the same without "fast accumulation", which a kernel can ask for
//!   ([`Kernel::fast_accumulation`]).
//! * Those whose sums lie in tensor memory and are changed between turns by threads, which can't change them there
//!   ([`crate::gpu::pipeline`]).

use crate::gpu::Pipelines;
use crate::insert::Inserter;
use crate::kernel::{FastAccumulation, Kernel, OpData, OpId};
use crate::ops::{BinaryOp, Op};

/// Whether a product of a pipeline is of 8-bit floats, and adds to something, in a kernel that doesn't say that fewer bits will
/// do ([`Kernel::fast_accumulation`]).
pub(in crate::gpu) fn is_needed(kernel: &Kernel, pipelines: &Pipelines, op: OpId) -> bool {
    let data = kernel.op(op);
    kernel.fast_accumulation != FastAccumulation::Yes
        && data.op == Op::Mma
        && pipelines.factors(op).is_some()
        && crate::gpu::dtype_of(kernel, data.operands[0]).is_float()
        && crate::gpu::dtype_of(kernel, data.operands[0]).bits() == 8
        && !kernel.is_zero(data.operands[2])
}

/// Rewrites these products.
pub(in crate::gpu) fn run(kernel: &mut Kernel, products: &[OpId]) {
    for &op in products {
        let (sums, result, loc) = {
            let data = kernel.op(op);
            (data.operands[2], data.results[0], data.loc)
        };
        let mut place = Inserter::before(kernel, op);
        let zeros = place.zeros(result);
        let own = place.kernel.new_value(place.kernel.ty(result).clone(), None);
        let product = place.kernel.op_mut(op);
        product.operands[2] = zeros;
        product.results = vec![own];
        // Behind the product, which the zeros stand before.
        place.at += 1;
        let (operands, results, regions) = (vec![sums, own], vec![result], Vec::new());
        place.insert(OpData { op: Op::Binary(BinaryOp::Add), operands, results, regions, loc });
    }
}
