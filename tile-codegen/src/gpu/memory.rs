//! Global and shared memory: loads and stores of tiles, masked or not, gathers, and buffers that the block shares.
//!
//! A block's own tile is stored and loaded with one distribution, so each element is written and read back
//! by the same thread: program order is all the synchronisation that needs.

use super::distribution::{Coordinate, Mapping, Slot};
use super::fragment::Fragment;
use super::region::Emitter;
use super::shared::Buffer;
use crate::emit::prefetch::Rows;
use crate::emit::{Ir, Place, Value};
use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use std::collections::HashMap;
use tile_ir::kernel::OpData;
use tile_ir::view::Source;
use tile_ir::{DType, Dim, Op, OpId, Type, ValueId};

/// Where a tile lies in its tensor.
struct Window<'c> {
    /// The address of the tile's first element, which may not exist.
    first: PointerValue<'c>,
    dtype: DType,
    /// Whether the block writes it, so that a thread may read the elements that it owns and no others.
    mutable: bool,
    /// Strides of the tensor, i64.
    strides: Vec<IntValue<'c>>,
    /// What a mask hides; `None` where every element is known to exist.
    mask: Option<Mask<'c>>,
    mapping: Mapping<'c>,
    tile: Vec<u64>,
}

/// The elements of a tile that exist.
struct Mask<'c> {
    /// The places along each axis, i32: from the first, where some are missing before it, to the last.
    begin: Vec<Option<IntValue<'c>>>,
    end: Vec<IntValue<'c>>,
    /// The address of an element that exists, if [`Self::any`].
    safe: PointerValue<'c>,
    /// Whether any element exists.
    any: IntValue<'c>,
    /// Whether all do.
    whole: IntValue<'c>,
}

impl<'c> Window<'c> {
    /// A number of elements along an axis as a number of elements in memory.
    fn scaled(&self, ir: &Ir<'c>, axis: usize, count: IntValue<'c>) -> IntValue<'c> {
        let stride = self.strides[axis];
        if stride == ir.i64(1) { count } else { ir.mul(count, stride) }
    }
}

/// Where the previous slot's element is, on one straight piece of code. Going from slot to slot keeps the
/// address arithmetic short.
#[derive(Default)]
struct Cursor<'c> {
    last: Option<(Vec<Coordinate<'c>>, PointerValue<'c>)>,
    /// Steps along the axes → elements in memory.
    steps: HashMap<Vec<i64>, IntValue<'c>>,
}

impl<'c> Emitter<'_, 'c> {
    fn window(&self, view: ValueId, index: &[IntValue<'c>], masked: bool) -> Window<'c> {
        let ir = self.ir;
        let ty = self.instance.ty(view).as_partition().expect("verified: a view");
        let number = |dim: &Dim| dim.as_const().expect("an instance's tile extents are numbers");
        let tile: Vec<u64> = ty.tile.iter().map(|dim| number(dim) as u64).collect();
        let extents: Vec<IntValue<'c>> = ty.tensor.extents.iter().map(|dim| self.dim(dim)).collect();
        let source = self.source_of(view);
        let moved = ty.tensor.layout.is_some() || !source.selections.is_empty();
        let place = moved.then(|| self.place(&ty.tensor, &source));
        let strides = match &place {
            Some(place) => place.strides.iter().map(|&stride| self.loop_stride(stride)).collect(),
            None => self.dense_strides(&extents),
        };
        let mut first = place.as_ref().map_or_else(|| ir.i64(0), |place| place.offset);
        let start = index.iter().zip(&ty.steps).map(|(&index, step)| ir.mul(index, ir.i64(number(step))));
        let start: Vec<IntValue<'c>> = start.collect();
        for (&start, &stride) in start.iter().zip(&strides) {
            first = ir.add(first, ir.mul(start, stride));
        }
        let dtype = ty.tensor.elem.known().expect("an instance has no dtype parameters");
        // Not an in-bounds address where no element lies inside, so it mustn't be emitted as one.
        let base = self.scalar(source.argument).into_pointer_value();
        let first = ir.offset(ir.storage_type(dtype), base, first);
        let mapping = self.mapping(&tile);
        let mutable = ty.tensor.mutable;
        let mut window = Window { first, dtype, mutable, strides, mask: None, mapping, tile };
        if masked {
            let steps: Vec<i64> = ty.steps.iter().map(number).collect();
            let mask = self.mask(&window, &extents, (index, &start), &steps, place.as_ref());
            window.mask = Some(mask);
        }
        window
    }

    fn mask(
        &self,
        window: &Window<'c>,
        extents: &[IntValue<'c>],
        (index, start): (&[IntValue<'c>], &[IntValue<'c>]),
        steps: &[i64],
        place: Option<&Place<'c>>,
    ) -> Mask<'c> {
        let ir = self.ir;
        let (mut any, mut whole) = (ir.bool(true), ir.bool(true));
        let (mut begin, mut end, mut safe) = (Vec::new(), Vec::new(), None);
        for axis in 0..window.tile.len() {
            let size = ir.i64(window.tile[axis] as i64);
            let inside = self.inside(extents[axis], (index[axis], start[axis]), size, ir.i64(steps[axis]));
            let windows = place.map_or(&[][..], |place| &place.windows[axis]);
            let (from, to) = if windows.is_empty() {
                any = ir.and(any, ir.icmp(IntPredicate::NE, inside, ir.i64(0)));
                (None, inside)
            } else {
                let (from, to) = ir.trim(start[axis], inside, windows);
                any = ir.and(any, ir.icmp(IntPredicate::SLT, from, to));
                whole = ir.and(whole, ir.icmp(IntPredicate::EQ, from, ir.i64(0)));
                let skipped = window.scaled(ir, axis, from);
                safe = Some(safe.map_or(skipped, |before| ir.add(before, skipped)));
                (Some(from), to)
            };
            whole = ir.and(whole, ir.icmp(IntPredicate::EQ, to, size));
            begin.push(from.map(|from| ir.resize(from, 32, false)));
            end.push(ir.resize(to, 32, false));
        }
        if let Some(exists) = place.and_then(|place| place.exists) {
            (any, whole) = (ir.and(any, exists), ir.and(whole, exists));
        }
        let storage = ir.storage_type(window.dtype);
        let safe = safe.map_or(window.first, |skipped| ir.offset(storage, window.first, skipped));
        Mask { begin, end, safe, any, whole }
    }

    fn dense_strides(&self, extents: &[IntValue<'c>]) -> Vec<IntValue<'c>> {
        let ir = self.ir;
        let mut strides = vec![ir.i64(1); extents.len()];
        for axis in (1..extents.len()).rev() {
            let inner = strides[axis];
            let stride = if axis + 1 == extents.len() { extents[axis] } else { ir.mul(inner, extents[axis]) };
            strides[axis - 1] = self.loop_stride(stride);
        }
        strides
    }

    fn loop_stride(&self, stride: IntValue<'c>) -> IntValue<'c> {
        if stride.is_const() { stride } else { self.in_loop(stride, true, |stride| stride) }
    }

    /// How many elements of tile `index` lie inside along an axis: none, if the index is beyond the space.
    fn inside(
        &self,
        extent: IntValue<'c>,
        (index, start): (IntValue<'c>, IntValue<'c>),
        size: IntValue<'c>,
        step: IntValue<'c>,
    ) -> IntValue<'c> {
        let ir = self.ir;
        let one = ir.i64(1);
        let last = ir.udiv(ir.sub(extent, one), step);
        let nonempty = ir.icmp(IntPredicate::NE, extent, ir.i64(0));
        let exists = ir.and(nonempty, ir.icmp(IntPredicate::ULE, index, last));
        let rest = ir.sub(extent, start);
        let inside = ir.select_int(ir.icmp(IntPredicate::ULT, rest, size), rest, size);
        ir.select_int(exists, inside, ir.i64(0))
    }

    /// The address of the slot's element; and whether it lies inside, which is `None` where it always does.
    fn locate(
        &self,
        window: &Window<'c>,
        cursor: &mut Cursor<'c>,
        slot: Slot<'c>,
        mask: Option<&Mask<'c>>,
    ) -> (PointerValue<'c>, Option<IntValue<'c>>) {
        let ir = self.ir;
        let places = window.mapping.coordinates(ir, slot);
        let mut inside = None;
        let axes = places.iter().enumerate().filter(|&(axis, _)| window.tile[axis] > 1);
        for (mask, (axis, &place)) in axes.filter_map(|axis| Some((mask?, axis))) {
            let mut here = ir.icmp(IntPredicate::ULT, place.value(ir), mask.end[axis]);
            if let Some(begin) = mask.begin[axis] {
                here = ir.and(here, ir.icmp(IntPredicate::UGE, place.value(ir), begin));
            }
            inside = Some(inside.map_or(here, |inside| ir.and(inside, here)));
        }
        let pointer = self.advance(window, cursor, &places);
        cursor.last = Some((places, pointer));
        (pointer, inside)
    }

    /// The address of a place: one addition to the last one's, where threads differ alike.
    fn advance(
        &self,
        window: &Window<'c>,
        cursor: &mut Cursor<'c>,
        places: &[Coordinate<'c>],
    ) -> PointerValue<'c> {
        let ir = self.ir;
        let (start, from): (_, Vec<u64>) = match &cursor.last {
            Some((last, pointer)) if last.iter().zip(places).all(|(a, b)| a.varying == b.varying) => {
                (*pointer, last.iter().map(|place| place.fixed).collect())
            }
            _ => (self.varying_address(window, places), vec![0; places.len()]),
        };
        let step: Vec<i64> =
            places.iter().zip(&from).map(|(to, &from)| to.fixed as i64 - from as i64).collect();
        if step.iter().all(|&step| step == 0) {
            return start;
        }
        let offset = *cursor.steps.entry(step).or_insert_with_key(|step| {
            let axes = step.iter().enumerate().filter(|&(_, &step)| step != 0);
            axes.fold(ir.i64(0), |sum, (axis, &step)| ir.add(sum, window.scaled(ir, axis, ir.i64(step))))
        });
        ir.offset(ir.storage_type(window.dtype), start, offset)
    }

    fn varying_address(&self, window: &Window<'c>, places: &[Coordinate<'c>]) -> PointerValue<'c> {
        let ir = self.ir;
        let mut position = ir.i64(0);
        for (axis, place) in places.iter().enumerate() {
            if let Some(varying) = place.varying {
                position = ir.add(position, window.scaled(ir, axis, ir.resize(varying, 64, false)));
            }
        }
        ir.offset(ir.storage_type(window.dtype), window.first, position)
    }

    /// Loads where the element exists; elsewhere an element that does, and takes the pad. What threads write is
    /// loaded behind a branch instead: that other element is another thread's.
    fn load_slot(
        &self,
        window: &Window<'c>,
        cursor: &mut Cursor<'c>,
        slot: Slot<'c>,
        masked: Option<(&Mask<'c>, Value<'c>)>,
    ) -> Value<'c> {
        let ir = self.ir;
        let (pointer, inside) = self.locate(window, cursor, slot, masked.map(|(mask, _)| mask));
        if window.mutable {
            let owned = window.mapping.is_element(ir, slot);
            let condition = [inside, owned].into_iter().flatten().reduce(|a, b| ir.and(a, b));
            let pad = masked.map_or_else(|| ir.compute_type(window.dtype).const_zero(), |(_, pad)| pad);
            let load = || ir.load_value(pointer, window.dtype);
            return match condition {
                Some(condition) => ir.if_else(condition, || vec![load()], || vec![pad])[0],
                None => load(),
            };
        }
        match (inside, masked) {
            (Some(inside), Some((mask, pad))) => {
                let safe = ir.select(inside, pointer.into(), mask.safe.into()).into_pointer_value();
                ir.select(inside, ir.load_value(safe, window.dtype), pad)
            }
            _ => ir.load_value(pointer, window.dtype),
        }
    }

    /// The rows of the tile that an op asks for.
    pub(super) fn rows(&self, data: &OpData) -> Rows<'c> {
        let ir = self.ir;
        let index: Vec<IntValue<'c>> = match &data.operands[1..] {
            [] => self.tile_index.clone(),
            indices => indices.iter().map(|&value| self.index(value)).collect(),
        };
        let window = self.window(data.operands[0], &index, true);
        let mask = window.mask.expect("a mask was asked for");
        let wide = |place| ir.resize(place, 64, false);
        let mut end: Vec<IntValue<'c>> = mask.end.into_iter().map(wide).collect();
        end[0] = ir.select_int(mask.any, end[0], ir.i64(0));
        Rows {
            first: window.first,
            dtype: window.dtype,
            tile: window.tile,
            strides: window.strides,
            begin: mask.begin.into_iter().map(|begin| begin.map(wide)).collect(),
            end,
        }
    }

    pub(super) fn load(&mut self, data: &OpData) {
        let load = data.load().expect("a load");
        let index: Vec<IntValue<'c>> = match load.index {
            [] => self.tile_index.clone(),
            indices => indices.iter().map(|&value| self.index(value)).collect(),
        };
        let window = self.window(load.view, &index, load.pad.is_some());
        let (elements, dtype) = (window.tile.iter().product(), window.dtype);
        let read = |masked: Option<(&Mask<'c>, Value<'c>)>| {
            let mut cursor = Cursor::default();
            self.map(elements, dtype, |slot| self.load_slot(&window, &mut cursor, slot, masked))
        };
        let fragment = match (&window.mask, load.pad) {
            (Some(mask), Some(pad)) => {
                let pad = self.scalar(pad);
                let part =
                    || self.choose(mask.whole, (elements, dtype), || read(None), || read(Some((mask, pad))));
                self.choose(mask.any, (elements, dtype), part, || Fragment::Uniform(pad))
            }
            _ => read(None),
        };
        self.set_tile(data.results[0], fragment);
    }

    pub(super) fn store(&mut self, data: &OpData) {
        let ir = self.ir;
        let window = self.window(data.operands[0], &self.tile_index, data.op == Op::StoreMasked);
        let fragment = self.tile(data.operands[1]);
        let store = |mask: Option<&Mask<'c>>| {
            let mut cursor = Cursor::default();
            self.each(window.tile.iter().product(), |slot| {
                let value = self.get(fragment, window.dtype, slot);
                let (pointer, inside) = self.locate(&window, &mut cursor, slot, mask);
                let inside = match (inside, window.mapping.is_element(ir, slot)) {
                    (Some(a), Some(b)) => Some(ir.and(a, b)),
                    (a, b) => a.or(b),
                };
                let write = || ir.store(pointer, ir.value_to_storage(value, window.dtype));
                match inside {
                    Some(inside) => ir.if_then(inside, write),
                    None => write(),
                }
            });
            Vec::new()
        };
        match &window.mask {
            None => drop(store(None)),
            Some(mask) => {
                ir.if_then(mask.any, || drop(ir.if_else(mask.whole, || store(None), || store(Some(mask)))));
            }
        }
    }

    pub(super) fn gather_load(&mut self, data: &OpData) {
        let (ir, tensor) = (self.ir, data.operands[0]);
        let Type::Tensor(ty) = self.instance.ty(tensor) else { unreachable!("verified: a tensor") };
        let source = Source::of(self.instance, tensor);
        let place = self.place(ty, &source);
        let extents: Vec<IntValue<'c>> = ty.extents.iter().map(|dim| self.dim(dim)).collect();
        let base = self.scalar(source.argument).into_pointer_value();
        let (pad, dtype) = (self.scalar(data.operands[1]), self.dtype(data.results[0]));
        let read = |indices: &[(Value<'c>, DType)]| {
            let (position, exists) = ir.gather_place(&place, &extents, indices);
            let load = || ir.load_value(ir.offset(ir.storage_type(dtype), base, position), dtype);
            ir.if_else(exists, || vec![load()], || vec![pad])[0]
        };
        let tiles: Vec<_> =
            data.operands[2..].iter().map(|&tile| (self.tile(tile), self.dtype(tile))).collect();
        let uniform = tiles.iter().map(|&(tile, dtype)| match tile {
            Fragment::Uniform(value) => Some((*value, dtype)),
            _ => None,
        });
        let fragment = match uniform.collect::<Option<Vec<_>>>() {
            Some(indices) => Fragment::Uniform(read(&indices)),
            None => self.map(self.elements(data.results[0]), dtype, |slot| {
                let indices: Vec<_> =
                    tiles.iter().map(|&(tile, dtype)| (self.get(tile, dtype, slot), dtype)).collect();
                read(&indices)
            }),
        };
        self.set_tile(data.results[0], fragment);
    }

    /// Waits for the block.
    pub(super) fn sync(&mut self) {
        self.dialect.barrier(self.ir);
        self.pending.clear();
    }

    /// Makes sure that nobody still reads what lay in these buffers.
    pub(super) fn reserve(&mut self, buffers: &[Buffer]) {
        if buffers.iter().any(|&buffer| self.pending.conflicts(buffer)) {
            self.sync();
        }
    }

    /// Writes a tile's fragment to a buffer, row-major, padding included.
    pub(super) fn share(&self, buffer: Buffer, fragment: &Fragment<'c>, elements: u64, dtype: DType) {
        let threads = self.distribution.threads;
        let own = self.shared_pointer(buffer, self.thread);
        self.each(elements, |slot| {
            let first = match slot {
                Slot::Fixed(slot) => self.i32(slot * threads),
                Slot::Varying(slot) => self.ir.mul(slot, self.i32(threads)),
            };
            let address = self.ir.element(self.ir.storage_type(buffer.dtype), own, first);
            self.write_to(buffer, address, self.get(fragment, dtype, slot));
        });
    }

    /// Puts an op's tiles into its buffers, where all threads can read them.
    pub(super) fn share_all(&mut self, op: OpId, tiles: &[ValueId]) -> Vec<Buffer> {
        let buffers = self.plan.buffers(op);
        self.reserve(&buffers);
        for (&tile, &buffer) in tiles.iter().zip(&buffers) {
            self.share(buffer, self.tile(tile), self.elements(tile), self.dtype(tile));
        }
        self.sync();
        buffers
    }

    /// The address of an element of a buffer; `index` is an i32.
    pub(super) fn shared_pointer(&self, buffer: Buffer, index: IntValue<'c>) -> PointerValue<'c> {
        let ir = self.ir;
        let base = ir.element(ir.int_type(8).into(), self.shared, ir.i64(buffer.offset as i64));
        ir.element(ir.storage_type(buffer.dtype), base, index)
    }

    pub(super) fn write_shared(&self, buffer: Buffer, index: IntValue<'c>, value: Value<'c>) {
        self.write_to(buffer, self.shared_pointer(buffer, index), value);
    }

    fn write_to(&self, buffer: Buffer, address: PointerValue<'c>, value: Value<'c>) {
        self.ir.store(address, self.ir.value_to_storage(value, buffer.dtype));
    }

    pub(super) fn read_shared(&self, buffer: Buffer, index: IntValue<'c>) -> Value<'c> {
        let address = self.shared_pointer(buffer, index);
        self.ir.load_value(address, buffer.dtype)
    }
}
