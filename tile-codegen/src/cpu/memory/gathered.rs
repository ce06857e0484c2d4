//! Elements of a tensor that indices name: gathers of them, and rows that atomic stores write ([`crate::cpu::atomics`]).
//!
//! If the indices show that a gather reads parts of rows ([`tile_ir::analysis::Lines`]), loops along a row test once
//! whether all of the row's part exists, and if it does, read it as they read any row. In all other cases each element is
//! tested.

use super::buffer::Buffer;
use crate::cpu::elements::{IndexRange, hint_for_row, is_short};
use crate::cpu::fuse::Fusion;
use crate::cpu::region::{Emitter, extents};
use crate::emit::{Ir, Place, Value};
use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use std::collections::HashMap;
use tile_ir::analysis::{CountedRow, Divisors, GatheredRow, Lines};
use tile_ir::kernel::OpData;
use tile_ir::view::Source;
use tile_ir::{DType, Instance, Op, ValueId};

/// Processors gather elements of so many bytes and more by an instruction, with a mask for those that exist. Shorter ones are
/// loaded one by one, without a branch: one that doesn't exist is read from a zero.
const LEAST_GATHERED_BYTES: usize = 4;

/// The gathers of an instance that read rows along the last axis of their tiles, and those that may read parts of rows, as far
/// as their indices show at run time.
pub(in crate::cpu) fn gathered_rows(
    instance: &Instance,
) -> (HashMap<ValueId, GatheredRow>, HashMap<ValueId, CountedRow>) {
    let gathers = instance.walk().into_iter().map(|op| instance.op(op));
    let gathers: Vec<&OpData> = gathers.filter(|data| data.op == Op::GatherLoad).collect();
    if gathers.is_empty() {
        return Default::default();
    }
    let divisors = Divisors::of(instance);
    let mut lines = Lines::of(instance, &divisors);
    let (mut rows, mut counted) = (HashMap::new(), HashMap::new());
    for gather in gathers {
        let result = gather.results[0];
        let shape = extents(&instance.ty(result).as_tile().expect("verified: a tile").shape);
        let Some(last) = shape.len().checked_sub(1).filter(|&last| !is_short(shape[last])) else { continue };
        if let Some(row) = lines.row(gather, last) {
            rows.insert(result, row);
        } else if let Some(row) = lines.counted_row_of(&gather.operands[2..], last) {
            counted.insert(result, row);
        }
    }
    (rows, counted)
}

/// A part of a row that exists: the address of its place 0, which may not, and elements from one place to the next.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct OpenRow<'c> {
    pub(in crate::cpu) first: PointerValue<'c>,
    pub(in crate::cpu) stride: IntValue<'c>,
}

/// A tensor whose elements indices name.
#[derive(Clone)]
pub(in crate::cpu) struct Gathered<'c> {
    pub(in crate::cpu) argument: ValueId,
    pub(in crate::cpu) base: PointerValue<'c>,
    pub(in crate::cpu) dtype: DType,
    pub(in crate::cpu) place: Place<'c>,
    pub(in crate::cpu) extents: Vec<IntValue<'c>>,
}

/// The part of a tensor's row that indices name for some places of a row of their tiles.
pub(super) struct NamedPart<'c> {
    pub(super) open: OpenRow<'c>,
    /// The places, of which there is one at least, and the index of the first.
    places: IndexRange<'c>,
    first: IntValue<'c>,
    /// The tensor's along the row.
    extent: IntValue<'c>,
    windows: Vec<(IntValue<'c>, IntValue<'c>)>,
    /// Whether the indices of other axes exist, and those of the row follow each other.
    is_row: IntValue<'c>,
    /// Whether the elements at both ends exist, if it is a row.
    has_ends: IntValue<'c>,
}

impl<'c> NamedPart<'c> {
    /// Whether all of its elements exist.
    pub(super) fn exists(&self, ir: &Ir<'c>) -> IntValue<'c> {
        ir.and(self.is_row, self.has_ends)
    }

    /// The places whose elements exist.
    pub(super) fn inside(&self, ir: &Ir<'c>) -> IndexRange<'c> {
        let least = |a, b| ir.select_int(ir.icmp(IntPredicate::SLT, a, b), a, b);
        let most = |a, b| ir.select_int(ir.icmp(IntPredicate::SGT, a, b), a, b);
        let IndexRange { start, end } = self.places;
        let zero = ir.i64(0);
        // However far outside the first index is, differences to it don't wrap.
        let first = most(least(self.first, self.extent), ir.sub(start, end));
        let within =
            |(begin, end), &(from, to): &(IntValue<'c>, IntValue<'c>)| (most(begin, from), least(end, to));
        let (begin, past) = self.windows.iter().fold((zero, self.extent), within);
        let place = |bound| ir.lesser(ir.add(start, most(ir.sub(bound, first), zero)), end);
        let (from, to) = (place(begin), place(past));
        IndexRange { start: from, end: ir.select_int(self.is_row, to, from) }
    }
}

/// Whether an op whose loops go along rows of its own tile reads its operands in the same places. What moves elements reads
/// others: of another row, or beyond the part that was asked for.
fn reads_along(op: &Op) -> bool {
    !matches!(op, Op::Movement(_) | Op::Permute(_) | Op::Reshape(_) | Op::Broadcast(_))
}

impl<'a> Fusion<'a> {
    /// The gathers of rows along which an op's loops go when they go along rows of its own tile.
    pub(in crate::cpu) fn gathers_of(&self, data: &'a OpData) -> Vec<&'a OpData> {
        self.gathers_where(data, |tile| self.gathered_row(tile).is_some())
    }

    /// These, and those that may read parts of rows there.
    pub(in crate::cpu) fn row_gathers_of(&self, data: &'a OpData) -> Vec<&'a OpData> {
        self.gathers_where(data, |tile| self.axis_of_rows(tile).is_some())
    }

    /// The axis of its tensor along which a gather reads rows or parts of rows, if it does.
    pub(super) fn axis_of_rows(&self, tile: ValueId) -> Option<usize> {
        let counted = || Some(self.counted_row(tile)?.tensor_axis);
        self.gathered_row(tile).map(|row| row.tensor_axis).or_else(counted)
    }

    fn gathers_where(&self, data: &'a OpData, is_asked: impl Fn(ValueId) -> bool) -> Vec<&'a OpData> {
        let is_gather = |data: &OpData| data.op == Op::GatherLoad;
        let ops: Vec<&'a OpData> = self.done_with(data).into_iter().chain(self.made_by(data)).collect();
        let along = ops.iter().filter(|data| !is_gather(data) && reads_along(&data.op));
        let operands = along.flat_map(|data| data.operands.iter().copied());
        let computed = self.computed_from(&operands.collect::<Vec<_>>(), |data| data.op.is_leaf());
        let mut gathers: Vec<&'a OpData> = Vec::new();
        for gather in ops.into_iter().chain(computed).filter(|data| is_gather(data)) {
            let is_known = gathers.iter().any(|known| known.results == gather.results);
            if is_asked(gather.results[0]) && !is_known {
                gathers.push(gather);
            }
        }
        gathers
    }
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// The tensor that an op is given first.
    pub(in crate::cpu) fn gathered(&self, data: &OpData) -> Gathered<'c> {
        let (ir, source) = (self.ir, Source::of(self.instance, data.operands[0]));
        let ty = self.tensor_type(data.operands[0]);
        Gathered {
            argument: source.argument,
            base: self.entry.arguments[&source.argument].into_pointer_value(),
            dtype: ty.elem.known().expect("an instance has no dtype parameters"),
            place: self.place(ty, &source),
            extents: ty.extents.iter().map(|dim| ir.dim(dim, &|name| self.entry.sizes[name])).collect(),
        }
    }

    /// Element `index` of a gathered tile.
    pub(in crate::cpu) fn gather_loaded(&mut self, data: &'a OpData, index: &[IntValue<'c>]) -> Value<'c> {
        let (ir, gathered) = (self.ir, self.gathered(data));
        if let Some(&OpenRow { first, stride }) = self.sources.open_rows.get(&data.results[0]) {
            let &place = index.last().expect("a row lies along an axis");
            return self.read_gathered(&gathered, first, ir.mul(place, stride));
        }
        let indices: Vec<_> =
            data.operands[2..].iter().map(|&tile| (self.element(tile, index), self.dtype(tile))).collect();
        let (position, exists) = ir.gather_place(&gathered.place, &gathered.extents, &indices);
        if self.reads_short_elements(data) {
            return self.read_gathered_or_zero(&gathered, position, exists, self.scalar(data.operands[1]));
        }
        let read = || vec![self.read_gathered(&gathered, gathered.base, position)];
        ir.if_else(exists, read, || vec![self.scalar(data.operands[1])])[0]
    }

    /// Reads an element, or a zero elsewhere, without a branch.
    fn read_gathered_or_zero(
        &self,
        gathered: &Gathered<'c>,
        position: IntValue<'c>,
        exists: IntValue<'c>,
        pad: Value<'c>,
    ) -> Value<'c> {
        let (ir, ty) = (self.ir, self.ir.storage_type(gathered.dtype));
        let address = ir.offset(ty, gathered.base, position);
        let address = ir.select(exists, address.into(), ir.zero_in_memory(ty).into()).into_pointer_value();
        let element = self.buffers.read_tensor(gathered.argument, gathered.dtype, address);
        ir.select(exists, element, pad)
    }

    /// Whether an op gathers elements one by one that no instruction gathers.
    pub(in crate::cpu) fn reads_short_elements(&self, data: &OpData) -> bool {
        let is_short = |tile| self.dtype(tile).bytes() < LEAST_GATHERED_BYTES;
        data.op == Op::GatherLoad && is_short(data.results[0])
    }

    fn read_gathered(
        &self,
        gathered: &Gathered<'c>,
        from: PointerValue<'c>,
        position: IntValue<'c>,
    ) -> Value<'c> {
        let address = self.ir.offset(self.ir.storage_type(gathered.dtype), from, position);
        self.buffers.read_tensor(gathered.argument, gathered.dtype, address)
    }

    /// Emits loops along these places of a row of a tile, twice where these gathers read rows along it: for the case that all
    /// their rows exist there, and for the case that one doesn't.
    pub(in crate::cpu) fn with_gathered_rows(
        &mut self,
        gathers: &[&'a OpData],
        row: &[IntValue<'c>],
        range: IndexRange<'c>,
        emit: &mut dyn FnMut(&mut Self),
    ) {
        let ir = self.ir;
        let (rows, exist): (Vec<_>, Vec<_>) = gathers
            .iter()
            .map(|gather| {
                let (open, exists) = self.open_row(gather, row, range);
                ((gather.results[0], open), exists)
            })
            .unzip();
        let Some(exist) = exist.into_iter().reduce(|a, b| ir.and(a, b)) else { return emit(self) };
        ir.on_each_side(exist, |exist| if exist { self.with_open_rows(&rows, emit) } else { emit(self) });
    }

    /// Emits loops in which gathers read these rows.
    pub(super) fn with_open_rows(
        &mut self,
        rows: &[(ValueId, OpenRow<'c>)],
        emit: &mut dyn FnMut(&mut Self),
    ) {
        self.sources.open_rows.extend(rows.iter().copied());
        emit(self);
        for (tile, _) in rows {
            self.sources.open_rows.remove(tile);
        }
    }

    /// The part of a row that a gather reads for these places of a row of its tile, and whether it exists.
    fn open_row(
        &mut self,
        gather: &'a OpData,
        row: &[IntValue<'c>],
        range: IndexRange<'c>,
    ) -> (OpenRow<'c>, IntValue<'c>) {
        let gathered = self.gathered(gather);
        let along =
            self.fusion.gathered_row(gather.results[0]).expect("it was found to read rows").tensor_axis;
        self.named_row(&gathered, &gather.operands[2..], along, row, range)
    }

    /// The part of a tensor's row, which lies along this axis of it, that indices name for these places of a row of their
    /// tiles, and whether all of it exists.
    pub(in crate::cpu) fn named_row(
        &mut self,
        gathered: &Gathered<'c>,
        indices: &[ValueId],
        along: usize,
        row: &[IntValue<'c>],
        range: IndexRange<'c>,
    ) -> (OpenRow<'c>, IntValue<'c>) {
        let part = self.named_part(gathered, indices, along, row, range);
        (part.open, part.exists(self.ir))
    }

    /// The same, of which a part may exist. Indices follow each other where those of both ends are as far apart as their places:
    /// had a number wrapped on the way, they wouldn't be.
    pub(super) fn named_part(
        &mut self,
        gathered: &Gathered<'c>,
        indices: &[ValueId],
        along: usize,
        row: &[IntValue<'c>],
        range: IndexRange<'c>,
    ) -> NamedPart<'c> {
        let ir = self.ir;
        let width = self.shape(indices[along])[row.len()];
        // Where the range is empty any place will do.
        let from = ir.lesser(range.start, ir.i64(width - 1));
        let last = ir.sub(range.end, ir.i64(1));
        let last = ir.select_int(ir.icmp(IntPredicate::UGT, range.end, from), last, from);
        let place = &gathered.place;
        let index = |emitter: &mut Self, axis: usize, i: IntValue<'c>| {
            let element = emitter.element(indices[axis], &[row, &[i]].concat());
            ir.cast(emitter.dtype(indices[axis]), DType::I64, element).into_int_value()
        };
        let exists = |axis: usize, i| ir.index_exists(i, gathered.extents[axis], &place.windows[axis]);
        let (first, end) = (index(self, along, from), index(self, along, last));
        let has_ends = ir.and(exists(along, first), exists(along, end));
        let mut is_row = ir.icmp(IntPredicate::EQ, ir.sub(end, first), ir.sub(last, from));
        is_row = place.exists.map_or(is_row, |exists| ir.and(is_row, exists));
        let mut position = ir.add(place.offset, ir.mul(ir.sub(first, from), place.strides[along]));
        for axis in (0..indices.len()).filter(|&axis| axis != along) {
            let index = index(self, axis, from);
            is_row = ir.and(is_row, exists(axis, index));
            position = ir.add(position, ir.mul(index, place.strides[axis]));
        }
        let address = ir.offset(ir.storage_type(gathered.dtype), gathered.base, position);
        NamedPart {
            open: OpenRow { first: address, stride: place.strides[along] },
            places: IndexRange { start: from, end: ir.add(last, ir.i64(1)) },
            first,
            extent: gathered.extents[along],
            windows: place.windows[along].to_vec(),
            is_row,
            has_ends,
        }
    }

    /// Reads a plain element at a place of a row.
    pub(in crate::cpu) fn load_in_row(
        &self,
        gathered: &Gathered<'c>,
        row: OpenRow<'c>,
        place: IntValue<'c>,
    ) -> Value<'c> {
        let address = self.address_in_row(gathered, row, place);
        self.buffers.read_tensor(gathered.argument, gathered.dtype, address)
    }

    /// Writes a plain element at a place of a row.
    pub(in crate::cpu) fn store_in_row(
        &self,
        gathered: &Gathered<'c>,
        row: OpenRow<'c>,
        place: IntValue<'c>,
        value: Value<'c>,
    ) {
        let address = self.address_in_row(gathered, row, place);
        self.buffers.write_tensor(gathered.argument, gathered.dtype, address, value);
    }

    /// Where a place of a row lies.
    pub(in crate::cpu) fn address_in_row(
        &self,
        gathered: &Gathered<'c>,
        row: OpenRow<'c>,
        place: IntValue<'c>,
    ) -> PointerValue<'c> {
        let position = self.ir.mul(place, row.stride);
        self.ir.offset(self.ir.storage_type(gathered.dtype), row.first, position)
    }

    /// Fills a buffer with a tile that an op computes from rows that are gathered, or parts of such.
    pub(in crate::cpu) fn fill_from_rows(&mut self, buffer: &Buffer<'c>, data: &'a OpData) {
        let ir = self.ir;
        let shape = self.shape(data.results[0]);
        let (&width, rows) = shape.split_last().expect("a row lies along an axis");
        let all = IndexRange::up_to(ir, ir.i64(width));
        let fill_row = |emitter: &mut Self, row: &[IntValue<'c>]| {
            let first = ir.mul(emitter.position(row, rows), ir.i64(width));
            let mut fill = |emitter: &mut Self, places: IndexRange<'c>| {
                ir.each(places.by(ir.i64(1)), hint_for_row(width), |i| {
                    let value =
                        emitter.computing_once(|emitter| emitter.compute(data, &[row, &[i]].concat()));
                    emitter.buffers.store(buffer, ir.add(first, i), value);
                });
            };
            let parts = emitter.parts_of_runs(row).expect("the op has gathers of rows");
            emitter.along_runs(&parts, all, &mut fill);
        };
        self.with_runs(data, all, &mut |emitter| {
            emitter.each_row(rows, &mut |emitter, row| fill_row(emitter, row));
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::compiled::assembly;
    use tile_ir::Instance;

    /// Bytes of a table, of which not every index exists, have no branch each.
    #[test]
    fn short_elements_are_read_without_branches() {
        let source = "kernel @k(%x: tensor<n x u8>, %table: tensor<k x u8>, %y: mut tensor<n x u8>) {
  %vx = partition %x [256] : partition<n x u8, [256]>
  %vy = partition %y [256] : mut partition<n x u8, [256]>
  %i = block_index %vy : index
  %zero = constant 0 : u8
  %t = load %vx[%i] : tile<256 x u8>
  %r = gather_load %table[%t] pad %zero : tile<256 x u8>
  store %vy, %r
}
";
        let code = assembly(&Instance::parse(source, &[]).unwrap(), "x86-64-v4");
        let branches = code.lines().filter(|line| line.starts_with("\tj")).count();
        assert!(branches < 64, "{branches} branches: {code}");
    }
}
