//! Decides how many passes shared memory needs for one access of a warp, by counting and by rank. Knows nothing
//! of tiles: it sees addresses. Invariant: both ways agree wherever both apply.
//!
//! Memory is 4-byte words dealt to the banks in turn. A pass serves at most a word of each bank, so wide accesses are
//! served in groups of `banks·4 / width` lanes. Within a group a bank serves one word a pass, to any number of lanes.
//! The count of a group is therefore the most distinct words that one bank holds.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use super::{Dim, LinearError, LinearLayout};

/// Bytes of a bank's word.
pub(crate) const WORD_BYTES: u32 = 4;

/// The most banks that shared memory may have.
pub(crate) const MOST_BANKS: u32 = 1024;

/// The passes that an access of a warp takes.
///
/// ```
/// use tile_layout::linear::{Wavefronts, wavefronts};
/// // 32 lanes read a word each, all in bank 0.
/// let column: Vec<u64> = (0..32).map(|lane| lane * 128).collect();
/// assert_eq!(wavefronts(&column, 4, 32), Ok(Wavefronts { count: 32, minimum: 1 }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wavefronts {
    /// The passes taken.
    pub count: u64,
    /// The passes that the same number of distinct words takes at least, however they are placed.
    pub minimum: u64,
}

impl Wavefronts {
    /// Whether no pass is due to the placement of the words.
    ///
    /// ```
    /// use tile_layout::linear::Wavefronts;
    /// assert!(!Wavefronts { count: 8, minimum: 4 }.is_conflict_free());
    /// ```
    pub const fn is_conflict_free(&self) -> bool {
        self.count <= self.minimum
    }
}

/// The passes of one access, where lane `i` moves `width` bytes at byte address `addresses[i]`.
///
/// `width` is 1, 2, 4, 8 or 16; `banks` is a power of two: 32 on NVIDIA and most AMD GPUs, 64 on gfx950.
///
/// # Errors
/// [`LinearError::BadAccess`] for another width, another number of banks, or an address that isn't a multiple of
/// `width`.
///
/// ```
/// use tile_layout::linear::wavefronts;
/// let row: Vec<u64> = (0..32).map(|lane| lane * 4).collect();
/// assert_eq!(wavefronts(&row, 4, 32)?.count, 1);
/// let column: Vec<u64> = (0..32).map(|lane| lane * 128).collect();
/// assert_eq!(wavefronts(&column, 4, 32)?.count, 32);
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
pub fn wavefronts(addresses: &[u64], width: u32, banks: u32) -> Result<Wavefronts, LinearError> {
    let group = check_access(width, banks)?;
    if let Some(lane) = addresses.iter().position(|address| !address.is_multiple_of(u64::from(width))) {
        let address = addresses[lane];
        return Err(LinearError::BadAccess {
            reason: format!(
                "lane {lane} moves {width} bytes at address {address}; align it to {width} bytes"
            ),
        });
    }
    let words_a_lane = u64::from(width.div_ceil(WORD_BYTES));
    let mut total = Wavefronts { count: 0, minimum: 0 };
    for lanes in addresses.chunks(group as usize) {
        let first_words = lanes.iter().map(|address| address / u64::from(WORD_BYTES));
        let mut words: Vec<u64> = first_words.flat_map(|word| word..word + words_a_lane).collect();
        words.sort_unstable();
        words.dedup();
        let mut a_bank = vec![0u64; banks as usize];
        for word in &words {
            a_bank[(word % u64::from(banks)) as usize] += 1;
        }
        total.count += a_bank.iter().copied().max().unwrap_or(0);
        total.minimum += (words.len() as u64).div_ceil(u64::from(banks));
    }
    Ok(total)
}

/// The passes of one access of a linear layout, by rank: every lane moves `width` bytes at its offset.
///
/// The layout maps inputs among which is `Lane` to `Offset`, in elements of `element_bytes`; the other inputs are
/// held at 0. The words that a group of lanes touches form a subspace, and so do their banks: a bank holds
/// `2^(rank of words − rank of banks)` of them.
///
/// # Errors
/// [`LinearError::BadAccess`] as for [`wavefronts`], or where byte offsets don't fit 64 bits;
/// [`LinearError::NotPowerOfTwo`] where `element_bytes` isn't one; [`LinearError::UnknownDim`] for an output other than
/// `Offset`, [`LinearError::MissingDim`] where there is no output.
///
/// ```
/// use tile_layout::linear::{Dim, LinearLayout, linear_wavefronts};
/// // Lane i reads row i of a row-major tile of 32 floats a row.
/// let column = LinearLayout::from_modes(&[(32, 32)])?.rename_input(Dim::Axis(0), Dim::Lane)?;
/// assert_eq!(linear_wavefronts(&column, 4, 4, 32)?.count, 32);
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
pub fn linear_wavefronts(
    layout: &LinearLayout,
    element_bytes: u32,
    width: u32,
    banks: u32,
) -> Result<Wavefronts, LinearError> {
    check_access(width, banks)?;
    if layout.outputs().is_empty() {
        return Err(LinearError::MissingDim { dim: Dim::Offset });
    }
    if let Some(group) = layout.outputs().iter().find(|group| group.dim != Dim::Offset) {
        return Err(LinearError::UnknownDim { dim: group.dim });
    }
    let lanes = LaneBytes::new(layout.columns(Dim::Lane), element_bytes)?;
    lanes.check_alignment(width)?;
    Ok(lanes.wavefronts(width, banks))
}

/// The byte addresses of the lane bits of an access.
pub(super) struct LaneBytes {
    columns: [u64; 64],
    count: usize,
}

impl LaneBytes {
    /// Byte addresses from the element offsets of the lane bits; at most 64 of them.
    pub(super) fn new(offsets: &[u64], element_bytes: u32) -> Result<LaneBytes, LinearError> {
        if !element_bytes.is_power_of_two() {
            let what = "the number of bytes of an element";
            return Err(LinearError::NotPowerOfTwo { what, value: u64::from(element_bytes) });
        }
        let mut columns = [0; 64];
        for (slot, &offset) in columns.iter_mut().zip(offsets) {
            *slot = offset.checked_mul(u64::from(element_bytes)).ok_or_else(|| LinearError::BadAccess {
                reason: format!(
                    "offset {offset} times {element_bytes} bytes exceeds 64 bits; use smaller offsets"
                ),
            })?;
        }
        Ok(LaneBytes { columns, count: offsets.len().min(columns.len()) })
    }

    pub(super) fn columns(&self) -> &[u64] {
        &self.columns[..self.count]
    }

    /// The same lanes at other addresses.
    pub(super) fn map(&self, address: impl Fn(u64) -> u64) -> LaneBytes {
        LaneBytes { columns: self.columns.map(address), count: self.count }
    }

    pub(super) fn check_alignment(&self, width: u32) -> Result<(), LinearError> {
        match self.columns().iter().position(|column| !column.is_multiple_of(u64::from(width))) {
            None => Ok(()),
            Some(bit) => Err(LinearError::BadAccess {
                reason: format!(
                    "lane {} moves {width} bytes at byte offset {}; align it to {width} bytes",
                    1u64 << bit,
                    self.columns[bit],
                ),
            }),
        }
    }

    /// The passes; `width` and `banks` were checked, and the addresses are aligned to `width`.
    pub(super) fn wavefronts(&self, width: u32, banks: u32) -> Wavefronts {
        let group_bits = lanes_a_group(width, banks).ilog2() as usize;
        let (group, others) = self.columns().split_at(group_bits.min(self.count));
        // The words of one lane are a subspace too, because the access is aligned.
        let own_bits = width.div_ceil(WORD_BYTES).ilog2();
        let words = || {
            let lanes = group.iter().map(|column| column / u64::from(WORD_BYTES));
            lanes.chain((0..own_bits).map(|bit| 1 << bit))
        };
        let word_rank = rank(words());
        let bank_rank = rank(words().map(|word| word & u64::from(banks - 1)));
        // Groups differ by a constant word, which permutes banks: all of them take the same passes.
        let groups = others.len() as u32;
        let passes = |bits: u32| 1u64.checked_shl(groups + bits).unwrap_or(u64::MAX);
        Wavefronts {
            count: passes(word_rank - bank_rank),
            minimum: passes(word_rank.saturating_sub(banks.ilog2())),
        }
    }
}

/// Whether memory can serve such an access; the lanes served together.
pub(super) fn check_access(width: u32, banks: u32) -> Result<u32, LinearError> {
    if !matches!(width, 1 | 2 | 4 | 8 | 16) {
        let reason = format!("no lane moves {width} bytes at once; use 1, 2, 4, 8 or 16");
        return Err(LinearError::BadAccess { reason });
    }
    if !banks.is_power_of_two() || banks > MOST_BANKS {
        let reason = format!("shared memory of {banks} banks; use a power of two up to {MOST_BANKS}");
        return Err(LinearError::BadAccess { reason });
    }
    Ok(lanes_a_group(width, banks))
}

/// Lanes that one pass serves: as many as move as much as all banks hold.
pub(super) fn lanes_a_group(width: u32, banks: u32) -> u32 {
    (banks * WORD_BYTES / width.max(WORD_BYTES)).max(1)
}

/// The rank of a few vectors. Unlike a subspace, it keeps no reduced basis: a search calls this for every candidate.
fn rank(vectors: impl Iterator<Item = u64>) -> u32 {
    let mut basis = [0u64; 64];
    let mut count = 0;
    for vector in vectors {
        let mut rest = vector;
        // A vector without one known highest bit fewer is smaller, so the minimum clears that bit.
        for &known in &basis[..count] {
            rest = rest.min(rest ^ known);
        }
        if rest != 0 {
            basis[count] = rest;
            count += 1;
        }
    }
    count as u32
}
