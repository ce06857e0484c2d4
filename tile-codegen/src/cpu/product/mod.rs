//! `mma`: factors are packed, then register blocks go through them.
//!
//! [`plan`] decides, with the instructions that [`contraction`] names; [`factor`] says where factors come from, [`pack`]
//! packs them, and [`block`] multiplies, or [`tiles`] where registers hold tiles. A loop that adds products to a tile
//! ([`accumulate`]) packs the factors of several turns before it multiplies, and meanwhile what comes next of `b` is packed
//! ([`beside`]) and other factors come nearer ([`ahead`]). What it packed of `a` stays for the next blocks ([`keep`]), if it
//! doesn't read that in its tensor ([`left`]), and what it packed of `b` for the next rows of blocks ([`places`], by the names
//! that [`rows`] gives). Sums that are only stored go to the tensor at once ([`direct`]). What all turns of another loop
//! multiply by is packed in its first one ([`lasting`]). A `b` that is read once is read where it is ([`right`]), also its
//! columns for a few rows ([`dots`]). Bytes of one sign become those of the other for instructions that ask for it
//! ([`signs`]). Products and sums are fused where the target can; an f16 accumulator is kept in f32 and rounded at the end.
//! Batches are matrix by matrix.

mod accumulate;
mod ahead;
mod beside;
mod block;
mod contraction;
mod direct;
mod dots;
mod factor;
mod keep;
mod lasting;
mod left;
mod pack;
mod places;
mod plan;
mod right;
mod rows;
mod signs;
mod sums;
mod tiles;

pub(super) use direct::Written;
pub(super) use plan::{Products, RegisterBlock, gain};
pub(super) use tiles::release_tiles;

use super::elements::each_index;
use super::memory::buffer::Buffers;
use super::region::Emitter;
use crate::emit::{Ir, LoopHint, Value};
use accumulate::Accumulation;
use ahead::{FactorAhead, Next};
use beside::Beside;
use block::{Meanwhile, Multiplication};
use contraction::Contraction;
use direct::Direct;
use inkwell::IntPredicate;
use inkwell::types::BasicType;
use inkwell::values::{IntValue, PointerValue};
use keep::{Keeping, KeptLeft, KeptRecord, PackedA};
use lasting::is_there_by_either;
use left::TensorA;
use places::{KeptRight, PackedB, Places};
use plan::Plan;
use rows::{ProductLoop, Turns};
use std::collections::HashMap;
use sums::Start;
use tile_ir::kernel::OpData;
use tile_ir::{Op, ValueId};

/// How much of a product is needed.
#[derive(Clone, Copy)]
struct Needed<'c> {
    rows: IntValue<'c>,
    columns: IntValue<'c>,
}

/// Where a multiplication has its packed factors, and how much of the product is needed.
#[derive(Clone, Copy)]
struct Factors<'f, 'c> {
    /// `None` where `a` is read where it is stored.
    a: Option<&'f PackedA<'c>>,
    b: &'f PackedB<'c>,
    needed: Needed<'c>,
}

/// What all multiplications of a loop that adds products to a tile have in common.
struct Accumulating<'l, 'a, 'c> {
    product: &'a OpData,
    plan: &'l Plan,
    looped: ProductLoop<'c>,
    needed: Needed<'c>,
    /// The number that all sums begin with, if it is one.
    initial: Option<ValueId>,
    /// Where the last multiplication stores its sums, if it may store them itself.
    direct: Option<&'l Direct<'c>>,
    /// The scalars of the block's index, with their values in the next block.
    next_block: &'l [(ValueId, Value<'c>)],
    keeping: Option<Keeping<'c>>,
}

/// What an entry, which runs a range of blocks, knows of the factors that those before have packed. It is written in scratch
/// memory, behind the blocks', so that the launch's next range on the same thread knows it as well.
#[derive(Default)]
pub(super) struct Memories<'c> {
    kept: HashMap<ValueId, KeptRecord<'c>>,
    places: HashMap<ValueId, Places<'c>>,
}

impl<'c> Memories<'c> {
    /// Bytes that they take.
    pub(super) fn bytes(products: &Products<'_>) -> u64 {
        products.remembered().iter().map(|product| 8 * product.words() as u64).sum()
    }

    /// Those of an entry, at its begin: from this address on, empty but where it goes on.
    pub(super) fn of(
        ir: &Ir<'c>,
        products: &Products<'_>,
        first: PointerValue<'c>,
        goes_on: IntValue<'c>,
    ) -> Memories<'c> {
        let all = Words { first };
        let (mut memories, mut next) = (Memories::default(), 0);
        for Remembered { product, left, right } in products.remembered() {
            let mut words = |count: usize| {
                let words = Words { first: all.at(ir, ir.i64(next)) };
                next += count as i64;
                words
            };
            if let Some(kept) = left {
                memories.kept.insert(product, KeptRecord::of(ir, kept, &words(kept.words())));
            }
            if let Some(kept) = right {
                memories.places.insert(product, Places::of(ir, words(kept.words())));
            }
        }
        // Behind all that is on the stack: what isn't made in a function's first block takes a register for itself.
        let (from, end) = (ir.select_int(goes_on, ir.i64(next), ir.i64(0)), ir.i64(next));
        ir.each((from, end, ir.i64(1)), LoopHint::AsItIs, |number| {
            ir.store(all.at(ir, number), ir.i64(0).into());
        });
        memories
    }
}

/// What is kept of the factors of the product that gives a tile.
struct Remembered<'p> {
    product: ValueId,
    left: Option<&'p KeptLeft>,
    right: Option<&'p KeptRight>,
}

impl Remembered<'_> {
    /// Words of memory that say so.
    fn words(&self) -> usize {
        self.left.map_or(0, KeptLeft::words) + self.right.map_or(0, KeptRight::words)
    }
}

/// Words of memory from an address on.
#[derive(Clone, Copy)]
struct Words<'c> {
    first: PointerValue<'c>,
}

impl<'c> Words<'c> {
    /// Where the word of this number is.
    fn at(&self, ir: &Ir<'c>, number: IntValue<'c>) -> PointerValue<'c> {
        ir.element(ir.context.i64_type().into(), self.first, number)
    }
}

/// A number or an address on the stack, 0 at the begin of an entry.
fn cell<'c>(ir: &Ir<'c>, ty: impl BasicType<'c>, name: &str) -> PointerValue<'c> {
    let ty = ty.as_basic_type_enum();
    let cell = ir.builder.build_alloca(ty, name).expect("the builder is positioned");
    ir.store(cell, ty.const_zero());
    cell
}

impl<'a, 'c> Emitter<'a, 'c> {
    fn all_of(&self, plan: &Plan) -> Needed<'c> {
        Needed { rows: self.ir.i64(plan.m), columns: self.ir.i64(plan.n) }
    }

    /// Op [`Op::Mma`].
    pub(super) fn mma(&mut self, data: &'a OpData) {
        let products = self.products;
        let (plan, ir, result) = (products.plan(data.results[0]), self.ir, data.results[0]);
        let start = self.start_of_sums(data);
        let [a_before, b_before] = self.are_packed_before(plan.lasting.as_ref());
        each_index(ir, ir.i64(plan.batch), plan.batch, |matrix| {
            let needed = self.all_of(plan);
            let mut a = self.packed_a(data, plan, None, ir.i64(0), None);
            let in_place = self.b_in_place(data, plan, matrix);
            let mut b = self.only_packed_b(result, plan, in_place);
            a.iter_mut().for_each(|a| a.is_there = is_there_by_either(ir, a.is_there, a_before));
            b.is_there = is_there_by_either(ir, b.is_there, b_before);
            let factors = Factors { a: a.as_ref(), b: &b, needed };
            let depth = self.pack(data, plan, matrix, ir.i64(0), factors);
            self.fill_tiles(plan, factors, depth);
            let multiplication = Multiplication {
                matrix,
                depth,
                a: self.left(data.operands[0], plan, matrix, a.as_ref(), None),
                b: &b,
                needed,
                start,
                direct: None,
                meanwhile: Meanwhile::default(),
            };
            self.multiply(data, plan, &multiplication);
        });
        self.round_sums(result);
    }

    /// A loop that adds products to a tile: the factors of several turns are packed one behind the other, and multiplied
    /// together.
    pub(super) fn accumulate(&mut self, data: &'a OpData, accumulation: &Accumulation<'a>) {
        let (ir, products, product) = (self.ir, self.products, accumulation.product);
        let (plan, body) = (products.plan(product.results[0]), data.regions[0]);
        let [counter, sum] = self.instance.region(body).params[..] else {
            unreachable!("an accumulation carries one tile")
        };
        let needed = self.stored_part(plan, accumulation);
        let range = [self.index(data.operands[0]), self.index(data.operands[1])];
        let initial = self.number_of_all(data.operands[2]);
        let [begin, end] = range;
        let is_empty = ir.icmp(IntPredicate::UGE, begin, end);
        match initial {
            Some(_) => ir.if_then(is_empty, || self.copy_tiles(&data.operands[2..], &[sum])),
            None => self.copy_tiles(&data.operands[2..], &[sum]),
        }
        let direct = self.direct(accumulation, plan, data.results[0]);
        let next_block = self.next_block();
        let keeping = self.keeping(product, plan, [begin, end, needed.rows], &next_block);
        let around = Accumulating {
            product,
            plan,
            looped: ProductLoop { counter, body, range },
            needed,
            initial,
            direct: direct.as_ref(),
            next_block: &next_block,
            keeping,
        };
        ir.each((begin, end, ir.i64(plan.turns)), LoopHint::Rolled, |first| {
            self.multiply_turns(&around, first);
            self.copy_tiles(&product.results, &[sum]);
        });
        self.copy_tiles(&[sum], &data.results);
        if let Some(direct) = &direct {
            let is_written = ir.select_int(is_empty, ir.bool(false), direct.is_direct);
            self.written.insert(data.results[0], is_written);
        }
    }

    /// One multiplication: of the factors of as many turns as are multiplied together, from the first of them on.
    fn multiply_turns(&mut self, around: &Accumulating<'_, 'a, 'c>, first: IntValue<'c>) {
        let (ir, product, plan) = (self.ir, around.product, around.plan);
        let present = Turns::of_loop(ir, plan, around.looped, first);
        let in_tensor = self.tensor_a(product, plan, present, around.keeping);
        let number = present.number(ir, plan);
        let a = self.packed_a(product, plan, around.keeping, number, in_tensor.as_ref());
        let b = self.packed_b(product, plan, present, around.needed);
        let factors = Factors { a: a.as_ref(), b: &b, needed: around.needed };
        let depth = self.pack_turns(around, present, factors);
        let start = self.start_of_turns(around, first);
        self.fill_tiles(plan, factors, depth);
        let next = self.next_turn(around.looped.range, ir.add(first, ir.i64(plan.turns)), around.next_block);
        let (beside, ahead) = self.prepare_next(around, present, &next, in_tensor.as_ref(), &b);
        let direct = around.direct.map(|direct| direct.unless(ir, next.is_here));
        let multiplication = Multiplication {
            matrix: ir.i64(0),
            depth,
            a: self.left(product.operands[0], plan, ir.i64(0), a.as_ref(), in_tensor.as_ref()),
            b: &b,
            needed: around.needed,
            start,
            direct: direct.as_ref(),
            meanwhile: Meanwhile { ahead: &ahead, beside: beside.as_ref() },
        };
        self.multiply(product, plan, &multiplication);
    }

    /// Emits the turns of a multiplication, each of which packs its factors behind those of the turn before; gives how deep
    /// they are together.
    fn pack_turns(
        &mut self,
        around: &Accumulating<'_, 'a, 'c>,
        present: Turns<'c>,
        factors: Factors<'_, 'c>,
    ) -> IntValue<'c> {
        let (ir, instance) = (self.ir, self.instance);
        let range = (present.first, ir.add(present.last, ir.i64(1)), ir.i64(1));
        let depth = ir.hinted_loop(range, LoopHint::Rolled, &[ir.i64(0).into()], |turn, depth| {
            self.bind_scalars(&[around.looped.counter], &[turn.into()]);
            for &op in &instance.region(around.looped.body).ops {
                let op = instance.op(op);
                if op.op != Op::Yield && !std::ptr::eq(op, around.product) {
                    self.op(op);
                }
            }
            let at = depth[0].into_int_value();
            let further = self.pack(around.product, around.plan, ir.i64(0), at, factors);
            vec![ir.add(at, further).into()]
        });
        depth[0].into_int_value()
    }

    /// What the sums begin with in the multiplication whose first turn this is: the loop's initial number in its first one.
    fn start_of_turns(
        &mut self,
        around: &Accumulating<'_, 'a, 'c>,
        first: IntValue<'c>,
    ) -> Start<ValueId, IntValue<'c>> {
        match (self.start_of_sums(around.product), around.initial) {
            (Start::InMemory, Some(number)) => {
                Start::NumberWhere(number, self.ir.icmp(IntPredicate::EQ, first, around.looped.range[0]))
            }
            (start, _) => start,
        }
    }

    /// What is packed for the next multiplication beside the present one, and what is asked for.
    fn prepare_next(
        &mut self,
        around: &Accumulating<'_, 'a, 'c>,
        present: Turns<'c>,
        next: &Next<'c>,
        in_tensor: Option<&TensorA<'c>>,
        b: &PackedB<'c>,
    ) -> (Option<Beside<'c>>, Vec<FactorAhead<'c>>) {
        let (product, plan) = (around.product, around.plan);
        let next_b = self.next_b(product, plan, present, next, around.needed);
        let beside = next_b.as_ref().and_then(|next_b| self.beside(product, plan, next, next_b, b.place));
        let is_packed = beside.as_ref().map(|beside| beside.is_packed);
        let mut near = self.nearest(around, present, next, in_tensor, next_b.as_ref(), is_packed);
        // Rows that are read one after the other the processor foresees.
        near[1].is_near = near[1].is_near.or(b.in_place.as_ref().map(|in_place| in_place.is_read));
        // Beside tiles, lines that are asked for take the places of those that tiles wait for.
        let ahead = match plan.contraction {
            Contraction::Tiles(_) => Vec::new(),
            _ => self.ahead(product, plan, around.looped, next, near),
        };
        (beside, ahead)
    }

    /// The scalars of the block's index, with their values in the block that is taken next, as far as these are known.
    fn next_block(&self) -> Vec<(ValueId, Value<'c>)> {
        let instance = self.instance;
        let indices =
            instance.walk().into_iter().map(|op| instance.op(op)).filter(|data| data.op == Op::BlockIndex);
        let scalars = indices.flat_map(|data| data.results.iter().zip(&self.grid.tile_ahead));
        let known = scalars.filter(|(index, _)| self.scalar_if_known(**index).is_some());
        known.map(|(&index, &next)| (index, next.into())).collect()
    }

    /// Whether one of these scalars has another value than it will have.
    fn differs(&self, scalars: &[(ValueId, Value<'c>)]) -> IntValue<'c> {
        let ir = self.ir;
        let differs = |&(scalar, then): &(ValueId, Value<'c>)| {
            ir.icmp(IntPredicate::NE, self.index(scalar), then.into_int_value())
        };
        scalars.iter().map(differs).fold(ir.bool(false), |any, differs| ir.or(any, differs))
    }

    /// The turn that is packed after those before `turn`: that one, or the first of the next block's.
    fn next_turn(
        &self,
        [begin, end]: [IntValue<'c>; 2],
        turn: IntValue<'c>,
        next_block: &[(ValueId, Value<'c>)],
    ) -> Next<'c> {
        let ir = self.ir;
        let is_here = ir.icmp(IntPredicate::ULT, turn, end);
        let then = |&(index, next): &(ValueId, Value<'c>)| {
            (index, ir.select_int(is_here, self.index(index), next.into_int_value()).into())
        };
        Next {
            turn: ir.select_int(is_here, turn, begin),
            is_here,
            scalars: next_block.iter().map(then).collect(),
        }
    }

    /// The part of a product that is stored, where nothing else becomes of it.
    fn stored_part(&self, plan: &Plan, accumulation: &Accumulation<'a>) -> Needed<'c> {
        let ir = self.ir;
        let part = |store: &&OpData| {
            let window = self.window_if_known(store)?;
            let [.., rows, columns] = window.ends()[..] else {
                unreachable!("verified: what is stored has the view's rank")
            };
            Some(Needed { rows, columns })
        };
        let parts: Option<Vec<Needed<'c>>> = accumulation.stores.iter().map(part).collect();
        let both = |a: Needed<'c>, b: Needed<'c>| Needed {
            rows: ir.greater(a.rows, b.rows),
            columns: ir.greater(a.columns, b.columns),
        };
        parts.and_then(|parts| parts.into_iter().reduce(both)).unwrap_or_else(|| self.all_of(plan))
    }

    /// What the sums begin with; an accumulator that isn't one number is put where they are stored.
    fn start_of_sums(&mut self, data: &'a OpData) -> Start<ValueId, IntValue<'c>> {
        let (accumulator, result) = (data.operands[2], data.results[0]);
        if let Some(number) = self.number_of_all(accumulator) {
            return Start::Number(number);
        }
        let c = self.stored(result);
        if !self.buffer(accumulator).is_some_and(|buffer| Buffers::same(&buffer, &c)) {
            self.with_streams(&self.fusion.streams(&[accumulator]), &[], &mut |emitter, _| {
                emitter.copy_tile(accumulator, result)
            });
        }
        Start::InMemory
    }

    /// The number that all elements of a tile are which isn't in memory.
    fn number_of_all(&self, tile: ValueId) -> Option<ValueId> {
        match self.definition(tile).filter(|_| self.buffer(tile).is_none())? {
            OpData { op: Op::Splat(_), operands, .. } => Some(operands[0]),
            _ => None,
        }
    }

    fn round_sums(&mut self, result: ValueId) {
        let c = self.stored(result);
        if !c.dtype.is_narrow_float() {
            return;
        }
        let shape = self.shape(result);
        self.fill(&c, &shape, |emitter, index| {
            let position = emitter.position(index, &shape);
            let sum = emitter.buffers.load(&c, position).into_float_value();
            emitter.ir.round_to(sum, c.dtype).into()
        });
    }
}
