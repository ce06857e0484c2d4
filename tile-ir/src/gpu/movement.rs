//! How threads come by the elements that an op moves: `broadcast`, `permute`, `reshape` and the movement ops, as pieces
//! ([`crate::ops::movement`]).
//!
//! Where each thread already holds the elements of a piece that it needs, slots are renamed. Otherwise the piece's
//! operand goes through shared memory.

use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::ops::Op;
use crate::ops::movement::{Numbers, Piece};
use std::collections::HashMap;
use tile_layout::linear::Distribution;

/// How the ops of a kernel move elements.
#[derive(Clone, Debug, Default)]
pub(super) struct Moves {
    movements: HashMap<OpId, Movement>,
    /// Of each `reshape` whose threads hold what they want, the operand's slot of every slot.
    reshapes: HashMap<OpId, Vec<u64>>,
}

impl Moves {
    pub(super) fn of(kernel: &Kernel, found: &HashMap<ValueId, Distribution>) -> Moves {
        let mut moves = Moves::default();
        for op in kernel.walk() {
            let data = kernel.op(op);
            if let Op::Reshape(_) = data.op {
                let of = |values: &[ValueId]| found.get(&values[0]);
                let slots = of(&data.operands).zip(of(&data.results)).and_then(reshaped);
                moves.reshapes.extend(slots.map(|slots| (op, slots)));
            } else if let Some(movement) = Movement::of(found, data) {
                moves.movements.insert(op, movement);
            }
        }
        moves
    }

    pub(super) fn movement(&self, op: OpId) -> Option<&Movement> {
        self.movements.get(&op)
    }

    pub(super) fn reshape(&self, op: OpId) -> Option<&[u64]> {
        self.reshapes.get(&op).map(Vec::as_slice)
    }
}

fn extents(distribution: &Distribution) -> Vec<usize> {
    distribution.shape().iter().map(|&extent| extent as usize).collect()
}

/// A movement op and how threads come by its elements.
#[derive(Clone, Debug)]
pub struct Movement {
    /// Extents of the result.
    pub shape: Vec<usize>,
    /// Its pieces; where boxes overlap, the last one counts.
    pub parts: Vec<Part>,
}

/// A piece, seen from the threads.
#[derive(Clone, Debug)]
pub struct Part {
    /// The piece.
    pub piece: Piece,
    /// Extents of the operand; none of a scalar.
    pub operand: Vec<usize>,
    /// For each slot of the result that has elements in the box, the operand's slot that every thread holds them
    /// in; `None` where threads hold elements of each other.
    pub renamed: Option<Vec<Option<u64>>>,
    /// How much of each slot lies in the box.
    coverage: Vec<Coverage>,
}

/// How much of a slot lies in a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// No thread's element of the slot.
    Nothing,
    /// Those of some threads.
    Some,
    /// Those of all threads.
    Everything,
}

impl Movement {
    /// How an op moves elements; `None` of an op that doesn't.
    fn of(found: &HashMap<ValueId, Distribution>, data: &OpData) -> Option<Movement> {
        let to = found.get(data.results.first()?)?;
        let extents = |value: &ValueId| found.get(value).map_or_else(Vec::new, extents);
        let operands: Vec<Vec<usize>> = data.operands.iter().map(extents).collect();
        let shape = self::extents(to);
        let pieces = data.op.pieces(&operands, &shape)?;
        let part = |piece: Piece| {
            let from = found.get(&data.operands[piece.operand]);
            Part::of(piece, from, to)
        };
        Some(Movement { parts: pieces.into_iter().map(part).collect(), shape })
    }

    /// Whether threads need elements of an operand that other threads hold.
    pub fn is_exchanged(&self, operand: usize) -> bool {
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
        let operand = from.map_or_else(Vec::new, extents);
        Part { piece, operand, renamed, coverage }
    }

    /// How much of a slot of the result lies in the box.
    pub fn coverage(&self, slot: u64) -> Coverage {
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

/// The operand's slot of every slot of a reshaped tile, where each thread holds what it wants.
fn reshaped((from, to): (&Distribution, &Distribution)) -> Option<Vec<u64>> {
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
