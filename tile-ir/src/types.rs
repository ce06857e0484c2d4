//! Types of IR values.

use crate::dim::Dim;
use crate::dtype::DType;
use crate::view::Strided;
use std::fmt::{self, Display};

/// An element format: known, or a dtype parameter of a generic kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Elem {
    /// A concrete format.
    Known(DType),
    /// A generic parameter such as `T`, bound when the kernel is specialised.
    Param(String),
}

impl Elem {
    /// The concrete format, if it is known.
    pub fn known(&self) -> Option<DType> {
        match self {
            Elem::Known(dtype) => Some(*dtype),
            Elem::Param(_) => None,
        }
    }
}

impl From<DType> for Elem {
    fn from(dtype: DType) -> Elem {
        Elem::Known(dtype)
    }
}

/// A dense array of compile-time extents, held by one block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TileType {
    /// Extents, outermost axis first. Each is static: see [`Dim::is_static`].
    pub shape: Vec<Dim>,
    /// Element format.
    pub elem: Elem,
}

/// A kernel argument in memory, or a view of one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Extents, outermost axis first.
    pub extents: Vec<Dim>,
    /// Element format.
    pub elem: Elem,
    /// Whether the kernel may write it (`&mut`).
    pub mutable: bool,
    /// Where the elements lie; `None` is dense and row-major, and of an argument also aligned. An argument has only what
    /// [`ArgumentLayout`](crate::view::ArgumentLayout) makes.
    pub layout: Option<Box<Strided>>,
}

impl TensorType {
    /// A dense, row-major tensor.
    pub fn dense(extents: Vec<Dim>, elem: impl Into<Elem>, mutable: bool) -> TensorType {
        TensorType { extents, elem: elem.into(), mutable, layout: None }
    }

    /// Where the elements lie.
    pub fn strided(&self) -> Strided {
        self.layout.as_deref().cloned().unwrap_or_else(|| Strided::row_major(&self.extents))
    }

    /// Every extent that the type names.
    pub fn dims(&self) -> impl Iterator<Item = &Dim> {
        self.extents.iter().chain(self.layout.iter().flat_map(|layout| layout.dims()))
    }
}

/// A tensor cut into tiles: tile `i` along an axis covers elements `i*step .. i*step + tile`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionType {
    /// The tensor that is cut.
    pub tensor: TensorType,
    /// Tile extents, one per axis of the tensor.
    pub tile: Vec<Dim>,
    /// From the first element of a tile to that of the next, per axis; the tile extents where tiles stand side
    /// by side.
    pub steps: Vec<Dim>,
    /// Axes along which a block has all tiles, in ascending order; of a tensor that is written.
    pub spanned: Vec<usize>,
}

impl PartitionType {
    /// The number of tiles along each axis: those that begin inside.
    pub fn index_space(&self) -> Vec<Dim> {
        self.tensor.extents.iter().zip(&self.steps).map(|(extent, step)| extent.ceil_div(step)).collect()
    }

    /// Of a tensor that is written, the blocks along each axis: one for each tile, but one along an axis that is spanned.
    pub fn grid(&self) -> Vec<Dim> {
        let blocks = |(axis, tiles)| if self.spanned.contains(&axis) { Dim::from(1) } else { tiles };
        self.index_space().into_iter().enumerate().map(blocks).collect()
    }

    /// Whether blocks have all tiles along every axis, so that accesses say which they mean.
    pub fn is_spanned(&self) -> bool {
        self.spanned.len() == self.tile.len()
    }

    /// The axes along which an access says the index of its tile: all of a tensor that is read, the spanned ones of one
    /// that is written.
    pub fn indexed_axes(&self) -> Vec<usize> {
        if self.tensor.mutable { self.spanned.clone() } else { (0..self.tile.len()).collect() }
    }

    /// The index that an access gives along an axis, of those that it gives; `None` where it is the block's.
    pub fn index_along<'i, I>(&self, axis: usize, given: &'i [I]) -> Option<&'i I> {
        given.get(self.indexed_axes().iter().position(|&indexed| indexed == axis)?)
    }

    /// The index of a tile along every axis: what an access gives, and the block's own along the other axes.
    ///
    /// # Panics
    /// If `own` is shorter than the tile's rank and an index is missing.
    pub fn tile_index<I: Clone>(&self, own: &[I], given: &[I]) -> Vec<I> {
        let along = |axis| self.index_along(axis, given).unwrap_or_else(|| &own[axis]).clone();
        (0..self.tile.len()).map(along).collect()
    }

    /// The type of one tile.
    pub fn tile_type(&self) -> TileType {
        TileType { shape: self.tile.clone(), elem: self.tensor.elem.clone() }
    }
}

/// The type of an IR value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// One number.
    Scalar(Elem),
    /// A tile.
    Tile(TileType),
    /// A tensor argument.
    Tensor(TensorType),
    /// A partition view of a tensor.
    Partition(PartitionType),
}

impl Type {
    /// `index`, the type of extents and loop counters.
    pub const INDEX: Type = Type::Scalar(Elem::Known(DType::Index));
    /// The type of a condition.
    pub const BOOL: Type = Type::Scalar(Elem::Known(DType::Bool));

    /// A tile type.
    pub fn tile(shape: impl IntoIterator<Item = Dim>, elem: impl Into<Elem>) -> Type {
        Type::Tile(TileType { shape: shape.into_iter().collect(), elem: elem.into() })
    }

    /// A scalar type.
    pub fn scalar(elem: impl Into<Elem>) -> Type {
        Type::Scalar(elem.into())
    }

    /// The element format of a value of this type.
    pub fn elem(&self) -> &Elem {
        match self {
            Type::Scalar(elem) => elem,
            Type::Tile(tile) => &tile.elem,
            Type::Tensor(tensor) => &tensor.elem,
            Type::Partition(partition) => &partition.tensor.elem,
        }
    }

    /// Every extent that the type names.
    pub fn dims(&self) -> Vec<&Dim> {
        match self {
            Type::Scalar(_) => Vec::new(),
            Type::Tile(tile) => tile.shape.iter().collect(),
            Type::Tensor(tensor) => tensor.dims().collect(),
            Type::Partition(view) => view.tensor.dims().chain(&view.tile).chain(&view.steps).collect(),
        }
    }

    /// The same scalar or tile with another element format; views are returned unchanged.
    pub fn with_elem(&self, elem: impl Into<Elem>) -> Type {
        match self {
            Type::Scalar(_) => Type::Scalar(elem.into()),
            Type::Tile(tile) => Type::Tile(TileType { shape: tile.shape.clone(), elem: elem.into() }),
            other => other.clone(),
        }
    }

    /// The tile type, if it is one.
    pub fn as_tile(&self) -> Option<&TileType> {
        match self {
            Type::Tile(tile) => Some(tile),
            _ => None,
        }
    }

    /// The partition type, if it is one.
    pub fn as_partition(&self) -> Option<&PartitionType> {
        match self {
            Type::Partition(partition) => Some(partition),
            _ => None,
        }
    }

    /// Whether this is a tensor that the kernel writes, or a view of one.
    pub fn is_mutable(&self) -> bool {
        match self {
            Type::Tensor(tensor) => tensor.mutable,
            Type::Partition(view) => view.tensor.mutable,
            Type::Scalar(_) | Type::Tile(_) => false,
        }
    }

    /// Whether this is a scalar or a tile: what elementwise ops work on.
    pub fn is_data(&self) -> bool {
        matches!(self, Type::Scalar(_) | Type::Tile(_))
    }
}

fn write_layout(f: &mut fmt::Formatter<'_>, tensor: &TensorType) -> fmt::Result {
    write_product(f, &tensor.extents, &tensor.elem)?;
    match &tensor.layout {
        Some(layout) => {
            f.write_str(", ")?;
            layout.fmt(f)
        }
        None => Ok(()),
    }
}

/// Extents in brackets: `[BM, 64]`.
pub(crate) struct Shape<'d>(pub(crate) &'d [Dim]);

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, dim) in self.0.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { ", " })?;
            dim.fmt(f)?;
        }
        f.write_str("]")
    }
}

/// The axes that blocks span, where there are any: ` spanning [1]`.
pub(crate) struct Spanned<'a>(pub(crate) &'a [usize]);

impl fmt::Display for Spanned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " spanning {:?}", self.0) }
    }
}

fn write_product(f: &mut fmt::Formatter<'_>, dims: &[Dim], elem: &Elem) -> fmt::Result {
    for dim in dims {
        dim.fmt(f)?;
        f.write_str(" x ")?;
    }
    write!(f, "{elem}")
}

impl fmt::Display for Elem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Elem::Known(dtype) => write!(f, "{dtype}"),
            Elem::Param(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for TileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tile<")?;
        write_product(f, &self.shape, &self.elem)?;
        f.write_str(">")
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.mutable { "mut tensor<" } else { "tensor<" })?;
        write_layout(f, self)?;
        f.write_str(">")
    }
}

impl fmt::Display for PartitionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.tensor.mutable { "mut partition<" } else { "partition<" })?;
        write_layout(f, &self.tensor)?;
        f.write_str(", ")?;
        Shape(&self.tile).fmt(f)?;
        if self.steps != self.tile {
            f.write_str(" step ")?;
            Shape(&self.steps).fmt(f)?;
        }
        write!(f, "{}>", Spanned(&self.spanned))
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Scalar(elem) => elem.fmt(f),
            Type::Tile(tile) => tile.fmt(f),
            Type::Tensor(tensor) => tensor.fmt(f),
            Type::Partition(partition) => partition.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_print_as_in_the_text_form() {
        let tensor = TensorType::dense(vec![Dim::size("m"), Dim::from(64)], DType::BF16, true);
        let tile = vec![Dim::param("BM"), Dim::from(64)];
        let mut partition = PartitionType { tensor, steps: tile.clone(), tile, spanned: Vec::new() };
        assert_eq!(partition.to_string(), "mut partition<m x 64 x bf16, [BM, 64]>");
        assert_eq!(partition.tile_type().to_string(), "tile<BM x 64 x bf16>");
        assert_eq!(partition.index_space()[0].to_string(), "ceil_div(m, BM)");
        assert_eq!(partition.index_space()[1].as_const(), Some(1));
        partition.spanned = vec![0];
        assert_eq!(partition.to_string(), "mut partition<m x 64 x bf16, [BM, 64] spanning [0]>");
    }

    #[test]
    fn a_tile_has_the_index_that_is_given_and_the_blocks_own() {
        let view = |mutable, spanned: &[usize]| {
            let extents = [8, 6, 4].map(Dim::from).to_vec();
            let tile = vec![Dim::from(2); 3];
            let tensor = TensorType::dense(extents, DType::F32, mutable);
            PartitionType { tensor, steps: tile.clone(), tile, spanned: spanned.to_vec() }
        };
        let numbers = |dims: Vec<Dim>| dims.iter().map(|dim| dim.as_const().unwrap()).collect::<Vec<_>>();
        let written = view(true, &[0, 2]);
        assert_eq!((numbers(written.index_space()), numbers(written.grid())), (vec![4, 3, 2], vec![1, 3, 1]));
        assert_eq!(written.tile_index(&["own 0", "own 1", "own 2"], &["i", "k"]), ["i", "own 1", "k"]);
        assert_eq!(
            (written.index_along(1, &["i", "k"]), written.index_along(2, &["i", "k"])),
            (None, Some(&"k"))
        );
        assert_eq!(view(true, &[]).tile_index(&[1, 2, 3], &[]), [1, 2, 3]);
        assert_eq!(view(false, &[]).tile_index(&[], &[4, 5, 6]), [4, 5, 6]);
    }
}
