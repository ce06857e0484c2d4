//! Decides which pictures the gallery shows and how each is made. Knows nothing of files. Invariants: the names are
//! different and fit file names; an exhibit's expression is what its picture shows.

use super::{BankAccess, Banks, Picture};
use crate::error::Result;
use crate::layout::Layout;
use crate::linear::{MatrixShape, Operand, WmmaGeneration, mfma, mma_sync, wgmma_accumulator, wmma};
use crate::movement::Movement;
use crate::partition::PartitionView;
use crate::program::ViewProgram;
use crate::swizzle::{Swizzle, SwizzledLayout};
use crate::view::{Fill, Threads, View};
use alloc::vec::Vec;

/// One picture of the gallery.
///
/// ```
/// let exhibits = tile_layout::picture::gallery()?;
/// assert_eq!((exhibits[0].name, exhibits[0].expression), ("row-major", "Layout::row_major([4, 8])"));
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exhibit {
    /// In lower case with hyphens: the name of its file.
    pub name: &'static str,
    /// A heading.
    pub title: &'static str,
    /// What there is to see.
    pub caption: &'static str,
    /// What is drawn, in Rust.
    pub expression: &'static str,
    /// The picture.
    pub picture: Picture,
}

const ROW_MAJOR_BANKS: &str = "\
let lanes = (0..32).map(|lane| (lane % 16, lane / 16 * 8)).collect();
let ldmatrix = BankAccess { lanes, width: 16 };
let tile = Layout::row_major([16, 64])?;
Picture::banks(&tile, &Banks::new(2).columns_per_cell(8).accessed(ldmatrix))";

const SWIZZLED_BANKS: &str = "\
let swizzle = Swizzle::new(3, 4, 3)?.recast(8, 16)?;
let tile = SwizzledLayout::new(swizzle, 0, Layout::row_major([16, 64])?)?;
Picture::banks(&tile, &Banks::new(2).columns_per_cell(8).accessed(ldmatrix))";

const JOINED: &str = "\
let first = ViewProgram::row_major(0, &[4, 4])?;
let second = ViewProgram::row_major(1, &[4, 3])?;
ViewProgram::cat(&[first, second.flip(&[0])?], 1)?.pad(&[Some((0, 1)), None])";

/// What a 16 × 16 `ldmatrix` of 16-bit elements reads: lane `i` the 16 bytes of row `i mod 16`, the upper lanes
/// of the second eight columns.
fn ldmatrix() -> BankAccess {
    BankAccess { lanes: (0..32).map(|lane| (lane % 16, lane / 16 * 8)).collect(), width: 16 }
}

/// The pictures of the gallery, in the order in which they explain each other.
///
/// # Errors
/// None in practice: every picture is made from constants, and a test makes them all.
///
/// ```
/// let exhibits = tile_layout::picture::gallery()?;
/// assert!(exhibits.iter().any(|exhibit| exhibit.name == "swizzle"));
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
pub fn gallery() -> Result<Vec<Exhibit>> {
    let mut exhibits = Vec::from(layouts()?);
    exhibits.extend(shared_memory()?);
    exhibits.extend(fragments()?);
    exhibits.extend(views()?);
    Ok(exhibits)
}

fn layouts() -> Result<[Exhibit; 7]> {
    let (tile, copies) = (Layout::new((2, 4), (4, 1))?, Layout::new((3, 2), (1, 3))?);
    let composed = Layout::new((6, 2), (8, 2))?.compose(Layout::new((4, 3), (3, 1))?)?;
    Ok([
        Exhibit {
            name: "row-major",
            title: "Row-major",
            caption: "The last mode is contiguous: offsets, and with them the colours, run along the rows.",
            expression: "Layout::row_major([4, 8])",
            picture: Picture::layout(&Layout::row_major([4, 8])?)?,
        },
        Exhibit {
            name: "column-major",
            title: "Column-major",
            caption: "The first mode is contiguous: the same shape, running down the columns.",
            expression: "Layout::column_major([4, 8])",
            picture: Picture::layout(&Layout::column_major([4, 8])?)?,
        },
        Exhibit {
            name: "hierarchical",
            title: "Hierarchical",
            caption: "Each mode is a tuple of modes, counted through with its first mode fastest; heavier lines stand \
                      where an inner mode begins anew. Here offsets interleave the bits of row and column.",
            expression: "Layout::new(((2, 2), (2, 4)), ((1, 4), (2, 8)))",
            picture: Picture::layout(&Layout::new(((2, 2), (2, 4)), ((1, 4), (2, 8)))?)?,
        },
        Exhibit {
            name: "zipped-divide",
            title: "Zipped divide",
            caption: "An 8 × 8 matrix cut into tiles of 4 × 4: each column is one tile, each row one place in it.",
            expression: "Layout::row_major([8, 8])?.zipped_divide([4, 4])",
            picture: Picture::layout(&Layout::row_major([8, 8])?.zipped_divide([4, 4])?)?,
        },
        Exhibit {
            name: "blocked-product",
            title: "Blocked product",
            caption: "A 2 × 4 tile repeated 3 × 2 times, each copy a block of its own.",
            expression: "Layout::new((2, 4), (4, 1))?.blocked_product(&Layout::new((3, 2), (1, 3))?)",
            picture: Picture::layout(&tile.blocked_product(&copies)?)?,
        },
        Exhibit {
            name: "raked-product",
            title: "Raked product",
            caption: "The same tile and copies, interleaved: neighbours are the same element of different copies.",
            expression: "Layout::new((2, 4), (4, 1))?.raked_product(&Layout::new((3, 2), (1, 3))?)",
            picture: Picture::layout(&tile.raked_product(&copies)?)?,
        },
        Exhibit {
            name: "composition",
            title: "Composition",
            caption: "One layout read through another: the 4 × 3 indices of the right one pick from the left one, \
                      and the result is a layout again.",
            expression: "Layout::new((6, 2), (8, 2))?.compose(Layout::new((4, 3), (3, 1))?)",
            picture: Picture::layout(&composed)?,
        },
    ])
}

fn shared_memory() -> Result<[Exhibit; 3]> {
    let swizzled =
        |swizzle: Swizzle, extents: [i64; 2]| SwizzledLayout::new(swizzle, 0, Layout::row_major(extents)?);
    let halves = Banks::new(2).columns_per_cell(8).accessed(ldmatrix());
    let in_bytes = Swizzle::new(3, 4, 3)?;
    Ok([
        Exhibit {
            name: "swizzle",
            title: "Swizzle",
            caption: "Row `r` of a row-major matrix with its columns xored by `r`: each colour, a column of memory, \
                      appears once in every row and once in every column.",
            expression: "SwizzledLayout::new(Swizzle::new(3, 0, 3)?, 0, Layout::row_major([8, 8])?)",
            picture: Picture::swizzled(&swizzled(Swizzle::new(3, 0, 3)?, [8, 8])?)?,
        },
        Exhibit {
            name: "banks-row-major",
            title: "Banks of shared memory, row-major",
            caption: "A 16 × 64 tile of 16-bit elements, 16 bytes a cell. An `ldmatrix.x4` of its first 16 columns \
                      finds the rows that it reads at once in the same four banks.",
            expression: ROW_MAJOR_BANKS,
            picture: Picture::banks(&Layout::row_major([16, 64])?, &halves)?,
        },
        Exhibit {
            name: "banks-swizzled",
            title: "Banks of shared memory, swizzled",
            caption: "The same tile and access through `Sw<3,4,3>`, which counts bytes: eight lanes, served at once, \
                      find their rows in eight different groups of banks.",
            expression: SWIZZLED_BANKS,
            picture: Picture::banks(&swizzled(in_bytes.recast(8, 16)?, [16, 64])?, &halves)?,
        },
    ])
}

fn fragments() -> Result<[Exhibit; 6]> {
    let half = MatrixShape { m: 16, n: 8, k: 16 };
    let of_mma = |operand: Operand| Picture::threads(&mma_sync(half, 16, operand)?);
    let square = mfma(MatrixShape { m: 32, n: 32, k: 8 }, 16, Operand::Accumulator)?;
    let replicated = wmma(WmmaGeneration::Gfx11, 16, Operand::A)?;
    Ok([
        Exhibit {
            name: "mma-m16n8k16-a",
            title: "mma.sync m16n8k16, A",
            caption: "Four neighbouring lanes hold eight elements of a row; each quadrant is one pair of values of every lane.",
            expression: "mma_sync(MatrixShape { m: 16, n: 8, k: 16 }, 16, Operand::A)",
            picture: of_mma(Operand::A)?.with_title("mma.sync m16n8k16, A (16-bit elements)"),
        },
        Exhibit {
            name: "mma-m16n8k16-b",
            title: "mma.sync m16n8k16, B",
            caption: "As A, with rows and columns exchanged.",
            expression: "mma_sync(MatrixShape { m: 16, n: 8, k: 16 }, 16, Operand::B)",
            picture: of_mma(Operand::B)?.with_title("mma.sync m16n8k16, B (16-bit elements)"),
        },
        Exhibit {
            name: "mma-m16n8k16-d",
            title: "mma.sync m16n8k16, accumulator",
            caption: "Two accumulators side by side are held like A, so the result of one product can be a factor of \
                      the next without a shuffle.",
            expression: "mma_sync(MatrixShape { m: 16, n: 8, k: 16 }, 16, Operand::Accumulator)",
            picture: of_mma(Operand::Accumulator)?.with_title("mma.sync m16n8k16, accumulator"),
        },
        Exhibit {
            name: "wgmma-m64n16-d",
            title: "wgmma m64n16, accumulator",
            caption: "Four warps, told apart by their shades, hold 16 rows each.",
            expression: "wgmma_accumulator(16)",
            picture: Picture::threads(&wgmma_accumulator(16)?)?.with_title("wgmma m64n16, accumulator"),
        },
        Exhibit {
            name: "mfma-32x32x8-d",
            title: "MFMA 32 × 32 × 8, accumulator",
            caption: "A lane of 64 holds one column in groups of four rows; the two halves of the wave alternate.",
            expression: "mfma(MatrixShape { m: 32, n: 32, k: 8 }, 16, Operand::Accumulator)",
            picture: Picture::threads(&square)?.with_title("MFMA 32×32×8, accumulator"),
        },
        Exhibit {
            name: "wmma-gfx11-a",
            title: "WMMA of gfx11, A",
            caption: "Both halves of the wave hold all of A: every element has two holders.",
            expression: "wmma(WmmaGeneration::Gfx11, 16, Operand::A)",
            picture: Picture::threads(&replicated)?.with_title("WMMA 16×16×16 of gfx11, A"),
        },
    ])
}

fn views() -> Result<[Exhibit; 5]> {
    let padded =
        View::row_major(&[4, 6])?.flip(&[1])?.pad_with(&[Some((1, 1)), Some((2, 0))], Fill::from(-1))?;
    let rolled = ViewProgram::row_major(0, &[6, 8])?.roll(&[2, 3], &[0, 1])?;
    let (first, second) = (ViewProgram::row_major(0, &[4, 4])?, ViewProgram::row_major(1, &[4, 3])?);
    let joined = ViewProgram::cat(&[first, second.flip(&[0])?], 1)?.pad(&[Some((0, 1)), None])?;
    let edge = PartitionView::new(View::row_major(&[10, 14])?, &[4, 8])?.tile(&[2, 1])?;
    let quads = Threads::new(Layout::row_major([4, 2])?);
    Ok([
        Exhibit {
            name: "view-padded-flipped",
            title: "A padded and flipped view",
            caption: "The columns run backwards, and the border is filled: nothing has been copied.",
            expression: "View::row_major(&[4, 6])?.flip(&[1])?.pad_with(&[Some((1, 1)), Some((2, 0))], Fill::from(-1))",
            picture: Picture::view(&padded)?,
        },
        Exhibit {
            name: "program-rolled",
            title: "A rolled program",
            caption: "Rolling by two rows and three columns takes four views of one source.",
            expression: "ViewProgram::row_major(0, &[6, 8])?.roll(&[2, 3], &[0, 1])",
            picture: Picture::program(&rolled)?,
        },
        Exhibit {
            name: "program-joined",
            title: "A program of two sources",
            caption: "Two tensors side by side, the second upside down, and a row of padding below.",
            expression: JOINED,
            picture: Picture::program(&joined)?,
        },
        Exhibit {
            name: "partition-edge",
            title: "The last tile of a partition",
            caption: "A 10 × 14 tensor in tiles of 4 × 8: the tile in the corner has only 2 × 6 elements of its own.",
            expression: "PartitionView::new(View::row_major(&[10, 14])?, &[4, 8])?.tile(&[2, 1])",
            picture: Picture::view(&edge)?,
        },
        Exhibit {
            name: "threads-distributed",
            title: "A tensor dealt out to threads",
            caption: "Eight threads in four rows of two own every fourth row and every second column.",
            expression: "Picture::distributed(&[8, 8], &Threads::new(Layout::row_major([4, 2])?))",
            picture: Picture::distributed(&[8, 8], &quads)?,
        },
    ])
}
