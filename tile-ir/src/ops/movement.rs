//! Ops whose result is made of elements of their operands, unchanged: which element stands where.
//!
//! Every such op is a list of [`Piece`]s: boxes of the result, each with the operand that fills it and a map of
//! positions along each of the operand's axes; where boxes overlap, the last one counts. That is the whole meaning
//! of the op: the evaluator copies the boxes, the CPU's emitter writes a loop nest for each, a GPU's thread asks
//! for each of its elements which box it is in. The maps are written once, over any arithmetic ([`IndexMath`]).

use super::{Op, documented};
use crate::dim::Dim;

documented! {
/// What a movement op does. Positions, counts and extents are static.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Movement {
    /// `tile → tile`: the window of these extents that starts here.
    Extract {
        /// The window's first position, per axis.
        starts: Vec<Dim>,
        /// The window's extents.
        shape: Vec<Dim>,
    } = "extract",
    /// `tile, tile → tile`: the first, with the second written over it.
    Insert {
        /// Where the second's first element goes.
        starts: Vec<Dim>,
    } = "insert",
    /// `tile… → tile`: one after the other.
    Cat {
        /// The axis along which they stand side by side.
        axis: usize,
    } = "cat",
    /// `tile, scalar → tile`: the tile with the scalar around it.
    Pad {
        /// Elements added in front, per axis.
        before: Vec<Dim>,
        /// Elements added behind, per axis.
        after: Vec<Dim>,
    } = "pad",
    /// `tile → tile`, an axis backwards.
    Flip {
        /// The axis.
        axis: usize,
    } = "flip",
    /// `tile → tile`: elements go to higher positions, those that leave come back at the other end.
    Roll {
        /// The axis.
        axis: usize,
        /// By how much; a negative number moves to lower positions.
        by: Dim,
    } = "roll",
    /// `tile, scalar → tile`: elements go to higher positions, the scalar fills the place that they leave.
    Shift {
        /// The axis.
        axis: usize,
        /// By how much; a negative number moves to lower positions.
        by: Dim,
    } = "shift",
    /// `tile → tile`: the tile so many times along each axis.
    Repeat {
        /// How many times, per axis.
        counts: Vec<Dim>,
    } = "repeat",
}
}

impl Movement {
    /// The op with every extent and position replaced.
    pub fn map(&self, f: &dyn Fn(&Dim) -> Dim) -> Movement {
        let all = |dims: &[Dim]| dims.iter().map(f).collect();
        match self {
            Movement::Extract { starts, shape } => {
                Movement::Extract { starts: all(starts), shape: all(shape) }
            }
            Movement::Insert { starts } => Movement::Insert { starts: all(starts) },
            Movement::Pad { before, after } => Movement::Pad { before: all(before), after: all(after) },
            Movement::Roll { axis, by } => Movement::Roll { axis: *axis, by: f(by) },
            Movement::Shift { axis, by } => Movement::Shift { axis: *axis, by: f(by) },
            Movement::Repeat { counts } => Movement::Repeat { counts: all(counts) },
            Movement::Cat { .. } | Movement::Flip { .. } => self.clone(),
        }
    }
}

/// A box of a movement op's result, and where its elements come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The operand, by number.
    pub operand: usize,
    /// The box's first position, per axis of the result.
    pub start: Vec<usize>,
    /// The box's extents.
    pub extents: Vec<usize>,
    /// The position along each axis of the operand; empty where the operand is a scalar.
    pub sources: Vec<Source>,
}

/// A position along an axis of an operand, as a function of the position in the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The axis has one element.
    Only,
    /// The position along `axis` of the box, and `offset` more.
    From {
        /// The axis of the box.
        axis: usize,
        /// What is added.
        offset: usize,
    },
    /// `last` less the position along `axis` of the box.
    Backwards {
        /// The axis of the box.
        axis: usize,
        /// Where the box's first element comes from.
        last: usize,
    },
    /// The position along `axis` of the box, modulo `extent`.
    Cyclic {
        /// The axis of the box.
        axis: usize,
        /// The operand's extent.
        extent: usize,
    },
}

/// Arithmetic on positions: of numbers, or of values that emitted code computes.
pub trait IndexMath {
    /// A position.
    type Int: Copy;

    /// Position 0.
    fn zero(&self) -> Self::Int;
    /// `a + b`.
    fn plus(&self, a: Self::Int, b: usize) -> Self::Int;
    /// `a − b`, where `b` isn't larger.
    fn mirrored(&self, a: usize, b: Self::Int) -> Self::Int;
    /// `a mod b`.
    fn modulo(&self, a: Self::Int, b: usize) -> Self::Int;
}

/// Positions that are known.
#[derive(Clone, Copy, Debug)]
pub struct Numbers;

impl IndexMath for Numbers {
    type Int = usize;

    fn zero(&self) -> usize {
        0
    }

    fn plus(&self, a: usize, b: usize) -> usize {
        a + b
    }

    fn mirrored(&self, a: usize, b: usize) -> usize {
        a - b
    }

    fn modulo(&self, a: usize, b: usize) -> usize {
        a % b
    }
}

impl Source {
    /// The axis of the box that it follows; `None` where the operand's has one element.
    pub fn axis(self) -> Option<usize> {
        match self {
            Source::Only => None,
            Source::From { axis, .. } | Source::Backwards { axis, .. } | Source::Cyclic { axis, .. } => {
                Some(axis)
            }
        }
    }

    /// The position, for a position in the box.
    pub fn position<M: IndexMath>(self, math: &M, index: &[M::Int]) -> M::Int {
        match self {
            Source::Only => math.zero(),
            Source::From { axis, offset: 0 } => index[axis],
            Source::From { axis, offset } => math.plus(index[axis], offset),
            Source::Backwards { axis, last } => math.mirrored(last, index[axis]),
            Source::Cyclic { axis, extent } => math.modulo(index[axis], extent),
        }
    }
}

impl Piece {
    /// The operand's index, for an index in the box.
    pub fn source<M: IndexMath>(&self, math: &M, index: &[M::Int]) -> Vec<M::Int> {
        self.sources.iter().map(|source| source.position(math, index)).collect()
    }

    /// Whether the box is the whole of a result of this shape.
    pub fn covers(&self, shape: &[usize]) -> bool {
        self.extents == shape
    }

    /// Whether some element of the operand may be read more than once.
    pub fn repeats(&self) -> bool {
        self.sources.iter().any(|source| matches!(source, Source::Only | Source::Cyclic { .. }))
    }

    /// All of a result of this shape, from one operand.
    fn whole(operand: usize, shape: &[usize], sources: Vec<Source>) -> Piece {
        Piece { operand, start: vec![0; shape.len()], extents: shape.to_vec(), sources }
    }

    /// An operand of this shape as it is, from `start` on.
    fn placed(operand: usize, start: Vec<usize>, extents: &[usize]) -> Piece {
        Piece { operand, start, extents: extents.to_vec(), sources: same(extents.len()) }
    }

    /// The piece whose box has `extent` places from `start` on along an axis, which come from another source.
    fn along(mut self, axis: usize, start: usize, extent: usize, source: Source) -> Piece {
        self.start[axis] = start;
        self.extents[axis] = extent;
        self.sources[axis] = source;
        self
    }
}

/// Every axis where it is.
fn same(rank: usize) -> Vec<Source> {
    (0..rank).map(|axis| Source::From { axis, offset: 0 }).collect()
}

impl Op {
    /// The pieces of a result of this shape, for an op of an instance that moves elements; `None` for others.
    /// A scalar operand has an empty shape.
    pub fn pieces(&self, operands: &[Vec<usize>], result: &[usize]) -> Option<Vec<Piece>> {
        match self {
            Op::Broadcast(_) => {
                let source = |(axis, &extent): (usize, &usize)| match extent {
                    1 => Source::Only,
                    _ => Source::From { axis, offset: 0 },
                };
                let sources = operands[0].iter().enumerate().map(source).collect();
                Some(vec![Piece::whole(0, result, sources)])
            }
            Op::Permute(permutation) => {
                let mut sources = same(result.len());
                for (axis, &from) in permutation.iter().enumerate() {
                    sources[from] = Source::From { axis, offset: 0 };
                }
                Some(vec![Piece::whole(0, result, sources)])
            }
            Op::Movement(movement) => Some(movement.pieces(operands, result)),
            _ => None,
        }
    }
}

impl Movement {
    fn pieces(&self, operands: &[Vec<usize>], result: &[usize]) -> Vec<Piece> {
        let rank = result.len();
        let first = &operands[0];
        match self {
            Movement::Extract { starts, .. } => {
                let source = |(axis, start): (usize, &Dim)| Source::From { axis, offset: position(start) };
                vec![Piece::whole(0, result, starts.iter().enumerate().map(source).collect())]
            }
            Movement::Insert { starts } => {
                let starts = starts.iter().map(position).collect();
                vec![Piece::whole(0, result, same(rank)), Piece::placed(1, starts, &operands[1])]
            }
            Movement::Cat { axis } => side_by_side(*axis, operands),
            Movement::Pad { before, .. } => {
                let starts = before.iter().map(position).collect();
                vec![Piece::whole(1, result, Vec::new()), Piece::placed(0, starts, first)]
            }
            Movement::Flip { axis } => {
                let extent = first[*axis];
                let backwards = Source::Backwards { axis: *axis, last: extent - 1 };
                vec![Piece::whole(0, result, same(rank)).along(*axis, 0, extent, backwards)]
            }
            Movement::Roll { axis, by } => {
                let extent = first[*axis];
                let by = number(by).rem_euclid(extent as i64) as usize;
                let part = |start, extent, offset| {
                    let source = Source::From { axis: *axis, offset };
                    Piece::whole(0, result, same(rank)).along(*axis, start, extent, source)
                };
                match by {
                    0 => vec![Piece::whole(0, result, same(rank))],
                    by => vec![part(0, by, extent - by), part(by, extent - by, 0)],
                }
            }
            Movement::Shift { axis, by } => {
                let (extent, by) = (first[*axis], number(by));
                let distance = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX).min(extent);
                let (start, offset) = if by < 0 { (0, distance) } else { (distance, 0) };
                let mut pieces = vec![Piece::whole(1, result, Vec::new())];
                if distance < extent {
                    let source = Source::From { axis: *axis, offset };
                    let kept = Piece::whole(0, result, same(rank));
                    pieces.push(kept.along(*axis, start, extent - distance, source));
                }
                pieces
            }
            Movement::Repeat { counts } => {
                let source = |axis: usize| match number(&counts[axis]) {
                    1 => Source::From { axis, offset: 0 },
                    _ => Source::Cyclic { axis, extent: first[axis] },
                };
                vec![Piece::whole(0, result, (0..rank).map(source).collect())]
            }
        }
    }
}

fn side_by_side(axis: usize, operands: &[Vec<usize>]) -> Vec<Piece> {
    let mut next = 0;
    let pieces = operands.iter().enumerate().map(|(operand, shape)| {
        let mut start = vec![0; shape.len()];
        start[axis] = next;
        next += shape[axis];
        Piece::placed(operand, start, shape)
    });
    pieces.collect()
}

fn number(dim: &Dim) -> i64 {
    dim.as_const().expect("an instance's positions are numbers")
}

fn position(dim: &Dim) -> usize {
    usize::try_from(number(dim)).expect("verified: a position isn't negative")
}
