//! Packed `b` is kept for the blocks of the next rows of the grid.
//!
//! Blocks below each other in the grid multiply by the same columns of `b`. An entry, which runs a range of blocks, has a
//! number of **places** for packed matrices and records which matrix each of them has. As long as the range has another row
//! of blocks to use it, a matrix's place follows from its columns and the multiplication's number in the loop. A matrix
//! without such a place, or without a later use, goes to one of the last two, alternately; these stay in the second cache.
//!
//! Whether a place has a matrix is decided by the matrix's name alone, so the choice of the place affects only the time.
//! Matrices of a tensor that the kernel writes aren't kept, because they may have changed before the next block.

use super::super::fuse::Fusion;
use super::super::region::Emitter;
use super::ahead::Next;
use super::beside::Progress;
use super::factor::{behind_transposition, streamed_load};
use super::keep::gives_the_same_again;
use super::plan::Plan;
use super::right::InPlace;
use super::rows::{Name, Rows, Turns};
use super::{Needed, Words};
use crate::cpu::memory::buffer::Buffer;
use crate::cpu::memory::scratch::element_bytes;
use crate::emit::Ir;
use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::cpu::KEPT_RIGHT_BYTES;
use tile_ir::kernel::OpData;
use tile_ir::{Instance, ValueId};

/// Places at most: an entry makes a list of them at its begin.
const MOST_PLACES: u64 = 128;

/// Numbers of a matrix's [name](Name).
const NUMBERS: usize = 3;

/// Places that take turns.
const IN_TURNS: i64 = 2;

/// How a loop's `b` is kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeptRight {
    /// Packed matrices that are kept at most.
    pub(super) places: i64,
    /// The index of a block's columns.
    column: Option<ValueId>,
}

impl KeptRight {
    /// Words of memory that say what is kept.
    pub(super) fn words(&self) -> usize {
        self.places as usize * NUMBERS
    }

    /// How a loop's `b` is kept; `None` of one that isn't read from a tensor which nothing writes, whose missing elements
    /// aren't the same in all blocks, or that is multiplied by so few rows that it may be read where it is.
    pub(super) fn of(
        instance: &Instance,
        fusion: &Fusion<'_>,
        product: &OpData,
        plan: &Plan,
    ) -> Option<KeptRight> {
        let (tile, is_transposed) = behind_transposition(fusion, product.operands[1]);
        let load = streamed_load(fusion, tile)?.load()?;
        let is_tiles = plan.contraction.tiles().is_some();
        let has_few_rows = plan.blocks_of_rows() == 1 && !is_tiles;
        if has_few_rows || !gives_the_same_again(instance, fusion, load) {
            return None;
        }
        let axis = load.index.len().checked_sub(if is_transposed { 2 } else { 1 });
        let column = axis.and_then(|axis| load.index.get(axis).copied());
        // Where blocks go down the columns, the next one has the same columns.
        let most = if is_tiles { IN_TURNS as u64 } else { MOST_PLACES };
        let bytes = plan.packed_b() as u64 * element_bytes(plan.packed);
        let places = (KEPT_RIGHT_BYTES / bytes.max(1)).clamp(IN_TURNS as u64, most);
        Some(KeptRight { places: places as i64, column })
    }
}

/// What an entry remembers of a product's places for `b`.
pub(super) struct Places<'c> {
    /// The names of the matrices that they have.
    names: Words<'c>,
    pub(super) progress: Progress<'c>,
}

impl<'c> Places<'c> {
    /// Those of so many [words](KeptRight::words).
    pub(super) fn of(ir: &Ir<'c>, names: Words<'c>) -> Places<'c> {
        Places { names, progress: Progress::new(ir) }
    }
}

/// Where a multiplication has its packed `b`.
pub(super) struct PackedB<'c> {
    pub(super) buffer: Buffer<'c>,
    /// The number of its place.
    pub(super) place: IntValue<'c>,
    /// Whether nothing needs to be packed: an earlier multiplication has done it, or `b` is read where it is.
    pub(super) is_there: Option<IntValue<'c>>,
    pub(super) in_place: Option<InPlace<'c>>,
}

/// Where a matrix is, or goes.
pub(super) struct FoundB<'c> {
    pub(super) number: IntValue<'c>,
    /// Whether it has the matrix.
    pub(super) is_there: IntValue<'c>,
}

/// What the multiplication that comes next reads of `b`.
pub(super) struct NextB<'c> {
    pub(super) rows: Rows<'c>,
    pub(super) name: Name<'c>,
    pub(super) found: FoundB<'c>,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// What the multiplication that comes next reads of `b`, all columns of it; `None` where nothing is kept.
    pub(super) fn next_b(
        &mut self,
        product: &'a OpData,
        plan: &Plan,
        present: Turns<'c>,
        next: &Next<'c>,
        needed: Needed<'c>,
    ) -> Option<NextB<'c>> {
        let (ir, places) = (self.ir, self.entry.memories.places.get(&product.results[0])?);
        let turns = present.from(ir, plan, next.turn);
        self.as_next(present.looped.counter, next, |emitter| {
            let rows = emitter.rows_of_b(product, plan, turns)?;
            let needed = Needed { columns: rows.exist[0], ..needed };
            let name = rows.name(ir, plan, needed);
            let found = emitter.find_b(places, plan, turns, name);
            Some(NextB { rows, name, found })
        })
    }

    /// Where the multiplication of these turns has its packed `b`.
    pub(super) fn packed_b(
        &mut self,
        product: &'a OpData,
        plan: &Plan,
        turns: Turns<'c>,
        needed: Needed<'c>,
    ) -> PackedB<'c> {
        let (ir, result) = (self.ir, product.results[0]);
        let Some(places) = self.entry.memories.places.get(&result) else {
            let in_place = self.b_of_turns_in_place(product, plan, turns);
            return self.only_packed_b(result, plan, in_place);
        };
        let name = self.rows_of_b(product, plan, turns).map(|rows| rows.name(ir, plan, needed));
        let name = name.unwrap_or([ir.i64(0); 3]);
        let FoundB { number, is_there } = self.find_b(places, plan, turns, name);
        self.remember(places, number, name);
        let buffer = self.packed_at(result, plan, number);
        PackedB { buffer, place: number, is_there: Some(is_there), in_place: None }
    }

    /// Where a product has its packed `b` that nothing has packed before.
    pub(super) fn only_packed_b(
        &self,
        result: ValueId,
        plan: &Plan,
        in_place: Option<InPlace<'c>>,
    ) -> PackedB<'c> {
        let place = self.ir.i64(0);
        let buffer = self.packed_at(result, plan, place);
        PackedB { buffer, place, is_there: in_place.as_ref().map(|in_place| in_place.is_read), in_place }
    }

    /// Where the multiplication of these turns has a matrix of this name, or packs it.
    pub(super) fn find_b(
        &self,
        places: &Places<'c>,
        plan: &Plan,
        turns: Turns<'c>,
        name: Name<'c>,
    ) -> FoundB<'c> {
        let (ir, kept) = (self.ir, plan.kept_b.as_ref().expect("there are places for what is kept"));
        let column = kept.column.and_then(|column| self.scalar_if_known(column));
        let column = column.map_or(ir.i64(0), |column| column.into_int_value());
        let number = ir.add(ir.mul(column, turns.of(ir, plan)), turns.number(ir, plan));
        let in_turns = ir.i64(kept.places - IN_TURNS);
        let in_turns = ir.add(in_turns, ir.urem(number, ir.i64(IN_TURNS)));
        let has_own = ir.icmp(IntPredicate::ULT, number, ir.i64(kept.places - IN_TURNS));
        let own = ir.select_int(has_own, number, in_turns);
        let [in_own, in_other] = [own, in_turns].map(|place| self.has(places, place, name));
        let is_own = self.grid.row_comes.map_or(in_own, |comes| {
            ir.or(in_own, ir.and(comes, ir.select_int(in_other, ir.bool(false), ir.bool(true))))
        });
        FoundB { number: ir.select_int(is_own, own, in_turns), is_there: ir.or(in_own, in_other) }
    }

    /// Whether a place has the matrix of this name.
    fn has(&self, places: &Places<'c>, place: IntValue<'c>, name: Name<'c>) -> IntValue<'c> {
        let (ir, i64) = (self.ir, self.ir.context.i64_type());
        let is_same = |(cell, number): (PointerValue<'c>, IntValue<'c>)| {
            ir.icmp(IntPredicate::EQ, ir.load(i64.into(), cell).into_int_value(), number)
        };
        let same = self.cells(places, place).into_iter().zip(name).map(is_same);
        ir.all(same.chain([ir.icmp(IntPredicate::NE, name[0], ir.i64(0))]))
    }

    /// From now on a place has the matrix of this name.
    pub(super) fn remember(&self, places: &Places<'c>, place: IntValue<'c>, name: Name<'c>) {
        let cells = self.cells(places, place).into_iter().zip(name);
        cells.for_each(|(cell, number)| self.ir.store(cell, number.into()));
    }

    /// Where the numbers of a place's name are.
    fn cells(&self, places: &Places<'c>, place: IntValue<'c>) -> [PointerValue<'c>; NUMBERS] {
        let (ir, first) = (self.ir, self.ir.mul(place, self.ir.i64(NUMBERS as i64)));
        std::array::from_fn(|number| places.names.at(ir, ir.add(first, ir.i64(number as i64))))
    }

    /// The place of this number for the packed `b` of the product that gives a tile.
    pub(super) fn packed_at(&self, result: ValueId, plan: &Plan, number: IntValue<'c>) -> Buffer<'c> {
        let ir = self.ir;
        let first = self.buffers.packed(result, 1, plan.packed).expect("`b` is always packed");
        self.buffers.further(&first, ir.mul(number, ir.i64(plan.packed_b())))
    }
}
