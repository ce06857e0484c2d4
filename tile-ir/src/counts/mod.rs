//! How much a kernel does: operations by kind and format, and bytes of its tensors that its tiles read and write.
//!
//! [`Counts::of`] walks an instance once. What it keeps are numbers per turn of the loops around them, and the loops'
//! ends as forms of sizes, block indices and outer counters, so that [`Counts::total`] adds up a launch without the
//! kernel. An operation counts for every element of its tile, also of those that a mask leaves out; a byte that is
//! read or written counts where the tensor has it. Tiles that several blocks read count for each.
//!
//! Totals are exact where loops go as far as sizes and indices say and accesses go through partition views. Where data
//! decides (`while`, `if`, gathered indices), or floats do, they are an estimate, which says so ([`Estimate`]).

mod collect;
mod form;
mod operations;
mod spread;
mod sum;

pub use spread::Spread;

use crate::abi::{KernelAbi, LaunchSizes};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::loc::Loc;
use crate::specialize::Instance;
use form::{Form, Forms};
use std::collections::BTreeMap;

/// What a processor does with numbers of one format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// A product that is added to a sum: two floating-point operations, in `mma`, counted in the format of its factors,
    /// and in `mul_add`.
    MultiplyAdd,
    /// Arithmetic that a float pipe does in one instruction.
    Arithmetic,
    /// A function that takes more: exponentials, logarithms, roots, quotients, trigonometry.
    Special,
    /// Integers, comparisons, selections and conversions.
    Other,
}

/// Rows, columns and depth of a product of tiles, how many of them one op does, and the format of the factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProductShape {
    /// Products at once.
    pub batch: u64,
    /// Rows of the result.
    pub m: u64,
    /// Columns of the result.
    pub n: u64,
    /// Terms of a sum.
    pub k: u64,
    /// The format of the factors.
    pub factor: DType,
}

impl ProductShape {
    /// Products that are added to sums.
    pub fn multiply_adds(&self) -> u64 {
        self.batch * self.m * self.n * self.k
    }

    /// Whether it has the extents of another.
    pub fn is_as_large_as(&self, other: &ProductShape) -> bool {
        ProductShape { factor: other.factor, ..*self } == *other
    }
}

/// Something that only data decides, so that a total is an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimate {
    /// A loop whose turns data decides; one turn is counted.
    Turns(Loc),
    /// A branch; of operations that both sides do, the larger number is counted, and of tiles that both read or write one.
    Branch(Loc),
    /// Elements at indices that are data; all are counted.
    Indices(Loc),
    /// A loop of more turns than are gone through, whose work differs from turn to turn, or an end of a loop or an index that
    /// exceeds all numbers.
    TooMany,
    /// Some of a persistent kernel's tiles alone; each is counted as so many of all.
    FirstTiles,
}

/// What is counted, each of it so many times per turn of the loops around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Kind {
    Operation(Operation, DType),
    Product(ProductShape),
    /// Bytes of the argument with this number.
    Read(usize),
    /// Bytes of the argument with this number.
    Written(usize),
    /// Turns of a loop that loads tiles.
    LoadingTurn,
}

/// Where something stands: whether in what is done for each tile of the grid or for each block, and in which loops,
/// outermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Place {
    per_tile: bool,
    loops: Vec<usize>,
}

/// A loop's counter goes from the first form to before the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loop {
    start: Form,
    end: Form,
}

/// Where along an axis of a tensor a tile lies.
#[derive(Clone, Debug, PartialEq)]
struct Axis {
    /// `None` where data decides it.
    index: Option<Form>,
    step: i64,
    tile: i64,
    extent: Dim,
    /// Elements of the argument from one index to the next.
    stride: Dim,
}

/// Whether a product's rows or its columns are those of a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// A tile that is read or written: its bytes are those of its elements that the tensor has.
#[derive(Clone, Debug)]
struct Access {
    place: Place,
    kind: Kind,
    /// Of an element.
    bytes: u64,
    axes: Vec<Axis>,
    /// Which factor of a product in its loop it is.
    factor: Option<Side>,
}

impl Access {
    /// Whether another one is of the same elements, as often.
    fn is_of_same_elements(&self, other: &Access) -> bool {
        let of = |access: &Access| (access.kind, access.bytes);
        of(self) == of(other) && self.place == other.place && self.axes == other.axes
    }
}

/// A tensor argument.
#[derive(Clone, Debug)]
struct Tensor {
    name: String,
    extents: Vec<Dim>,
    strides: Vec<Dim>,
    /// Of an element.
    bytes: u64,
    /// Its position among all arguments.
    argument: usize,
}

/// What a kernel does, as numbers and forms of its sizes.
#[derive(Clone, Debug)]
pub struct Counts {
    /// Tiles along each axis of the grid.
    space: Vec<Dim>,
    forms: Forms,
    loops: Vec<Loop>,
    work: BTreeMap<(Place, Kind), u64>,
    accesses: Vec<Access>,
    tensors: Vec<Tensor>,
    estimates: Vec<Estimate>,
    is_elementwise: bool,
}

/// What a launch reads and writes of one tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorTotal {
    /// The argument.
    pub name: String,
    /// Bytes of its elements; of those that it repeats, once.
    pub bytes: u64,
    /// Bytes that tiles read, each as often as a tile has it.
    pub read: u64,
    /// Bytes that tiles write.
    pub written: u64,
    /// Where its elements lie.
    pub spread: Spread,
}

/// Tiles that are read or written alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileAccess {
    /// Where a tile's elements lie.
    pub spread: Spread,
    /// How many such tiles there are.
    pub count: u64,
    /// Of these, those that the block before has read as well: products' left factors in a row of the grid, and without
    /// products tiles that all blocks read.
    pub repeated: u64,
    /// Blocks of a row of the grid, where those below each other read the same: products' right factors.
    pub row: Option<u64>,
}

/// What all blocks of a launch do.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Totals {
    /// Tiles of the grid that are handled: blocks, but in a persistent kernel.
    pub tiles: u64,
    /// Operations other than products of tiles.
    pub operations: BTreeMap<(Operation, DType), u64>,
    /// How often each shape of product is done.
    pub products: BTreeMap<ProductShape, u64>,
    /// What is read and written of every tensor.
    pub tensors: Vec<TensorTotal>,
    /// Turns of loops that load tiles.
    pub loading_turns: u64,
    /// The tiles that are read and written.
    pub accesses: Vec<TileAccess>,
    /// Whether an element that is stored depends on elements at its place in their tiles alone, so that blocks go through
    /// these once.
    pub is_elementwise: bool,
    /// Bytes at indices that are data, of which nobody knows where they lie.
    pub scattered: u64,
    /// Why the numbers are estimates; empty where they are exact.
    pub estimates: Vec<Estimate>,
}

impl Counts {
    /// Counts what an instance does.
    ///
    /// ```
    /// use tile_ir::{Instance, abi::KernelAbi, counts::Counts};
    /// let source = "\
    /// kernel @double<B>(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {
    ///   %vx = partition %x [B] : partition<n x f32, [B]>
    ///   %vy = partition %y [B] : mut partition<n x f32, [B]>
    ///   %i = block_index %vy : index
    ///   %zero = constant 0.0 : f32
    ///   %t = load_masked %vx[%i] pad %zero : tile<B x f32>
    ///   %d = add %t, %t : tile<B x f32>
    ///   store_masked %vy, %d
    /// }
    /// ";
    /// let instance = Instance::parse(source, &[("B", 64)])?;
    /// let abi = KernelAbi::of(&instance);
    /// let totals = Counts::of(&instance).total(&abi, &abi.bind(&[&[100], &[100]])?);
    /// assert_eq!((totals.read(), totals.written()), (400, 400)); // what the tensors have
    /// assert_eq!(totals.flops(), 128); // of two whole tiles
    /// assert!(totals.is_exact());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(instance: &Instance) -> Counts {
        collect::collect(instance)
    }

    /// What a launch of these sizes does. `abi` is the instance's interface, `bound` of that.
    pub fn total(&self, abi: &KernelAbi, bound: &LaunchSizes) -> Totals {
        sum::total(self, abi, bound)
    }
}

impl Totals {
    /// Whether the numbers are no estimates.
    pub fn is_exact(&self) -> bool {
        self.estimates.is_empty()
    }

    /// Floating-point operations: two of a product that is added to a sum, one of anything else with floats.
    pub fn flops(&self) -> u64 {
        let of_others = |(&(operation, dtype), &count): (&(Operation, DType), &u64)| match operation {
            Operation::MultiplyAdd => count.saturating_mul(2),
            Operation::Arithmetic | Operation::Special if dtype.is_float() => count,
            _ => 0,
        };
        let products = self.products.iter().filter(|(shape, _)| shape.factor.is_float());
        let products = products.map(|(shape, count)| (2 * shape.multiply_adds()).saturating_mul(*count));
        all(self.operations.iter().map(of_others).chain(products))
    }

    /// Bytes that tiles read, each as often as a tile has it.
    pub fn read(&self) -> u64 {
        all(self.tensors.iter().map(|tensor| tensor.read))
    }

    /// Bytes that tiles write.
    pub fn written(&self) -> u64 {
        all(self.tensors.iter().map(|tensor| tensor.written))
    }

    /// Bytes that memory must give and take even if a cache keeps everything: of each tensor no more than it has.
    pub fn compulsory(&self) -> u64 {
        let of = |tensor: &TensorTotal| [tensor.read, tensor.written].map(|bytes| bytes.min(tensor.bytes));
        all(self.tensors.iter().flat_map(of))
    }

    /// [`Totals::compulsory`] of memory that gives and takes lines of so many bytes.
    pub fn compulsory_lines(&self, line: u64) -> u64 {
        let of = |tensor: &TensorTotal| {
            let (bytes, lines) = (tensor.spread.bytes().max(1), tensor.spread.lines(line));
            [tensor.read, tensor.written].map(|moved| {
                let lines = u128::from(moved.min(tensor.bytes)) * u128::from(lines) / u128::from(bytes);
                u64::try_from(lines).unwrap_or(u64::MAX)
            })
        };
        all(self.tensors.iter().flat_map(of))
    }

    /// Bytes that tiles would read and write if all their elements existed, in lines of so many bytes: those that the elements of each tile lie in, an element that repeats once.
    pub fn touched(&self, line: u64) -> u64 {
        self.lines(line, &|access| access.count)
    }

    /// [`Totals::touched`] without the tiles that the block before has read as well. Of what blocks below each other read, a
    /// part counts: of so many bytes of all, for so many blocks of a row.
    pub fn touched_anew(&self, line: u64, part: impl Fn(u64, u64) -> f64) -> u64 {
        self.lines(line, &|access| match access.row {
            Some(row) => {
                let bytes = access.spread.lines(line).saturating_mul(access.count);
                (access.count as f64 * part(bytes, row)) as u64
            }
            None => access.count.saturating_sub(access.repeated),
        })
    }

    /// Bytes that a row of so many blocks of the grid reads, in lines of so many bytes, of what blocks below each other read as
    /// well: products' right factors.
    pub fn of_row(&self, line: u64, blocks: u64) -> u64 {
        let of = |access: &TileAccess| {
            let bytes = access.spread.lines(line).saturating_mul(access.count);
            access.row.map_or(0, |row| bytes.saturating_mul(row) / blocks.max(1))
        };
        all(self.accesses.iter().map(of))
    }

    fn lines(&self, line: u64, count: &dyn Fn(&TileAccess) -> u64) -> u64 {
        let lines = |access: &TileAccess| access.spread.lines(line).saturating_mul(count(access));
        all(self.accesses.iter().map(lines).chain([self.scattered]))
    }
}

/// The sum, or the largest number.
fn all(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests;
