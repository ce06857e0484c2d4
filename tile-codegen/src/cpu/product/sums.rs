//! The sums of a product: what they begin with, and where they go when a register block is done.

use super::super::region::Emitter;
use super::direct::Direct;
use super::plan::Plan;
use crate::cpu::memory::buffer::Buffer;
use crate::cpu::memory::scratch::element_bytes;
use crate::emit::{Ir, Value};
use inkwell::values::{InstructionValue, IntValue, PointerValue, VectorValue};
use tile_ir::ValueId;

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

impl<'c, V> Start<V, IntValue<'c>> {
    /// The same where a condition holds, and else what is where they are stored.
    pub(super) fn where_it_holds(self, ir: &Ir<'c>, condition: IntValue<'c>) -> Self {
        match self {
            Start::InMemory => Start::InMemory,
            Start::Number(value) => Start::NumberWhere(value, condition),
            Start::NumberWhere(value, also) => Start::NumberWhere(value, ir.and(also, condition)),
        }
    }
}

/// The sums of a matrix product.
pub(super) struct Sums<'p, 'c> {
    plan: &'p Plan,
    /// Where the tile has them.
    pub(super) c: Buffer<'c>,
    pub(super) start: Start<Value<'c>, IntValue<'c>>,
    /// Where they go: the first one, and elements from a row to the next. In the tile, or in a tensor.
    pub(super) to: PointerValue<'c>,
    pub(super) stride: IntValue<'c>,
    direct: Option<Direct<'c>>,
}

/// The sums that registers hold: rows, vectors side by side, and how many lanes of the last one there are.
#[derive(Clone, Copy)]
pub(super) struct SumsBlock<'c> {
    /// The row and the column of the first one.
    pub(super) place: [IntValue<'c>; 2],
    pub(super) rows: i64,
    /// Whether there is the last of these rows, if it isn't known.
    pub(super) has_last_row: Option<IntValue<'c>>,
    pub(super) vectors: i64,
    pub(super) last: i64,
}

impl SumsBlock<'_> {
    /// The row and the vector of each vector of sums.
    fn places(self) -> impl Iterator<Item = (i64, i64)> {
        (0..self.rows).flat_map(move |row| (0..self.vectors).map(move |vector| (row, vector)))
    }

    /// Whether not all lanes of a vector are columns.
    fn is_cut(self, plan: &Plan, vector: i64) -> bool {
        vector + 1 == self.vectors && self.last < plan.block.lanes
    }
}

impl<'c> Emitter<'_, 'c> {
    /// The sums of a matrix of the tile that a product gives.
    pub(super) fn sums<'p>(
        &self,
        result: ValueId,
        plan: &'p Plan,
        matrix: IntValue<'c>,
        start: Start<ValueId, IntValue<'c>>,
        direct: Option<&Direct<'c>>,
    ) -> Sums<'p, 'c> {
        let ir = self.ir;
        let c = self.buffers.further(&self.stored(result), ir.mul(matrix, ir.i64(plan.m * plan.n)));
        let (tile, of_row) = (c.address, ir.i64(plan.n));
        let (to, stride) = direct.map_or((tile, of_row), |direct| {
            let to = ir.select(direct.is_direct, direct.first.into(), tile.into());
            (to.into_pointer_value(), ir.select_int(direct.is_direct, direct.stride, of_row))
        });
        let start = start.map(|start| self.scalar(start));
        Sums { plan, c, start, to, stride, direct: direct.cloned() }
    }

    /// What the sums of a register block begin with: a number, or nothing, where [`Self::with_sums_in_memory`] adds to them.
    pub(super) fn first_sums(&self, sums: &Sums<'_, 'c>, block: SumsBlock<'c>) -> Vec<Value<'c>> {
        let ir = self.ir;
        let none = self.buffers.element_type(sums.c.dtype).const_zero();
        let first = match sums.start {
            Start::InMemory => none,
            Start::Number(start) => start,
            Start::NumberWhere(start, condition) => ir.select(condition, start, none),
        };
        vec![ir.in_every_lane(first, sums.plan.block.lanes as u32).into(); block.places().count()]
    }

    /// The products that a register block has added up, with the sums to which they are added where these are in memory.
    ///
    /// They are read at the end, as the processor asks for them while it still multiplies: multiply-adds that begin with them
    /// wait for the second cache.
    pub(super) fn with_sums_in_memory(
        &self,
        sums: &Sums<'_, 'c>,
        block: SumsBlock<'c>,
        products: Vec<Value<'c>>,
    ) -> Vec<Value<'c>> {
        let (ir, plan, lanes) = (self.ir, sums.plan, sums.plan.block.lanes);
        let add = || {
            let [i, j] = block.place;
            let first = self.buffers.further(&sums.c, ir.add(ir.mul(i, ir.i64(plan.n)), j));
            let add = |((row, vector), product): ((i64, i64), &Value<'c>)| {
                // In place of a row that isn't there the first one is read, and what becomes of it isn't stored.
                let row = match block.has_last_row.filter(|_| row + 1 == block.rows) {
                    Some(has) => ir.select_int(has, ir.i64(row), ir.i64(0)),
                    None => ir.i64(row),
                };
                let at = ir.add(ir.mul(row, ir.i64(plan.n)), ir.i64(vector * lanes));
                let mask = self.mask_of(plan, block, vector);
                let sum = self.buffers.load_lanes(&first, at, mask, lanes as u32);
                self.sum(sum, product.into_vector_value()).into()
            };
            block.places().zip(&products).map(add).collect()
        };
        match sums.start {
            Start::InMemory => add(),
            Start::Number(_) => products,
            Start::NumberWhere(_, condition) => ir.if_else(condition, || products.clone(), add),
        }
    }

    /// Asks for the lines of a tensor that the sums of a register block will be stored to, which a store alone would wait for.
    pub(super) fn ask_for_sums(&self, sums: &Sums<'_, 'c>, block: SumsBlock<'c>) {
        let (ir, Some(direct)) = (self.ir, &sums.direct) else { return };
        let streams = direct.streams.unwrap_or_else(|| ir.bool(false));
        ir.if_then(ir.select_int(streams, ir.bool(false), direct.is_direct), || {
            for (_, address) in self.places_of_sums(sums, block) {
                ir.prefetch_for_store(address);
            }
        });
    }

    /// Stores the sums of a register block.
    pub(super) fn store_sums(&self, sums: &Sums<'_, 'c>, block: SumsBlock<'c>, finals: &[Value<'c>]) {
        let ir = self.ir;
        let store = |streams: bool| {
            let places = self.places_of_sums(sums, block);
            let each = |row: std::ops::Range<usize>| {
                for (&(vector, address), value) in places[row.clone()].iter().zip(&finals[row]) {
                    let (value, mask) = (value.into_vector_value(), self.mask_of(sums.plan, block, vector));
                    let store = self.store_vector_of_sums(sums, address, mask, value, streams);
                    match &sums.direct {
                        None => self.buffers.mark_access(Some(store), &sums.c),
                        Some(direct) if streams => {
                            self.buffers.mark_tensor_access(Some(store), direct.tensor)
                        }
                        // It may be in either.
                        Some(_) => {}
                    }
                }
            };
            let last = places.len() - block.vectors as usize;
            each(0..last);
            match block.has_last_row {
                Some(has) => ir.if_then(has, || each(last..places.len())),
                None => each(last..places.len()),
            }
        };
        match sums.direct.as_ref().and_then(|direct| Some((direct, direct.streams?))) {
            Some((direct, streams)) => {
                let streams = ir.select_int(streams, direct.is_direct, ir.bool(false));
                ir.on_each_side(streams, store);
            }
            None => store(false),
        }
    }

    /// Stores a vector of sums: the lanes that a mask has, all without one; past the caches where a line is written whole.
    fn store_vector_of_sums(
        &self,
        sums: &Sums<'_, 'c>,
        address: PointerValue<'c>,
        mask: Option<VectorValue<'c>>,
        value: VectorValue<'c>,
        streams: bool,
    ) -> InstructionValue<'c> {
        let (ir, bytes) = (self.ir, element_bytes(sums.c.dtype) as u32);
        if let Some(mask) = mask {
            return ir.store_lanes(address, mask, value, bytes);
        }
        let store = ir.builder.build_store(address, value).expect("the builder is positioned");
        let alignment = if streams { bytes * value.get_type().get_size() } else { bytes };
        store.set_alignment(alignment).expect("a power of two");
        if streams {
            ir.mark_streaming(store);
        }
        store
    }

    /// Each vector of sums: its number in its row, and the address that it is stored to.
    fn places_of_sums(&self, sums: &Sums<'_, 'c>, block: SumsBlock<'c>) -> Vec<(i64, PointerValue<'c>)> {
        let (ir, ty, [i, j]) = (self.ir, self.buffers.element_type(sums.c.dtype), block.place);
        let first = ir.element(ty, sums.to, ir.add(ir.mul(i, sums.stride), j));
        let rows = std::iter::successors(Some(first), |&row| Some(ir.element(ty, row, sums.stride)));
        let rows: Vec<PointerValue<'c>> = rows.take(block.rows as usize).collect();
        let place = |(row, vector): (i64, i64)| {
            (vector, ir.element(ty, rows[row as usize], ir.i64(vector * sums.plan.block.lanes)))
        };
        block.places().map(place).collect()
    }

    /// The lanes of a vector of sums that are columns, where not all are.
    fn mask_of(&self, plan: &Plan, block: SumsBlock<'c>, vector: i64) -> Option<VectorValue<'c>> {
        let ir = self.ir;
        block.is_cut(plan, vector).then(|| ir.lanes_below(ir.i64(block.last), plan.block.lanes as u32))
    }
}
