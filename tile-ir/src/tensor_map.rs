//! Tensors as boxes of them are copied by one instruction: what a schedule wants of them, and the numbers that a driver
//! makes a *tensor map* of at a launch.
//!
//! A [`TensorMap`] is part of compiled code: its extents are in a launch's run-time sizes. [`bind`] gives the
//! [`BoundMap`] of each, checked for what a driver demands, so that encoding one can't fail for reasons of the program's.
//! Axes are in the order in which PTX counts dimensions: that whose elements follow each other in memory is first.

use crate::abi::{Argument, KernelAbi};
use crate::dim::{Dim, DimError};
use crate::dtype::DType;
use std::fmt;

/// Bytes of an encoded map, as a kernel has it for a parameter.
pub const TENSOR_MAP_BYTES: usize = 128;

/// Alignment of an encoded map.
pub const TENSOR_MAP_ALIGNMENT: usize = 64;

/// Most axes of a map.
pub const MOST_AXES: usize = 5;

/// What addresses, strides and the first extents of boxes are multiples of, in bytes.
pub(crate) const PIECE: u64 = 16;

/// Strides are less, in bytes.
const STRIDE_LIMIT: u64 = 1 << 40;

/// The largest extent of a tensor: a box is told where it begins in 31 bits, of which the last number is outside. Drivers
/// accept 2³².
const MOST_EXTENT: u64 = (1 << 31) - 1;

/// The largest extent of a box.
pub(crate) const MOST_TILE: u32 = 256;

/// How 16-byte pieces of a box change places in shared memory (PTX ISA, "Tensor swizzling modes").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Swizzle {
    /// They don't.
    #[default]
    None,
    /// Within 32 bytes.
    Bytes32,
    /// Within 64 bytes.
    Bytes64,
    /// Within 128 bytes.
    Bytes128,
}

impl Swizzle {
    /// Every one.
    pub const ALL: [Swizzle; 4] = [Swizzle::None, Swizzle::Bytes32, Swizzle::Bytes64, Swizzle::Bytes128];

    /// The bytes within which pieces change places; 0 where they don't.
    pub const fn bytes(self) -> u64 {
        match self {
            Swizzle::None => 0,
            Swizzle::Bytes32 => 32,
            Swizzle::Bytes64 => 64,
            Swizzle::Bytes128 => 128,
        }
    }

    /// Where a byte of a box goes, counted from a byte at which the pattern begins: the number of its row of 128 bytes is
    /// xored into the number of its piece.
    #[must_use]
    pub fn apply(self, byte: u64) -> u64 {
        let piece_bits = (self.bytes() / PIECE).max(1).ilog2();
        let [piece, row] = [PIECE, Swizzle::Bytes128.bytes()].map(|bytes| i64::from(bytes.ilog2()));
        let permutation = tile_layout::Swizzle::new(piece_bits.into(), piece, row - piece);
        let permutation = permutation.expect("a row has no more pieces than the pattern has rows");
        permutation.apply(byte.cast_signed()).cast_unsigned()
    }
}

/// A tensor in memory and the box of it that one copy moves: what a runtime makes a driver's tensor map of, at each
/// launch. Elements of a box outside the tensor are read as zero, and aren't written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorMap {
    /// The argument whose memory it is, by its number in [`KernelAbi::arguments`].
    pub argument: usize,
    /// Element format.
    pub elem: DType,
    /// Elements from the argument's first one to the tensor's first one.
    pub offset: Dim,
    /// The axes, that whose elements follow each other in memory first. 1 to 5.
    pub axes: Vec<MapAxis>,
    /// Where the box's bytes lie in shared memory.
    pub swizzle: Swizzle,
}

/// An axis of a [`TensorMap`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MapAxis {
    /// Elements of the tensor.
    pub extent: Dim,
    /// Elements of memory from one to the next; the first axis has 1.
    pub stride: Dim,
    /// Elements of the box.
    pub tile: u32,
}

/// A [`TensorMap`] of one launch: what `cuTensorMapEncodeTiled` is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BoundMap {
    /// Address of the first element.
    pub address: u64,
    /// Element format.
    pub elem: DType,
    /// Elements per axis.
    pub extents: Vec<u64>,
    /// Bytes from an element to the next, of every axis but the first: one less than there are extents.
    pub strides: Vec<u64>,
    /// Elements of the box per axis.
    pub tile: Vec<u32>,
    /// Where the box's bytes lie in shared memory.
    pub swizzle: Swizzle,
}

/// A launch that has no tensor map for an argument.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel `{kernel}` can't copy boxes of `{argument}`: {problem}")]
pub struct MapError {
    /// The kernel.
    pub kernel: String,
    /// The argument.
    pub argument: String,
    /// Why, and what to do.
    pub problem: MapProblem,
}

/// What a driver refuses in a tensor map (CUDA Driver API, `cuTensorMapEncodeTiled`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MapProblem {
    /// A number that has no value.
    #[error(transparent)]
    Dim(#[from] DimError),
    /// An argument that isn't a tensor in memory.
    #[error("argument {0} isn't a tensor; rebuild the program, whose code is damaged")]
    Argument(usize),
    /// Too few or too many axes, or not as many of everything.
    #[error(
        "it has {extents} axes, a box of {tile} and {strides} strides, where 1 to {MOST_AXES} axes have a stride less"
    )]
    Axes {
        /// Axes of the tensor.
        extents: usize,
        /// Axes of the box.
        tile: usize,
        /// Strides.
        strides: usize,
    },
    /// A first element that isn't aligned.
    #[error("its first element is at address {0:#x}, which isn't a multiple of {PIECE} bytes; pass it whole")]
    Address(u64),
    /// Rows that aren't aligned, or lie too far apart.
    #[error(
        "neighbours along its axis {axis} (from the innermost) are {bytes} bytes apart, where multiples of {PIECE} bytes below 2⁴⁰ are needed; pad its rows"
    )]
    Stride {
        /// The axis, the innermost one being 0.
        axis: usize,
        /// Its stride.
        bytes: u64,
    },
    /// An axis without elements, or with too many.
    #[error(
        "its axis {axis} (from the innermost) has {extent} elements, where 1 to 2³¹ − 1 are possible; launch it on parts"
    )]
    Extent {
        /// The axis, the innermost one being 0.
        axis: usize,
        /// Its extent.
        extent: u64,
    },
    /// A box that is too large.
    #[error("a box has 1 to {MOST_TILE} elements per axis, not {0}; use smaller tiles")]
    Tile(u32),
    /// A box whose rows don't end with a piece.
    #[error("rows of a box are multiples of {PIECE} bytes, not {0}; use tiles of more columns")]
    Width(u64),
    /// A box whose rows are wider than its swizzle.
    #[error(
        "rows of a box are at most {span} bytes wide if pieces change places within so many, not {width}"
    )]
    SwizzledWidth {
        /// Bytes of a row.
        width: u64,
        /// Bytes of the swizzle.
        span: u64,
    },
}

/// The maps of a launch. `slots` begin with those of the arguments and the run-time sizes, as [`crate::abi`] says.
///
/// # Errors
/// [`MapError`] for the first one that a driver would refuse.
///
/// # Panics
/// If there are fewer slots.
pub fn bind(maps: &[TensorMap], abi: &KernelAbi, slots: &[u64]) -> Result<Vec<BoundMap>, MapError> {
    let sizes = &slots[abi.arguments.len()..];
    let size = |name: &str| {
        let position = abi.sizes.iter().position(|size| size == name)?;
        i64::try_from(sizes[position]).ok()
    };
    let bound = |map: &TensorMap| match abi.arguments.get(map.argument) {
        Some(Argument::Tensor { .. }) => map.bound(&size, slots[map.argument]),
        _ => Err(MapProblem::Argument(map.argument)),
    };
    let refused = |map: &TensorMap, problem: MapProblem| {
        let name = abi.arguments.get(map.argument).map_or("", Argument::name);
        MapError { kernel: abi.kernel.clone(), argument: name.to_owned(), problem }
    };
    maps.iter().map(|map| bound(map).map_err(|problem| refused(map, problem))).collect()
}

impl TensorMap {
    /// The numbers for run-time sizes and the address of the argument's first element.
    ///
    /// A driver knows no axis of 0 elements. A tensor without elements is bound as one element per empty axis, so that
    /// a kernel that takes it can be launched, as a product over no turns is: such a kernel must copy no box of it.
    ///
    /// # Errors
    /// [`MapProblem`] where a number has no value, and as [`BoundMap::check`].
    pub fn bound(&self, sizes: &dyn Fn(&str) -> Option<i64>, address: u64) -> Result<BoundMap, MapProblem> {
        let number = |dim: &Dim| dim.evaluate(sizes).map(|value| value as u64);
        let bytes = |dim: &Dim| {
            let overflow = || DimError::Overflow(dim.to_string());
            number(dim)?.checked_mul(self.elem.bytes() as u64).ok_or_else(overflow)
        };
        let extents = self.axes.iter().map(|axis| number(&axis.extent)).collect::<Result<Vec<_>, _>>()?;
        let strides = self.axes.iter().skip(1).map(|axis| bytes(&axis.stride));
        let (offset, mut strides) = (bytes(&self.offset)?, strides.collect::<Result<Vec<_>, _>>()?);
        if extents.contains(&0) {
            strides.iter_mut().for_each(|stride| *stride = (*stride).max(PIECE));
        }
        let bound = BoundMap {
            address: address.checked_add(offset).ok_or(MapProblem::Address(address))?,
            elem: self.elem,
            extents: extents.into_iter().map(|extent| extent.max(1)).collect(),
            strides,
            tile: self.axes.iter().map(|axis| axis.tile).collect(),
            swizzle: self.swizzle,
        };
        bound.check()?;
        Ok(bound)
    }
}

impl BoundMap {
    /// Whether a driver accepts it (CUDA Driver API, `cuTensorMapEncodeTiled`, of maps without interleaving).
    ///
    /// # Errors
    /// What it doesn't.
    pub fn check(&self) -> Result<(), MapProblem> {
        let [extents, tile, strides] = [self.extents.len(), self.tile.len(), self.strides.len()];
        if !(1..=MOST_AXES).contains(&extents) || tile != extents || strides + 1 != extents {
            return Err(MapProblem::Axes { extents, tile, strides });
        }
        if !self.address.is_multiple_of(PIECE) {
            return Err(MapProblem::Address(self.address));
        }
        for (axis, &bytes) in (1..).zip(&self.strides) {
            if !bytes.is_multiple_of(PIECE) || bytes >= STRIDE_LIMIT {
                return Err(MapProblem::Stride { axis, bytes });
            }
        }
        for (axis, &extent) in self.extents.iter().enumerate() {
            if !(1..=MOST_EXTENT).contains(&extent) {
                return Err(MapProblem::Extent { axis, extent });
            }
        }
        if let Some(&extent) = self.tile.iter().find(|extent| !(1..=MOST_TILE).contains(*extent)) {
            return Err(MapProblem::Tile(extent));
        }
        let (width, span) = (u64::from(self.tile[0]) * self.elem.bytes() as u64, self.swizzle.bytes());
        if !width.is_multiple_of(PIECE) {
            return Err(MapProblem::Width(width));
        }
        if span > 0 && width > span {
            return Err(MapProblem::SwizzledWidth { width, span });
        }
        Ok(())
    }

    /// Bytes of the box.
    pub fn box_bytes(&self) -> usize {
        self.tile.iter().map(|&extent| extent as usize).product::<usize>() * self.elem.bytes()
    }
}

impl fmt::Display for TensorMap {
    /// The text that [`crate::text::parse_tensor_map`] reads:
    /// `argument 0 : bf16 offset 0 [k stride 1 tile 64, m stride k tile 128] swizzle 128`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "argument {} : {} offset {} [", self.argument, self.elem, self.offset)?;
        for (i, MapAxis { extent, stride, tile }) in self.axes.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{extent} stride {stride} tile {tile}")?;
        }
        write!(f, "] swizzle {}", self.swizzle.bytes())
    }
}

#[cfg(test)]
mod tests;
