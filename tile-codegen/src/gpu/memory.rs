//! Global and shared memory: masked loads and stores of tiles, and buffers that the block shares.
//!
//! A block's own tile is stored and loaded with one distribution, so each element is written and read back
//! by the same thread: program order is all the synchronisation that needs.

use super::distribution::{Mapping, Slot};
use super::fragment::Fragment;
use super::region::Emitter;
use super::shared::Buffer;
use crate::emit::Value;
use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::kernel::OpData;
use tile_ir::{DType, ValueId};

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
            strides[axis - 1] =
                if axis + 1 == tile.len() { extents[axis] } else { ir.mul(strides[axis], extents[axis]) };
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

    /// The slot's element relative to the tile's first one, in elements; and whether it lies inside, which
    /// is `None` where it always does.
    fn locate(
        &self,
        window: &Window<'c>,
        slot: Slot<'c>,
        masked: bool,
    ) -> (IntValue<'c>, Option<IntValue<'c>>) {
        let ir = self.ir;
        let (mut position, mut inside) = (ir.i64(0), None);
        for (axis, coordinate) in window.mapping.coordinates(ir, slot).into_iter().enumerate() {
            if window.tile[axis] == 1 {
                continue;
            }
            let last = axis + 1 == window.tile.len();
            let scaled = |index: IntValue<'c>| if last { index } else { ir.mul(index, window.strides[axis]) };
            if let Some(varying) = coordinate.varying {
                position = ir.add(position, scaled(ir.resize(varying, 64, false)));
            }
            position = ir.add(position, scaled(ir.i64(coordinate.fixed as i64)));
            if masked {
                let here = ir.icmp(IntPredicate::ULT, coordinate.value(ir), window.valid[axis]);
                inside = Some(inside.map_or(here, |inside| ir.and(inside, here)));
            }
        }
        (position, inside)
    }

    /// Loads where the element is inside; elsewhere the tile's first element, which is, and takes the pad.
    fn load_slot(&self, window: &Window<'c>, slot: Slot<'c>, pad: Option<Value<'c>>) -> Value<'c> {
        let ir = self.ir;
        let (position, inside) = self.locate(window, slot, pad.is_some());
        let safe = inside.map_or(position, |inside| ir.select_int(inside, position, ir.i64(0)));
        let address = ir.element(ir.storage_type(window.dtype), window.first, safe);
        let value = ir.load_value(address, window.dtype);
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
        let load =
            |pad: Option<Value<'c>>| self.map(elements, dtype, |slot| self.load_slot(&window, slot, pad));
        let part = || self.choose(window.whole, (elements, dtype), || load(None), || load(Some(pad)));
        let fragment = self.choose(window.any, (elements, dtype), part, || Fragment::Uniform(pad));
        self.set_tile(data.results[0], fragment);
    }

    pub(super) fn store_masked(&mut self, data: &OpData) {
        let ir = self.ir;
        let window = self.window(data.operands[0], &self.block);
        let fragment = self.tile(data.operands[1]);
        let store = |masked: bool| {
            self.each(window.tile.iter().product(), |slot| {
                let value = self.get(fragment, window.dtype, slot);
                let (position, inside) = self.locate(&window, slot, masked);
                let inside = match (inside, window.mapping.is_element(ir, slot)) {
                    (Some(a), Some(b)) => Some(ir.and(a, b)),
                    (a, b) => a.or(b),
                };
                let write = || {
                    let address = ir.element(ir.storage_type(window.dtype), window.first, position);
                    ir.store(address, ir.value_to_storage(value, window.dtype));
                };
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
        let threads = self.i32(self.distribution.threads);
        self.each(elements, |slot| {
            let first = match slot {
                Slot::Fixed(slot) => self.i32(slot * self.distribution.threads),
                Slot::Varying(slot) => self.ir.mul(slot, threads),
            };
            let value = self.get(fragment, dtype, slot);
            self.write_shared(buffer, self.ir.add(self.thread, first), value);
        });
    }

    /// The address of an element of a buffer; `index` is an i32.
    pub(super) fn shared_pointer(&self, buffer: Buffer, index: IntValue<'c>) -> PointerValue<'c> {
        let ir = self.ir;
        let base = ir.element(ir.int_type(8).into(), self.shared, ir.i64(buffer.offset as i64));
        ir.element(ir.storage_type(buffer.dtype), base, index)
    }

    pub(super) fn write_shared(&self, buffer: Buffer, index: IntValue<'c>, value: Value<'c>) {
        let address = self.shared_pointer(buffer, index);
        self.dialect.shared_access(self.ir, address, buffer.dtype.bytes() as u64, true);
        self.ir.store(address, self.ir.value_to_storage(value, buffer.dtype));
    }

    pub(super) fn read_shared(&self, buffer: Buffer, index: IntValue<'c>) -> Value<'c> {
        let address = self.shared_pointer(buffer, index);
        self.dialect.shared_access(self.ir, address, buffer.dtype.bytes() as u64, false);
        self.ir.load_value(address, buffer.dtype)
    }
}
