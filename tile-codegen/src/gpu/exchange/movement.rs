//! Ops whose result is made of elements of their operands at places that are known: `broadcast`, `permute`,
//! `reshape` and the movement ops, as pieces ([`tile_ir::ops::movement`]).
//!
//! Where each thread already holds the elements of a piece that it needs, slots are renamed. Otherwise the piece's
//! operand goes through shared memory. A slot whose elements lie in boxes of several pieces chooses.

use crate::emit::Value;
use crate::emit::positions::Positions;
use crate::gpu::coordinates::Mapping;
use crate::gpu::fragment::Fragment;
use crate::gpu::region::Emitter;
use inkwell::values::IntValue;
use tile_ir::gpu::{Buffer, Coverage, Movement, Part};
use tile_ir::kernel::OpData;
use tile_ir::{OpId, Type, ValueId};

/// Where the elements of an operand are.
enum Place<'c> {
    /// In the threads, or the same everywhere.
    Held(Fragment<'c>),
    Shared(Buffer),
}

impl<'c> Emitter<'_, 'c> {
    pub(in crate::gpu) fn movement(&mut self, op: OpId, data: &OpData) {
        let movement = self.scheduled.movement(op);
        let places = self.places(op, data, movement);
        let result = data.results[0];
        let whole = movement.parts.last().filter(|part| part.piece.covers(&movement.shape));
        let fragment = match whole.map(|part| &places[part.piece.operand]) {
            Some(Place::Held(Fragment::Uniform(value))) => Fragment::Uniform(*value),
            _ => self.assembled(movement, &places, result),
        };
        self.set_tile(result, fragment);
    }

    /// Writes what threads need of each other to shared memory.
    fn places(&self, op: OpId, data: &OpData, movement: &Movement) -> Vec<Place<'c>> {
        let mut buffers = self.scheduled.buffers(op).iter().copied();
        let mut places: Vec<Place<'c>> = Vec::new();
        for (i, &operand) in data.operands.iter().enumerate() {
            let fragment = match self.instance.ty(operand) {
                Type::Tile(_) => self.tile(operand).clone(),
                _ => Fragment::Uniform(self.scalar(operand)),
            };
            if fragment.uniform().is_some() || !movement.is_exchanged(i) {
                places.push(Place::Held(fragment));
                continue;
            }
            let buffer = buffers.next().expect("scheduled: what is exchanged has a buffer");
            self.share(buffer, &fragment, &self.mapping(operand));
            places.push(Place::Shared(buffer));
        }
        if places.iter().any(|place| matches!(place, Place::Shared(_))) {
            self.sync();
        }
        places
    }

    fn assembled(&self, movement: &Movement, places: &[Place<'c>], result: ValueId) -> Fragment<'c> {
        let mapping = self.mapping(result);
        self.map(result, |slot| {
            let covers = |part: &Part| part.coverage(slot) == Coverage::Everything;
            let first = movement.parts.iter().rposition(covers).unwrap_or(0);
            let parts = movement.parts[first..].iter().filter(|p| p.coverage(slot) != Coverage::Nothing);
            let value = parts.fold(None, |before, part| {
                let (value, inside) = self.part_element(part, places, &mapping, slot, &movement.shape);
                Some(match (before, inside) {
                    (Some(before), Some(inside)) => self.ir.select(inside, value, before),
                    _ => value,
                })
            });
            // A slot that is padding in every thread is in no box.
            value.unwrap_or_else(|| self.ir.compute_type(self.dtype(result)).const_zero())
        })
    }

    /// The slot's element of a part, and whether it is in the box, where that isn't certain. Outside the box it is
    /// some element of the operand.
    fn part_element(
        &self,
        part: &Part,
        places: &[Place<'c>],
        mapping: &Mapping<'c>,
        slot: u64,
        shape: &[usize],
    ) -> (Value<'c>, Option<IntValue<'c>>) {
        let ir = self.ir;
        let positions = Positions { ir, ty: ir.context.i32_type() };
        let index = positions.in_box(&part.piece, &mapping.index(ir, slot));
        let certain = part.coverage(slot) == Coverage::Everything;
        let inside = if certain { None } else { positions.is_inside(&part.piece, &index, shape) };
        let value = match (&places[part.piece.operand], &part.renamed) {
            (Place::Held(fragment @ Fragment::Slots(_)), Some(slots)) => {
                fragment.get(slots[slot as usize].expect("the slot has elements in the box"))
            }
            (Place::Held(fragment), _) => fragment.get(slot),
            (Place::Shared(buffer), _) => {
                let source = positions.linear(&part.piece.source(&positions, &index), &part.operand);
                let safe = inside.map_or(source, |inside| ir.select_int(inside, source, self.i32(0)));
                self.read_shared(*buffer, mapping.or_zero(ir, slot, safe))
            }
        };
        (value, inside)
    }

    /// Op [`tile_ir::Op::Reshape`] of a tile whose elements change threads or slots.
    pub(in crate::gpu) fn reshape(&mut self, op: OpId, data: &OpData) {
        let (operand, result) = (data.operands[0], data.results[0]);
        let fragment = match self.tile(operand).uniform() {
            Some(value) => Fragment::Uniform(value),
            None => match self.scheduled.reshape(op) {
                Some(slots) => {
                    let source = self.tile(operand);
                    Fragment::Slots(slots.iter().map(|&slot| source.get(slot)).collect())
                }
                None => {
                    let buffer = self.share_all(op, &[operand])[0];
                    self.take(buffer, result)
                }
            },
        };
        self.set_tile(result, fragment);
    }
}
