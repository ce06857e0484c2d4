//! The reference device: a kernel's body as ordinary Rust, block by block on the calling thread.

use crate::error::{Error, Result};
use crate::messages::{self, Sink};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tile_ir::abi::{Bound, Shared};
use tile_ir::schedule::TileOrder;
use tile_layout::multi_index;

/// What a kernel's body sees of a launch: its tensors, and which block it is.
#[derive(Debug)]
pub struct Arguments<'a> {
    pub(crate) arguments: &'a [RawArgument<'a>],
    pub(crate) block: &'a [usize],
    pub(crate) grid: &'a [usize],
    pub(crate) own: &'a OwnTile,
    pub(crate) instance: usize,
}

/// The tile that the running block owns: the one at the block's index, or, of a persistent kernel, one after the
/// other.
#[derive(Debug)]
pub struct OwnTile {
    index: RefCell<Option<Vec<usize>>>,
    /// The block's number, how many blocks there are, and what they share.
    shared: Option<(usize, usize, Shared)>,
}

impl OwnTile {
    /// The tile of a block that has one.
    pub fn at(index: &[usize]) -> OwnTile {
        OwnTile { index: RefCell::new(Some(index.to_vec())), shared: None }
    }

    fn of(number: usize, index: &[usize], bound: &Bound) -> OwnTile {
        match &bound.shared {
            None => OwnTile::at(index),
            Some(shared) => {
                OwnTile { index: RefCell::default(), shared: Some((number, bound.blocks(), shared.clone())) }
            }
        }
    }

    /// Where it is.
    ///
    /// # Panics
    /// Outside of the loop over tiles of a persistent kernel, which in a kernel is a compile error.
    pub fn index(&self) -> Vec<usize> {
        self.index.borrow().clone().expect("the block owns a tile in the loop over `tiles_persistent` only")
    }

    /// Takes the tile of a turn of the block; without one, the block owns none any more.
    ///
    /// # Panics
    /// If the kernel isn't persistent.
    pub fn take_turn(&self, order: TileOrder, turn: usize) -> bool {
        let (number, blocks, shared) =
            self.shared.as_ref().expect("verified: a persistent kernel shares tiles");
        let number = turn.checked_mul(*blocks).and_then(|before| before.checked_add(*number));
        let number = number.filter(|&number| number < shared.tiles);
        self.index.replace(number.map(|number| order.index_of(&shared.space, number)));
        number.is_some()
    }
}

/// An argument without its type.
#[derive(Debug)]
pub(crate) enum RawArgument<'a> {
    Tensor(RawTensor<'a>),
    Scalar { slot: u64, dtype: tile_ir::DType },
}

impl<'a> RawArgument<'a> {
    /// A tensor's extents; none of a number.
    pub(crate) fn shape(&self) -> &'a [usize] {
        match self {
            RawArgument::Tensor(tensor) => tensor.shape,
            RawArgument::Scalar { .. } => &[],
        }
    }

    /// The same argument, a tensor with its shape from elsewhere.
    pub(crate) fn with_shape<'s>(&self, shape: &'s [usize]) -> RawArgument<'s> {
        match *self {
            RawArgument::Tensor(RawTensor { address, dtype, mutable, .. }) => {
                RawArgument::Tensor(RawTensor { address, shape, dtype, mutable })
            }
            RawArgument::Scalar { slot, dtype } => RawArgument::Scalar { slot, dtype },
        }
    }
}

/// A host tensor without its element type. `Launch` keeps the tensor borrowed for as long.
#[derive(Debug)]
pub(crate) struct RawTensor<'a> {
    pub(crate) address: u64,
    pub(crate) shape: &'a [usize],
    pub(crate) dtype: tile_ir::DType,
    pub(crate) mutable: bool,
}

impl<'a> Arguments<'a> {
    fn raw<T: crate::Element>(&self, position: usize) -> &'a RawTensor<'a> {
        let Some(RawArgument::Tensor(raw)) = self.arguments.get(position) else {
            panic!("the argument is a tensor")
        };
        assert_eq!(raw.dtype, T::DTYPE, "the argument holds elements of the type that the kernel declares");
        raw
    }

    /// Elements and extents of a tensor argument.
    ///
    /// # Panics
    /// If the argument at this position isn't a tensor of `T` that the kernel only reads. Expanded kernels
    /// ask for what their signature says.
    pub fn tensor<T: crate::Element>(&self, position: usize) -> (&'a [T], &'a [usize]) {
        let raw = self.raw::<T>(position);
        assert!(!raw.mutable, "a tensor that is written is asked for with `tensor_mut`");
        let count = raw.shape.iter().product();
        // SAFETY: the launch borrows a tensor of this shape and element type, and no one writes it meanwhile.
        (unsafe { std::slice::from_raw_parts(raw.address as *const T, count) }, raw.shape)
    }

    /// Elements and extents of a tensor argument that the kernel writes.
    ///
    /// # Panics
    /// If the argument at this position isn't a tensor of `T` that the kernel writes.
    pub fn tensor_mut<T: crate::Element>(&self, position: usize) -> (&'a [Cell<T>], &'a [usize]) {
        let raw = self.raw::<T>(position);
        assert!(raw.mutable, "a tensor that is only read is asked for with `tensor`");
        let count = raw.shape.iter().product();
        // SAFETY: the launch borrows a tensor of this shape and element type exclusively; blocks run one after
        // the other on this thread and see its elements as cells.
        (unsafe { std::slice::from_raw_parts(raw.address as *const Cell<T>, count) }, raw.shape)
    }

    /// A scalar argument.
    ///
    /// # Panics
    /// If the argument at this position isn't a scalar of `T`.
    pub fn scalar<T: crate::element::Scalar>(&self, position: usize) -> T {
        let Some(RawArgument::Scalar { slot, dtype }) = self.arguments.get(position) else {
            panic!("the argument is a scalar")
        };
        assert_eq!(*dtype, T::FORMAT, "the argument is a number of the type that the kernel declares");
        T::from_slot(*slot)
    }

    /// The index of the running block in the grid.
    pub fn block_index(&self) -> &'a [usize] {
        self.block
    }

    /// The tile that the running block owns.
    pub fn own_tile(&self) -> &'a OwnTile {
        self.own
    }

    /// The number of the instance that the launch has chosen, among those that it chose from.
    pub fn instance(&self) -> usize {
        self.instance
    }

    /// The number of blocks along each axis of the grid.
    pub fn grid(&self) -> &'a [usize] {
        self.grid
    }
}

/// The body of a kernel, which runs one block.
pub(crate) type Body = fn(&Arguments<'_>);

/// Runs every block of a grid.
pub(crate) fn run(
    (kernel, instance): (&str, usize),
    bound: &Bound,
    arguments: &[RawArgument<'_>],
    body: Body,
    sink: &mut Option<Sink<'_>>,
) -> Result<()> {
    let grid = bound.grid.as_slice();
    for number in 0..bound.blocks() {
        let block = multi_index(number, grid);
        let own = OwnTile::of(number, &block, bound);
        let seen = Arguments { arguments, block: &block, grid, own: &own, instance };
        // A kernel that panics leaves its output partly written, which safe code may see; nothing else of it
        // survives the unwinding.
        let run = || catch_unwind(AssertUnwindSafe(|| body(&seen)));
        let (outcome, failure) = messages::in_block(sink, run);
        outcome.map_err(|panic| match failure {
            Some((place, message)) => {
                Error::AssertionFailed { kernel: kernel.to_owned(), block: block.clone(), place, message }
            }
            None => Error::KernelPanicked {
                kernel: kernel.to_owned(),
                block: block.clone(),
                message: panic_message(&*panic),
            },
        })?;
    }
    Ok(())
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
