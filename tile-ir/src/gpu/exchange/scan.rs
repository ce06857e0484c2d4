//! How threads scan the lines of a tile, or fold them by what joins parts of them: in steps from short parts of a line to
//! longer ones.
//!
//! A part is what lies at neighbouring places that differ in their lowest bits alone; it is one element at first. A step
//! joins parts that differ in the next bits: what comes before an element in its part grows by the sums of the parts before,
//! and all who hold the longer part have its sum. Who that is depends on what the bits of a place are bits of: a register's
//! number, a lane's or a warp's. So elements stay where they lie, and only sums of parts go from thread to thread. That is
//! Ladner's and Fischer's parallel prefix (Parallel Prefix Computation, 1980) along whatever distribution the tile has.

use crate::dtype::DType;
use crate::gpu::LaidOut;
use crate::kernel::OpData;
use crate::ops::{Op, ScanMode};
use std::ops::Range;
use tile_layout::linear::Distribution;

/// What joins parts of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Registers of a thread, by these bits of the place along the axis.
    Registers(Range<u32>),
    /// Two lanes, by this bit of the thread's number.
    Lanes(u32),
    /// Warps, by these bits of the thread's number, that for the lowest bit of the place first. They write the sums of so
    /// many parts of every thread to shared memory.
    Warps {
        /// The bits.
        bits: Vec<u32>,
        /// The parts.
        parts: u64,
    },
    /// The pieces of the distribution, which are registers.
    Pieces,
}

/// A scan, or a fold, and its steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The axis.
    pub axis: usize,
    /// Which way lines are gone along.
    pub mode: ScanMode,
    /// Of each operand, the format in which elements are joined.
    pub formats: Vec<DType>,
    /// The steps, in their order.
    pub steps: Vec<Step>,
}

impl Scan {
    /// How an op is done that joins parts of lines; `None` of others.
    pub(in crate::gpu) fn of(laid_out: &LaidOut, data: &OpData) -> Option<Scan> {
        let (axis, mode) = joins_parts(&data.op)?;
        let steps = steps(&laid_out.distributions[&data.operands[0]], axis);
        let steps = steps.expect("scheduled: a distribution by bits");
        let formats = match data.op {
            Op::Scan { op, .. } => vec![op.partial(laid_out.dtype(data.operands[0]))],
            _ => data.results.iter().map(|&result| laid_out.dtype(result)).collect(),
        };
        Some(Scan { axis, mode, formats, steps })
    }
}

/// The axis along which an op joins parts of lines, and which way; `None` of one that doesn't, or goes along them element by
/// element.
pub(in crate::gpu) fn joins_parts(op: &Op) -> Option<(usize, ScanMode)> {
    match *op {
        Op::Scan { axis, mode, .. } | Op::ScanWith { axis, mode, associative: true } => Some((axis, mode)),
        Op::ReduceWith { axis, associative: true } => Some((axis, ScanMode::default())),
        _ => None,
    }
}

/// What a bit of the place along an axis is a bit of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holder {
    Register,
    Lane(u32),
    Warp(u32),
}

/// The steps of a scan of a tile that lies in a distribution; `None` where not every bit of a place along the axis is one of
/// a register's or a thread's number.
pub(in crate::gpu) fn steps(distribution: &Distribution, axis: usize) -> Option<Vec<Step>> {
    let holders = holders(distribution, axis)?;
    let mut steps = Vec::new();
    let mut parts = distribution.slots();
    for (bit, holder) in holders.into_iter().enumerate() {
        let bit = bit as u32;
        match (holder, steps.last_mut()) {
            (Holder::Register, Some(Step::Registers(bits))) => bits.end += 1,
            (Holder::Register, _) => steps.push(Step::Registers(bit..bit + 1)),
            (Holder::Lane(lane), _) => steps.push(Step::Lanes(lane)),
            (Holder::Warp(warp), Some(Step::Warps { bits, .. })) => bits.push(warp),
            (Holder::Warp(warp), _) => steps.push(Step::Warps { bits: vec![warp], parts }),
        }
        if holder == Holder::Register {
            parts /= 2;
        }
    }
    if distribution.pieces()[axis] > 1 {
        steps.push(Step::Pieces);
    }
    Some(steps)
}

/// Of every bit of the place in a piece along an axis, what it is a bit of.
fn holders(distribution: &Distribution, axis: usize) -> Option<Vec<Holder>> {
    let lane_bits = distribution.lane_count().ilog2();
    let thread = (0..).zip(distribution.thread_bits().map(<[u64]>::to_vec)).map(|(bit, position)| {
        (position, if bit < lane_bits { Holder::Lane(bit) } else { Holder::Warp(bit) })
    });
    let registers = distribution.registers().iter().map(|position| (position.clone(), Holder::Register));
    let mut holders = vec![None; distribution.piece()[axis].ilog2() as usize];
    for (position, holder) in registers.chain(thread).filter(|(position, _)| position[axis] != 0) {
        let leads_along_it_alone = position.iter().filter(|&&place| place != 0).count() == 1;
        if !leads_along_it_alone || !position[axis].is_power_of_two() {
            return None;
        }
        let known = &mut holders[position[axis].ilog2() as usize];
        if known.replace(holder).is_some() {
            return None;
        }
    }
    holders.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tile_layout::linear::{Deal, MatrixShape, Operand, mma_sync};

    #[test]
    fn a_long_row_is_joined_in_registers_lanes_and_warps() {
        let row = Distribution::blocked(&[1, 4096], &[1], 4, 32, 8).unwrap();
        let lanes = (0..5).map(Step::Lanes);
        let warps = Step::Warps { bits: vec![5, 6, 7], parts: 4 };
        let expected: Vec<Step> = [Step::Registers(0..2)]
            .into_iter()
            .chain(lanes)
            .chain([warps, Step::Registers(10..12)])
            .collect();
        assert_eq!(steps(&row, 1), Some(expected));
        assert_eq!(steps(&row, 0), Some(vec![]));
    }

    #[test]
    fn pieces_are_joined_last() {
        let row = Distribution::blocked(&[300], &[0], 1, 32, 2).unwrap();
        let expected = (0..5).map(Step::Lanes).chain([Step::Warps { bits: vec![5], parts: 5 }, Step::Pieces]);
        assert_eq!(steps(&row, 0), Some(expected.collect()));
    }

    #[test]
    fn sums_of_products_are_scanned_where_they_lie() {
        let sum = mma_sync(MatrixShape { m: 16, n: 8, k: 16 }, 16, Operand::Accumulator).unwrap();
        let tile = Distribution::of_fragment(&[16, 16], &sum, &[]).unwrap();
        let expected = [Step::Registers(0..1), Step::Lanes(0), Step::Lanes(1), Step::Registers(3..4)];
        assert_eq!(steps(&tile, 1), Some(expected.to_vec()));
    }

    #[test]
    fn places_that_several_bits_lead_to_have_no_steps() {
        let lanes = vec![vec![1], vec![3]];
        assert_eq!(steps(&Distribution::new(&[4], vec![], lanes, vec![]).unwrap(), 0), None);
        let mut deal = Deal::new(&[4, 4]);
        let lanes = deal.take(2, &[1]);
        assert!(steps(&Distribution::new(&[4, 4], vec![], lanes, vec![]).unwrap(), 1).is_some());
    }
}
