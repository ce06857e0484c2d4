//! Decides where the elements of a tile lie in shared memory so that two accesses, usually a write and a read,
//! meet few bank conflicts. Knows nothing of instructions: an access is lanes and a width. Invariants: the answer
//! keeps both accesses' vectors contiguous, is the same for the same question, and carries wavefronts computed
//! from the layout returned.
//!
//! There are two ways. [`search_swizzle`] tries every `Sw<bits, base, shift>` on top of a given layout: the
//! address is cheap to compute and what copy engines support. [`optimal_layout`] chooses a basis of the whole
//! address: the elements that share all banks (the *segment*) must form a subspace that meets neither the
//! elements that the write touches at once nor those that the read does.

mod optimal;

use crate::Swizzle;
use alloc::format;

pub use optimal::optimal_layout;

use super::banks::{LaneBytes, WORD_BYTES, check_access};
use super::matrix::low_bits;
use super::{Dim, Group, LinearError, LinearLayout, Wavefronts};

/// What the lanes of a warp do at once: each moves `width` bytes.
///
/// ```
/// use tile_layout::linear::{Access, Dim, LinearLayout, SharedMemory, search_swizzle};
/// let memory = LinearLayout::from_modes(&[(32, 32), (32, 1)])?;
/// let axes = [(Dim::Axis(0), 32), (Dim::Axis(1), 32)];
/// let lanes = |bases: [[u64; 2]; 5]| LinearLayout::new(&[(Dim::Register, &[]), (Dim::Lane, &bases)], axes);
/// let rows = lanes([[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]])?;
/// let columns = lanes([[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]])?;
/// let [write, read] = [&rows, &columns].map(|layout| Access { layout, width: 4 });
/// let best = search_swizzle(&memory, SharedMemory { element_bytes: 4, banks: 32 }, write, read)?;
/// assert_eq!((best.shared.write.count, best.shared.read.count), (1, 1));
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// `(Register, Lane, …)` to the axes of the tile. The lowest register bits are the elements of one vector;
    /// other registers, warps and blocks count as further accesses of the same kind.
    pub layout: &'a LinearLayout,
    /// Bytes that a lane moves at once: 1, 2, 4, 8 or 16, at least one element.
    pub width: u32,
}

/// Shared memory as both accesses see it.
///
/// ```
/// use tile_layout::linear::SharedMemory;
/// let halves = SharedMemory { element_bytes: 2, banks: 32 };
/// assert_eq!(halves.banks * 4 / halves.element_bytes, 64);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedMemory {
    /// Bytes of an element, a power of two.
    pub element_bytes: u32,
    /// Banks of 4 bytes, a power of two.
    pub banks: u32,
}

/// A layout of a tile in shared memory with what both accesses cost.
///
/// ```
/// use tile_layout::linear::{Access, Dim, LinearLayout, SharedMemory, search_swizzle};
/// let memory = LinearLayout::from_modes(&[(32, 32), (32, 1)])?;
/// let axes = [(Dim::Axis(0), 32), (Dim::Axis(1), 32)];
/// let lanes = |bases: [[u64; 2]; 5]| LinearLayout::new(&[(Dim::Register, &[]), (Dim::Lane, &bases)], axes);
/// let rows = lanes([[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]])?;
/// let columns = lanes([[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]])?;
/// let [write, read] = [&rows, &columns].map(|layout| Access { layout, width: 4 });
/// let best = search_swizzle(&memory, SharedMemory { element_bytes: 4, banks: 32 }, write, read)?;
/// assert!(best.shared.layout.is_permutation());
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLayout {
    /// The axes of the tile to `Offset`, in elements.
    pub layout: LinearLayout,
    /// Passes of the write.
    pub write: Wavefronts,
    /// Passes of the read.
    pub read: Wavefronts,
}

/// A swizzle of element offsets and what it gives.
///
/// ```
/// use tile_layout::linear::{Access, Dim, LinearLayout, SharedMemory, search_swizzle};
/// let memory = LinearLayout::from_modes(&[(32, 32), (32, 1)])?;
/// let axes = [(Dim::Axis(0), 32), (Dim::Axis(1), 32)];
/// let lanes = |bases: [[u64; 2]; 5]| LinearLayout::new(&[(Dim::Register, &[]), (Dim::Lane, &bases)], axes);
/// let rows = lanes([[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]])?;
/// let columns = lanes([[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]])?;
/// let [write, read] = [&rows, &columns].map(|layout| Access { layout, width: 4 });
/// let best = search_swizzle(&memory, SharedMemory { element_bytes: 4, banks: 32 }, write, read)?;
/// assert_eq!(best.swizzle.to_string(), "Sw<5,0,5>");
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwizzleChoice {
    /// The swizzle; [`Swizzle::IDENTITY`] where the given layout is best as it is.
    pub swizzle: Swizzle,
    /// The given layout, swizzled.
    pub shared: SharedLayout,
}

/// The best swizzle of `memory`, a layout from the axes of a tile to `Offset` without swizzle.
///
/// The best has the fewest passes of write and read together; among equals the one with the fewest bits, then
/// the shortest shift, then the lowest base. This holds where the longer vectors cover the tile, so give the accesses
/// with all their registers, warps and blocks: swizzles of bits within the longer vector, which would tear vectors apart
/// then, aren't tried.
///
/// # Errors
/// [`LinearError::BadAccess`] for a width or a number of banks that memory can't serve, or where `memory` doesn't
/// place the vectors contiguously and aligned; [`LinearError::UnmatchedDim`] or [`LinearError::ExtentMismatch`]
/// where an access and `memory` have different axes; [`LinearError::UnknownDim`] where `memory` leads to anything but
/// `Offset`; [`LinearError::NotPowerOfTwo`] for `element_bytes`.
///
/// ```
/// use tile_layout::linear::{Access, Dim, LinearLayout, SharedMemory, search_swizzle};
/// // A 64 x 64 tile of 16-bit elements, written 16 bytes a lane along rows, read 16 bytes a lane down a column.
/// let memory = LinearLayout::from_modes(&[(64, 64), (64, 1)])?;
/// let axes = [(Dim::Axis(0), 64), (Dim::Axis(1), 64)];
/// let vector: &[[u64; 2]] = &[[0, 1], [0, 2], [0, 4]];
/// let rows: &[[u64; 2]] = &[[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]];
/// let columns: &[[u64; 2]] = &[[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]];
/// let write = LinearLayout::new(&[(Dim::Register, vector), (Dim::Lane, rows)], axes)?;
/// let read = LinearLayout::new(&[(Dim::Register, vector), (Dim::Lane, columns)], axes)?;
/// let (write, read) = (Access { layout: &write, width: 16 }, Access { layout: &read, width: 16 });
/// let best = search_swizzle(&memory, SharedMemory { element_bytes: 2, banks: 32 }, write, read)?;
/// assert_eq!(best.swizzle.to_string(), "Sw<3,3,3>");
/// assert!(best.shared.write.is_conflict_free() && best.shared.read.is_conflict_free());
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
pub fn search_swizzle(
    memory: &LinearLayout,
    shared: SharedMemory,
    write: Access<'_>,
    read: Access<'_>,
) -> Result<SwizzleChoice, LinearError> {
    let (write_lanes, write_vector) = place_access(memory, shared, write)?;
    let (read_lanes, read_vector) = place_access(memory, shared, read)?;
    let width: u32 = memory.outputs().iter().map(|group| group.bits).sum();
    let cost = |source: u64, shift: u32| {
        // Byte addresses have the element's bits below the offset's; the mask was moved up by as many.
        let swizzle = |address: u64| address ^ (address & source) >> shift;
        let write = write_lanes.map(swizzle).wavefronts(write.width, shared.banks);
        (write, read_lanes.map(swizzle).wavefronts(read.width, shared.banks))
    };
    let plain = cost(0, 0);
    let floor = plain.0.minimum + plain.1.minimum;
    let mut best = (plain.0.count + plain.1.count, (0, 0, 0), plain);
    // A lower base would tear vectors apart where they cover the tile; more bits than a row of banks has would only
    // permute rows.
    let lowest = write_vector.max(read_vector);
    'search: for bits in 1..=row_bits(shared).min(width) {
        for shift in bits..=width - bits {
            for base in lowest..=width - bits - shift {
                if best.0 == floor {
                    break 'search;
                }
                let source = low_bits(bits) << (base + shift) << shared.element_bytes.ilog2();
                let passes = cost(source, shift);
                let total = passes.0.count + passes.1.count;
                if total < best.0 {
                    best = (total, (bits, base, shift), passes);
                }
            }
        }
    }
    let (_, (bits, base, shift), (write, read)) = best;
    let swizzle = Swizzle::new(bits.into(), base.into(), shift.into())?;
    let layout = LinearLayout::from_swizzle(swizzle, width)?.compose(memory)?;
    Ok(SwizzleChoice { swizzle, shared: SharedLayout { layout, write, read } })
}

/// Bits of an element offset within one row of all banks; the widths were checked.
fn row_bits(shared: SharedMemory) -> u32 {
    (shared.banks * WORD_BYTES).ilog2().saturating_sub(shared.element_bytes.ilog2())
}

/// The bits of the access's vector, where memory can serve it.
fn check_width(shared: SharedMemory, access: Access<'_>) -> Result<u32, LinearError> {
    let SharedMemory { element_bytes, banks } = shared;
    check_access(access.width, banks)?;
    if !element_bytes.is_power_of_two() {
        let what = "the number of bytes of an element";
        return Err(LinearError::NotPowerOfTwo { what, value: u64::from(element_bytes) });
    }
    let held = access.layout.input_bits(Dim::Register);
    match (access.width / element_bytes).checked_ilog2() {
        Some(bits) if bits <= held => Ok(bits),
        _ => Err(LinearError::BadAccess {
            reason: format!(
                "an access of {} bytes by lanes that hold {} elements of {element_bytes} bytes; choose another width",
                access.width,
                Group { dim: Dim::Register, bits: held }.extent(),
            ),
        }),
    }
}

/// The byte addresses of the lanes and the bits of the vector, where `memory` keeps every vector of the access
/// whole: the elements of lane 0's first vector are neighbours, and all vectors start at multiples of their width.
fn place_access(
    memory: &LinearLayout,
    shared: SharedMemory,
    access: Access<'_>,
) -> Result<(LaneBytes, u32), LinearError> {
    let vector_bits = check_width(shared, access)?;
    let placed = memory.compose(access.layout)?;
    if let Some(group) = placed.outputs().iter().find(|group| group.dim != Dim::Offset) {
        return Err(LinearError::UnknownDim { dim: group.dim });
    }
    let inputs = placed.inputs().iter().flat_map(|group| {
        placed.columns(group.dim).iter().enumerate().map(|(bit, &offset)| (group.dim, bit as u32, offset))
    });
    for (dim, bit, offset) in inputs {
        let in_vector = dim == Dim::Register && bit < vector_bits;
        if in_vector && offset != 1 << bit || !in_vector && offset & low_bits(vector_bits) != 0 {
            let reason = format!(
                "{dim} {} lies {offset} elements from the first, which tears apart vectors of {} elements; narrow \
                 the access",
                1u64 << bit,
                1u64 << vector_bits,
            );
            return Err(LinearError::BadAccess { reason });
        }
    }
    Ok((LaneBytes::new(placed.columns(Dim::Lane), shared.element_bytes)?, vector_bits))
}
