//! Decides in which rounds the lanes of a warp exchange registers. Knows nothing of the layouts behind a
//! conversion. Invariant: in a round every lane sends one register, whichever lanes read it.
//!
//! The obvious rounds, one for each target register, fail where lanes that need one register of the target find
//! it in different registers of one source lane, as in a transpose. So a round is skewed: lane `l` fills register
//! `r ^ F·l`, with `F` chosen so that as many lanes as possible are read by one lane each. Lanes that still share
//! a source lane but want different registers of it take turns, numbered by `G·l`.

use alloc::vec;
use alloc::vec::Vec;

use super::{Conversion, Place};
use crate::linear::matrix::{combination, kernel, low_bits};
use crate::linear::{LinearError, Subspace};

/// The rounds of a conversion within warps.
///
/// ```
/// use tile_layout::linear::{Conversion, Dim, LinearLayout};
/// let outputs = [(Dim::Axis(0), 2), (Dim::Axis(1), 2)];
/// let rows = LinearLayout::new(&[(Dim::Register, &[[0, 1]]), (Dim::Lane, &[[1, 0]])], outputs)?;
/// let columns = LinearLayout::new(&[(Dim::Register, &[[1, 0]]), (Dim::Lane, &[[0, 1]])], outputs)?;
/// let plan = Conversion::between(&rows, &columns)?.shuffle_plan();
/// assert_eq!(plan.map(|plan| plan.round_count()), Some(2));
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShufflePlan {
    conversion: Conversion,
    /// `F`: for each target lane bit, the target register bits that it flips.
    skew: Vec<u64>,
    /// `G`: for each target lane bit, the turn bits that it flips.
    turn: Vec<u64>,
    turn_bits: u32,
    /// Whether a round in which lane 0 reads itself is one in which every lane does, so that no shuffle is needed.
    local_rounds: bool,
}

/// One round: every lane sends at most one register.
///
/// ```
/// use tile_layout::linear::{Conversion, Dim, LinearLayout};
/// let outputs = [(Dim::Axis(0), 2), (Dim::Axis(1), 2)];
/// let rows = LinearLayout::new(&[(Dim::Register, &[[0, 1]]), (Dim::Lane, &[[1, 0]])], outputs)?;
/// let columns = LinearLayout::new(&[(Dim::Register, &[[1, 0]]), (Dim::Lane, &[[0, 1]])], outputs)?;
/// let plan = Conversion::between(&rows, &columns)?.shuffle_plan();
/// assert_eq!(plan.map(|plan| plan.rounds().count()), Some(2));
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShuffleRound {
    register: u64,
    turn: u64,
}

/// What one lane receives in a round.
///
/// ```
/// use tile_layout::linear::{Conversion, Dim, LinearLayout, Place};
/// let outputs = [(Dim::Axis(0), 2), (Dim::Axis(1), 2)];
/// let rows = LinearLayout::new(&[(Dim::Register, &[[0, 1]]), (Dim::Lane, &[[1, 0]])], outputs)?;
/// let columns = LinearLayout::new(&[(Dim::Register, &[[1, 0]]), (Dim::Lane, &[[0, 1]])], outputs)?;
/// let plan = Conversion::between(&rows, &columns)?.shuffle_plan();
/// let plan = plan.ok_or("elements stay in their lanes")?;
/// let received: Vec<_> = plan.rounds().map(|round| plan.transfer(round, Place::default())).collect::<Result<_, _>>()?;
/// assert!(received.into_iter().flatten().any(|transfer| transfer.source_lane == 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// The register of the target layout that it fills.
    pub target_register: u64,
    /// The lane that it reads.
    pub source_lane: u64,
    /// The register of the source layout that the read lane sends.
    pub source_register: u64,
}

impl ShufflePlan {
    pub(super) fn of(conversion: &Conversion) -> ShufflePlan {
        let [registers, lanes, ..] = conversion.target.map(|group| group.bits as usize);
        let source = |bit: usize| conversion.place(conversion.map.columns()[bit]);
        let lane_columns: Vec<Place> = (registers..registers + lanes).map(source).collect();

        let reads: Vec<u64> = lane_columns.iter().map(|column| column.lane).collect();
        let mut read = Subspace::span(reads.iter().copied());
        let mut skew = vec![0; lanes];
        let mut turn = vec![0; lanes];
        let mut reachable =
            (0..registers).filter(|bit| conversion.copies >> bit & 1 == 0 && read.insert(source(*bit).lane));
        // Of the rest, the registers wanted from the shared lane, and the turns that tell them apart.
        let mut wanted: Vec<u64> = Vec::new();
        // Lanes that differ by a member of this kernel read the same lane, unless skewed. The basis is reduced: a
        // function that is zero on all bits but the pivots has at each basis vector the value at its pivot.
        for vector in kernel(&reads).basis() {
            let pivot = vector.ilog2() as usize;
            if let Some(register) = reachable.next() {
                skew[pivot] = 1 << register;
                continue;
            }
            let sent = (0..lanes).filter(|bit| vector >> bit & 1 == 1);
            let sent = sent.fold(0, |sent, bit| sent ^ lane_columns[bit].register);
            turn[pivot] = combination(&wanted, sent).unwrap_or_else(|| {
                wanted.push(sent);
                1 << (wanted.len() - 1)
            });
        }
        let straight = lane_columns.iter().enumerate().all(|(bit, column)| column.lane == 1 << bit);
        let uniform = (registers + lanes..conversion.map.columns().len()).all(|bit| source(bit).lane == 0);
        ShufflePlan {
            conversion: conversion.clone(),
            skew,
            turn,
            turn_bits: wanted.len() as u32,
            local_rounds: straight && uniform,
        }
    }

    /// The number of rounds.
    ///
    /// ```
    /// use tile_layout::linear::{Conversion, Dim, LinearLayout};
    /// let lanes = |bases| LinearLayout::new(&[(Dim::Lane, bases)], [(Dim::Axis(0), 4)]);
    /// let conversion = Conversion::between(&lanes(&[[1], [2]])?, &lanes(&[[2], [1]])?)?;
    /// assert_eq!(conversion.shuffle_plan().map(|plan| plan.round_count()), Some(1));
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn round_count(&self) -> u64 {
        let bits = self.register_bits();
        let all = 1u64 << bits.len();
        let moving = if self.local_rounds {
            let lanes =
                bits.iter().map(|&bit| self.conversion.place(self.conversion.map.columns()[bit]).lane);
            all - (all >> Subspace::span(lanes).dimension())
        } else {
            all
        };
        moving << self.turn_bits
    }

    /// The rounds, in any order: none depends on another. Registers that the target layout holds twice are filled
    /// once; rounds that would move nothing between lanes are left out.
    ///
    /// ```
    /// use tile_layout::linear::{Conversion, Dim, LinearLayout};
    /// let lanes = |bases| LinearLayout::new(&[(Dim::Lane, bases)], [(Dim::Axis(0), 4)]);
    /// let conversion = Conversion::between(&lanes(&[[1], [2]])?, &lanes(&[[2], [1]])?)?;
    /// assert_eq!(conversion.shuffle_plan().map(|plan| plan.rounds().count()), Some(1));
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn rounds(&self) -> impl Iterator<Item = ShuffleRound> + '_ {
        let bits = self.register_bits();
        let all = 1u64 << bits.len();
        let register = move |round: u64| {
            bits.iter()
                .enumerate()
                .fold(0, |register, (position, bit)| register | (round >> position & 1) << bit)
        };
        (0..all)
            .map(register)
            .filter(|&register| {
                let moved = self.conversion.place(self.conversion.map.apply(register)).lane != 0;
                moved || !self.local_rounds
            })
            .flat_map(|register| (0..1 << self.turn_bits).map(move |turn| ShuffleRound { register, turn }))
    }

    /// What a lane receives in a round; `None` where it waits for its turn. The receiver's register is ignored.
    ///
    /// # Errors
    /// [`LinearError::IndexOutOfRange`] where the target layout has no such lane.
    ///
    /// ```
    /// use tile_layout::linear::{Conversion, Dim, LinearLayout, Place};
    /// let lanes = |bases| LinearLayout::new(&[(Dim::Lane, bases)], [(Dim::Axis(0), 4)]);
    /// let conversion = Conversion::between(&lanes(&[[1], [2]])?, &lanes(&[[2], [1]])?)?;
    /// let plan = conversion.shuffle_plan().expect("lanes are permuted");
    /// let receiver = Place { lane: 1, ..Place::default() };
    /// for round in plan.rounds() {
    ///     assert_eq!(plan.transfer(round, receiver)?.map(|transfer| transfer.source_lane), Some(2));
    /// }
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn transfer(&self, round: ShuffleRound, receiver: Place) -> Result<Option<Transfer>, LinearError> {
        let target_register = round.register ^ select(&self.skew, receiver.lane);
        let source = self.conversion.source_of(Place { register: target_register, ..receiver })?;
        let received =
            Transfer { target_register, source_lane: source.lane, source_register: source.register };
        Ok((select(&self.turn, receiver.lane) == round.turn).then_some(received))
    }

    /// The target register bits that are no copies.
    fn register_bits(&self) -> Vec<usize> {
        let bits = self.conversion.target[0].bits;
        let kept = low_bits(bits) & !self.conversion.copies;
        (0..bits as usize).filter(|bit| kept >> bit & 1 == 1).collect()
    }
}

/// The xor of the values of the lane's bits.
fn select(values: &[u64], lane: u64) -> u64 {
    let selected = values.iter().enumerate().filter(|(bit, _)| lane >> bit & 1 == 1);
    selected.fold(0, |all, (_, value)| all ^ value)
}
