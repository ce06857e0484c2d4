//! Decides the layout of shared memory with the fewest conflicts, by choosing a basis of the address. Knows
//! nothing of swizzle parameters. Invariants: a vector of either access stays whole; the segment meets as little
//! as possible of what a pass touches.
//!
//! The address bits are, from the lowest: the elements of a vector (or at least of a word), the rest of a row of
//! all banks, and the segment, which selects the row. A conflict is two words of one pass that differ by a member
//! of the segment. With `U` and `W` the subspaces that a pass of the write and of the read touches, a segment that
//! meets neither has at most the dimension of the tile less the larger of the two, and is built from everything
//! outside `U + W` and from sums `u ^ w` of a vector in `U` only and a vector in `W` only.

use alloc::format;
use alloc::vec::Vec;

use super::{Access, SharedLayout, SharedMemory, check_width, place_access, row_bits};
use crate::linear::banks::{WORD_BYTES, lanes_a_group};
use crate::linear::layout::reorder;
use crate::linear::{BitMatrix, Dim, Group, LinearError, LinearLayout, Subspace};

/// The layout of a tile in shared memory with the fewest conflicts for both accesses, from a free choice of the
/// address bits.
///
/// Where both accesses can be free of conflicts they are; elsewhere conflicts are put where only one access meets
/// them as far as possible. This holds where the longer vectors cover the tile, so give the accesses with all
/// their registers, warps and blocks. (For tiles of 16 elements a test compares all linear layouts.)
///
/// # Errors
/// [`LinearError::BadAccess`] for a width or a number of banks that memory can't serve, or where the vectors of
/// the accesses don't run along the same elements, or start within each other; [`LinearError::UnmatchedDim`] or
/// [`LinearError::ExtentMismatch`] where the accesses have different axes; [`LinearError::NotPowerOfTwo`] for
/// `element_bytes`.
///
/// ```
/// use tile_layout::linear::{Access, Dim, LinearLayout, SharedMemory, optimal_layout};
/// // A 32 x 32 tile of floats, written along rows and read down columns, one element a lane.
/// let axes = [(Dim::Axis(0), 32), (Dim::Axis(1), 32)];
/// let rows: &[[u64; 2]] = &[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]];
/// let columns: &[[u64; 2]] = &[[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]];
/// let write = LinearLayout::new(&[(Dim::Lane, rows)], axes)?;
/// let read = LinearLayout::new(&[(Dim::Lane, columns)], axes)?;
/// let (write, read) = (Access { layout: &write, width: 4 }, Access { layout: &read, width: 4 });
/// let best = optimal_layout(SharedMemory { element_bytes: 4, banks: 32 }, write, read)?;
/// assert_eq!((best.write.count, best.read.count), (1, 1));
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
pub fn optimal_layout(
    shared: SharedMemory,
    write: Access<'_>,
    read: Access<'_>,
) -> Result<SharedLayout, LinearError> {
    let axes = write.layout.outputs();
    let written = Footprint::of(shared, write, axes)?;
    let reading = Footprint::of(shared, read, axes)?;
    let tile_bits: u32 = axes.iter().map(|group| group.bits).sum();

    let frame = BitMatrix::new(tile_bits, &frame(tile_bits, &written, &reading)?)?;
    let to_frame = frame.inverse()?;
    let basis = address_basis(shared, tile_bits, &written.seen_by(&to_frame), &reading.seen_by(&to_frame));
    let address = frame.multiply(&BitMatrix::new(tile_bits, &basis)?)?.inverse()?;
    let offset = [Group { dim: Dim::Offset, bits: tile_bits }];
    let layout = LinearLayout::from_matrix(axes, &offset, address)?;

    let passes = |access: Access<'_>| {
        let (lanes, _) = place_access(&layout, shared, access)?;
        Ok::<_, LinearError>(lanes.wavefronts(access.width, shared.banks))
    };
    let (write, read) = (passes(write)?, passes(read)?);
    Ok(SharedLayout { layout, write, read })
}

/// What one access touches, in flat coordinates of the tile.
struct Footprint {
    /// The elements of the first vector, nearest first.
    vector: Vec<u64>,
    /// The lane bits that are served at once.
    lanes: Vec<u64>,
    /// The bits of everything that chooses a vector.
    starts: Vec<u64>,
}

impl Footprint {
    fn of(shared: SharedMemory, access: Access<'_>, axes: &[Group]) -> Result<Footprint, LinearError> {
        let vector_bits = check_width(shared, access)? as usize;
        let layout = access.layout;
        let has = |groups: &[Group], dim| groups.iter().any(|group| group.dim == dim);
        for group in axes.iter().chain(layout.outputs()) {
            if !has(axes, group.dim) || !has(layout.outputs(), group.dim) {
                return Err(LinearError::UnmatchedDim { dim: group.dim });
            }
        }
        for group in axes {
            let found = Group { dim: group.dim, bits: layout.output_bits(group.dim) };
            if found != *group {
                let (found, expected) = (found.extent(), group.extent());
                return Err(LinearError::ExtentMismatch { dim: group.dim, found, expected });
            }
        }
        let element = |column: &u64| reorder(*column, layout.outputs(), axes);
        let group_bits = lanes_a_group(access.width, shared.banks).ilog2() as usize;
        let (vector, _) = layout.columns(Dim::Register).split_at(vector_bits);
        let starts = layout.inputs().iter().flat_map(|group| {
            let skipped = if group.dim == Dim::Register { vector_bits } else { 0 };
            layout.columns(group.dim).iter().skip(skipped)
        });
        Ok(Footprint {
            vector: vector.iter().map(element).collect(),
            lanes: layout.columns(Dim::Lane).iter().take(group_bits).map(element).collect(),
            starts: starts.map(element).collect(),
        })
    }

    fn seen_by(&self, matrix: &BitMatrix) -> Footprint {
        let map = |vectors: &[u64]| vectors.iter().map(|&vector| matrix.apply(vector)).collect();
        Footprint { vector: map(&self.vector), lanes: map(&self.lanes), starts: map(&self.starts) }
    }
}

/// A basis of the tile: the elements of the longer vector, then places where vectors start. An address whose bits
/// above the vector depend only on the latter keeps all vectors whole.
fn frame(tile_bits: u32, write: &Footprint, read: &Footprint) -> Result<Vec<u64>, LinearError> {
    let (shorter, longer) =
        if write.vector.len() <= read.vector.len() { (write, read) } else { (read, write) };
    if !longer.vector.starts_with(&shorter.vector) {
        let reason = format!(
            "the vectors of the two accesses run along different elements ({:?} and {:?}); narrow one of them",
            write.vector, read.vector
        );
        return Err(LinearError::BadAccess { reason });
    }
    let mut frame = Independent::default();
    frame.extend(longer.vector.iter().copied());
    if frame.vectors.len() < longer.vector.len() {
        let reason = format!("a vector holds an element twice ({:?}); narrow the access", longer.vector);
        return Err(LinearError::BadAccess { reason });
    }
    frame.extend(longer.starts.iter().chain(&shorter.starts).copied());
    frame.extend((0..tile_bits).map(|bit| 1 << bit));
    Ok(frame.vectors)
}

/// The tile's elements at the single address bits, lowest first; everything in coordinates of the frame.
fn address_basis(shared: SharedMemory, tile_bits: u32, write: &Footprint, read: &Footprint) -> Vec<u64> {
    let vector_bits = write.vector.len().max(read.vector.len()) as u32;
    let starts = || (vector_bits..tile_bits).map(|bit| 1u64 << bit);
    let start_space = Subspace::span(starts());

    // Filling happens only where the vector is less than a word; then a pass touches all of the vector.
    let vector = Subspace::span((0..vector_bits).map(|bit| 1 << bit));
    let lanes = |access: &Footprint| {
        Subspace::span(access.lanes.iter().copied()).sum(&vector).intersection(&start_space)
    };
    let low = lowest_bits(shared, vector_bits, tile_bits, &lanes(write), &lanes(read));
    let word_bits = word_bits(shared);
    let low_count = low.vectors.len() as u32;
    let word = &low.vectors[..low_count.min(word_bits) as usize];

    // What a pass touches beside the vector itself.
    let touched = |access: &Footprint| {
        let all = word.iter().chain(&access.vector).chain(&access.lanes);
        Subspace::span(all.copied()).intersection(&start_space)
    };
    let (touched_write, touched_read) = (touched(write), touched(read));
    let common = touched_write.intersection(&touched_read);
    let alone = |touched: &Subspace| -> Vec<u64> {
        let mut seen = common.clone();
        touched.basis().filter(|&vector| seen.insert(vector)).collect()
    };
    let (only_write, only_read) = (alone(&touched_write), alone(&touched_read));
    let paired = only_write.len().min(only_read.len());
    let mut reached = touched_write.sum(&touched_read);
    let outside: Vec<u64> = starts().filter(|&start| reached.insert(start)).collect();

    // Grown on top of the lowest bits, because the whole address must be a basis. High bits of the tile come first:
    // they select rows in plain layouts too.
    let wanted = low_count + tile_bits.saturating_sub(row_bits(shared).max(low_count));
    let mut segment = low.clone();
    segment.extend_to(wanted, outside.into_iter().rev());
    segment.extend_to(wanted, only_write.iter().zip(&only_read).map(|(one, other)| one ^ other));
    // From here conflicts are inevitable; first those that only one access meets.
    segment.extend_to(wanted, only_write[paired..].iter().chain(&only_read[paired..]).copied());
    segment.extend_to(wanted, starts().rev());

    let mut all = segment.clone();
    all.extend(starts());
    let mut basis = low.vectors;
    basis.extend_from_slice(&all.vectors[segment.vectors.len()..]);
    basis.extend_from_slice(&segment.vectors[low_count as usize..]);
    basis
}

/// The lowest address bits: the longer vector, and enough to fill a word.
///
/// Lanes that share a word cost nothing, so the best filling is a direction along which both accesses spread
/// lanes. A direction of one access enlarges what the other touches; taking it from the access that touches more
/// keeps the larger of the two small.
fn lowest_bits(
    shared: SharedMemory,
    vector_bits: u32,
    tile_bits: u32,
    write_lanes: &Subspace,
    read_lanes: &Subspace,
) -> Independent {
    let mut low = Independent::default();
    low.extend((0..vector_bits).map(|bit| 1 << bit));
    let word_bits = word_bits(shared).min(tile_bits);
    low.extend_to(word_bits, write_lanes.intersection(read_lanes).basis());
    while (low.vectors.len() as u32) < word_bits {
        let touched = |lanes: &Subspace| lanes.sum(&low.span).dimension();
        let (more, less) = if touched(write_lanes) >= touched(read_lanes) {
            (write_lanes, read_lanes)
        } else {
            (read_lanes, write_lanes)
        };
        let starts = (vector_bits..tile_bits).map(|bit| 1 << bit);
        low.extend_to(low.vectors.len() as u32 + 1, more.basis().chain(less.basis()).chain(starts));
    }
    low
}

/// Bits of an element offset within one word.
fn word_bits(shared: SharedMemory) -> u32 {
    WORD_BYTES.ilog2().saturating_sub(shared.element_bytes.ilog2())
}

/// Vectors none of which is a xor of others.
#[derive(Clone)]
struct Independent {
    vectors: Vec<u64>,
    span: Subspace,
}

impl Default for Independent {
    fn default() -> Independent {
        Independent { vectors: Vec::new(), span: Subspace::zero() }
    }
}

impl Independent {
    /// Adds the candidates that are independent.
    fn extend(&mut self, candidates: impl Iterator<Item = u64>) {
        self.extend_to(u64::BITS, candidates);
    }

    /// Adds independent candidates until there are `count` vectors.
    fn extend_to(&mut self, count: u32, candidates: impl Iterator<Item = u64>) {
        for candidate in candidates {
            if self.vectors.len() as u32 >= count {
                return;
            }
            if self.span.insert(candidate) {
                self.vectors.push(candidate);
            }
        }
    }
}
