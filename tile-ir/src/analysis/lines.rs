//! How the integers of a tile go along one of its axes: whether they are all the same, or consecutive numbers.
//!
//! A tile of indices says with that how a gather goes through memory: where one index is consecutive along an axis and
//! the others are constant, it reads parts of rows ([`Lines::row`]).
//!
//! Integers wrap at their format's width, also on the way from the counter to the index, which may be of a wider format.
//! So consecutive numbers may have a jump somewhere, but never between two multiples of a power of two that divides all
//! that was added to the counter, as long as formats have more bits than it. [`Line::Consecutive`] says for which.

use super::Divisors;
use super::reshape::axis_before;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::ops::{BinaryOp, Op, UnaryOp};
use std::collections::HashMap;

/// The most that [`Line::Consecutive`] promises: the narrowest integers have twice as many values.
const MOST: u64 = 128;

/// Bits of numbers of which no tile has as many elements.
const WIDE: u32 = 32;

/// How the elements of a tile go along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// They are equal.
    Constant,
    /// Each is one more than the one before it, but where a number wraps. From every position on that is a multiple of
    /// `run`, so many numbers have no jump, and the first is a multiple of `run`, too: a power of two.
    Consecutive {
        /// See above.
        run: u64,
    },
    /// Nothing is known.
    Unknown,
}

/// A gather that reads a part of a row for every index of its result's other axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatheredRow {
    /// The axis of the tensor whose indices are consecutive.
    pub tensor_axis: usize,
    /// The tile's axis along which they are.
    pub tile_axis: usize,
    /// [`Line::Consecutive`]'s.
    pub run: u64,
}

/// A gather that may read parts of rows: of its indices the only one that isn't constant along an axis of its tile is computed
/// from counters, in the same way wherever the other axes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedRow {
    /// The axis of the tensor that this is the index of.
    pub tensor_axis: usize,
    /// Whether numbers at two places that are as far apart as these show that those between follow each other.
    pub ends_tell: bool,
}

/// The lines of a kernel's tiles, found when they are asked for.
#[derive(Clone, Debug)]
pub struct Lines<'k> {
    kernel: &'k Kernel,
    divisors: &'k Divisors,
    definitions: HashMap<ValueId, OpId>,
    known: HashMap<(ValueId, usize), Line>,
    /// Which of those that are unknown go by ones, where that was asked.
    counted: HashMap<(ValueId, usize), bool>,
}

impl<'k> Lines<'k> {
    /// Those of an instance whose divisors are known.
    pub fn of(kernel: &'k Kernel, divisors: &'k Divisors) -> Self {
        let definitions = kernel.definitions();
        Lines { kernel, divisors, definitions, known: HashMap::new(), counted: HashMap::new() }
    }

    /// How a tile goes along an axis; a scalar is constant along any.
    pub fn along(&mut self, value: ValueId, axis: usize) -> Line {
        let Some(shape) = self.shape(value) else { return Line::Constant };
        if shape[axis].as_const() == Some(1) {
            return Line::Constant;
        }
        if let Some(&line) = self.known.get(&(value, axis)) {
            return line;
        }
        let line = self.definition(value).map_or(Line::Unknown, |data| self.line(data, axis));
        self.known.insert((value, axis), line);
        line
    }

    /// How a gather of a verified instance goes through rows of its tensor along an axis of its result.
    pub fn row(&mut self, gather: &OpData, tile_axis: usize) -> Option<GatheredRow> {
        self.row_of(&gather.operands[2..], tile_axis)
    }

    /// How tiles of indices, one for each of a tensor's axes, go through its rows along an axis of theirs.
    pub fn row_of(&mut self, indices: &[ValueId], tile_axis: usize) -> Option<GatheredRow> {
        let mut row = None;
        for (tensor_axis, &index) in indices.iter().enumerate() {
            match self.along(index, tile_axis) {
                Line::Constant => {}
                Line::Consecutive { run } if row.is_none() => {
                    row = Some(GatheredRow { tensor_axis, tile_axis, run });
                }
                _ => return None,
            }
        }
        row
    }

    /// How tiles of indices, one for each of a tensor's axes, may go through parts of its rows along an axis of theirs, as far
    /// as numbers show that are known at run time: they are clamped to a range, say, or the remainders of a division.
    pub fn counted_row_of(&mut self, indices: &[ValueId], tile_axis: usize) -> Option<CountedRow> {
        let is_constant = |lines: &mut Self, axis| lines.along(indices[axis], tile_axis) == Line::Constant;
        let mut varying = (0..indices.len()).filter(|&axis| !is_constant(self, axis));
        let (tensor_axis, None) = (varying.next()?, varying.next()) else { return None };
        let index = indices[tensor_axis];
        let rank = self.shape(index)?.len();
        let is_alike = (0..rank).all(|axis| axis == tile_axis || self.along(index, axis) == Line::Constant);
        let is_unknown = self.along(index, tile_axis) == Line::Unknown;
        let is_row = is_unknown && is_alike && self.is_counted(index, tile_axis);
        is_row.then(|| CountedRow { tensor_axis, ends_tell: self.ends_tell(index, tile_axis) })
    }

    /// Whether numbers along an axis follow each other between any two that are as far apart as their places.
    ///
    /// So it is where no number is larger than the one before it by more than one. It is so of remainders of consecutive
    /// numbers as well: where these wrap, a remainder may grow by as much as the divisor, less one, but then one that goes back
    /// to 0 takes all of it.
    fn ends_tell(&mut self, value: ValueId, axis: usize) -> bool {
        let Some(data) = self.definition(value).filter(|_| self.is_wide(value)) else { return false };
        if let Some((before, axis)) = self.kept(data, axis) {
            return self.ends_tell(before, axis);
        }
        match data.op {
            Op::Binary(BinaryOp::Rem | BinaryOp::RemEuclid) => {
                let lines = [0, 1].map(|operand| self.along(data.operands[operand], axis));
                let is_row = matches!(lines, [Line::Consecutive { .. }, Line::Constant]);
                is_row && self.modulus_bits(data.operands[0], axis) >= WIDE
            }
            _ => self.rises_by_one(value, axis),
        }
    }

    /// Whether no number along an axis is larger than the one before it by more than one: of consecutive ones, which go down
    /// where they wrap in their own format, and of those between bounds.
    fn rises_by_one(&mut self, value: ValueId, axis: usize) -> bool {
        let goes_down = |lines: &mut Self| Some(lines.modulus_bits(value, axis)) >= lines.bits(value);
        match self.along(value, axis) {
            Line::Constant => return true,
            Line::Consecutive { .. } if goes_down(self) => return true,
            Line::Consecutive { .. } | Line::Unknown => {}
        }
        let Some(data) = self.definition(value).filter(|_| self.is_wide(value)) else { return false };
        if let Some((before, axis)) = self.kept(data, axis) {
            return self.rises_by_one(before, axis);
        }
        let Op::Binary(BinaryOp::Min | BinaryOp::Max) = data.op else { return false };
        [[0, 1], [1, 0]]
            .map(|of| of.map(|operand| data.operands[operand]))
            .into_iter()
            .any(|[one, other]| self.along(other, axis) == Line::Constant && self.rises_by_one(one, axis))
    }

    /// How many bits of consecutive numbers count: without those above, each is one more than the one before it, or all of
    /// these bits wrap. Numbers of a narrow format that has wrapped stay as they are in a wide one, and jump there.
    fn modulus_bits(&mut self, value: ValueId, axis: usize) -> u32 {
        let (Some(data), Some(bits)) = (self.definition(value), self.bits(value)) else { return 0 };
        let before = match &data.op {
            Op::Iota { .. } => return if self.holds_positions(value, axis) { u32::MAX } else { bits },
            Op::Binary(BinaryOp::Add | BinaryOp::Sub) => {
                let is_constant = self.along(data.operands[0], axis) == Line::Constant;
                (data.operands[usize::from(is_constant)], axis)
            }
            Op::Cast(_) => (data.operands[0], axis),
            _ => match self.passed_on(data, axis) {
                Some(before) => before,
                None => return 0,
            },
        };
        self.modulus_bits(before.0, before.1).min(bits)
    }

    /// Whether the format of a tile has the number of every position along an axis.
    fn holds_positions(&self, value: ValueId, axis: usize) -> bool {
        let extent = self.shape(value).and_then(|shape| shape[axis].as_const());
        let dtype = self.kernel.ty(value).elem().known().filter(|dtype| dtype.is_int());
        extent.zip(dtype).is_some_and(|(extent, dtype)| i128::from(extent) - 1 <= dtype.int_range().1)
    }

    fn bits(&self, value: ValueId) -> Option<u32> {
        Some(self.kernel.ty(value).elem().known()?.bits())
    }

    /// [`Self::passed_on`] of a format that has every number of the one before.
    fn kept(&self, data: &OpData, axis: usize) -> Option<(ValueId, usize)> {
        let (before, axis) = self.passed_on(data, axis)?;
        let format = |value| self.kernel.ty(value).elem().known();
        let (from, to) = (format(before)?, format(data.results[0])?);
        to.contains_integers_of(from).then_some((before, axis))
    }

    /// The tile whose numbers an op passes on as they are, but for a sign, and the axis of it that an axis of the result is.
    fn passed_on(&self, data: &OpData, axis: usize) -> Option<(ValueId, usize)> {
        let before = *data.operands.first()?;
        let bits = |value| self.bits(value);
        match &data.op {
            Op::Broadcast(_) | Op::ConvertLayout => Some((before, axis)),
            Op::Permute(permutation) => Some((before, permutation[axis])),
            Op::Reshape(_) => Some((before, axis_before(self.kernel, data, axis)?)),
            Op::Cast(_) if self.is_integer(before) && self.is_integer(data.results[0]) => {
                (bits(data.results[0])? >= bits(before)?).then_some((before, axis))
            }
            _ => None,
        }
    }

    /// Whether numbers have as many values as no tile has elements.
    fn is_wide(&self, value: ValueId) -> bool {
        self.bits(value).is_some_and(|bits| bits >= WIDE)
    }

    fn definition(&self, value: ValueId) -> Option<&'k OpData> {
        self.definitions.get(&value).map(|&op| self.kernel.op(op))
    }

    /// Whether a value goes by ones along an axis, up or down, but for places where it changes its way: by what keeps or
    /// mirrors the distance of numbers, or chooses between such.
    fn is_counted(&mut self, value: ValueId, axis: usize) -> bool {
        if self.along(value, axis) != Line::Unknown {
            return true;
        }
        if let Some(&is_counted) = self.counted.get(&(value, axis)) {
            return is_counted;
        }
        let is_counted = self.definition(value).is_some_and(|data| self.goes_by_ones(data, axis));
        self.counted.insert((value, axis), is_counted);
        is_counted
    }

    /// The same of what an op gives.
    fn goes_by_ones(&mut self, data: &'k OpData, axis: usize) -> bool {
        if let Some((before, axis)) = self.passed_on(data, axis) {
            return self.is_counted(before, axis);
        }
        use BinaryOp::{Add, Max, Min, Rem, RemEuclid, Sub};
        let keeps_ones = matches!(
            data.op,
            Op::Binary(Add | Sub | Min | Max | Rem | RemEuclid)
                | Op::Unary(UnaryOp::Neg | UnaryOp::Abs)
                | Op::Cast(_)
                | Op::Compare(_)
                | Op::Select
        );
        keeps_ones && data.operands.iter().all(|&operand| self.is_counted(operand, axis))
    }

    fn shape(&self, value: ValueId) -> Option<&'k [Dim]> {
        self.kernel.ty(value).as_tile().map(|tile| tile.shape.as_slice())
    }

    /// The line of an op's one result, along an axis of several elements.
    fn line(&mut self, data: &'k OpData, axis: usize) -> Line {
        let operands = &data.operands;
        match &data.op {
            Op::Splat(_) => Line::Constant,
            Op::Iota { axis: counted, .. } if *counted != axis => Line::Constant,
            Op::Iota { .. } if self.is_integer(data.results[0]) => Line::Consecutive { run: MOST },
            // An axis that is repeated has one element in the operand.
            Op::Broadcast(_) | Op::ConvertLayout => self.along(operands[0], axis),
            Op::Permute(permutation) => self.along(operands[0], permutation[axis]),
            Op::Reshape(_) => axis_before(self.kernel, data, axis)
                .map_or(Line::Unknown, |axis| self.along(operands[0], axis)),
            Op::Cast(_) if self.is_integer(operands[0]) && self.is_integer(data.results[0]) => {
                self.along(operands[0], axis)
            }
            Op::Binary(op @ (BinaryOp::Add | BinaryOp::Sub)) => {
                let lines = [self.along(operands[0], axis), self.along(operands[1], axis)];
                match (lines, op) {
                    ([Line::Constant, Line::Constant], _) => Line::Constant,
                    ([Line::Consecutive { run }, Line::Constant], _) => self.moved(run, operands[1]),
                    ([Line::Constant, Line::Consecutive { run }], BinaryOp::Add) => {
                        self.moved(run, operands[0])
                    }
                    _ => Line::Unknown,
                }
            }
            op if op.is_leaf() || *op == Op::GatherLoad => {
                let is_constant = |&operand: &ValueId| self.along(operand, axis) == Line::Constant;
                if operands.iter().all(is_constant) { Line::Constant } else { Line::Unknown }
            }
            _ => Line::Unknown,
        }
    }

    /// A line to which a number is added.
    fn moved(&self, run: u64, by: ValueId) -> Line {
        let divisor = self.divisors.divisor(by);
        let run = if divisor == 0 { run } else { run.min(1 << divisor.trailing_zeros()) };
        if self.is_integer(by) { Line::Consecutive { run } } else { Line::Unknown }
    }

    fn is_integer(&self, value: ValueId) -> bool {
        self.kernel.ty(value).elem().known().is_some_and(DType::is_int)
    }
}

#[cfg(test)]
mod tests;
