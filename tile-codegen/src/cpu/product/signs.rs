//! Products of bytes of the same signedness, by an instruction that multiplies signed by unsigned bytes.
//!
//! Flipping a byte's highest bit converts between the two: it gives `a` + 128 for a signed `a`, and `a` − 128 for an
//! unsigned one. The sums of such products are too large by the sums of `b` times a flipped zero. These are the same for
//! all rows, so they are computed once for each panel of `b`, and register blocks begin with sums from which they are
//! subtracted. All of this wraps around, as the sums themselves do.

use super::super::region::Emitter;
use super::block::Product;
use super::plan::Plan;
use super::right::Panel;
use crate::emit::{LoopHint, Value};
use inkwell::values::{BasicValueEnum, IntValue, VectorValue};

/// The first bit of a byte.
const SIGN: u64 = 0x80;

/// Sums of steps along K that don't wait for each other.
const CHAINS: i64 = 4;

impl<'c> Emitter<'_, 'c> {
    /// Elements of `a`, packed as register blocks read them.
    pub(super) fn as_left(&self, plan: &Plan, packed: Value<'c>) -> Value<'c> {
        let ir = self.ir;
        match packed {
            _ if !plan.contraction.flips_signs() => packed,
            BasicValueEnum::VectorValue(bytes) => {
                let signs = ir
                    .in_every_lane(ir.int_type(8).const_int(SIGN, false).into(), bytes.get_type().get_size());
                ir.builder.build_xor(bytes, signs, "").expect("the builder is positioned").into()
            }
            byte => ir.xor(byte.into_int_value(), ir.int_type(8).const_int(SIGN, false)).into(),
        }
    }

    /// What zeros of `a` give with a panel of so many vectors, in each of its columns; nothing where their signs stay.
    pub(super) fn products_of_zeros(
        &self,
        product: &Product<'_, 'c>,
        vectors: i64,
        panel: &Panel<'c>,
    ) -> Vec<VectorValue<'c>> {
        let (ir, plan) = (self.ir, product.plan);
        if !plan.contraction.flips_signs() {
            return Vec::new();
        }
        let lanes = plan.block.lanes as u32;
        let zeros = ir.in_every_lane(ir.int_type(32).const_int(SIGN * 0x0101_0101, false).into(), lanes);
        let none: Value<'c> = zeros.get_type().const_zero().into();
        let steps = |range: [IntValue<'c>; 2], chains: i64, sums: &[Value<'c>]| {
            ir.hinted_loop((range[0], range[1], ir.i64(chains)), LoopHint::Rolled, sums, |p, sums| {
                let places = (0..chains).flat_map(|chain| (0..vectors).map(move |vector| (chain, vector)));
                let next = places.zip(sums).map(|((chain, vector), sum)| {
                    let b = self.load_right(panel, plan, ir.add(p, ir.i64(chain)), vector);
                    self.add_product(plan, [zeros, b], sum.into_vector_value()).into()
                });
                next.collect()
            })
        };
        let [begin, end] = product.steps;
        let odd = ir.add(begin, ir.urem(ir.sub(end, begin), ir.i64(CHAINS)));
        let mut sums = steps([begin, odd], 1, &vec![none; vectors as usize]);
        sums.resize((CHAINS * vectors) as usize, none);
        let sums = steps([odd, end], CHAINS, &sums);
        let of_vector = |vector: i64| {
            let chains = sums.iter().skip(vector as usize).step_by(vectors as usize);
            let chains = chains.map(|sum| sum.into_vector_value());
            chains.reduce(|all, sum| self.sum(all, sum)).expect("there are chains")
        };
        (0..vectors).map(of_vector).collect()
    }

    /// What the sums of a register block begin with, so that they end without what zeros give, vector by vector of its rows.
    pub(super) fn without(&self, initial: Vec<Value<'c>>, of_zeros: &[VectorValue<'c>]) -> Vec<Value<'c>> {
        if of_zeros.is_empty() {
            return initial;
        }
        let less = |(sum, &of_zeros): (Value<'c>, &VectorValue<'c>)| {
            let less = self.ir.builder.build_int_sub(sum.into_vector_value(), of_zeros, "");
            less.expect("the builder is positioned").into()
        };
        initial.into_iter().zip(of_zeros.iter().cycle()).map(less).collect()
    }
}
