//! How threads come by the elements that an op moves: `broadcast`, `permute`, `reshape` and the movement ops, as pieces
//! ([`crate::ops::movement`]).
//!
//! Where each thread already holds the elements of a piece that it needs, slots are renamed. Otherwise the piece's
//! operand goes through shared memory.
//!
//! Which it is depends on every slot of every thread. Where places are linear in the bits of both, as those of a
//! broadcast of a tile whose extents are powers of two, these bits decide; other pieces are gone through.

use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::ops::Op;
use crate::ops::movement::{Numbers, Piece, Source};
use std::collections::HashMap;
use tile_layout::linear::Distribution;

/// How the ops of a kernel move elements.
#[derive(Clone, Debug, Default)]
pub(in crate::gpu) struct Moves {
    movements: HashMap<OpId, Movement>,
    /// Of each `reshape` whose threads hold what they want, the operand's slot of every slot.
    reshapes: HashMap<OpId, Vec<u64>>,
}

impl Moves {
    pub(in crate::gpu) fn of(kernel: &Kernel, found: &HashMap<ValueId, Distribution>) -> Moves {
        let mut moves = Moves::default();
        for op in kernel.walk() {
            let data = kernel.op(op);
            if let Op::Reshape(_) = data.op {
                let of = |values: &[ValueId]| found.get(&values[0]);
                let slots =
                    of(&data.operands).zip(of(&data.results)).and_then(|(from, to)| reshaped(from, to));
                moves.reshapes.extend(slots.map(|slots| (op, slots)));
            } else if let Some(movement) = Movement::of(found, data) {
                moves.movements.insert(op, movement);
            }
        }
        moves
    }

    pub(in crate::gpu) fn movement(&self, op: OpId) -> Option<&Movement> {
        self.movements.get(&op)
    }

    pub(in crate::gpu) fn reshape(&self, op: OpId) -> Option<&[u64]> {
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
    pub(in crate::gpu) fn of(found: &HashMap<ValueId, Distribution>, data: &OpData) -> Option<Movement> {
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
        if is_linear(&piece, from, to) {
            Part::from_bits(piece, from, to)
        } else {
            Part::from_places(piece, from, to)
        }
    }

    /// A linear piece.
    fn from_bits(piece: Piece, from: Option<&Distribution>, to: &Distribution) -> Part {
        let coverage = vec![Coverage::Everything; to.slots() as usize];
        let operand = from.map_or_else(Vec::new, extents);
        let renamed = match from {
            Some(from) => renamed_bits(&piece, from, to),
            None => Some(vec![None; to.slots() as usize]),
        };
        Part { piece, operand, renamed, coverage }
    }

    /// Any piece, by the places of all threads' slots.
    fn from_places(piece: Piece, from: Option<&Distribution>, to: &Distribution) -> Part {
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

/// Whether a piece is the whole of its result, whose elements come from places that are XORs of those to which single
/// bits of slot and thread lead.
fn is_linear(piece: &Piece, from: Option<&Distribution>, to: &Distribution) -> bool {
    let is_one_piece = |distribution: &Distribution| distribution.shape() == distribution.piece();
    let keeps_bits = |source: &Source| matches!(source, Source::Only | Source::From { offset: 0, .. });
    piece.covers(&extents(to))
        && piece.sources.iter().all(keeps_bits)
        && is_one_piece(to)
        && from.is_none_or(is_one_piece)
}

/// The operand's slot of every slot of a linear piece: the one that thread 0 wants, if the bits of threads lead to the
/// same elements in both tiles.
fn renamed_bits(piece: &Piece, from: &Distribution, to: &Distribution) -> Option<Vec<Option<u64>>> {
    let wanted = |place: &[u64]| source(piece, place);
    let alike =
        to.thread_bits().zip(from.thread_bits()).all(|(to, from)| wanted(to).as_deref() == Some(from));
    if !alike {
        return None;
    }
    let held: HashMap<Vec<u64>, u64> = (0..from.slots()).map(|slot| (from.place(slot, 0), slot)).collect();
    let slot = |slot| held.get(&wanted(&to.place(slot, 0))?).copied().map(Some);
    (0..to.slots()).map(slot).collect()
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
fn reshaped(from: &Distribution, to: &Distribution) -> Option<Vec<u64>> {
    if from.reshaped(to.shape()).as_ref() != Some(to) {
        return None;
    }
    // Slots beyond the tile, of which both have as many, have numbers of their own.
    let number = |place: &[u64], of: &Distribution| {
        let covered =
            of.shape().iter().zip(of.piece()).map(|(extent, &piece)| extent.next_multiple_of(piece));
        place.iter().zip(covered).fold(0, |number, (place, extent)| number * extent + place)
    };
    let slots: HashMap<u64, u64> =
        (0..from.slots()).map(|slot| (number(&from.place(slot, 0), from), slot)).collect();
    (0..to.slots()).map(|slot| slots.get(&number(&to.place(slot, 0), to)).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tiles of 32 threads in which rows, columns, or neither come first, and some whose threads hold copies.
    fn distributions(shape: &[u64]) -> Vec<Distribution> {
        let orders: &[&[usize]] = if shape.len() == 2 { &[&[0, 1], &[1, 0]] } else { &[&[0]] };
        let blocked = |order: &&[usize], vector| Distribution::blocked(shape, order, vector, 8, 4).unwrap();
        orders.iter().flat_map(|order| [1, 2, 8].map(|vector| blocked(order, vector))).collect()
    }

    fn compare(piece: &Piece, from: Option<&Distribution>, to: &Distribution) -> bool {
        assert!(is_linear(piece, from, to), "{piece:?}");
        let [bits, places] = [Part::from_bits, Part::from_places].map(|of| of(piece.clone(), from, to));
        assert_eq!(bits.coverage, places.coverage, "{piece:?} to {to}");
        assert_eq!(bits.renamed, places.renamed, "{piece:?} to {to}");
        bits.renamed.is_some()
    }

    /// The second of two pieces of four columns has one of the tile's five, and the others would be the first of the next row.
    #[test]
    fn an_axis_that_is_added_moves_nothing_beyond_the_tile() {
        let bits = |positions: &[[u64; 2]]| positions.iter().map(|position| position.to_vec()).collect();
        let registers = bits(&[[0, 1], [0, 2], [1, 0], [2, 0]]);
        let from = Distribution::new(&[16, 5], registers, bits(&[[4, 0], [8, 0]]), Vec::new()).unwrap();
        let to = from.reshaped(&[1, 16, 5]).unwrap();
        assert_eq!(reshaped(&from, &to), Some((0..from.slots()).collect()));
    }

    #[test]
    fn bits_say_what_places_say() {
        let whole = |shape: &[u64], sources: Vec<Source>| {
            let extents: Vec<usize> = shape.iter().map(|&extent| extent as usize).collect();
            Piece { operand: 0, start: vec![0; shape.len()], extents, sources }
        };
        let axis = |axis| Source::From { axis, offset: 0 };
        let pieces = [
            (vec![16, 64], vec![16, 64], vec![axis(0), axis(1)]),
            (vec![16, 1], vec![16, 64], vec![axis(0), Source::Only]),
            (vec![1, 64], vec![16, 64], vec![Source::Only, axis(1)]),
            (vec![1, 1], vec![16, 64], vec![Source::Only, Source::Only]),
            (vec![64, 16], vec![16, 64], vec![axis(1), axis(0)]),
            (vec![64], vec![16, 64], vec![axis(1)]),
        ];
        let (mut renamed, mut exchanged) = (0, 0);
        for (from, to, sources) in pieces {
            let piece = whole(&to, sources);
            for to in distributions(&to) {
                for from in distributions(&from) {
                    *(if compare(&piece, Some(&from), &to) { &mut renamed } else { &mut exchanged }) += 1;
                }
                let scalar = Piece { sources: Vec::new(), ..piece.clone() };
                assert!(compare(&scalar, None, &to));
            }
        }
        // What is compared is both.
        assert!(renamed > 20 && exchanged > 20, "{renamed} renamed, {exchanged} exchanged");
    }

    #[test]
    fn pieces_that_move_elements_are_gone_through() {
        let tile = Distribution::blocked(&[64], &[0], 1, 32, 1).unwrap();
        let odd = Distribution::blocked(&[48], &[0], 1, 32, 1).unwrap();
        let piece = |start, extent, source| Piece {
            operand: 0,
            start: vec![start],
            extents: vec![extent],
            sources: vec![source],
        };
        let straight = Source::From { axis: 0, offset: 0 };
        assert!(is_linear(&piece(0, 64, straight), Some(&tile), &tile));
        for (piece, to) in [
            (piece(0, 32, straight), &tile),
            (piece(0, 64, Source::From { axis: 0, offset: 1 }), &tile),
            (piece(0, 64, Source::Backwards { axis: 0, last: 63 }), &tile),
            (piece(0, 64, Source::Cyclic { axis: 0, extent: 32 }), &tile),
            (piece(0, 48, straight), &odd),
        ] {
            assert!(!is_linear(&piece, Some(&tile), to), "{piece:?}");
        }
    }
}
