//! Decides how the elements of a distributed tile move from one layout to another: not at all, between registers
//! of a lane, between lanes, through shared memory, or through global memory. Knows nothing of instructions or of
//! element types. Invariants: the source named for a target holds the same element; where the source has copies,
//! the nearest is named (same block before same warp, before same lane, before same register).

mod shuffles;

use alloc::vec::Vec;

pub use shuffles::{ShufflePlan, ShuffleRound, Transfer};

use super::layout::{check_groups, field, pack, reorder};
use super::{BitMatrix, Dim, Group, LinearError, LinearLayout, Subspace};

/// The hardware dimensions, nearest first. Flat places put the nearest in the lowest bits, so that the smallest
/// difference of two places is the shortest way between them.
const NEAREST_FIRST: [Dim; 4] = [Dim::Register, Dim::Lane, Dim::Warp, Dim::Block];

/// A holder of an element.
///
/// ```
/// use tile_layout::linear::Place;
/// assert_eq!(Place { lane: 3, ..Place::default() }.register, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// Register of the lane, in elements.
    pub register: u64,
    /// Lane of the warp.
    pub lane: u64,
    /// Warp of the block.
    pub warp: u64,
    /// Block of the grid.
    pub block: u64,
}

/// The farthest that any element moves.
///
/// ```
/// use tile_layout::linear::{Conversion, Dim, LinearLayout, Route};
/// let (lanes, warps) = (Dim::Lane, Dim::Warp);
/// let row = |dim| LinearLayout::identity(dim, Dim::Axis(0), 4);
/// assert_eq!(Conversion::between(&row(lanes)?, &row(warps)?)?.route(), Route::SharedMemory);
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Route {
    /// Every place already holds its element.
    Identity,
    /// Elements change registers within their lane.
    Registers,
    /// Elements change lanes within their warp.
    Shuffles {
        /// Rounds of [`Conversion::shuffle_plan`]: in each, a lane sends one register and receives one.
        rounds: u64,
    },
    /// Elements change warps within their block.
    SharedMemory,
    /// Elements change blocks.
    Global,
}

/// A conversion between two layouts of one tile.
///
/// ```
/// use tile_layout::linear::{Conversion, Dim, LinearLayout, Route, Place};
/// let outputs = [(Dim::Axis(0), 2), (Dim::Axis(1), 2)];
/// let rows = LinearLayout::new(&[(Dim::Register, &[[0, 1]]), (Dim::Lane, &[[1, 0]])], outputs)?;
/// let columns = LinearLayout::new(&[(Dim::Register, &[[1, 0]]), (Dim::Lane, &[[0, 1]])], outputs)?;
/// let transpose = Conversion::between(&rows, &columns)?;
/// assert_eq!(transpose.route(), Route::Shuffles { rounds: 2 });
/// let source = transpose.source_of(Place { register: 1, lane: 0, ..Place::default() })?;
/// assert_eq!(source, Place { register: 0, lane: 1, ..Place::default() });
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// The hardware dimensions with room for the places of both layouts.
    places: [Group; 4],
    /// The target's bits of those dimensions.
    target: [Group; 4],
    /// Target places, flat in `target`, to source places, flat in `places`.
    map: BitMatrix,
    /// Target register bits that only repeat elements of lower registers.
    copies: u64,
}

impl Conversion {
    /// The conversion of a tile from layout `source` to layout `target`; both map hardware dimensions to the same
    /// axes.
    ///
    /// # Errors
    /// [`LinearError::UnknownDim`] for an input that isn't a hardware dimension, [`LinearError::UnmatchedDim`] for an axis
    /// that one side lacks, [`LinearError::ExtentMismatch`] for axes of different extents,
    /// [`LinearError::ElementNotHeld`] where the target needs what the source doesn't hold, [`LinearError::TooManyBits`].
    ///
    /// ```
    /// use tile_layout::linear::{Conversion, Dim, LinearLayout, Route};
    /// let lanes = LinearLayout::identity(Dim::Lane, Dim::Axis(0), 32)?;
    /// assert_eq!(Conversion::between(&lanes, &lanes)?.route(), Route::Identity);
    /// let warps = LinearLayout::identity(Dim::Warp, Dim::Axis(0), 32)?;
    /// assert_eq!(Conversion::between(&lanes, &warps)?.route(), Route::SharedMemory);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn between(source: &LinearLayout, target: &LinearLayout) -> Result<Conversion, LinearError> {
        check_axes(source, target)?;
        let (source_groups, target_groups) = (hardware(source)?, hardware(target)?);
        let places: [Group; 4] = core::array::from_fn(|position| Group {
            dim: NEAREST_FIRST[position],
            bits: source_groups[position].bits.max(target_groups[position].bits),
        });
        check_groups(&places)?;

        let spread = |flat: u64| reorder(flat, source.inputs(), &places);
        let holders = Subspace::span(source.matrix().kernel().basis().map(spread));
        let owner = source.matrix().pseudo_inverse();
        let mut columns = Vec::new();
        let mut start = 0;
        for (group, place) in target_groups.iter().zip(&places) {
            for (bit, &column) in target.columns(group.dim).iter().enumerate() {
                let element = reorder(column, target.outputs(), source.outputs());
                let held = owner.apply(element);
                if source.matrix().apply(held) != element {
                    return Err(LinearError::ElementNotHeld { dim: group.dim, bit: bit as u32 });
                }
                // Of all holders, the one whose difference to the target place is the smallest number.
                let own = 1 << (start + bit);
                columns.push(own ^ holders.reduce(own ^ spread(held)));
            }
            start += place.bits as usize;
        }
        let rows = places.iter().map(|group| group.bits).sum();
        let map = BitMatrix::new(rows, &columns)?;
        Ok(Conversion { places, target: target_groups, map, copies: register_copies(target) })
    }

    /// The farthest that any element moves.
    ///
    /// ```
    /// use tile_layout::linear::{Conversion, Dim, LinearLayout, Route};
    /// let pair = |bases| LinearLayout::new(&[(Dim::Register, bases)], [(Dim::Axis(0), 4)]);
    /// let conversion = Conversion::between(&pair(&[[1], [2]])?, &pair(&[[2], [1]])?)?;
    /// assert_eq!(conversion.route(), Route::Registers);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn route(&self) -> Route {
        let moved = self
            .map
            .columns()
            .iter()
            .zip(self.own_places())
            .fold(0, |all, (column, own)| all | (column ^ own));
        let moved = self.place(moved);
        match moved {
            Place { register: 0, lane: 0, warp: 0, block: 0 } => Route::Identity,
            Place { lane: 0, warp: 0, block: 0, .. } => Route::Registers,
            Place { warp: 0, block: 0, .. } => {
                Route::Shuffles { rounds: ShufflePlan::of(self).round_count() }
            }
            Place { block: 0, .. } => Route::SharedMemory,
            Place { .. } => Route::Global,
        }
    }

    /// A place that holds in the source layout what `target` holds in the target layout.
    ///
    /// # Errors
    /// [`LinearError::IndexOutOfRange`] where the target layout has no such place.
    ///
    /// ```
    /// use tile_layout::linear::{Conversion, Dim, LinearLayout, Place};
    /// let lanes = LinearLayout::identity(Dim::Lane, Dim::Axis(0), 4)?;
    /// let conversion = Conversion::between(&lanes, &lanes)?;
    /// assert!(conversion.source_of(Place { lane: 4, ..Place::default() }).is_err());
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn source_of(&self, target: Place) -> Result<Place, LinearError> {
        let indices = [target.register, target.lane, target.warp, target.block];
        let flat = pack(&self.target, &indices)?;
        Ok(self.place(self.map.apply(flat)))
    }

    /// How to exchange the elements by shuffles; `None` unless the route is [`Route::Shuffles`].
    ///
    /// ```
    /// use tile_layout::linear::{Conversion, Dim, LinearLayout};
    /// let lanes = |bases| LinearLayout::new(&[(Dim::Lane, bases)], [(Dim::Axis(0), 4)]);
    /// let conversion = Conversion::between(&lanes(&[[1], [2]])?, &lanes(&[[2], [1]])?)?;
    /// assert!(conversion.shuffle_plan().is_some());
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn shuffle_plan(&self) -> Option<ShufflePlan> {
        matches!(self.route(), Route::Shuffles { .. }).then(|| ShufflePlan::of(self))
    }

    /// The target's own bits, as flat places, in the order of the map's columns.
    fn own_places(&self) -> impl Iterator<Item = u64> + '_ {
        let mut start = 0;
        self.target.iter().zip(&self.places).flat_map(move |(group, place)| {
            let first = start;
            start += place.bits;
            (first..first + group.bits).map(|bit| 1 << bit)
        })
    }

    fn place(&self, flat: u64) -> Place {
        let index = |dim| field(&self.places, dim, flat);
        Place {
            register: index(Dim::Register),
            lane: index(Dim::Lane),
            warp: index(Dim::Warp),
            block: index(Dim::Block),
        }
    }
}

/// Register bits whose elements lower register bits already hold.
fn register_copies(layout: &LinearLayout) -> u64 {
    let mut held = Subspace::zero();
    let columns = layout.columns(Dim::Register).iter().enumerate();
    columns.fold(0, |copies, (bit, &column)| copies | u64::from(!held.insert(column)) << bit)
}

/// The bits of each hardware dimension.
fn hardware(layout: &LinearLayout) -> Result<[Group; 4], LinearError> {
    match layout.inputs().iter().find(|group| !NEAREST_FIRST.contains(&group.dim)) {
        Some(group) => Err(LinearError::UnknownDim { dim: group.dim }),
        None => Ok(NEAREST_FIRST.map(|dim| Group { dim, bits: layout.input_bits(dim) })),
    }
}

/// Whether two layouts have the same axes, in any order.
fn check_axes(source: &LinearLayout, target: &LinearLayout) -> Result<(), LinearError> {
    for (one, other) in [(source, target), (target, source)] {
        for group in one.outputs() {
            let Some(same) = other.outputs().iter().find(|known| known.dim == group.dim) else {
                return Err(LinearError::UnmatchedDim { dim: group.dim });
            };
            if same.bits != group.bits {
                let (found, expected) = (same.extent(), group.extent());
                return Err(LinearError::ExtentMismatch { dim: group.dim, found, expected });
            }
        }
    }
    Ok(())
}
