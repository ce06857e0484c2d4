//! Loads and stores of tiles through partition views.
//!
//! A tile that lies inside its tensor takes a path without any masks, chosen once per tile. At an edge, loads
//! and stores copy the part of each row that is inside, and a load that is computed in its consumer's loop (a
//! **stream**) asks for each element.

use super::elements::count;
use super::region::{Emitter, extents};
use crate::emit::{LoopHint, Value};
use inkwell::IntPredicate;
use inkwell::values::{BasicValue, IntValue, PointerValue};
use tile_ir::kernel::OpData;
use tile_ir::types::PartitionType;
use tile_ir::{DType, ValueId};

/// Where a tile lies in its tensor.
#[derive(Clone)]
pub(super) struct Window<'c> {
    tensor: ValueId,
    base: PointerValue<'c>,
    dtype: DType,
    tile: Vec<i64>,
    /// Extents of the tensor.
    extents: Vec<IntValue<'c>>,
    /// The tensor index of the tile's first element.
    start: Vec<IntValue<'c>>,
    /// How many elements along each axis lie inside.
    valid: Vec<IntValue<'c>>,
}

/// A tile that loops read from its tensor.
#[derive(Clone)]
pub(super) struct Stream<'c> {
    window: Window<'c>,
    pad: Value<'c>,
    /// Whether every element is known to lie inside.
    whole: bool,
}

impl<'a, 'c> Emitter<'a, 'c> {
    fn window(&self, view: ValueId, index: &[IntValue<'c>]) -> Window<'c> {
        let ir = self.ir;
        let tensor = self.definition(view).expect("verified: a view is made by `partition`").operands[0];
        let ty: &PartitionType = self.instance.ty(view).as_partition().expect("verified: a view");
        let tile = extents(&ty.tile);
        let dim = |dim| ir.dim(dim, &|name| self.sizes[name]);
        let extents: Vec<IntValue<'c>> = ty.tensor.extents.iter().map(dim).collect();
        let space: Vec<IntValue<'c>> = ty.index_space().iter().map(dim).collect();
        let start: Vec<_> = index.iter().zip(&tile).map(|(&i, &t)| ir.mul(i, ir.i64(t))).collect();
        let valid = (0..tile.len()).map(|axis| {
            let rest = ir.sub(extents[axis], start[axis]);
            let size = ir.i64(tile[axis]);
            let inside = ir.select_int(ir.icmp(IntPredicate::ULT, rest, size), rest, size);
            // An index beyond the space, however large, has no element inside.
            ir.select_int(ir.icmp(IntPredicate::ULT, index[axis], space[axis]), inside, ir.i64(0))
        });
        let valid = valid.collect();
        Window {
            tensor,
            base: self.arguments[&tensor].into_pointer_value(),
            dtype: ty.tensor.elem.known().expect("an instance has no dtype parameters"),
            tile,
            extents,
            start,
            valid,
        }
    }

    fn loaded_window(&self, data: &OpData) -> Window<'c> {
        let index: Vec<IntValue<'c>> = match &data.operands[2..] {
            [] => self.block.clone(),
            indices => indices.iter().map(|&value| self.index(value)).collect(),
        };
        self.window(data.operands[0], &index)
    }

    /// Whether all of a tile lies inside its tensor.
    fn is_whole(&self, window: &Window<'c>) -> IntValue<'c> {
        let ir = self.ir;
        let axes = window.valid.iter().zip(&window.tile);
        let whole = axes.map(|(&valid, &size)| ir.icmp(IntPredicate::EQ, valid, ir.i64(size)));
        whole.reduce(|a, b| ir.and(a, b)).unwrap_or_else(|| ir.bool(true))
    }

    /// The address of the first element of a row of the tile.
    fn row_address(&self, window: &Window<'c>, row: &[IntValue<'c>]) -> PointerValue<'c> {
        let ir = self.ir;
        let mut position: Option<IntValue<'c>> = None;
        for axis in 0..window.tile.len() {
            let start = window.start[axis];
            let i = row.get(axis).map_or(start, |&offset| ir.add(start, offset));
            position = Some(position.map_or(i, |outer| ir.add(ir.mul(outer, window.extents[axis]), i)));
        }
        let position = position.unwrap_or_else(|| ir.i64(0));
        ir.element(ir.storage_type(window.dtype), window.base, position)
    }

    /// How many elements of a row lie inside the tensor.
    fn row_length(&self, window: &Window<'c>, row: &[IntValue<'c>]) -> IntValue<'c> {
        let ir = self.ir;
        let last = window.tile.len() - 1;
        row.iter().zip(&window.valid).fold(window.valid[last], |length, (&i, &valid)| {
            ir.select_int(ir.icmp(IntPredicate::ULT, i, valid), length, ir.i64(0))
        })
    }

    /// Emits an op's loops twice: for the case that all tiles that it streams, and `others`, lie inside their
    /// tensors, and for the case that one doesn't. `emit` is told which. Once, if nothing depends on it.
    pub(super) fn with_streams(
        &mut self,
        data: &OpData,
        others: &[Window<'c>],
        emit: &mut dyn FnMut(&mut Self, bool),
    ) {
        let ir = self.ir;
        let loads = self.fusion.streams(data);
        let windows: Vec<Window<'c>> = loads.iter().map(|load| self.loaded_window(load)).collect();
        let whole = windows.iter().chain(others).map(|window| self.is_whole(window));
        let Some(all_whole) = whole.reduce(|a, b| ir.and(a, b)) else {
            return emit(self, true);
        };
        // The two closures run one after the other; the cell lends the emitter to each in turn.
        let this = std::cell::RefCell::new((&mut *self, emit));
        let emit_for = |whole: bool| {
            let (emitter, emit) = &mut *this.borrow_mut();
            for (load, window) in loads.iter().zip(&windows) {
                let stream = Stream { window: window.clone(), pad: emitter.scalar(load.operands[1]), whole };
                emitter.streams.insert(load.results[0], stream);
            }
            emit(emitter, whole);
            Vec::new()
        };
        ir.if_else(all_whole, || emit_for(true), || emit_for(false));
    }

    /// Element `index` of a streamed tile.
    pub(super) fn stream_element(&self, tile: ValueId, index: &[IntValue<'c>]) -> Value<'c> {
        let ir = self.ir;
        let stream = self.streams.get(&tile).expect("the op that reads a stream opened it");
        let window = &stream.window;
        let (&last, row) = index.split_last().expect("verified: a tensor has rank 1 or more");
        let read = || self.read(window, self.row_address(window, row), last);
        if stream.whole {
            return read();
        }
        let axes = index.iter().zip(&window.valid);
        let inside = axes.map(|(&i, &valid)| ir.icmp(IntPredicate::ULT, i, valid));
        let inside = inside.reduce(|a, b| ir.and(a, b)).expect("verified: a tensor has rank 1 or more");
        ir.if_else(inside, || vec![read()], || vec![stream.pad])[0]
    }

    pub(super) fn load_masked(&mut self, data: &OpData) {
        let window = self.loaded_window(data);
        let pad = self.scalar(data.operands[1]);
        let buffer = self.stored(data.results[0]);
        let (&width, rows) = window.tile.split_last().expect("verified: a tensor has rank 1 or more");
        self.with_streams(data, std::slice::from_ref(&window), &mut |emitter, whole| {
            emitter.nest(rows, &mut |emitter, row| {
                let ir = emitter.ir;
                let address = emitter.row_address(&window, row);
                let first = ir.mul(emitter.position(row, rows), ir.i64(width));
                let copy = |i: IntValue<'c>| {
                    let value = emitter.read(&window, address, i);
                    emitter.buffers.store(&buffer, ir.add(first, i), value);
                };
                if whole {
                    return count(ir, ir.i64(width), width, copy);
                }
                let inside = emitter.row_length(&window, row);
                count(ir, inside, i64::MAX, copy);
                let outside = (inside, ir.i64(width), ir.i64(1));
                ir.hinted_loop(outside, LoopHint::Rolled, &[], |i, _| {
                    emitter.buffers.store(&buffer, ir.add(first, i), pad);
                    Vec::new()
                });
            });
        });
    }

    pub(super) fn store_masked(&mut self, data: &OpData) {
        let window = self.window(data.operands[0], &self.block);
        let value = data.operands[1];
        let (&width, rows) = window.tile.split_last().expect("verified: a tensor has rank 1 or more");
        self.with_streams(data, std::slice::from_ref(&window), &mut |emitter, whole| {
            emitter.nest(rows, &mut |emitter, row| {
                let ir = emitter.ir;
                let address = emitter.row_address(&window, row);
                let (end, extent) =
                    if whole { (ir.i64(width), width) } else { (emitter.row_length(&window, row), i64::MAX) };
                count(ir, end, extent, |i| {
                    let element = emitter.element(value, &[row, &[i]].concat());
                    emitter.write(&window, address, i, element);
                });
            });
        });
    }

    fn read(&self, window: &Window<'c>, row: PointerValue<'c>, i: IntValue<'c>) -> Value<'c> {
        let ty = self.ir.storage_type(window.dtype);
        let stored = self.ir.load(ty, self.ir.element(ty, row, i));
        self.buffers.mark_tensor_access(stored.as_instruction_value(), window.tensor);
        self.ir.value_from_storage(stored, window.dtype)
    }

    fn write(&self, window: &Window<'c>, row: PointerValue<'c>, i: IntValue<'c>, value: Value<'c>) {
        let ty = self.ir.storage_type(window.dtype);
        let stored = self.ir.value_to_storage(value, window.dtype);
        let address = self.ir.element(ty, row, i);
        let store = self.ir.builder.build_store(address, stored).expect("the builder is positioned");
        self.buffers.mark_tensor_access(Some(store), window.tensor);
    }
}
