//! Ops whose result is made of elements of their operands at places that are known: `broadcast`, `permute` and the
//! movement ops, as pieces ([`tile_ir::ops::movement`]).
//!
//! Where each thread already holds the elements of a piece that it needs, slots are renamed. Otherwise the piece's
//! operand goes through shared memory. A slot whose elements lie in boxes of several pieces chooses.

use super::distribution::{Distribution, Mapping, Slot, extents, strides};
use super::fragment::{Fragment, REGISTER_SLOTS};
use super::region::Emitter;
use super::shared::{Buffer, Request};
use crate::emit::Value;
use crate::emit::positions::Positions;
use inkwell::values::IntValue;
use tile_ir::kernel::OpData;
use tile_ir::ops::movement::{Numbers, Piece};
use tile_ir::{DType, Instance, Op, OpId, Type, ValueId};

/// A movement op and how threads come by its elements.
struct Movement {
    dtype: DType,
    shape: Vec<usize>,
    slots: usize,
    parts: Vec<Part>,
    /// Elements of each operand; of a scalar, none.
    operand_elements: Vec<u64>,
}

/// A piece, seen from the threads.
struct Part {
    piece: Piece,
    dtype: DType,
    /// Extents of the operand.
    operand: Vec<usize>,
    /// For each slot of the result that has elements in the box, the operand's slot that every thread holds them
    /// in; `None` where threads hold elements of each other.
    renamed: Option<Vec<Option<u64>>>,
    /// How much of each slot lies in the box.
    coverage: Vec<Coverage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coverage {
    Nothing,
    Some,
    Everything,
}

impl Movement {
    fn of(instance: &Instance, distribution: Distribution, data: &OpData, op: &Op) -> Option<Movement> {
        let shape_of = |value: ValueId| -> Vec<usize> {
            match instance.ty(value) {
                Type::Tile(_) => extents(instance, value).iter().map(|&extent| extent as usize).collect(),
                _ => Vec::new(),
            }
        };
        let operands: Vec<Vec<usize>> = data.operands.iter().map(|&value| shape_of(value)).collect();
        let shape = data.results.first().map(|&result| shape_of(result))?;
        let pieces = op.pieces(&operands, &shape)?;
        let elements = shape.iter().product::<usize>() as u64;
        let dtype = instance.ty(data.results[0]).elem().known().expect("an instance has no dtype parameters");
        let part = |piece: Piece| Part::of(piece, dtype, &operands, &shape, distribution);
        Some(Movement {
            dtype,
            parts: pieces.into_iter().map(part).collect(),
            slots: distribution.slots(elements),
            operand_elements: operands
                .iter()
                .map(|shape| if shape.is_empty() { 0 } else { shape.iter().product::<usize>() as u64 })
                .collect(),
            shape,
        })
    }

    fn elements(&self) -> u64 {
        self.shape.iter().product::<usize>() as u64
    }

    /// Whether an operand goes through shared memory.
    fn is_shared(&self, operand: usize) -> bool {
        let mut parts = self.parts.iter().filter(|part| part.piece.operand == operand);
        self.operand_elements[operand] > 0 && parts.any(|part| part.renamed.is_none())
    }

    fn shared_operands(&self) -> impl Iterator<Item = usize> {
        (0..self.operand_elements.len()).filter(|&operand| self.is_shared(operand))
    }
}

impl Part {
    fn of(
        piece: Piece,
        dtype: DType,
        operands: &[Vec<usize>],
        shape: &[usize],
        distribution: Distribution,
    ) -> Part {
        let (threads, elements) = (distribution.threads, shape.iter().product::<usize>() as u64);
        let operand = &operands[piece.operand];
        let mut reach = Reach::of(&piece, operand, shape);
        let slots = distribution.slots(elements);
        let (mut renamed, mut coverage) = (Some(Vec::new()), Vec::new());
        for slot in 0..slots as u64 {
            let (mut inside, mut from, mut local) = (0, None, true);
            let last = ((slot + 1) * threads).min(elements);
            for element in slot * threads..last {
                let Some(source) = reach.source(element) else { continue };
                inside += 1;
                let slot = *from.get_or_insert(source / threads);
                local &= source == slot * threads + element % threads;
            }
            coverage.push(match inside {
                0 => Coverage::Nothing,
                n if n == last - slot * threads => Coverage::Everything,
                _ => Coverage::Some,
            });
            match &mut renamed {
                Some(slots) if local => slots.push(from),
                _ => renamed = None,
            }
        }
        // A loop over slots reads the slot that it writes.
        let in_registers = slots <= REGISTER_SLOTS;
        let operand_slots = distribution.slots(operand.iter().product::<usize>() as u64);
        let stays = |slots: &Vec<Option<u64>>| {
            let mut own = slots.iter().enumerate();
            own.all(|(slot, from)| from.is_none_or(|from| from == slot as u64))
        };
        let is_scalar = operand.is_empty();
        let renamed =
            renamed.filter(|from| in_registers || is_scalar || operand_slots == slots && stays(from));
        Part { piece, dtype, operand: operand.clone(), renamed, coverage }
    }

    fn coverage(&self, slot: Slot<'_>) -> Coverage {
        match slot {
            Slot::Fixed(slot) => self.coverage[slot as usize],
            Slot::Varying(_) if self.coverage.iter().all(|&c| c == Coverage::Everything) => {
                Coverage::Everything
            }
            Slot::Varying(_) => Coverage::Some,
        }
    }
}

/// Where the elements of a box come from, by number.
struct Reach<'a> {
    piece: &'a Piece,
    shape: &'a [usize],
    strides: Vec<u64>,
    index: Vec<usize>,
}

impl<'a> Reach<'a> {
    fn of(piece: &'a Piece, operand: &[usize], shape: &'a [usize]) -> Self {
        let operand: Vec<u64> = operand.iter().map(|&extent| extent as u64).collect();
        Reach { piece, shape, strides: strides(&operand), index: vec![0; shape.len()] }
    }

    /// The operand's element that an element of the result is; `None` outside the box.
    fn source(&mut self, element: u64) -> Option<u64> {
        let mut rest = element as usize;
        for axis in (0..self.shape.len()).rev() {
            let position = (rest % self.shape[axis]).checked_sub(self.piece.start[axis])?;
            rest /= self.shape[axis];
            if position >= self.piece.extents[axis] {
                return None;
            }
            self.index[axis] = position;
        }
        let sources = self.piece.sources.iter().zip(&self.strides);
        Some(sources.map(|(source, stride)| source.position(&Numbers, &self.index) as u64 * stride).sum())
    }
}

/// The shared memory that the op needs.
pub(super) fn requests(
    instance: &Instance,
    distribution: Distribution,
    data: &OpData,
    op: &Op,
) -> Vec<Request> {
    let Some(movement) = Movement::of(instance, distribution, data, op) else { return Vec::new() };
    let request = |operand: usize| {
        let elements = distribution.padded(movement.operand_elements[operand]);
        Request { dtype: movement.dtype, elements }
    };
    movement.shared_operands().map(request).collect()
}

/// Where the elements of an operand are.
enum Place<'c> {
    /// In the threads, or the same everywhere.
    Held(Fragment<'c>),
    Shared(Buffer),
}

impl<'c> Emitter<'_, 'c> {
    pub(super) fn movement(&mut self, op: OpId, data: &OpData) {
        let movement = Movement::of(self.instance, self.distribution, data, &data.op)
            .expect("an op that moves elements");
        let places = self.places(op, data, &movement);
        let result = data.results[0];
        let whole = movement.parts.last().filter(|part| part.piece.covers(&movement.shape));
        let fragment = match whole.map(|part| (part, &places[part.piece.operand])) {
            Some((_, Place::Held(Fragment::Uniform(value)))) => Fragment::Uniform(*value),
            // Only the identity is a renaming of arrays.
            Some((part, Place::Held(same @ Fragment::Local(_))))
                if part.renamed.is_some() && movement.slots > REGISTER_SLOTS =>
            {
                same.clone()
            }
            _ => self.assembled(&movement, &places),
        };
        self.set_tile(result, fragment);
    }

    /// Writes what threads need of each other to shared memory.
    fn places(&mut self, op: OpId, data: &OpData, movement: &Movement) -> Vec<Place<'c>> {
        let mut buffers = self.plan.buffers(op).into_iter();
        let mut places: Vec<Place<'c>> = Vec::new();
        let mut shared = Vec::new();
        for (i, &operand) in data.operands.iter().enumerate() {
            let fragment = match self.instance.ty(operand) {
                Type::Tile(_) => self.tile(operand).clone(),
                _ => Fragment::Uniform(self.scalar(operand)),
            };
            let buffer = if movement.is_shared(i) { buffers.next() } else { None };
            places.push(match buffer {
                Some(buffer) if !matches!(fragment, Fragment::Uniform(_)) => {
                    shared.push((buffer, fragment, movement.operand_elements[i]));
                    Place::Shared(buffer)
                }
                _ => Place::Held(fragment),
            });
        }
        if shared.is_empty() {
            return places;
        }
        let buffers: Vec<Buffer> = shared.iter().map(|&(buffer, ..)| buffer).collect();
        self.reserve(&buffers);
        for (buffer, fragment, elements) in &shared {
            self.share(*buffer, fragment, *elements, movement.dtype);
        }
        self.sync();
        buffers.into_iter().for_each(|buffer| self.pending.read(buffer));
        places
    }

    fn assembled(&self, movement: &Movement, places: &[Place<'c>]) -> Fragment<'c> {
        let shape: Vec<u64> = movement.shape.iter().map(|&extent| extent as u64).collect();
        let mapping = self.mapping(&shape);
        self.map(movement.elements(), movement.dtype, |slot| {
            let covers = |part: &Part| part.coverage(slot) == Coverage::Everything;
            let first = movement.parts.iter().rposition(covers).unwrap_or(0);
            let parts = movement.parts[first..].iter().filter(|p| p.coverage(slot) != Coverage::Nothing);
            let value = parts.fold(None, |before, part| {
                let (value, inside) = self.part_element(part, places, (&mapping, slot), &movement.shape);
                Some(match (before, inside) {
                    (Some(before), Some(inside)) => self.ir.select(inside, value, before),
                    _ => value,
                })
            });
            value.expect("verified: pieces cover the result")
        })
    }

    /// The slot's element of a part, and whether it is in the box, where that isn't certain. Outside the box it is
    /// some element of the operand.
    fn part_element(
        &self,
        part: &Part,
        places: &[Place<'c>],
        (mapping, slot): (&Mapping<'c>, Slot<'c>),
        shape: &[usize],
    ) -> (Value<'c>, Option<IntValue<'c>>) {
        let ir = self.ir;
        let positions = Positions { ir, ty: ir.context.i32_type() };
        let coordinates = mapping.coordinates(ir, slot).into_iter();
        let index: Vec<_> = coordinates.map(|coordinate| coordinate.value(ir)).collect();
        let index = positions.in_box(&part.piece, &index);
        let certain = part.coverage(slot) == Coverage::Everything;
        let inside = if certain { None } else { positions.is_inside(&part.piece, &index, shape) };
        let value = match (&places[part.piece.operand], slot, &part.renamed) {
            (
                Place::Held(fragment @ (Fragment::Registers(_) | Fragment::Local(_))),
                Slot::Fixed(i),
                Some(slots),
            ) => {
                let from = slots[i as usize].expect("the slot has elements in the box");
                self.get(fragment, part.dtype, Slot::Fixed(from))
            }
            (Place::Held(fragment), ..) => self.get(fragment, part.dtype, slot),
            (Place::Shared(buffer), ..) => {
                let source = positions.linear(&part.piece.source(&positions, &index), &part.operand);
                let safe = inside.map_or(source, |inside| ir.select_int(inside, source, self.i32(0)));
                self.read_shared(*buffer, safe)
            }
        };
        (value, inside)
    }
}
