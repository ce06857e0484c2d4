//! Loads and stores of tiles through partition views: the part inside the tensor, in rows.

use super::region::{Emitter, extents};
use crate::emit::Value;
use inkwell::IntPredicate;
use inkwell::values::BasicValue;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::kernel::OpData;
use tile_ir::types::PartitionType;
use tile_ir::{DType, ValueId};

/// Where a tile lies in its tensor.
struct Window<'c> {
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

impl<'a, 'c> Emitter<'a, 'c> {
    fn window(&self, view: ValueId, index: &[IntValue<'c>]) -> Window<'c> {
        let ir = self.ir;
        let definition = self.definition(view).expect("verified: a view is made by `partition`");
        let base = self.arguments[&definition.operands[0]].into_pointer_value();
        let ty: &PartitionType = self.instance.ty(view).as_partition().expect("verified: a view");
        let tile = extents(&ty.tile);
        let extents: Vec<IntValue<'c>> =
            ty.tensor.extents.iter().map(|dim| ir.dim(dim, &|name| self.sizes[name])).collect();
        let space: Vec<IntValue<'c>> =
            ty.index_space().iter().map(|dim| ir.dim(dim, &|name| self.sizes[name])).collect();
        let start: Vec<_> = index.iter().zip(&tile).map(|(&i, &t)| ir.mul(i, ir.i64(t))).collect();
        let valid = (0..tile.len())
            .map(|axis| {
                let rest = ir.sub(extents[axis], start[axis]);
                let size = ir.i64(tile[axis]);
                let inside = ir.select_int(ir.icmp(IntPredicate::ULT, rest, size), rest, size);
                // An index beyond the space, however large, has no element inside.
                ir.select_int(ir.icmp(IntPredicate::ULT, index[axis], space[axis]), inside, ir.i64(0))
            })
            .collect();
        let dtype = ty.tensor.elem.known().expect("an instance has no dtype parameters");
        Window { base, dtype, tile, extents, start, valid }
    }

    /// The address of the first element of a row of the tile.
    fn row_address(&self, window: &Window<'c>, row: &[IntValue<'c>]) -> PointerValue<'c> {
        let ir = self.ir;
        let mut position = ir.i64(0);
        for axis in 0..window.tile.len() {
            let mut i = window.start[axis];
            if let Some(&offset) = row.get(axis) {
                i = ir.add(i, offset);
            }
            position = ir.add(ir.mul(position, window.extents[axis]), i);
        }
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

    pub(super) fn load_masked(&mut self, data: &OpData) {
        let index: Vec<IntValue<'c>> = match &data.operands[2..] {
            [] => self.block.clone(),
            indices => indices.iter().map(|&value| self.index(value)).collect(),
        };
        let window = self.window(data.operands[0], &index);
        let pad = self.scalar(data.operands[1]);
        let buffer = self.stored(data.results[0]);
        let (rows, width) = split_rows(&window.tile);
        self.nest(&rows, &mut |emitter, row| {
            let ir = emitter.ir;
            let address = emitter.row_address(&window, row);
            let first = ir.mul(emitter.position(row, &rows), ir.i64(width));
            let copy = |i: IntValue<'c>| {
                let value = emitter.read(address, window.dtype, i);
                emitter.buffers.store(&buffer, ir.add(first, i), value);
            };
            emitter.whole_or_part(&window, row, width, copy, |inside| {
                ir.for_loop((inside, ir.i64(width), ir.i64(1)), &[], |i, _| {
                    emitter.buffers.store(&buffer, ir.add(first, i), pad);
                    Vec::new()
                });
            });
        });
    }

    pub(super) fn store_masked(&mut self, data: &OpData) {
        let block = self.block.clone();
        let window = self.window(data.operands[0], &block);
        let value = data.operands[1];
        let (rows, width) = split_rows(&window.tile);
        self.nest(&rows, &mut |emitter, row| {
            let address = emitter.row_address(&window, row);
            let shared = std::cell::RefCell::new(&mut *emitter);
            let write = |i: IntValue<'c>| {
                let mut emitter = shared.borrow_mut();
                let index = [row, &[i]].concat();
                let element = emitter.element(value, &index);
                emitter.write(address, window.dtype, i, element);
            };
            let (ir, length) = {
                let emitter = shared.borrow();
                (emitter.ir, emitter.row_length(&window, row))
            };
            let whole = ir.icmp(IntPredicate::EQ, length, ir.i64(width));
            ir.if_else(
                whole,
                || {
                    ir.for_each(ir.i64(width), write);
                    Vec::new()
                },
                || {
                    ir.for_each(length, write);
                    Vec::new()
                },
            );
        });
    }

    /// A loop over the part of a row that lies inside the tensor, with a constant bound where it is whole,
    /// and what to do about the rest.
    fn whole_or_part(
        &self,
        window: &Window<'c>,
        row: &[IntValue<'c>],
        width: i64,
        element: impl Fn(IntValue<'c>),
        rest: impl Fn(IntValue<'c>),
    ) {
        let ir = self.ir;
        let length = self.row_length(window, row);
        let whole = ir.icmp(IntPredicate::EQ, length, ir.i64(width));
        ir.if_else(
            whole,
            || {
                ir.for_each(ir.i64(width), &element);
                Vec::new()
            },
            || {
                ir.for_each(length, &element);
                rest(length);
                Vec::new()
            },
        );
    }

    fn read(&self, row: PointerValue<'c>, dtype: DType, i: IntValue<'c>) -> Value<'c> {
        let ty = self.ir.storage_type(dtype);
        let stored = self.ir.load(ty, self.ir.element(ty, row, i));
        self.buffers.mark_tensor_access(stored.as_instruction_value());
        self.ir.value_from_storage(stored, dtype)
    }

    fn write(&self, row: PointerValue<'c>, dtype: DType, i: IntValue<'c>, value: Value<'c>) {
        let ty = self.ir.storage_type(dtype);
        let stored = self.ir.value_to_storage(value, dtype);
        let address = self.ir.element(ty, row, i);
        let store = self.ir.builder.build_store(address, stored).expect("the builder is positioned");
        self.buffers.mark_tensor_access(Some(store));
    }
}

/// The extents that index rows, and the length of a row.
fn split_rows(tile: &[i64]) -> (Vec<i64>, i64) {
    let (width, rows) = tile.split_last().expect("verified: a tensor has rank 1 or more");
    (rows.to_vec(), *width)
}
