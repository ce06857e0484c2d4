//! The types that a kernel's body is written against: tiles, tensor and partition views, and the functions
//! on them.
//!
//! They evaluate eagerly on [`tile_ir::Array`], so that a kernel is an ordinary Rust function: on
//! [`Device::reference()`](crate::Device::reference) its body runs as it stands, with breakpoints and
//! `dbg!`. That is also the meaning of a kernel; every compiled target is tested against it.
//!
//! | to | there are |
//! |---|---|
//! | cut tensors | [`TensorView`] and [`TensorViewMut`], which arguments are, with their movements ([`TensorView::permute`], [`TensorView::pad`] and others); [`PartitionView`] and [`PartitionViewMut`], which load and store; [`SpanningViewMut`] and [`ViewTileMut`] where a block owns several tiles |
//! | know the block | [`block_id()`], [`block_count()`], [`PartitionViewMut::index`]; [`TilesPersistent`] in the orders [`RowMajor`], [`Grouped`], [`Hilbert`], [`Falling`] |
//! | make tiles | [`Tile::zeros`], [`Tile::full`], [`Tile::iota`], [`Tile::arange`], [`Tile::eye`], [`Tile::from_array`]; [`Tile::random_uniform`], [`Tile::random_uniform_at`] and those beside them, [`RandomDoubles`] of f64 |
//! | compute by element | operators, [`select()`], functions such as [`exp()`], [`max()`] and [`powf()`], comparisons such as [`lt()`]; [`Tile::cast`], [`Tile::bitcast`], [`Tile::mul_add`], [`Tile::lookup`] |
//! | reduce and scan | [`Tile::sum`], [`Tile::max`], [`Tile::argmax`] and the others, [`Tile::cumsum`] and its kin; with a closure [`reduce()`], [`scan()`], [`associative_reduce()`], [`associative_scan()`] |
//! | sort and count | [`Tile::sort`], [`Tile::argsort`], [`Tile::top_k`], [`Tile::histogram`] |
//! | multiply matrices | [`mma()`], [`mma_tf32()`], [`mma_scaled()`]; [`Tile::unpack_f4e2m1`] and [`Tile::pack_f4e2m1`] |
//! | move elements | [`Tile::reshape`], [`Tile::permute`], [`Tile::broadcast`], [`Tile::extract`], [`Tile::gather`], [`Tile::scatter`], [`Tile::roll`], [`cat()`], [`stack()`] |
//! | share memory with other blocks | [`AtomicView`], with the orders [`Relaxed`], [`Acquire`], [`Release`], [`AcqRel`] and the scopes [`BlockScope`], [`DeviceScope`], [`SystemScope`] |
//! | print and assert | [`tile_println!`](crate::tile_println), [`tile_assert!`](crate::tile_assert) |
//! | name formats in generic code | [`Element`], [`Number`], [`Float`], [`Int`], [`Scale`], [`MmaOperand`] |
//!
//! The modules [`beside`], [`either`], [`extent`], [`scalar`], [`totals`] and [`turns`], and traits that aren't named
//! above, are what the attribute's code refers to.
//!
//! Shapes are checked by the front end when the macro expands. The checks here are for code that the front
//! end hasn't seen, such as a unit test that makes tiles by hand; they panic and name the shapes.

// Which file decides what:
//
// | file | decides |
// |---|---|
// | `arena` | how long a value lives |
// | `tile` | `Tile`: making, reshaping and printing |
// | `operators` | `+ - * / % & \| ^ << >>`, `-`, `!` and their assigning forms |
// | `compare` | what may stand on the two sides of a function of two values; comparisons |
// | `composite` | `mean`, `argmax`, `argmin`: methods that are several ops |
// | `contract` | `mma` and the formats that it multiplies |
// | `convert` | casts that round as told, bits, `mul_add`, wrapping and overflowing arithmetic |
// | `functions` | `exp`, `max` and the other leaf ops that are functions, by the op tables |
// | `arguments`, `rotations` | what they take |
// | `choice` | `select()` |
// | `atomics` | `AtomicView`: elements that any block may change |
// | `repeated` | whether a block waits for ever |
// | `axes` | which axes a reduction joins |
// | `reductions` | `sum`, `max`, `any` … and `cumsum`, `cummax` … |
// | `folds` | `reduce()` and `scan`: reductions and scans with a closure |
// | `four_bits` | 4-bit floats, two to a byte |
// | `sorting` | `sort`, `argsort`, `top_k`, `histogram` |
// | `constructors` | ranges, the identity, random numbers |
// | `random_doubles` | `RandomDoubles`: random numbers of f64 |
// | `movement` | windows, joins, pads, turns, changes of rank, gather and scatter |
// | `either` | operators of values that may be tiles or scalars, in a `#[tile_fn]` |
// | `beside` | literals in the format of the value beside them, in a `#[tile_fn]` |
// | `totals` | sums, products, largest and smallest of iterators |
// | `turns` | what of a loop's tiles lives on from turn to turn |
// | `scalar` | arithmetic of integer scalars, which wraps as that of tiles does |
// | `value` | `TileValue`, what variables and the fields of a `TileStruct` hold |
// | `grid` | `block_id` and `block_count` |
// | `persistent` | `TilesPersistent`: tiles that blocks share |
// | `spanning`, `view_tile` | `SpanningViewMut`: blocks that own several tiles, and `ViewTileMut`, one of them |
// | `extent` | sizes and extents as numbers |
// | `cut` | where the elements of a tile lie in the tensor that is cut |
// | `debug` | tiles and views as debuggers print them |
// | `gather` | reading a tensor at tiles of indices |
// | `messages` | `tile_println!` and `tile_assert!` |
// | `view_movement` | views of views: `permute`, `flip`, `pad` and the other movements of tensors |
// | `views` | `TensorView`, `PartitionView` and their mutable forms |

mod arena;
mod arguments;
mod atomics;
mod axes;
pub mod beside;
mod choice;
mod compare;
mod composite;
mod constructors;
mod contract;
mod convert;
mod cut;
mod debug;
pub mod either;
pub mod extent;
mod folds;
mod four_bits;
pub(crate) mod functions;
mod gather;
mod grid;
mod messages;
mod movement;
mod operators;
mod persistent;
mod random_doubles;
mod reductions;
mod repeated;
mod rotations;
pub mod scalar;
mod sorting;
mod spanning;
mod tile;
mod together;
pub mod totals;
pub mod turns;
mod value;
mod view_movement;
mod view_tile;
mod views;

pub use arguments::{FloatValue, IntValue, SignedValue};
pub use atomics::{
    AcqRel, Acquire, AtomicScope, AtomicValue, AtomicView, BlockScope, DeviceScope, LoadOrder, Relaxed,
    Release, StoreOrder, SystemScope, UpdateOrder,
};
pub use axes::Axes;
pub use choice::{Condition, select};
pub use compare::{Pair, eq, ge, gt, le, lt, ne};
pub use contract::{MmaOperand, mma, mma_scaled, mma_tf32};
pub use convert::Operand;
pub use folds::{
    Folded, associative_reduce, associative_scan, associative_scan_exclusive,
    associative_scan_exclusive_reverse, associative_scan_reverse, reduce, scan, scan_exclusive,
    scan_exclusive_reverse, scan_reverse,
};
pub use functions::*;
pub use gather::{GatherIndex, GatherIndices};
pub use grid::{block_count, block_id, in_block};
pub use messages::{Asserted, assert_that, print_line};
pub use movement::{Distance, Squeeze, Unsqueeze, cat, stack};
pub use persistent::{Falling, Grouped, Hilbert, RowMajor, TileOrder, TilesPersistent};
pub use random_doubles::RandomDoubles;
pub use rotations::Rotated;
pub use spanning::SpanningViewMut;
pub use tile::Tile;
pub use tile_runtime::element::{AnyBits, Bits, Element, Float, Int, Number, Scale};
pub use value::TileValue;
pub use view_tile::ViewTileMut;
pub use views::{PartitionView, PartitionViewMut, TensorView, TensorViewMut};
