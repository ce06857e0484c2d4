//! Matrices in shared memory that descriptors of `wgmma` and `tcgen05` name: how they lie there (PTX ISA, "Canonical
//! Layouts" of either chapter, which are the same), and what they hold.
//!
//! How a descriptor's bits name one is each instruction's own.

use super::Matrix;
use crate::simt::block::Block;
use crate::simt::fault::Problem;
use crate::simt::flight::Piece;
use crate::simt::format::Format;
use crate::simt::host_module::WINDOW;
use crate::simt::instruction::Call;

/// The dimension whose elements follow each other in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Major {
    K,
    /// Rows of A, columns of B.
    Other,
}

/// A matrix in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub(super) start: u64,
    pub(super) leading: u64,
    pub(super) stride: u64,
    pub(super) base: u64,
    /// Bytes of the swizzle; 0 for none.
    pub(super) swizzle: u64,
}

impl Descriptor {
    /// The address of the 16 bytes that begin with an element, in the window: of row or column `other`, and `k`, for
    /// elements of so many bytes (PTX ISA, "Canonical Layouts").
    pub(super) fn address(self, major: Major, other: u64, k: u64, bytes: u64) -> u64 {
        let per_piece = 16 / bytes;
        let (leading, stride, span) = (self.leading, self.stride, self.swizzle);
        let offset = match (major, span) {
            (Major::K, 0) => other % 8 * 16 + other / 8 * stride + k / per_piece * leading,
            (Major::K, _) => other % 8 * span + other / 8 * stride + k / per_piece * 16,
            (Major::Other, 0) => other / per_piece * stride + k % 8 * 16 + k / 8 * leading,
            (Major::Other, _) => {
                let piece = other / per_piece;
                let pieces = span / 16;
                piece % pieces * 16 + piece / pieces * leading + k % 8 * span + k / 8 * stride
            }
        };
        let address = self.start + offset;
        let rows = if span == 0 { 0 } else { span / 16 - 1 };
        address ^ (((address >> 7).wrapping_sub(self.base) & rows) << 4)
    }
}

/// Sixteen bytes of a matrix: where they are, and which elements they hold.
pub(super) struct Held {
    address: u64,
    other: usize,
    k: usize,
    along: Major,
}

/// The pieces of so many rows or columns and so much depth.
pub(super) fn pieces(
    block: &Block<'_>,
    leader: u32,
    descriptor: Descriptor,
    major: Major,
    [others, depth]: [usize; 2],
    format: Format,
) -> Vec<Held> {
    let per_piece = 16 / format.bytes();
    let steps = if major == Major::K { [1, per_piece] } else { [per_piece, 1] };
    let mut found = Vec::new();
    for other in (0..others).step_by(steps[0]) {
        for k in (0..depth).step_by(steps[1]) {
            let place = descriptor.address(major, other as u64, k as u64, format.bytes() as u64);
            let address = block.shared_address(leader).wrapping_add(place).wrapping_sub(WINDOW);
            found.push(Held { address, other, k, along: major });
        }
    }
    found
}

/// The matrix that pieces hold; `transposed`: k counts its rows.
pub(super) fn gather(
    pieces: &[Held],
    [rows, columns]: [usize; 2],
    format: Format,
    transposed: bool,
) -> Matrix {
    let mut matrix = Matrix::zero(rows, columns);
    for piece in pieces {
        // SAFETY: the operation that reads these bytes was issued, which found that they are shared memory.
        let bytes = unsafe { std::slice::from_raw_parts(piece.address as *const u8, 16) };
        for (i, element) in bytes.chunks_exact(format.bytes()).enumerate() {
            let (other, k) = match piece.along {
                Major::K => (piece.other, piece.k + i),
                Major::Other => (piece.other + i, piece.k),
            };
            *matrix.at(if transposed { [k, other] } else { [other, k] }) = format.decode(element);
        }
    }
    matrix
}

/// What an operation reads that a call issues, of pieces of its block's shared memory.
///
/// # Errors
/// If some lie outside.
pub(super) fn reads<'p>(
    block: &Block<'_>,
    call: &Call<'_>,
    matrices: impl IntoIterator<Item = &'p Vec<Held>>,
) -> Result<Vec<Piece>, Problem> {
    let pieces = matrices.into_iter().flatten().map(|held| held.address);
    let read = |from: u64| {
        if block.is_own(call.thread, from) {
            return Ok(Piece { from: Some(from), to: None, bytes: 16 });
        }
        let offset = block.offset(call.thread, from);
        Err(Problem::Misuse(format!("its descriptor leads to byte {offset} of shared memory, outside it")))
    };
    pieces.map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(swizzle: u64, leading: u64, stride: u64) -> Descriptor {
        Descriptor { start: 0, leading, stride, base: 0, swizzle }
    }

    /// The worked examples of the manual's section, before the swizzle, element by element.
    #[test]
    fn canonical_layouts_of_the_manual() {
        // K-major, no swizzle, tf32: ((8,2),(4,4)):((4,32),(1,64)).
        let plain = descriptor(0, 64 * 4, 32 * 4);
        for (other, k) in [(0, 0), (3, 4), (9, 8), (15, 12)] {
            let expected = other % 8 * 4 + other / 8 * 32 + k / 4 * 64;
            assert_eq!(plain.address(Major::K, other, k, 4), expected * 4);
        }
        // K-major, 32 bytes, tf32: ((8,2),(4,4)):((8,64),(1,4)).
        let narrow = descriptor(32, 16, 64 * 4);
        for (other, k) in [(0, 0), (3, 4), (9, 4), (12, 0)] {
            let linear = (other % 8 * 8 + other / 8 * 64 + k) * 4;
            assert_eq!(narrow.address(Major::K, other, k, 4), linear ^ (linear >> 7 & 1) << 4);
        }
        // MN-major, no swizzle, bf16: ((8,1,2),(8,2)):((1,8,64),(8,128)).
        let plain = descriptor(0, 128 * 2, 64 * 2);
        for (other, k) in [(0, 0), (8, 3), (0, 9), (8, 15)] {
            let expected = other / 8 * 64 + k % 8 * 8 + k / 8 * 128;
            assert_eq!(plain.address(Major::Other, other, k, 2), expected * 2);
        }
        // MN-major, 64 bytes, bf16: ((8,4,2),(8,2)):((1,8,256),(32,512)).
        let wide = descriptor(64, 256 * 2, 512 * 2);
        for (other, k) in [(0, 0), (24, 3), (32, 9), (56, 15)] {
            let linear = (other / 8 % 4 * 8 + other / 32 * 256 + k % 8 * 32 + k / 8 * 512) * 2;
            assert_eq!(wide.address(Major::Other, other, k, 2), linear ^ (linear >> 7 & 3) << 4);
        }
    }

    /// The pattern of the swizzle may begin at any 128-byte row: the base offset is that row's number modulo eight.
    #[test]
    fn a_pattern_may_begin_anywhere() {
        for base in 0..8u64 {
            let start = 4096 + base * 128;
            let tile = Descriptor { start, base, ..descriptor(128, 16, 1024) };
            for row in 0..8 {
                for piece in 0..8 {
                    let expected = start + row * 128 + (piece ^ row) * 16;
                    // Pieces change places within rows of 128 bytes of memory.
                    assert_eq!(tile.address(Major::K, row, piece * 8, 2), expected);
                }
            }
        }
    }
}
