//! Decides how many elements one memory instruction of a lane may move. Knows nothing of banks or of which
//! instruction it is. Invariant: the answer is a power of two, at least 1.

use super::matrix::low_bits;
use super::{Dim, LinearError, LinearLayout};

/// The widest access of one lane on the GPUs known here.
const WIDEST_BITS: u32 = 128;

/// How many elements a lane may move at once along `contiguous`, an output dimension of the layout: `2^n` where
/// the first `n` register bits choose the neighbours 1, 2, 4, … along it and nothing else, and no other bit moves
/// within these neighbours, so that every vector begins at a multiple of its own width and is in order.
///
/// `max_bits` is the alignment of the base address in bits, or the widest access wanted; 128 is the limit anyway.
///
/// # Errors
/// [`LinearError::UnknownDim`] where the layout has no such output, [`LinearError::NotPowerOfTwo`] for
/// `element_bits`.
///
/// ```
/// use tile_layout::linear::{Dim, LinearLayout, vector_width};
/// let layout = LinearLayout::new(
///     &[(Dim::Register, &[[0, 1], [0, 2], [1, 0]]), (Dim::Lane, &[[0, 4], [2, 0]])],
///     [(Dim::Axis(0), 4), (Dim::Axis(1), 8)],
/// )?;
/// assert_eq!(vector_width(&layout, Dim::Axis(1), 16, 128)?, 4);
/// assert_eq!(vector_width(&layout, Dim::Axis(1), 16, 32)?, 2);
/// assert_eq!(vector_width(&layout, Dim::Axis(0), 16, 128)?, 1);
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
pub fn vector_width(
    layout: &LinearLayout,
    contiguous: Dim,
    element_bits: u32,
    max_bits: u32,
) -> Result<u32, LinearError> {
    if !element_bits.is_power_of_two() {
        return Err(LinearError::NotPowerOfTwo { what: "the element width", value: u64::from(element_bits) });
    }
    if !layout.outputs().iter().any(|group| group.dim == contiguous) {
        return Err(LinearError::UnknownDim { dim: contiguous });
    }
    let fitting = max_bits.min(WIDEST_BITS) / element_bits;
    let neighbours = layout
        .columns(Dim::Register)
        .iter()
        .enumerate()
        .take_while(|&(bit, &column)| {
            column.is_power_of_two() && layout.output_coordinate(column, contiguous) == 1 << bit
        })
        .count() as u32;
    let offsets =
        layout.matrix().columns().iter().map(|&column| layout.output_coordinate(column, contiguous));
    // Those of the neighbours themselves are the powers of two below, one each.
    let aligned = |&count: &u32| {
        let low = low_bits(count);
        offsets.clone().filter(|offset| offset & low != 0).count() == count as usize
    };
    let neighbours = (0..=neighbours).rev().find(aligned).unwrap_or(0);
    Ok(1 << neighbours.min(fitting.checked_ilog2().unwrap_or(0)))
}
