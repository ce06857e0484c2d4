//! Factors of 8-bit floats become bf16 where a target's instructions multiply tiles of these but not of those.
//!
//! Every 8-bit float is a bf16, normal ones and subnormal ones a normal one, and the product of two bf16 is an f32; so the
//! sums are those that were asked for. bf16 rather than f16, of which gfx90a's matrix instructions take subnormal numbers as
//! zero (PyTorch, "Numerical accuracy", on MI200).

use crate::dtype::DType;
use crate::gpu::products;
use crate::insert::Inserter;
use crate::kernel::{Kernel, OpId, ValueId};
use crate::ops::Op;
use crate::target::TargetDesc;
use crate::types::{Elem, Type};

/// The products of 8-bit floats that can be cut into a target's instructions of bf16 alone.
pub(in crate::gpu) fn needed(kernel: &Kernel, target: &TargetDesc) -> Vec<OpId> {
    let is_float8 = |&factor: &ValueId| crate::gpu::dtype_of(kernel, factor).is_float8();
    let is_needed = |&op: &OpId| {
        let data = kernel.op(op);
        // `mma` adds products of bf16 in f32 alone.
        if data.op != Op::Mma
            || !data.operands[..2].iter().all(is_float8)
            || crate::gpu::dtype_of(kernel, data.results[0]) != DType::F32
        {
            return false;
        }
        let extents = products::extents(kernel, data);
        let of_bf16 = target.matrix.iter().filter(|it| it.factors == [DType::BF16; 2]);
        !products::does(products::suited(kernel, data, target.matrix), target.matrix, extents)
            && products::does(of_bf16, target.matrix, extents)
    };
    kernel.walk().into_iter().filter(is_needed).collect()
}

/// Converts the factors of these products.
pub(in crate::gpu) fn run(kernel: &mut Kernel, products: &[OpId]) {
    for &op in products {
        let mut place = Inserter::before(kernel, op);
        for factor in 0..2 {
            let value = place.kernel.op(op).operands[factor];
            let Type::Tile(mut ty) = place.kernel.ty(value).clone() else {
                unreachable!("verified: a product's factors are tiles")
            };
            ty.elem = Elem::from(DType::BF16);
            let wide = place.emit(Op::Cast(ty.elem.clone()), vec![value], Type::Tile(ty));
            place.kernel.op_mut(op).operands[factor] = wide;
        }
    }
}
