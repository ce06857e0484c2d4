//! The reference device: a kernel's body as ordinary Rust, block by block on the calling thread.

mod elements;

pub use elements::{ReadElements, WrittenElements};

use crate::error::{Error, Result};
use crate::messages::{self, Sink};
use crate::stream::Access;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tile_ir::abi::{LaunchSizes, Shared};
use tile_ir::tile_order::TileOrder;
use tile_ir::view::GivenTensor;
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

    fn of(number: usize, index: &[usize], bound: &LaunchSizes) -> OwnTile {
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
        let number = number.map(|number| order.taken(number, *blocks, shared.tiles));
        self.index.replace(number.map(|number| order.index_of(&shared.space, number)));
        number.is_some()
    }
}

/// An argument without its type.
#[derive(Debug)]
pub(crate) enum RawArgument<'a> {
    Tensor(RawTensor<'a>),
    Scalar {
        slot: u64,
        dtype: tile_ir::DType,
    },
    /// An optional argument that isn't given.
    Absent,
}

impl<'a> RawArgument<'a> {
    /// A tensor's extents and strides; none of a number.
    pub(crate) fn shape(&self) -> (&'a [usize], Option<&'a [i64]>) {
        match self {
            RawArgument::Tensor(tensor) => (tensor.shape, tensor.strides),
            RawArgument::Scalar { .. } | RawArgument::Absent => (&[], None),
        }
    }

    /// The same argument, a tensor with its shape and strides from elsewhere.
    pub(crate) fn with_shape<'s>(&self, shape: &'s [usize], strides: Option<&'s [i64]>) -> RawArgument<'s> {
        match self {
            &RawArgument::Tensor(RawTensor { address, dtype, access, .. }) => {
                RawArgument::Tensor(RawTensor { address, shape, strides, dtype, access })
            }
            &RawArgument::Scalar { slot, dtype } => RawArgument::Scalar { slot, dtype },
            RawArgument::Absent => RawArgument::Absent,
        }
    }
}

/// A host tensor without its element type. `Launch` keeps the tensor borrowed for as long.
#[derive(Debug)]
pub(crate) struct RawTensor<'a> {
    /// Where the element lies that lies first.
    pub(crate) address: u64,
    pub(crate) shape: &'a [usize],
    /// Elements from one index to the next; `None` where elements lie one after the other in row-major order.
    pub(crate) strides: Option<&'a [i64]>,
    pub(crate) dtype: tile_ir::DType,
    pub(crate) access: Access,
}

impl<'a> RawTensor<'a> {
    fn given(&self) -> GivenTensor<'a> {
        GivenTensor { extents: self.shape, strides: self.strides, offset: 0 }
    }
}

impl<'a> Arguments<'a> {
    fn raw<T: crate::Element>(&self, position: usize) -> &'a RawTensor<'a> {
        let Some(RawArgument::Tensor(raw)) = self.arguments.get(position) else {
            panic!("the argument is a tensor")
        };
        assert_eq!(raw.dtype, T::DTYPE, "the argument holds elements of the type that the kernel declares");
        raw
    }

    /// Whether the argument at a position is there: an optional one may not be.
    pub fn is_given(&self, position: usize) -> bool {
        !matches!(self.arguments.get(position), None | Some(RawArgument::Absent))
    }

    /// The elements of a tensor argument, and how they lie.
    ///
    /// # Panics
    /// If the argument at this position isn't a tensor of `T` that the kernel only reads. Expanded kernels
    /// ask for what their signature says.
    pub fn tensor<T: crate::Element>(&self, position: usize) -> (ReadElements<'a, T>, GivenTensor<'a>) {
        let raw = self.raw::<T>(position);
        let given = raw.given();
        assert!(raw.access == Access::Read, "a tensor that is written is asked for with `tensor_mut`");
        // SAFETY: the launch borrows a tensor of this element type, which lies so in its memory.
        let elements = unsafe { ReadElements::at_address(raw.address, &given) };
        (elements, given)
    }

    /// The elements of a tensor argument that the kernel writes, likewise.
    ///
    /// # Panics
    /// If the argument at this position isn't a tensor of `T` that the kernel writes.
    pub fn tensor_mut<T: crate::Element>(
        &self,
        position: usize,
    ) -> (WrittenElements<'a, T>, GivenTensor<'a>) {
        let raw = self.raw::<T>(position);
        let given = raw.given();
        assert!(raw.access == Access::Write, "a tensor that is only read is asked for with `tensor`");
        // SAFETY: the launch borrows a tensor of this element type exclusively, which lies so in its memory; blocks run
        // one after the other on this thread.
        let elements = unsafe { WrittenElements::at_address(raw.address, &given) };
        (elements, given)
    }

    /// A scalar argument that may be left out.
    ///
    /// # Panics
    /// If the argument at this position isn't a scalar of `T` where it is given.
    pub fn optional_scalar<T: crate::element::Scalar>(&self, position: usize) -> Option<T> {
        self.is_given(position).then(|| self.scalar(position))
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
    kernel: &str,
    instance: usize,
    bound: &LaunchSizes,
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

/// What a panic says.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::launch::{KernelDef, Launch};
    use crate::stream::Stream;
    use crate::tensor::{Tensor, TensorRef};
    use tile_layout::Index;

    const ADD_ONE: &str = "\
kernel @add_one<B>(%x: tensor<n x i32>, %y: mut tensor<n x i32>) {
  %vx = partition %x [B] : partition<n x i32, [B]>
  %vy = partition %y [B] : mut partition<n x i32, [B]>
  %i = block_index %vy : index
  %0 = constant 0 : i32
  %1 = constant 1 : i32
  %t = load_masked %vx[%i] pad %0 : tile<B x i32>
  %one = splat %1 : tile<B x i32>
  %d = add %t, %one : tile<B x i32>
  store_masked %vy, %d
}
";
    static KERNEL: KernelDef = KernelDef::new("add_one", ADD_ONE, &[]);
    const B: usize = 4;

    fn body(arguments: &Arguments<'_>) {
        let (x, read) = arguments.tensor::<i32>(0);
        let (y, written) = arguments.tensor_mut::<i32>(1);
        let at = |given: &GivenTensor<'_>, index: usize| match given.strides {
            Some([stride]) if *stride < 0 => stride.unsigned_abs() as usize * (given.extents[0] - 1 - index),
            Some([stride]) => *stride as usize * index,
            _ => index,
        };
        let start = arguments.block_index()[0] * B;
        for index in start..read.extents[0].min(start + B) {
            y.set(at(&written, index), x.at(at(&read, index)) + 1);
        }
    }

    fn add_one<'a>(x: &'a TensorRef<i32>, y: &'a mut TensorRef<i32>) -> Launch<'a> {
        Launch::new(&KERNEL).constant("B", B).tensor("x", x).tensor_mut("y", y).reference(body)
    }

    fn counted(count: i32) -> Tensor<i32> {
        Tensor::from_iter(&Device::reference(), 0..count).unwrap()
    }

    /// What is read and what is written lie between each other in one memory, so that neither is a slice of its own.
    #[test]
    fn tensors_that_lie_between_each_other_are_read_and_written() {
        let mut numbers: Vec<i32> = (0..12).collect();
        let address = numbers.as_mut_ptr() as u64;
        let every_second = |first: u64| {
            // SAFETY: the vector has the elements; who reads and who writes have others.
            unsafe { Tensor::<i32>::from_raw_strided(&Device::reference(), address + 4 * first, [6], [2]) }
                .unwrap()
        };
        let (even, mut odd) = (every_second(0), every_second(1));
        add_one(&even, &mut odd).launch().unwrap();
        assert_eq!(odd.to_vec().unwrap(), [1, 3, 5, 7, 9, 11]);
        let stream = Stream::new(&Device::reference()).unwrap();
        add_one(&odd, &mut every_second(0)).on(&stream).unwrap().wait().unwrap();
        assert_eq!(numbers, [2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11]);
    }

    #[test]
    fn one_part_of_a_tensor_is_read_while_the_other_is_written() {
        let mut x = counted(12).into_shape([6, 2]).unwrap();
        let (even, odd) = x.split_at_mut(1, 1).unwrap();
        let (even, mut odd) = (even.reshape([6]).unwrap(), odd.reshape([6]).unwrap());
        add_one(&even, &mut odd).launch().unwrap();
        assert_eq!(odd.to_vec().unwrap(), [1, 3, 5, 7, 9, 11]);
        // Above and below, by a stream, whose launch is still there when the other part is written.
        let stream = Stream::new(&Device::reference()).unwrap();
        let (above, mut below) = odd.split_at(0, 3).unwrap();
        std::mem::forget(add_one(&above, &mut below).on(&stream).unwrap());
        x.slice_mut((.., 0)).unwrap().fill(-1).unwrap();
        assert_eq!(x.to_vec().unwrap(), [-1, 1, -1, 3, -1, 5, -1, 2, -1, 4, -1, 6]);
    }

    /// Two launches at once, each of which writes elements between those of the other.
    #[test]
    fn parts_of_a_tensor_are_written_by_two_threads_at_once() {
        let y = counted(6);
        let mut x = Tensor::<i32>::zeros(&Device::reference(), [6, 2]).unwrap();
        for round in 0..if cfg!(miri) { 1 } else { 50 } {
            let (left, right) = x.split_at_mut(1, 1).unwrap();
            let parts = [left, right].map(|part| part.reshape([6]).unwrap());
            std::thread::scope(|scope| {
                for (number, mut part) in parts.into_iter().enumerate() {
                    let y = &y;
                    scope.spawn(move || {
                        let stream = Stream::new(&Device::reference()).unwrap();
                        match (round + number) % 3 {
                            0 => part.copy_from_on(y, &stream).unwrap().detach(),
                            1 => add_one(y, &mut part).launch().unwrap(),
                            _ => add_one(y, &mut part).on(&stream).unwrap().detach(),
                        }
                    });
                }
            });
            let added = [0, 1].map(|number| i32::from((round + number) % 3 != 0));
            let expected = (0..6).flat_map(|i| added.map(|added| i + added));
            assert_eq!(x.to_vec().unwrap(), expected.collect::<Vec<_>>(), "round {round}");
        }
    }

    #[test]
    #[cfg_attr(
        miri,
        ignore = "an instance for every way to lie takes long, and the accesses are the ones above"
    )]
    fn views_are_read_and_written_where_they_lie_also_by_a_stream() {
        let x = counted(24).into_shape([4, 6]).unwrap();
        let mut y = counted(8);
        let stream = Stream::new(&Device::reference()).unwrap();
        let (column, backwards) =
            (x.slice((.., 2)).unwrap(), x.slice((Index::slice(None, None, -1), 1)).unwrap());
        add_one(&column, &mut y.slice_mut(Index::slice(None, None, 2)).unwrap()).launch().unwrap();
        let mut odd = y.slice_mut(Index::slice(None, None, -2)).unwrap();
        add_one(&backwards, &mut odd).on(&stream).unwrap().detach();
        assert_eq!(y.to_vec().unwrap(), [3, 2, 9, 8, 15, 14, 21, 20]);
        // One element, again and again.
        let mut z = counted(5);
        add_one(&x.slice((3, 5..)).unwrap().expand([5]).unwrap(), &mut z).launch().unwrap();
        assert_eq!(z.to_vec().unwrap(), [24; 5]);
    }

    /// What others have in the memory that a tensor lies in.
    #[test]
    fn a_position_that_is_not_the_tensors_is_an_error() {
        let (x, mut y) = (counted(5), counted(5));
        let every_second = || Index::slice(None, None, 2);
        let (x, mut y) = (x.slice(every_second()).unwrap(), y.slice_mut(every_second()).unwrap());
        let mut reason = |body: fn(&Arguments<'_>)| {
            let launch = Launch::new(&KERNEL).constant("B", B).tensor("x", &x).tensor_mut("y", &mut y);
            launch.reference(body).launch().unwrap_err().reason().to_string()
        };
        let reasons = [
            reason(|arguments| {
                arguments.tensor::<i32>(0).0.at(5);
            }),
            reason(|arguments| {
                arguments.tensor::<i32>(0).0.at(3);
            }),
            reason(|arguments| arguments.tensor_mut::<i32>(1).0.set(1, 7)),
            reason(|arguments| {
                arguments.tensor_mut::<i32>(1).0.get(usize::MAX);
            }),
        ];
        let expected = [
            "element 5 of 5 is outside",
            "element 3 lies between those of the tensor, and is another's",
            "element 1 lies between those of the tensor, and is another's",
            "element 18446744073709551615 of 5 is outside",
        ];
        for (reason, expected) in reasons.iter().zip(expected) {
            let panicked = "kernel `add_one` panicked in block [0] on the reference device";
            assert_eq!(*reason, format!("{panicked}: {expected}"));
        }
    }
}
