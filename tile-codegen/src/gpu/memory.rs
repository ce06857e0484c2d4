//! Global and shared memory: masked loads and stores of tiles, and buffers that the block shares.
//!
//! A block's own tile is stored and loaded with one distribution, so each element is written and read back
//! by the same thread: program order is all the synchronisation that needs.

use super::distribution::{Coordinate, Mapping, Slot};
use super::fragment::Fragment;
use super::region::Emitter;
use super::shared::Buffer;
use crate::emit::{Ir, Value};
use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use std::collections::HashMap;
use tile_ir::kernel::OpData;
use tile_ir::{DType, OpId, ValueId};

/// Where a tile lies in its tensor.
struct Window<'c> {
    /// The address of the tile's first element, if [`Self::any`].
    first: PointerValue<'c>,
    dtype: DType,
    /// Strides of the tensor, i64; the last is 1 and not used.
    strides: Vec<IntValue<'c>>,
    /// How many elements along each axis lie inside, i32.
    valid: Vec<IntValue<'c>>,
    /// Whether any element lies inside.
    any: IntValue<'c>,
    /// Whether all do.
    whole: IntValue<'c>,
    mapping: Mapping<'c>,
    tile: Vec<u64>,
}

impl<'c> Window<'c> {
    /// A number of elements along an axis as a number of elements in memory.
    fn scaled(&self, ir: &Ir<'c>, axis: usize, count: IntValue<'c>) -> IntValue<'c> {
        if axis + 1 == self.tile.len() { count } else { ir.mul(count, self.strides[axis]) }
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
    fn window(&self, view: ValueId, index: &[IntValue<'c>]) -> Window<'c> {
        let ir = self.ir;
        let ty = self.instance.ty(view).as_partition().expect("verified: a view");
        let tile: Vec<u64> = ty
            .tile
            .iter()
            .map(|dim| dim.as_const().expect("an instance's tile extents are numbers") as u64)
            .collect();
        let extents: Vec<IntValue<'c>> = ty.tensor.extents.iter().map(|dim| self.dim(dim)).collect();
        let mut strides = vec![ir.i64(1); tile.len()];
        for axis in (1..tile.len()).rev() {
            let inner = strides[axis];
            let stride = if axis + 1 == tile.len() { extents[axis] } else { ir.mul(inner, extents[axis]) };
            strides[axis - 1] =
                if stride.is_const() { stride } else { self.in_loop(stride, true, |stride| stride) };
        }
        let (mut first, mut any, mut whole) = (ir.i64(0), ir.bool(true), ir.bool(true));
        let mut valid = Vec::with_capacity(tile.len());
        for (axis, &index) in index.iter().enumerate() {
            let size = ir.i64(tile[axis] as i64);
            let inside = self.inside(extents[axis], index, size);
            any = ir.and(any, ir.icmp(IntPredicate::NE, inside, ir.i64(0)));
            whole = ir.and(whole, ir.icmp(IntPredicate::EQ, inside, size));
            valid.push(ir.resize(inside, 32, false));
            first = ir.add(first, ir.mul(ir.mul(index, size), strides[axis]));
        }
        let dtype = ty.tensor.elem.known().expect("an instance has no dtype parameters");
        // Not an in-bounds address where no element lies inside, so it mustn't be emitted as one.
        let first = self.offset(ir.storage_type(dtype), self.tensor_of(view), first);
        let mapping = self.mapping(&tile);
        Window { first, dtype, strides, valid, any, whole, mapping, tile }
    }

    fn offset(
        &self,
        ty: inkwell::types::BasicTypeEnum<'c>,
        base: PointerValue<'c>,
        index: IntValue<'c>,
    ) -> PointerValue<'c> {
        // SAFETY: without `inbounds` any offset is allowed.
        let address = unsafe { self.ir.builder.build_gep(ty, base, &[index], "") };
        address.expect("the builder is positioned")
    }

    /// How many elements of tile `index` lie inside along an axis: none, if the index is beyond the space.
    fn inside(&self, extent: IntValue<'c>, index: IntValue<'c>, size: IntValue<'c>) -> IntValue<'c> {
        let ir = self.ir;
        let one = ir.i64(1);
        let last = ir.udiv(ir.sub(extent, one), size);
        let nonempty = ir.icmp(IntPredicate::NE, extent, ir.i64(0));
        let exists = ir.and(nonempty, ir.icmp(IntPredicate::ULE, index, last));
        let rest = ir.sub(extent, ir.mul(index, size));
        let inside = ir.select_int(ir.icmp(IntPredicate::ULT, rest, size), rest, size);
        ir.select_int(exists, inside, ir.i64(0))
    }

    /// The address of the slot's element; and whether it lies inside, which is `None` where it always does.
    fn locate(
        &self,
        window: &Window<'c>,
        cursor: &mut Cursor<'c>,
        slot: Slot<'c>,
        masked: bool,
    ) -> (PointerValue<'c>, Option<IntValue<'c>>) {
        let ir = self.ir;
        let places = window.mapping.coordinates(ir, slot);
        let mut inside = None;
        for (axis, &place) in places.iter().enumerate().filter(|&(axis, _)| masked && window.tile[axis] > 1) {
            let here = ir.icmp(IntPredicate::ULT, place.value(ir), window.valid[axis]);
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
        self.offset(ir.storage_type(window.dtype), start, offset)
    }

    fn varying_address(&self, window: &Window<'c>, places: &[Coordinate<'c>]) -> PointerValue<'c> {
        let ir = self.ir;
        let mut position = ir.i64(0);
        for (axis, place) in places.iter().enumerate() {
            if let Some(varying) = place.varying {
                position = ir.add(position, window.scaled(ir, axis, ir.resize(varying, 64, false)));
            }
        }
        self.offset(ir.storage_type(window.dtype), window.first, position)
    }

    /// Loads where the element is inside; elsewhere the tile's first element, which is, and takes the pad.
    fn load_slot(
        &self,
        window: &Window<'c>,
        cursor: &mut Cursor<'c>,
        slot: Slot<'c>,
        pad: Option<Value<'c>>,
    ) -> Value<'c> {
        let ir = self.ir;
        let (pointer, inside) = self.locate(window, cursor, slot, pad.is_some());
        let safe = inside.map_or(pointer, |inside| {
            ir.select(inside, pointer.into(), window.first.into()).into_pointer_value()
        });
        let value = ir.load_value(safe, window.dtype);
        match (inside, pad) {
            (Some(inside), Some(pad)) => ir.select(inside, value, pad),
            _ => value,
        }
    }

    pub(super) fn load_masked(&mut self, data: &OpData) {
        let index: Vec<IntValue<'c>> = match &data.operands[2..] {
            [] => self.block.clone(),
            indices => indices.iter().map(|&value| self.index(value)).collect(),
        };
        let window = self.window(data.operands[0], &index);
        let pad = self.scalar(data.operands[1]);
        let (elements, dtype) = (window.tile.iter().product(), window.dtype);
        let load = |pad: Option<Value<'c>>| {
            let mut cursor = Cursor::default();
            self.map(elements, dtype, |slot| self.load_slot(&window, &mut cursor, slot, pad))
        };
        let part = || self.choose(window.whole, (elements, dtype), || load(None), || load(Some(pad)));
        let fragment = self.choose(window.any, (elements, dtype), part, || Fragment::Uniform(pad));
        self.set_tile(data.results[0], fragment);
    }

    pub(super) fn store_masked(&mut self, data: &OpData) {
        let ir = self.ir;
        let window = self.window(data.operands[0], &self.block);
        let fragment = self.tile(data.operands[1]);
        let store = |masked: bool| {
            let mut cursor = Cursor::default();
            self.each(window.tile.iter().product(), |slot| {
                let value = self.get(fragment, window.dtype, slot);
                let (pointer, inside) = self.locate(&window, &mut cursor, slot, masked);
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
        };
        ir.if_then(window.any, || {
            ir.if_else(
                window.whole,
                || {
                    store(false);
                    Vec::new()
                },
                || {
                    store(true);
                    Vec::new()
                },
            );
        });
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
        self.dialect.shared_access(self.ir, address, buffer.dtype.bytes() as u64, true);
        self.ir.store(address, self.ir.value_to_storage(value, buffer.dtype));
    }

    pub(super) fn read_shared(&self, buffer: Buffer, index: IntValue<'c>) -> Value<'c> {
        let address = self.shared_pointer(buffer, index);
        self.dialect.shared_access(self.ir, address, buffer.dtype.bytes() as u64, false);
        self.ir.load_value(address, buffer.dtype)
    }
}
