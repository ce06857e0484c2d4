//! Right factors that consumers bring to shared memory: of products by warpgroups, which take a right factor from nowhere
//! else, where threads compute it, carry it from turn to turn, or use what was loaded for something else besides.
//!
//! Consumers write such a tile where and as a copy would have left it ([`SharedTile`]), wait for each other, and multiply. Where
//! there is room it has two stages: one is written while the product of the turn before reads the other, and consumers wait for
//! each other once a turn. Memory that threads wrote is told to the tensor cores by a fence ("Async proxy" in the PTX ISA).

use super::super::products::extents;
use super::super::{LaidOut, dtype_of};
use super::shared_tile::{Major, SharedTile};
use super::{Pipelines, TILE_ALIGNMENT};
use crate::dtype::DType;
use crate::gpu::exchange::swizzled::{MatrixMove, WIDEST, order_led_by, slot_in};
use crate::kernel::{Kernel, OpId, RegionId};
use crate::target::TargetDesc;
use tile_layout::linear::Distribution;

/// Bytes of the elements that consumers bring: instructions take those in either direction.
const ELEMENT_BYTES: u64 = 2;

/// The most stages.
const STAGES: u64 = 2;

/// A right factor that consumers bring to shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BroughtRight {
    /// The product.
    pub product: OpId,
    /// The region in which that stands, whose turns take the stages in order.
    pub home: RegionId,
    /// How many stages it has: 1 or 2.
    pub stages: u64,
    /// Where the first begins in shared memory, a multiple of the pattern of its swizzle. The second follows.
    pub place: u64,
    /// Bytes of a stage.
    pub stage_bytes: u64,
    /// How it lies there and how it is written, which follows from where its elements lie before.
    pub written: Option<Written>,
}

/// How a right factor is written to shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// How it lies there: its rows are those of the factor, or its columns.
    pub tile: SharedTile,
    /// The direction in which its elements follow each other.
    pub major: Major,
    /// What an instruction of a thread or a warp writes.
    pub by: WrittenBy,
}

/// What writes the elements that threads hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrittenBy {
    /// Matrix stores.
    Matrices(MatrixMove),
    /// Each thread some that follow each other.
    Runs(Runs),
}

/// Elements that a thread holds and that follow each other in shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runs {
    /// Which bits of a slot's number count them, lowest first, and then the other bits.
    bits: Vec<usize>,
    /// How many of these count a run.
    length: usize,
}

impl Runs {
    /// The longest runs along an axis that one instruction writes.
    fn along(axis: usize, tile: &Distribution, dtype: DType) -> Runs {
        let most = (WIDEST / dtype.bytes() as u64).ilog2();
        let rank = tile.shape().len();
        let along = |bit: u32| (0..rank).map(|i| if i == axis { 1 << bit } else { 0 }).collect();
        let (bits, length) = order_led_by(tile, (0..most).map(along));
        Runs { bits, length }
    }

    /// The elements of a run.
    pub fn count(&self) -> u64 {
        1 << self.length
    }

    /// The slots of each run, in order.
    pub fn slots(&self) -> Vec<Vec<u64>> {
        let slots: Vec<u64> = (0..1 << self.bits.len()).map(|number| slot_in(&self.bits, number)).collect();
        slots.chunks(self.count() as usize).map(<[u64]>::to_vec).collect()
    }
}

impl BroughtRight {
    /// The end of its shared memory.
    fn end(&self) -> u64 {
        self.place + self.stages * self.stage_bytes
    }
}

/// Whether the right factor of a product of matrices is of a format and of extents that consumers can bring.
pub(super) fn can_be_brought(kernel: &Kernel, product: OpId, target: &TargetDesc) -> bool {
    !target.has_tensor_memory() && !tiles(kernel, product).is_empty()
}

/// The tiles in shared memory that a product's right factor may be, along its depth first.
fn tiles(kernel: &Kernel, product: OpId) -> Vec<(Major, SharedTile)> {
    let data = kernel.op(product);
    let [_, columns, depth] = extents(kernel, data);
    let bytes = dtype_of(kernel, data.operands[1]).bytes() as u64;
    if bytes != ELEMENT_BYTES || !columns.is_power_of_two() || !depth.is_power_of_two() {
        return Vec::new();
    }
    let along_depth = (Major::Depth, SharedTile::of(columns, depth, bytes, ""));
    let across = (Major::Other, SharedTile::of(depth, columns, bytes, ""));
    [along_depth, across].into_iter().filter_map(|(major, tile)| Some((major, tile.ok()?))).collect()
}

/// The right factors of these products, placed from 0 on, in a block that may have so much shared memory for them and for
/// rings.
pub(super) fn place(kernel: &Kernel, products: &[OpId], available: u64) -> Vec<BroughtRight> {
    let bytes = |product: OpId| {
        let (_, tile) = tiles(kernel, product)[0];
        tile.bytes().next_multiple_of(TILE_ALIGNMENT)
    };
    let stage_bytes: u64 = products.iter().map(|&product| bytes(product)).sum();
    // Rings keep half of what there is.
    let stages = if 2 * STAGES * stage_bytes <= available { STAGES } else { 1 };
    let mut place = 0;
    let brought = |&product: &OpId| {
        let home = kernel.region_of(product).expect("a product stands in a region");
        let (stage_bytes, begin) = (bytes(product), place);
        place += stages * stage_bytes;
        BroughtRight { product, home, stages, place: begin, stage_bytes, written: None }
    };
    products.iter().map(brought).collect()
}

/// Where the last of these ends.
pub(super) fn bytes(brought: &[BroughtRight]) -> u64 {
    brought.last().map_or(0, BroughtRight::end)
}

impl Pipelines {
    /// The right factors that consumers bring to shared memory.
    pub fn brought_right(&self) -> &[BroughtRight] {
        &self.brought
    }

    /// The number of a product's right factor among those that consumers bring.
    pub fn brought_right_for(&self, product: OpId) -> Option<usize> {
        self.brought.iter().position(|brought| brought.product == product)
    }

    /// Finds how right factors are written that consumers bring, of which it is now known where their elements lie.
    pub(super) fn find_written(&mut self, laid_out: &LaidOut, target: &TargetDesc) {
        for brought in &mut self.brought {
            let right = laid_out.instance.op(brought.product).operands[1];
            let (place, dtype) = (&laid_out.distributions[&right], dtype_of(&laid_out.instance, right));
            brought.written =
                Written::best(&tiles(&laid_out.instance, brought.product), place, dtype, target);
        }
    }
}

impl Written {
    /// The byte at which the element of a depth and a column lies, from the first on: linear over GF(2) in the bits of both.
    pub fn byte(&self, depth: u64, column: u64) -> u64 {
        match self.major {
            Major::Depth => self.tile.place(column, depth),
            Major::Other => self.tile.place(depth, column),
        }
    }

    /// The way with the widest writes: each thread's of 16 bytes, else matrix stores, else what threads have.
    fn best(
        tiles: &[(Major, SharedTile)],
        place: &Distribution,
        dtype: DType,
        target: &TargetDesc,
    ) -> Option<Written> {
        let matrices = if target.matrix_stores && place.copies() == 0 {
            MatrixMove::all(place, dtype)
        } else {
            Vec::new()
        };
        let ways = tiles.iter().map(|&(major, tile)| {
            // Of a right factor the first axis is the depth.
            let axis = if major == Major::Depth { 0 } else { 1 };
            let runs = Runs::along(axis, place, dtype);
            let stores = matrices.iter().find(|one| one.runs_along(axis)).cloned();
            let is_widest = runs.count() == WIDEST / dtype.bytes() as u64;
            let (width, by) = match stores {
                Some(stores) if !is_widest => (WIDEST, WrittenBy::Matrices(stores)),
                _ => (dtype.bytes() as u64 * runs.count(), WrittenBy::Runs(runs)),
            };
            (width, Written { tile, major, by })
        });
        // Of equals the first.
        ways.reduce(|best, other| if other.0 > best.0 { other } else { best }).map(|(_, written)| written)
    }
}
