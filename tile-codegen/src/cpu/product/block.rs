//! Register blocks: sums that stay in registers while a packed row of `b` after the other is multiplied by a column of
//! `a`.

use super::super::buffer::Buffer;
use super::super::region::Emitter;
use super::Needed;
use super::ahead::{Ahead, CHUNK, Share};
use super::beside::Beside;
use super::contraction::{Contraction, DotProduct};
use super::direct::Direct;
use super::left::Left;
use super::plan::Plan;
use crate::emit::{LoopHint, Value};
use inkwell::intrinsics::Intrinsic;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValue, IntValue, VectorValue};
use tile_ir::kernel::OpData;
use tile_ir::{DType, ValueId};

/// A matrix product whose factors are packed.
struct Product<'p, 'c> {
    plan: &'p Plan,
    a: Left<'c>,
    b: Buffer<'c>,
    c: Buffer<'c>,
    first_of_c: IntValue<'c>,
    depth: IntValue<'c>,
    start: Start<Value<'c>, IntValue<'c>>,
    /// What is asked for meanwhile.
    ahead: &'p [Ahead<'c>],
    /// What is packed meanwhile.
    beside: Option<&'p Beside<'c>>,
    /// Where sums go, if not to `c`.
    direct: Option<&'p Direct<'c>>,
}

/// The sums that registers hold: rows, vectors side by side, and how many lanes of the last one there are.
#[derive(Clone, Copy)]
struct Sums {
    rows: i64,
    vectors: i64,
    last: i64,
}

/// What is done for the next multiplication while the register blocks of one multiply.
#[derive(Clone, Copy, Default)]
pub(super) struct Meanwhile<'p, 'c> {
    /// What is asked for.
    pub(super) ahead: &'p [Ahead<'c>],
    /// What is packed.
    pub(super) beside: Option<&'p Beside<'c>>,
}

/// What the sums of a product begin with.
#[derive(Clone, Copy)]
pub(super) enum Start<V, C> {
    /// What is where they are stored.
    InMemory,
    /// One number.
    Number(V),
    /// One number where this holds, and else what is where they are stored.
    NumberWhere(V, C),
}

impl<V, C> Start<V, C> {
    fn map<W>(self, number: impl FnOnce(V) -> W) -> Start<W, C> {
        match self {
            Start::InMemory => Start::InMemory,
            Start::Number(value) => Start::Number(number(value)),
            Start::NumberWhere(value, condition) => Start::NumberWhere(number(value), condition),
        }
    }
}

/// Where a vector of sums belongs.
struct SumsPlace<'c> {
    /// In the tile.
    index: [IntValue<'c>; 2],
    /// In `c`.
    at: IntValue<'c>,
    /// The lanes that are columns, where not all are.
    mask: Option<VectorValue<'c>>,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Multiplies the packed factors of a matrix, as deep as they are, and adds that to the accumulator.
    pub(super) fn multiply(
        &mut self,
        data: &'a OpData,
        plan: &Plan,
        (matrix, depth): (IntValue<'c>, IntValue<'c>),
        (a, b, needed): (Left<'c>, Buffer<'c>, Needed<'c>),
        (start, meanwhile, direct): (Start<ValueId, IntValue<'c>>, Meanwhile<'_, 'c>, Option<&Direct<'c>>),
    ) {
        let ir = self.ir;
        let result = data.results[0];
        let product = Product {
            plan,
            a,
            b,
            c: self.stored(result),
            first_of_c: ir.mul(matrix, ir.i64(plan.m * plan.n)),
            depth,
            start: start.map(|start| self.scalar(start)),
            ahead: meanwhile.ahead,
            beside: meanwhile.beside,
            direct,
        };
        let (width, lanes) = (plan.block.width(), plan.block.lanes);
        let (whole, rest) = (plan.n / width * width, plan.n % width);
        if whole > 0 {
            let range = (ir.i64(0), ir.lesser(needed.columns, ir.i64(whole)));
            self.panels(&product, (plan.block.vectors, lanes), range, needed.rows);
        }
        if rest > 0 {
            let vectors = (rest + lanes - 1) / lanes;
            let last = rest - (vectors - 1) * lanes;
            self.panels(&product, (vectors, last), (ir.i64(whole), needed.columns), needed.rows);
        }
        if let Some(beside) = product.beside {
            self.pack_rest(beside, plan);
        }
    }

    /// Covers panels of so many vectors, of which the last has so many lanes, with register blocks; each panel stays in
    /// the first cache while the rows of `a` pass by.
    fn panels(
        &self,
        product: &Product<'_, 'c>,
        (vectors, last): (i64, i64),
        (from, to): (IntValue<'c>, IntValue<'c>),
        rows: IntValue<'c>,
    ) {
        let (ir, plan) = (self.ir, product.plan);
        let width = plan.block.width();
        ir.hinted_loop((from, to, ir.i64(width)), LoopHint::Rolled, &[], |j, _| {
            let number = ir.udiv(j, ir.i64(width));
            let panel = ir.mul(number, ir.i64(plan.panel()));
            let mut above = 0;
            for (block, first, end) in plan.block.rows_of(plan.m) {
                let blocks_above = above;
                above += (end - first) / block;
                let end = ir.lesser(rows, ir.i64(end));
                ir.hinted_loop((ir.i64(first), end, ir.i64(block)), LoopHint::Rolled, &[], |i, _| {
                    let below = ir.udiv(ir.sub(i, ir.i64(first)), ir.i64(block));
                    let above = ir.add(ir.mul(number, ir.i64(plan.blocks_of_rows())), ir.i64(blocks_above));
                    let number = ir.add(above, below);
                    self.register_block(
                        product,
                        Sums { rows: block, vectors, last },
                        (panel, number),
                        [i, j],
                    );
                    Vec::new()
                });
            }
            Vec::new()
        });
    }

    fn register_block(
        &self,
        product: &Product<'_, 'c>,
        sums: Sums,
        (panel, number): (IntValue<'c>, IntValue<'c>),
        [i, j]: [IntValue<'c>; 2],
    ) {
        let (ir, plan) = (self.ir, product.plan);
        let lanes = plan.block.lanes;
        let places = (0..sums.rows).flat_map(|row| (0..sums.vectors).map(move |vector| (row, vector)));
        let places: Vec<SumsPlace<'c>> = places
            .map(|(row, vector)| {
                let index = [ir.add(i, ir.i64(row)), ir.add(j, ir.i64(vector * lanes))];
                let at = ir.add(ir.add(product.first_of_c, ir.mul(index[0], ir.i64(plan.n))), index[1]);
                let is_cut = vector + 1 == sums.vectors && sums.last < lanes;
                SumsPlace { index, at, mask: is_cut.then(|| ir.lanes_below(ir.i64(sums.last), lanes as u32)) }
            })
            .collect();
        let initial = self.first_sums(product, &places);
        let shares: Vec<Share<'c>> =
            product.ahead.iter().map(|ahead| ahead.share(ir, plan, number)).collect();
        if let Some(direct) = product.direct {
            let asks = match direct.streams {
                Some(streams) => ir.select_int(streams, ir.bool(false), direct.is_direct),
                None => direct.is_direct,
            };
            ir.if_then(asks, || places.iter().for_each(|place| direct.ask(ir, place.index)));
        }
        let finals = self.outer_products(product, sums, (i, panel), &shares, initial);
        let keep = || {
            for (place, sum) in places.iter().zip(&finals) {
                self.buffers.store_lanes(&product.c, place.at, place.mask, sum.into_vector_value());
            }
            Vec::new()
        };
        let Some(direct) = product.direct else { return drop(keep()) };
        let store = |streams| {
            for (place, sum) in places.iter().zip(&finals) {
                let place = (place.index, place.mask);
                self.store_directly(direct, place, sum.into_vector_value(), streams && place.1.is_none());
            }
            Vec::new()
        };
        let store_either = || match direct.streams {
            Some(streams) => ir.if_else(streams, || store(true), || store(false)),
            None => store(false),
        };
        ir.if_else(direct.is_direct, store_either, keep);
    }

    fn first_sums(&self, product: &Product<'_, 'c>, places: &[SumsPlace<'c>]) -> Vec<Value<'c>> {
        let (ir, lanes) = (self.ir, product.plan.block.lanes as u32);
        let load = || {
            let load = |place: &SumsPlace<'c>| {
                Value::from(self.buffers.load_lanes(&product.c, place.at, place.mask, lanes))
            };
            places.iter().map(load).collect()
        };
        let repeat = |start| vec![ir.in_every_lane(start, lanes).into(); places.len()];
        match product.start {
            Start::InMemory => load(),
            Start::Number(start) => repeat(start),
            Start::NumberWhere(start, condition) => ir.if_else(condition, || repeat(start), load),
        }
    }

    /// All steps along K: those that make whole turns of the loop come in chunks, each of which asks for lines, the others
    /// before.
    fn outer_products(
        &self,
        product: &Product<'_, 'c>,
        sums: Sums,
        (first_row, panel): (IntValue<'c>, IntValue<'c>),
        shares: &[Share<'c>],
        initial: Vec<Value<'c>>,
    ) -> Vec<Value<'c>> {
        let (ir, plan) = (self.ir, product.plan);
        let steps = ir.udiv(product.depth, ir.i64(plan.contraction.group()));
        let at_once = plan.block.steps;
        let step =
            |p, partial: &[Value<'c>]| self.outer_product(product, sums, (first_row, panel, p), partial);
        let (before, partial) = match at_once {
            1 => (ir.i64(0), initial),
            _ => {
                let odd = ir.urem(steps, ir.i64(at_once));
                let range = (ir.i64(0), odd, ir.i64(1));
                (odd, ir.hinted_loop(range, LoopHint::Rolled, &initial, step))
            }
        };
        let range = (before, steps, ir.i64(CHUNK));
        ir.hinted_loop(range, LoopHint::Rolled, &partial, |first, partial| {
            let number = ir.udiv(ir.sub(first, before), ir.i64(CHUNK));
            shares.iter().for_each(|share| share.ask(ir, number));
            if let Some(beside) = product.beside {
                self.pack_chunk(beside, plan);
            }
            let range = (first, ir.lesser(ir.add(first, ir.i64(CHUNK)), steps), ir.i64(at_once));
            ir.hinted_loop(range, LoopHint::Rolled, partial, |p, partial| {
                (0..at_once)
                    .fold(partial.to_vec(), |partial, further| step(ir.add(p, ir.i64(further)), &partial))
            })
        })
    }

    /// One step along K: a column of `a` times a row of `b`, added to the sums.
    fn outer_product(
        &self,
        product: &Product<'_, 'c>,
        sums: Sums,
        (first_row, panel, p): (IntValue<'c>, IntValue<'c>, IntValue<'c>),
        partial: &[Value<'c>],
    ) -> Vec<Value<'c>> {
        let (ir, plan) = (self.ir, product.plan);
        let (block, group) = (plan.block, plan.contraction.group());
        let row_of_b = ir.add(panel, ir.mul(p, ir.i64(block.width() * group)));
        let b = (0..sums.vectors).map(|vector| {
            let at = ir.add(row_of_b, ir.i64(vector * block.lanes * group));
            self.buffers.load_lanes(&product.b, at, None, (block.lanes * group) as u32)
        });
        let b: Vec<VectorValue<'c>> = b.collect();
        let word = match plan.contraction {
            Contraction::MultiplyAdd => self.buffers.element_type(product.a.dtype),
            Contraction::Dot(_) => ir.int_type(32).into(),
        };
        let rows = (0..sums.rows).flat_map(|row| {
            let a = self.load_left(&product.a, word, [ir.add(first_row, ir.i64(row)), p]);
            let a = ir.in_every_lane(a, block.lanes as u32);
            b.iter().map(move |&b| (a, b))
        });
        let next = rows.zip(partial).map(|((a, b), sum)| {
            let sum = sum.into_vector_value();
            match plan.contraction {
                Contraction::MultiplyAdd => self.multiply_add(a, b, sum),
                Contraction::Dot(dot) => self.dot(dot, a, b, sum),
            }
        });
        next.map(Value::from).collect()
    }

    /// `a` in words of what is multiplied at once.
    fn dot(
        &self,
        dot: &DotProduct,
        a: VectorValue<'c>,
        b: VectorValue<'c>,
        sum: VectorValue<'c>,
    ) -> VectorValue<'c> {
        let ir = self.ir;
        let elements = sum.get_type().get_size() * dot.group as u32;
        let ty = match dot.packed {
            DType::U16 => ir.context.bf16_type().vec_type(elements),
            packed => ir.int_type(packed.bits()).vec_type(elements),
        };
        let [a, b] = [a, b].map(|factor| ir.vector_of_bits(factor, ty));
        let (first, second) = if dot.is_swapped { (b, a) } else { (a, b) };
        let is_overloaded = Intrinsic::find(dot.intrinsic).is_some_and(|found| found.is_overloaded());
        let overloads = [sum.get_type().into(), ty.into()];
        let overloads = if is_overloaded { &overloads[..] } else { &[] };
        let operands = [sum.into(), first.into(), second.into()];
        let operands = if dot.adds { &operands[..] } else { &operands[1..] };
        let result = ir.intrinsic(dot.intrinsic, overloads, operands).expect("products").into_vector_value();
        if dot.adds {
            return result;
        }
        ir.builder.build_int_add(sum, result, "").expect("the builder is positioned")
    }

    fn multiply_add(&self, a: VectorValue<'c>, b: VectorValue<'c>, sum: VectorValue<'c>) -> VectorValue<'c> {
        let ir = self.ir;
        let positioned = "the builder is positioned";
        if matches!(sum.get_type().get_element_type(), BasicTypeEnum::IntType(_)) {
            let product = ir.builder.build_int_mul(a, b, "").expect(positioned);
            return ir.builder.build_int_add(sum, product, "").expect(positioned);
        }
        if ir.features.fma {
            let operands = [a.as_basic_value_enum(), b.as_basic_value_enum(), sum.as_basic_value_enum()];
            let fused = ir.intrinsic("llvm.fma", &[sum.get_type().into()], &operands);
            return fused.expect("fma has a result").into_vector_value();
        }
        let product = ir.builder.build_float_mul(a, b, "").expect(positioned);
        ir.builder.build_float_add(sum, product, "").expect(positioned)
    }
}
