//! Gathers of a tensor's elements from global memory.
//!
//! Where a gather reads neighbours along rows, the schedule says how many of them exist together and are aligned
//! ([`Scheduled::gathered`]): one place, one check and one load are for all of them. What doesn't exist is loaded from the
//! tensor's first element, so that no branch keeps loads from being under way together; a tensor without elements is left
//! alone as a whole. Where a tensor has windows, so that its first element may be missing, each load is behind a branch;
//! and where what is loaded is only handed on, to the next turn of a loop: a choice would wait for memory.
//!
//! [`Scheduled::gathered`]: tile_ir::gpu::Scheduled::gathered

use crate::emit::{Place, Value};
use crate::gpu::coordinates::both;
use crate::gpu::fragment::Fragment;
use crate::gpu::region::Emitter;
use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::kernel::OpData;
use tile_ir::view::Source;
use tile_ir::{DType, Dim, Op, OpId, Type, ValueId};

/// The tensor that a gather reads.
pub(in crate::gpu) struct Gathered<'c> {
    base: PointerValue<'c>,
    dtype: DType,
    place: Place<'c>,
    extents: Vec<IntValue<'c>>,
    pad: Value<'c>,
    missing: Missing<'c>,
}

/// What is read for elements that don't exist.
enum Missing<'c> {
    /// Nothing: each load is behind a branch.
    Nothing,
    /// The tensor's first element, at this address. The condition says whether the tensor has any element; without one it is
    /// known to.
    First(PointerValue<'c>, Option<IntValue<'c>>),
}

impl<'c> Emitter<'_, 'c> {
    pub(in crate::gpu) fn gather_load(&mut self, op: OpId, data: &OpData) {
        let (gathered, result) = (self.gathered(data), data.results[0]);
        let tiles: Vec<_> =
            data.operands[2..].iter().map(|&tile| (self.tile(tile), self.dtype(tile))).collect();
        let uniform: Option<Vec<_>> =
            tiles.iter().map(|&(tile, dtype)| Some((tile.uniform()?, dtype))).collect();
        let fragment = match uniform {
            Some(indices) => {
                let (pointer, exists) = self.gathered_place(&gathered, &indices);
                let load = || vec![self.ir.load_value(pointer, gathered.dtype)];
                Fragment::Uniform(self.ir.if_else(exists, load, || vec![gathered.pad])[0])
            }
            None => {
                let (mapping, width) = (self.mapping(result), self.gathered_together(op, result));
                let group = |slot: u64| {
                    let indices: Vec<_> =
                        tiles.iter().map(|&(tile, dtype)| (tile.get(slot), dtype)).collect();
                    self.read_gathered(&gathered, &indices, width, mapping.is_element(self.ir, slot))
                };
                let groups = || (0..mapping.slots()).step_by(width as usize);
                let read = || Fragment::Slots(groups().flat_map(group).collect());
                match gathered.missing {
                    Missing::First(_, Some(any)) => {
                        self.choose(result, any, read, || Fragment::Uniform(gathered.pad))
                    }
                    _ => read(),
                }
            }
        };
        self.set_tile(result, fragment);
    }

    /// How many neighbouring slots one instruction loads.
    fn gathered_together(&self, op: OpId, tile: ValueId) -> u64 {
        let Some(access) = self.scheduled.gathered(op) else { return 1 };
        access.vector.min(self.scheduled.distribution(tile).neighbours(access.order[0]))
    }

    pub(in crate::gpu) fn gathered(&self, data: &OpData) -> Gathered<'c> {
        let (ir, tensor) = (self.ir, data.operands[0]);
        let Type::Tensor(ty) = self.instance.ty(tensor) else { unreachable!("verified: a tensor") };
        let source = Source::of(self.instance, tensor);
        let (place, dtype) = (self.place(ty, &source), self.dtype(data.results[0]));
        let base = self.scalar(source.argument).into_pointer_value();
        let extents: Vec<IntValue<'c>> = ty.extents.iter().map(|dim| self.dim(dim)).collect();
        let is_chosen = place.windows.iter().all(Vec::is_empty) && !self.is_handed_on(data.results[0]);
        let missing = if is_chosen {
            let is_number = |dim: &Dim| dim.as_const().is_some_and(|extent| extent > 0);
            let unknown = ty.extents.iter().zip(&extents).filter(|(dim, _)| !is_number(dim));
            let any = unknown.fold(place.exists, |any, (_, &extent)| {
                both(ir, any, Some(ir.icmp(IntPredicate::NE, extent, ir.i64(0))))
            });
            Missing::First(ir.offset(ir.storage_type(dtype), base, place.offset), any)
        } else {
            Missing::Nothing
        };
        Gathered { base, dtype, place, extents, pad: self.scalar(data.operands[1]), missing }
    }

    /// Whether nothing of a tile is looked at but by what a region gives it to.
    fn is_handed_on(&self, tile: ValueId) -> bool {
        let ops = self.instance.walk().into_iter().map(|op| self.instance.op(op));
        ops.filter(|data| data.operands.contains(&tile)).all(|data| data.op == Op::Yield)
    }

    /// The address of a slot's element, which may lie anywhere where the element doesn't exist, and whether it does.
    pub(in crate::gpu) fn gathered_slot(
        &self,
        gathered: &Gathered<'c>,
        indices: &[ValueId],
        slot: u64,
    ) -> (PointerValue<'c>, IntValue<'c>) {
        let indices: Vec<_> =
            indices.iter().map(|&tile| (self.tile(tile).get(slot), self.dtype(tile))).collect();
        self.gathered_place(gathered, &indices)
    }

    /// The address of the element with these indices, and whether it exists.
    fn gathered_place(
        &self,
        gathered: &Gathered<'c>,
        indices: &[(Value<'c>, DType)],
    ) -> (PointerValue<'c>, IntValue<'c>) {
        let ir = self.ir;
        let (position, exists) = ir.gather_place(&gathered.place, &gathered.extents, indices);
        (ir.offset(ir.storage_type(gathered.dtype), gathered.base, position), exists)
    }

    /// So many neighbours from the one with these indices on; the pad where they don't exist, or the condition doesn't
    /// hold.
    fn read_gathered(
        &self,
        gathered: &Gathered<'c>,
        indices: &[(Value<'c>, DType)],
        width: u64,
        also: Option<IntValue<'c>>,
    ) -> Vec<Value<'c>> {
        let (ir, dtype) = (self.ir, gathered.dtype);
        let (pointer, exists) = self.gathered_place(gathered, indices);
        let exists = also.map_or(exists, |also| ir.and(exists, also));
        let pads = vec![gathered.pad; width as usize];
        let load = |pointer| ir.load_group_at(pointer, dtype, width, width);
        match gathered.missing {
            Missing::First(first, _) => {
                let pointer = ir.select(exists, pointer.into(), first.into()).into_pointer_value();
                ir.select_group(exists, &load(pointer), &pads, dtype)
            }
            Missing::Nothing => ir.group_if(exists, || load(pointer), &pads, dtype),
        }
    }
}
