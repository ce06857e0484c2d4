//! Register blocks: sums that stay in registers while, for one step along K after the other, a column of `a` is multiplied
//! by a row of `b`.

use super::super::region::Emitter;
use super::super::round_up::div_ceil;
use super::Needed;
use super::ahead::{CHUNK, FactorAhead, Share};
use super::beside::Beside;
use super::contraction::{Contraction, DotProduct};
use super::direct::Direct;
use super::left::{Left, LeftRow};
use super::places::PackedB;
use super::plan::Plan;
use super::right::{Panel, Right};
use super::sums::{Start, Sums, SumsBlock};
use crate::cpu::elements::IndexRange;
use crate::emit::{LoopHint, Value};
use inkwell::IntPredicate;
use inkwell::intrinsics::Intrinsic;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValue, IntValue, VectorValue};
use tile_ir::kernel::OpData;
use tile_ir::{DType, ValueId};

/// A matrix product whose factors are where register blocks read them.
pub(super) struct Product<'p, 'c> {
    pub(super) plan: &'p Plan,
    pub(super) a: Left<'c>,
    b: Right<'c>,
    pub(super) sums: &'p Sums<'p, 'c>,
    /// The first step along K, and where they end.
    pub(super) steps: [IntValue<'c>; 2],
    pub(super) meanwhile: Meanwhile<'p, 'c>,
}

/// What is done for the next multiplication while the register blocks of one multiply.
#[derive(Clone, Copy, Default)]
pub(super) struct Meanwhile<'p, 'c> {
    /// What is asked for.
    pub(super) ahead: &'p [FactorAhead<'c>],
    /// What is packed.
    pub(super) beside: Option<&'p Beside<'c>>,
}

/// One multiplication of a matrix's factors.
pub(super) struct Multiplication<'m, 'c> {
    /// The matrix's number.
    pub(super) matrix: IntValue<'c>,
    /// How many elements along K are multiplied.
    pub(super) depth: IntValue<'c>,
    pub(super) a: Left<'c>,
    pub(super) b: &'m PackedB<'c>,
    pub(super) needed: Needed<'c>,
    pub(super) start: Start<ValueId, IntValue<'c>>,
    /// Where register blocks store the sums themselves, if they may.
    pub(super) direct: Option<&'m Direct<'c>>,
    pub(super) meanwhile: Meanwhile<'m, 'c>,
}

/// What a register block multiplies: rows of `a` by the columns of a panel of `b`.
#[derive(Clone, Copy)]
struct BlockFactors<'f, 'c> {
    rows: &'f [LeftRow<'c>],
    panel: &'f Panel<'c>,
}

/// How wide a panel is: vectors side by side, and lanes of the last one that are columns.
#[derive(Clone, Copy)]
struct PanelWidth {
    vectors: i64,
    last: i64,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Multiplies the factors of a matrix, packed or where they are, as deep as they are, and adds that to the accumulator.
    pub(super) fn multiply(
        &mut self,
        data: &'a OpData,
        plan: &Plan,
        multiplication: &Multiplication<'_, 'c>,
    ) {
        let ir = self.ir;
        let &Multiplication { matrix, depth, a, b, needed, start, direct, meanwhile } = multiplication;
        let all = [ir.i64(0), ir.udiv(depth, ir.i64(plan.contraction.group()))];
        let by = |b, steps, start, direct: Option<&Direct<'c>>| {
            let sums = &self.sums(data.results[0], plan, matrix, start, direct);
            self.register_blocks(&Product { plan, a, b, sums, steps, meanwhile }, needed);
        };
        let packed = || by(Right::Packed(b.buffer), all, start, direct);
        let Some(in_place) = &b.in_place else { return packed() };
        let in_slices = |slice| {
            ir.each((all[0], all[1], ir.i64(slice)), LoopHint::Rolled, |first| {
                let end = ir.lesser(ir.add(first, ir.i64(slice)), all[1]);
                let start = start.where_it_holds(ir, ir.icmp(IntPredicate::EQ, first, all[0]));
                let goes_on = ir.icmp(IntPredicate::ULT, end, all[1]);
                let direct = direct.map(|direct| direct.unless(ir, goes_on));
                by(in_place.right(), [first, end], start, direct.as_ref());
            });
        };
        ir.on_each_side(in_place.is_read, |is_read| match (is_read, in_place.slice(plan)) {
            (false, _) => packed(),
            (true, Some(slice)) => in_slices(slice),
            (true, None) => by(in_place.right(), all, start, direct),
        });
    }

    /// Covers a product with register blocks.
    fn register_blocks(&self, product: &Product<'_, 'c>, needed: Needed<'c>) {
        let (ir, plan) = (self.ir, product.plan);
        if let Right::Columns(b) = &product.b {
            return self.dots(product, b, needed);
        }
        if let (Contraction::Tiles(tiles), Right::Packed(b)) = (plan.contraction, &product.b) {
            return self.blocks_of_tiles(product, tiles, b, needed);
        }
        let (width, lanes) = (plan.block.width(), plan.block.lanes);
        let (whole, rest) = (plan.n / width * width, plan.n % width);
        if whole > 0 {
            let columns = IndexRange::up_to(ir, ir.lesser(needed.columns, ir.i64(whole)));
            let width = PanelWidth { vectors: plan.block.vectors, last: lanes };
            self.panels(product, width, columns, needed.rows);
        }
        if rest > 0 {
            let vectors = div_ceil(rest, lanes);
            let width = PanelWidth { vectors, last: rest - (vectors - 1) * lanes };
            let columns = IndexRange { start: ir.i64(whole), end: needed.columns };
            self.panels(product, width, columns, needed.rows);
        }
        if let Some(beside) = product.meanwhile.beside {
            self.pack_rest(beside, plan);
        }
    }

    /// Covers panels of one width, which begin at these columns, with register blocks for so many rows; each panel stays in
    /// the first cache while the rows of `a` pass by.
    fn panels(
        &self,
        product: &Product<'_, 'c>,
        PanelWidth { vectors, last }: PanelWidth,
        columns: IndexRange<'c>,
        rows: IntValue<'c>,
    ) {
        let (ir, plan) = (self.ir, product.plan);
        let width = plan.block.width();
        let rows_of_blocks = plan.block.rows_of(plan.m);
        let blocks = rows_of_blocks.blocks_for(ir, rows);
        ir.each(columns.by(ir.i64(width)), LoopHint::Rolled, |j| {
            let number = ir.udiv(j, ir.i64(width));
            let panel = self.panel_of(&product.b, plan, j);
            let of_zeros = self.products_of_zeros(product, vectors, &panel);
            let first = ir.mul(number, ir.i64(plan.blocks_of_rows()));
            ir.each((ir.i64(0), blocks, ir.i64(1)), LoopHint::Rolled, |below| {
                let has_last_row = rows_of_blocks.is_high(ir, below);
                let place = [rows_of_blocks.first_row(ir, below), j];
                let block = SumsBlock { place, rows: rows_of_blocks.rows, has_last_row, vectors, last };
                self.register_block(product, block, &panel, &of_zeros, ir.add(first, below));
            });
        });
    }

    /// Computes and stores the sums of a block, the one of this number, in a panel whose products with zeros are `of_zeros`.
    fn register_block(
        &self,
        product: &Product<'_, 'c>,
        block: SumsBlock<'c>,
        panel: &Panel<'c>,
        of_zeros: &[VectorValue<'c>],
        number: IntValue<'c>,
    ) {
        let (ir, plan) = (self.ir, product.plan);
        let initial = self.without(self.first_sums(product.sums, block), of_zeros);
        let shares: Vec<Share<'c>> =
            product.meanwhile.ahead.iter().map(|ahead| ahead.share(ir, plan, number)).collect();
        self.ask_for_sums(product.sums, block);
        let rows = self.rows_of_left(&product.a, block.place[0], block.rows);
        let factors = BlockFactors { rows: &rows, panel };
        let products = self.outer_products(product, block, factors, &shares, initial);
        let finals = self.with_sums_in_memory(product.sums, block, products);
        self.store_sums(product.sums, block, &finals);
    }

    /// All steps along K: those that make whole turns of the loop come in chunks, each of which asks for lines, the others
    /// before.
    fn outer_products(
        &self,
        product: &Product<'_, 'c>,
        block: SumsBlock<'c>,
        factors: BlockFactors<'_, 'c>,
        shares: &[Share<'c>],
        initial: Vec<Value<'c>>,
    ) -> Vec<Value<'c>> {
        let (ir, plan) = (self.ir, product.plan);
        let ([begin, end], at_once) = (product.steps, plan.block.steps);
        let (before, partial) = if plan.has_whole_turns() {
            (begin, initial)
        } else {
            let odd = ir.add(begin, ir.urem(ir.sub(end, begin), ir.i64(at_once)));
            let range = IndexRange { start: begin, end: odd };
            (odd, self.steps(product, block, factors, range, 1, &initial))
        };
        let range = (before, end, ir.i64(CHUNK));
        ir.hinted_loop(range, LoopHint::Rolled, &partial, |first, partial| {
            let number = ir.udiv(ir.sub(first, before), ir.i64(CHUNK));
            shares.iter().for_each(|share| share.ask(ir, number));
            if let Some(beside) = product.meanwhile.beside {
                self.pack_chunk(beside, plan);
            }
            let chunk = IndexRange { start: first, end: ir.lesser(ir.add(first, ir.i64(CHUNK)), end) };
            self.steps(product, block, factors, chunk, at_once, partial)
        })
    }

    /// Steps along K, `at_once` in a turn of their loop.
    fn steps(
        &self,
        product: &Product<'_, 'c>,
        block: SumsBlock<'c>,
        factors: BlockFactors<'_, 'c>,
        range: IndexRange<'c>,
        at_once: i64,
        partial: &[Value<'c>],
    ) -> Vec<Value<'c>> {
        let ir = self.ir;
        let of_rows = |rows: i64| {
            let (sums, others) = partial.split_at((rows * block.vectors) as usize);
            let factors = BlockFactors { rows: &factors.rows[..rows as usize], ..factors };
            let step = |p, sums: &[Value<'c>]| self.outer_product(product, block.vectors, factors, p, sums);
            let sums = ir.hinted_loop(range.by(ir.i64(at_once)), LoopHint::Rolled, sums, |p, sums| {
                (0..at_once).fold(sums.to_vec(), |sums, further| step(ir.add(p, ir.i64(further)), &sums))
            });
            [&sums, others].concat()
        };
        match block.has_last_row {
            None => of_rows(block.rows),
            Some(has) => ir.either_side(has, |has| of_rows(if has { block.rows } else { block.rows - 1 })),
        }
    }

    /// One step along K: a column of `a` times a row of `b`, added to the sums.
    fn outer_product(
        &self,
        product: &Product<'_, 'c>,
        vectors: i64,
        factors: BlockFactors<'_, 'c>,
        p: IntValue<'c>,
        partial: &[Value<'c>],
    ) -> Vec<Value<'c>> {
        let (ir, plan) = (self.ir, product.plan);
        let lanes = plan.block.lanes;
        let b: Vec<VectorValue<'c>> =
            (0..vectors).map(|vector| self.load_right(factors.panel, plan, p, vector)).collect();
        let word = self.word_of(product);
        let rows = factors.rows.iter().flat_map(|row| {
            let a = self.load_left(row, word, p);
            let a = ir.in_every_lane(a, lanes as u32);
            b.iter().map(move |&b| (a, b))
        });
        let next =
            rows.zip(partial).map(|((a, b), sum)| self.add_product(plan, [a, b], sum.into_vector_value()));
        next.map(Value::from).collect()
    }

    /// What of `a` is multiplied at once in a lane.
    pub(super) fn word_of(&self, product: &Product<'_, 'c>) -> BasicTypeEnum<'c> {
        match product.plan.contraction {
            Contraction::MultiplyAdd => self.buffers.element_type(product.a.dtype),
            Contraction::Dot(_) | Contraction::Tiles(_) => self.ir.int_type(32).into(),
        }
    }

    /// What is multiplied at once in each lane, added to that lane of the sums.
    pub(super) fn add_product(
        &self,
        plan: &Plan,
        [a, b]: [VectorValue<'c>; 2],
        sum: VectorValue<'c>,
    ) -> VectorValue<'c> {
        match plan.contraction {
            Contraction::MultiplyAdd => self.multiply_add(a, b, sum),
            Contraction::Dot(dot) => self.dot(dot, a, b, sum),
            Contraction::Tiles(_) => unreachable!("tiles are no vectors"),
        }
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
        self.sum(sum, result)
    }

    /// Sums of integers or of floats, lane by lane.
    pub(super) fn sum(&self, a: VectorValue<'c>, b: VectorValue<'c>) -> VectorValue<'c> {
        let builder = &self.ir.builder;
        let sum = match a.get_type().get_element_type() {
            BasicTypeEnum::IntType(_) => builder.build_int_add(a, b, ""),
            _ => builder.build_float_add(a, b, ""),
        };
        sum.expect("the builder is positioned")
    }

    fn multiply_add(&self, a: VectorValue<'c>, b: VectorValue<'c>, sum: VectorValue<'c>) -> VectorValue<'c> {
        let ir = self.ir;
        let positioned = "the builder is positioned";
        if matches!(sum.get_type().get_element_type(), BasicTypeEnum::IntType(_)) {
            let product = ir.builder.build_int_mul(a, b, "").expect(positioned);
            return self.sum(sum, product);
        }
        if ir.features.fma {
            let operands = [a.as_basic_value_enum(), b.as_basic_value_enum(), sum.as_basic_value_enum()];
            let fused = ir.intrinsic("llvm.fma", &[sum.get_type().into()], &operands);
            return fused.expect("fma has a result").into_vector_value();
        }
        let product = ir.builder.build_float_mul(a, b, "").expect(positioned);
        self.sum(sum, product)
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::compiled::assembly;
    use tile_ir::Instance;

    const PRODUCT: &str = "\
kernel @k<M>(%a: tensor<m x k x f32>, %b: tensor<k x n x f32>, %c: mut tensor<m x n x f32>) {
  %va = partition %a [M, 256] : partition<m x k x f32, [M, 256]>
  %vb = partition %b [256, 256] : partition<k x n x f32, [256, 256]>
  %vc = partition %c [M, 256] : mut partition<m x n x f32, [M, 256]>
  %i, %j = block_index %vc : index, index
  %zero = constant 0.0 : f32
  %start = splat %zero : tile<M x 256 x f32>
  %0 = constant 0 : index
  %end = extent ceil_div(k, 256) : index
  %sum = for %p = %0 to %end carry (%acc = %start) : tile<M x 256 x f32> {
    %ta = load_masked %va[%i, %p] pad %zero : tile<M x 256 x f32>
    %tb = load_masked %vb[%p, %j] pad %zero : tile<256 x 256 x f32>
    %next = mma %ta, %tb, %acc : tile<M x 256 x f32>
    yield %next
  }
  store_masked %vc, %sum
}
";

    /// Straight pieces of assembly that multiply and end with a jump: loops of register blocks, a line each.
    fn loops(rows: usize) -> Vec<Vec<String>> {
        let instance = Instance::parse(PRODUCT, &[("M", rows)]).unwrap();
        let assembly = assembly(&instance, "x86-64-v4");
        let mut pieces = vec![Vec::new()];
        for line in assembly.lines().map(str::trim) {
            pieces.last_mut().unwrap().push(line.to_owned());
            if line.starts_with('j') || line.starts_with('.') {
                pieces.push(Vec::new());
            }
        }
        pieces.retain(|piece| piece.iter().filter(|line| line.starts_with("vfmadd")).count() >= 40);
        pieces
    }

    /// Each row, the place in the panel, the step and the last one have a register of their own.
    #[test]
    fn loops_of_register_blocks_read_nothing_of_the_stack() {
        for (rows, bodies) in [(128, 2), (96, 1)] {
            let loops = loops(rows);
            assert_eq!(loops.len(), bodies, "{rows} rows");
            for piece in loops {
                let on_stack = |line: &&String| ["(%rsp", "(%rbp)"].iter().any(|place| line.contains(place));
                let found: Vec<&String> =
                    piece.iter().filter(|line| line.starts_with("mov")).filter(on_stack).collect();
                assert!(found.is_empty(), "{rows} rows: {found:?}");
            }
        }
    }
}
