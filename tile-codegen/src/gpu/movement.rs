//! Ops whose result is made of elements of their operands at places that are known: `broadcast`, `permute`,
//! `reshape` and the movement ops, as pieces ([`tile_ir::ops::movement`]).
//!
//! Where each thread already holds the elements of a piece that it needs, slots are renamed. Otherwise the piece's
//! operand goes through shared memory. A slot whose elements lie in boxes of several pieces chooses.

use super::coordinates::Mapping;
use super::exchange;
use super::fragment::Fragment;
use super::region::Emitter;
use super::shared::{Buffer, Request};
use crate::emit::Value;
use crate::emit::positions::Positions;
use inkwell::values::IntValue;
use std::collections::HashMap;
use tile_ir::gpu::Scheduled;
use tile_ir::kernel::OpData;
use tile_ir::ops::movement::{Numbers, Piece};
use tile_ir::{OpId, Type, ValueId};
use tile_layout::linear::Distribution;

/// A movement op and how threads come by its elements.
struct Movement {
    shape: Vec<usize>,
    parts: Vec<Part>,
}

/// A piece, seen from the threads.
struct Part {
    piece: Piece,
    /// Extents of the operand; none of a scalar.
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

fn extents_of(scheduled: &Scheduled, value: ValueId) -> Vec<usize> {
    match scheduled.ty(value) {
        Type::Tile(_) => {
            scheduled.distribution(value).shape().iter().map(|&extent| extent as usize).collect()
        }
        _ => Vec::new(),
    }
}

impl Movement {
    fn of(scheduled: &Scheduled, data: &OpData) -> Option<Movement> {
        let result = *data.results.first()?;
        let operands: Vec<Vec<usize>> =
            data.operands.iter().map(|&value| extents_of(scheduled, value)).collect();
        let shape = extents_of(scheduled, result);
        let pieces = data.op.pieces(&operands, &shape)?;
        let to = scheduled.distribution(result);
        let part = |piece: Piece| {
            let operand = data.operands[piece.operand];
            let from =
                matches!(scheduled.ty(operand), Type::Tile(_)).then(|| scheduled.distribution(operand));
            Part::of(piece, from, to)
        };
        Some(Movement { parts: pieces.into_iter().map(part).collect(), shape })
    }

    /// Whether an operand goes through shared memory.
    fn is_shared(&self, operand: usize) -> bool {
        let mut parts = self.parts.iter().filter(|part| part.piece.operand == operand);
        parts.any(|part| part.renamed.is_none())
    }
}

impl Part {
    fn of(piece: Piece, from: Option<&Distribution>, to: &Distribution) -> Part {
        let mut renaming = from.map(Renaming::of);
        let (mut renamed, mut coverage) = (Some(Vec::new()), Vec::new());
        for slot in 0..to.slots() {
            let (mut inside, mut elements, mut held) = (0, 0, None);
            for thread in 0..to.threads() {
                let place = to.place(slot, thread);
                if place.iter().zip(to.shape()).any(|(place, extent)| place >= extent) {
                    continue;
                }
                elements += 1;
                let Some(source) = source(&piece, &place) else { continue };
                inside += 1;
                let Some(renaming) = renaming.as_mut().filter(|_| renamed.is_some()) else { continue };
                let found = renaming.slot(&source, thread, held);
                match found {
                    Some(found) => held = Some(found),
                    None => renamed = None,
                }
            }
            coverage.push(match inside {
                0 => Coverage::Nothing,
                inside if inside == elements => Coverage::Everything,
                _ => Coverage::Some,
            });
            if let Some(slots) = &mut renamed {
                slots.push(held);
            }
        }
        let operand = from.map_or_else(Vec::new, |from| from.shape().iter().map(|&e| e as usize).collect());
        Part { piece, operand, renamed, coverage }
    }

    fn coverage(&self, slot: u64) -> Coverage {
        self.coverage[slot as usize]
    }
}

/// Where a thread holds elements of a tile.
struct Renaming<'d> {
    from: &'d Distribution,
    /// The slots of thread 0 and of others that were asked for.
    slots: HashMap<u64, HashMap<Vec<u64>, u64>>,
}

impl<'d> Renaming<'d> {
    fn of(from: &'d Distribution) -> Self {
        Renaming { from, slots: HashMap::new() }
    }

    /// The slot in which a thread holds an element, which must be the one given, if one is.
    fn slot(&mut self, element: &[u64], thread: u64, expected: Option<u64>) -> Option<u64> {
        if let Some(slot) = expected {
            return (self.from.place(slot, thread) == element).then_some(slot);
        }
        let from = self.from;
        let slots = self
            .slots
            .entry(thread)
            .or_insert_with(|| (0..from.slots()).map(|slot| (from.place(slot, thread), slot)).collect());
        slots.get(element).copied()
    }
}

/// The operand's element that an element of the result is; `None` outside the piece's box.
fn source(piece: &Piece, place: &[u64]) -> Option<Vec<u64>> {
    let within = place.iter().zip(&piece.start).zip(&piece.extents).map(|((&place, &start), &extent)| {
        (place as usize).checked_sub(start).filter(|&position| position < extent)
    });
    let index: Vec<usize> = within.collect::<Option<_>>()?;
    Some(piece.sources.iter().map(|source| source.position(&Numbers, &index) as u64).collect())
}

/// The shared memory that the op needs.
pub(super) fn requests(scheduled: &Scheduled, data: &OpData) -> Vec<Request> {
    let Some(movement) = Movement::of(scheduled, data) else { return Vec::new() };
    let shared = (0..data.operands.len()).filter(|&operand| movement.is_shared(operand));
    shared.map(|operand| exchange::request(scheduled, data.operands[operand])).collect()
}

/// Where the elements of an operand are.
enum Place<'c> {
    /// In the threads, or the same everywhere.
    Held(Fragment<'c>),
    Shared(Buffer),
}

impl<'c> Emitter<'_, 'c> {
    pub(super) fn movement(&mut self, op: OpId, data: &OpData) {
        let movement = Movement::of(self.scheduled, data).expect("an op that moves elements");
        let places = self.places(op, data, &movement);
        let result = data.results[0];
        let whole = movement.parts.last().filter(|part| part.piece.covers(&movement.shape));
        let fragment = match whole.map(|part| &places[part.piece.operand]) {
            Some(Place::Held(Fragment::Uniform(value))) => Fragment::Uniform(*value),
            _ => self.assembled(&movement, &places, result),
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
                Some(buffer) if fragment.uniform().is_none() => {
                    shared.push((buffer, fragment, operand));
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
        for (buffer, fragment, operand) in &shared {
            self.share(*buffer, fragment, &self.mapping(*operand));
        }
        self.sync();
        buffers.into_iter().for_each(|buffer| self.pending.read(buffer));
        places
    }

    fn assembled(&self, movement: &Movement, places: &[Place<'c>], result: ValueId) -> Fragment<'c> {
        let mapping = self.mapping(result);
        self.map(result, |slot| {
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
        (mapping, slot): (&Mapping<'c>, u64),
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
    pub(super) fn reshape(&mut self, op: OpId, data: &OpData) {
        let (operand, result) = (data.operands[0], data.results[0]);
        let fragment = match self.tile(operand).uniform() {
            Some(value) => Fragment::Uniform(value),
            None => match reshaped(self.scheduled, data) {
                Some(slots) => {
                    let source = self.tile(operand);
                    Fragment::Slots(slots.into_iter().map(|slot| source.get(slot)).collect())
                }
                None => {
                    let buffer = self.share_all(op, &[operand])[0];
                    self.pending.read(buffer);
                    self.take(buffer, result)
                }
            },
        };
        self.set_tile(result, fragment);
    }
}

/// The shared memory that a reshape needs.
pub(super) fn reshape_requests(scheduled: &Scheduled, data: &OpData) -> Vec<Request> {
    match reshaped(scheduled, data) {
        Some(_) => Vec::new(),
        None => vec![exchange::request(scheduled, data.operands[0])],
    }
}

/// The operand's slot of every slot of a reshaped tile, where each thread holds what it wants.
fn reshaped(scheduled: &Scheduled, data: &OpData) -> Option<Vec<u64>> {
    let (from, to) = (scheduled.distribution(data.operands[0]), scheduled.distribution(data.results[0]));
    if from.reshaped(to.shape()).as_ref() != Some(to) {
        return None;
    }
    let number = |place: &[u64], shape: &[u64]| {
        place.iter().zip(shape).fold(0, |number, (place, extent)| number * extent + place)
    };
    let slots: HashMap<u64, u64> =
        (0..from.slots()).map(|slot| (number(&from.place(slot, 0), from.shape()), slot)).collect();
    (0..to.slots()).map(|slot| slots.get(&number(&to.place(slot, 0), to.shape())).copied()).collect()
}
