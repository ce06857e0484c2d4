//! Decides where the elements of a tile lie in shared memory so that two accesses, usually a write and a read,
//! meet few bank conflicts. Knows nothing of instructions: an access is lanes and a width. Invariants: the answer
//! keeps both accesses' vectors contiguous, is the same for the same question, and carries wavefronts computed
//! from the layout returned.
//!
//! There are two ways. [`search_swizzle`] tries every `Sw<bits, base, shift>` on top of a given layout: the
//! address is cheap to compute and what copy engines support. [`optimal_layout`] chooses a basis of the whole
//! address: the elements that share all banks (the *segment*) must form a subspace that meets neither the
//! elements that the write touches at once nor those that the read does.

extern crate alloc;

use alloc::format;
use alloc::vec::Vec;

use super::banks::{LaneBytes, WORD_BYTES, check_access, lanes_a_group};
use super::layout::reorder;
use super::matrix::low_bits;
use super::{BitMatrix, Dim, Group, LinearError, LinearLayout, Subspace, Wavefronts, linear_wavefronts};

/// What the lanes of a warp do at once: each moves `width` bytes.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// `(Register, Lane, …)` to the axes of the tile. The lowest register bits are the elements of one vector;
    /// other registers, warps and blocks are held at 0.
    pub layout: &'a LinearLayout,
    /// Bytes that a lane moves at once: 1, 2, 4, 8 or 16, at least one element.
    pub width: u32,
}

/// Shared memory as both accesses see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedMemory {
    /// Bytes of an element, a power of two.
    pub element_bytes: u32,
    /// Banks of 4 bytes, a power of two.
    pub banks: u32,
}

/// A layout of a tile in shared memory with what both accesses cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLayout {
    /// The axes of the tile to `Offset`, in elements.
    pub layout: LinearLayout,
    /// Passes of the write.
    pub write: Wavefronts,
    /// Passes of the read.
    pub read: Wavefronts,
}

/// A swizzle of element offsets, `Sw<bits, base, shift>`, and what it gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwizzleChoice {
    /// Bits exchanged; 0 where the given layout is best as it is.
    pub bits: u32,
    /// Low bits of the element offset left alone.
    pub base: u32,
    /// Distance from target to source bits.
    pub shift: u32,
    /// The given layout, swizzled.
    pub shared: SharedLayout,
}

/// The best swizzle of `memory`, a layout from the axes of a tile to `Offset` without swizzle.
///
/// The best has the fewest passes of write and read together; among equals the one with the fewest bits, then
/// the shortest shift, then the lowest base.
///
/// # Errors
/// [`LinearError::BadAccess`] for a width or a number of banks that memory can't serve, or where `memory` doesn't
/// place the vectors contiguously and aligned; [`LinearError::UnknownDim`] or [`LinearError::ExtentMismatch`]
/// where an access and `memory` have different axes; [`LinearError::NotPowerOfTwo`] for `element_bytes`.
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
/// assert_eq!((best.bits, best.base, best.shift), (3, 3, 3));
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
    // A lower base would tear vectors apart; more bits than a row of banks has would only permute rows.
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
    let swizzle = LinearLayout::from_swizzle(bits, base, shift.cast_signed(), width)?;
    let layout = swizzle.compose(memory)?;
    Ok(SwizzleChoice { bits, base, shift, shared: SharedLayout { layout, write, read } })
}

/// The layout of a tile in shared memory with the fewest conflicts for both accesses, from a free choice of the
/// address bits.
///
/// Where some linear layout has no conflicts for both, this one has none. Where none has, conflicts are put
/// where only one access meets them as far as possible.
///
/// # Errors
/// [`LinearError::BadAccess`] for a width or a number of banks that memory can't serve, or where the vectors of
/// the accesses don't run along the same elements, or where lanes start within another lane's vector;
/// [`LinearError::UnknownDim`] or [`LinearError::ExtentMismatch`] where the accesses have different axes;
/// [`LinearError::NotPowerOfTwo`] for `element_bytes`.
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

    let basis = address_basis(shared, tile_bits, &written, &reading)?;
    let offset = [Group { dim: Dim::Offset, bits: tile_bits }];
    let address = BitMatrix::new(tile_bits, &basis)?.inverse()?;
    let layout = LinearLayout::from_matrix(axes, &offset, address)?;
    let (write, read) = (passes(&layout, shared, write)?, passes(&layout, shared, read)?);
    Ok(SharedLayout { layout, write, read })
}

/// What one access touches, in flat coordinates of the tile.
struct Footprint {
    /// The elements of lane 0's vector, nearest first.
    vector: Vec<u64>,
    /// The lane bits that are served at once.
    lanes: Vec<u64>,
}

impl Footprint {
    fn of(shared: SharedMemory, access: Access<'_>, axes: &[Group]) -> Result<Footprint, LinearError> {
        let vector_bits = check_width(shared, access)?;
        let layout = access.layout;
        for group in axes.iter().chain(layout.outputs()) {
            let (found, expected) = (layout.output_bits(group.dim), group.bits);
            let known = axes.iter().any(|axis| axis.dim == group.dim)
                && layout.outputs().iter().any(|axis| axis.dim == group.dim);
            if !known {
                return Err(LinearError::UnknownDim { dim: group.dim });
            }
            if found != expected {
                let found = Group { dim: group.dim, bits: found }.extent();
                return Err(LinearError::ExtentMismatch { dim: group.dim, found, expected: group.extent() });
            }
        }
        let element = |column: &u64| reorder(*column, layout.outputs(), axes);
        let group_bits = lanes_a_group(access.width).ilog2() as usize;
        Ok(Footprint {
            vector: layout.columns(Dim::Register).iter().take(vector_bits as usize).map(element).collect(),
            lanes: layout.columns(Dim::Lane).iter().take(group_bits).map(element).collect(),
        })
    }
}

/// The tile coordinates of the address bits, lowest first.
fn address_basis(
    shared: SharedMemory,
    tile_bits: u32,
    write: &Footprint,
    read: &Footprint,
) -> Result<Vec<u64>, LinearError> {
    let (shorter, longer) =
        if write.vector.len() <= read.vector.len() { (write, read) } else { (read, write) };
    if !longer.vector.starts_with(&shorter.vector) {
        let reason = format!(
            "the vectors of the two accesses run along different elements ({:?} and {:?}); narrow one of them",
            write.vector, read.vector
        );
        return Err(LinearError::BadAccess { reason });
    }
    let units = || (0..tile_bits).map(|bit| 1u64 << bit);
    let lanes = || write.lanes.iter().chain(&read.lanes).copied();

    // The lowest bits: the longer vector, and enough to fill a word. Lanes that share a word cost nothing, so a
    // direction that both accesses spread lanes along is the best filling.
    let word_bits = (WORD_BYTES / shared.element_bytes.min(WORD_BYTES)).ilog2();
    let mut low = Independent { vectors: Vec::new(), span: Subspace::zero() };
    low.extend(longer.vector.iter().copied());
    if low.vectors.len() < longer.vector.len() {
        let reason = format!("a vector holds an element twice ({:?}); narrow the access", longer.vector);
        return Err(LinearError::BadAccess { reason });
    }
    let both =
        Subspace::span(write.lanes.iter().copied()).intersection(&Subspace::span(read.lanes.iter().copied()));
    let filling: Vec<u64> = both.basis().chain(lanes()).chain(units()).collect();
    low.extend_to(word_bits, filling.iter().copied());
    let word = &low.vectors[..low.vectors.len().min(word_bits as usize)];

    // What a pass touches; the segment must meet neither.
    let touched = |access: &Footprint| {
        let all = word.iter().chain(&access.vector).chain(&access.lanes);
        Subspace::span(all.copied())
    };
    let (touched_write, touched_read) = (touched(write), touched(read));
    let common = touched_write.intersection(&touched_read);
    // Vectors that extend `common` to what one access touches; the elements of its
    // vector come first, to be paired first.
    let alone = |access: &Footprint| {
        let mut seen = common.clone();
        let touched = access.vector.iter().chain(&access.lanes).copied();
        touched.filter(|&vector| seen.insert(vector)).collect::<Vec<u64>>()
    };
    let (only_write, only_read) = (alone(write), alone(read));
    let pairs = only_write.iter().zip(&only_read).map(|(one, other)| one ^ other);

    let segment_bits = tile_bits.saturating_sub(row_bits(shared).max(low.vectors.len() as u32));
    let mut outside = touched_write.sum(&touched_read);
    let untouched: Vec<u64> = units().filter(|&unit| outside.insert(unit)).collect();
    let leftover_write = only_write.iter().skip(only_read.len()).copied();
    let leftover_read = only_read.iter().skip(only_write.len()).copied();

    // A segment vector must also leave the lowest bits independent, so both are grown in one basis.
    let mut segment = low.clone();
    let low_count = low.vectors.len();
    let wanted = low_count as u32 + segment_bits;
    segment.extend_to(wanted, untouched.iter().copied().rev());
    segment.extend_to(wanted, pairs);
    // From here conflicts are inevitable; first those that only one access meets.
    segment.extend_to(wanted, leftover_write.chain(leftover_read));
    segment.extend_to(wanted, units().rev());

    // Between them the banks, along lanes where possible: then lanes start at aligned addresses.
    let mut all = segment.clone();
    all.extend(lanes().chain(units()));
    let mut basis = low.vectors;
    basis.extend_from_slice(&all.vectors[segment.vectors.len()..]);
    basis.extend_from_slice(&segment.vectors[low_count..]);
    Ok(basis)
}

/// Vectors none of which is a xor of others.
#[derive(Clone)]
struct Independent {
    vectors: Vec<u64>,
    span: Subspace,
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

/// The byte addresses of the lanes and the bits of the vector, where `memory` keeps the vector whole.
fn place_access(
    memory: &LinearLayout,
    shared: SharedMemory,
    access: Access<'_>,
) -> Result<(LaneBytes, u32), LinearError> {
    let vector_bits = check_width(shared, access)?;
    let placed = memory.compose(access.layout)?;
    if placed.outputs().iter().any(|group| group.dim != Dim::Offset) {
        return Err(LinearError::UnknownDim { dim: Dim::Offset });
    }
    let vector = placed.columns(Dim::Register).iter().take(vector_bits as usize);
    if let Some((bit, column)) = vector.enumerate().find(|&(bit, &column)| column != 1 << bit) {
        let reason = format!(
            "register {} of a vector lies {column} elements from register 0; it must lie {} from it, so narrow the \
             access",
            1u64 << bit,
            1u64 << bit
        );
        return Err(LinearError::BadAccess { reason });
    }
    let lanes = LaneBytes::new(placed.columns(Dim::Lane), shared.element_bytes)?;
    lanes.check_alignment(access.width)?;
    Ok((lanes, vector_bits))
}

fn passes(
    layout: &LinearLayout,
    shared: SharedMemory,
    access: Access<'_>,
) -> Result<Wavefronts, LinearError> {
    let placed = layout.compose(access.layout)?;
    linear_wavefronts(&placed, shared.element_bytes, access.width, shared.banks)
}
