//! Kernels run on arrays, as the evaluator runs them: the arguments are laid out in memory, and read back.

use super::{Mode, SimtKernel, Trace};
use crate::Error;
use tile_ir::Array;
use tile_ir::abi::Argument;
use tile_ir::gpu::TENSOR_ALIGNMENT;
use tile_ir::log::{self, Contents};
use tile_ir::view::GivenTensor;

/// Words of the log of a kernel that prints or asserts.
const LOG_WORDS: usize = 1 << 16;

/// What a run on arrays gives, besides what it leaves in them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// What the run did besides changing memory.
    pub trace: Trace,
    /// What the kernel said.
    pub log: Contents,
}

/// A tensor begins at a multiple of so many bytes, as those of device allocators do: what is counted of accesses doesn't
/// depend on the host's allocator.
const LINE_BYTES: usize = 256;

/// Bytes of a tensor.
#[derive(Clone, Copy)]
#[repr(align(256))]
struct Line([u8; LINE_BYTES]);

const _: () = assert!(align_of::<Line>() == LINE_BYTES && LINE_BYTES as u64 >= TENSOR_ALIGNMENT);

fn lines(array: &Array) -> Vec<Line> {
    let line = |chunk: &[u8]| {
        let mut line = Line([0xff; LINE_BYTES]);
        line.0[..chunk.len()].copy_from_slice(chunk);
        line
    };
    array.to_bytes().chunks(LINE_BYTES).map(line).collect()
}

impl SimtKernel {
    /// Runs every block on arrays, one per argument (scalars have rank 0); mutable tensors are updated in place.
    ///
    /// # Errors
    /// [`Error::Arguments`] where the shapes don't fit, and [`Error::Run`] where the run ends early, which leaves the arrays as they were.
    ///
    /// # Panics
    /// If an argument's format isn't the declared one, or there are too few.
    pub fn run_on(&self, arguments: &mut [Array], mode: Mode) -> Result<Outcome, Error> {
        let is_tensor = |argument: &Argument| matches!(argument, Argument::Tensor { .. });
        let tensors = arguments.iter().zip(&self.abi.arguments).filter(|(_, declared)| is_tensor(declared));
        let shapes: Vec<Vec<usize>> = tensors.map(|(array, _)| array.shape().to_vec()).collect();
        let dense: Vec<GivenTensor<'_>> = shapes.iter().map(|shape| GivenTensor::dense(shape)).collect();
        self.run_tensors(arguments, &dense, mode)
    }

    /// [`SimtKernel::run_on`] of tensors that lie as the instance is made for: each is given, and its argument is the
    /// memory that it lies in, from [`GivenTensor::offset`] elements before its first one on, as an array of any shape.
    ///
    /// # Errors
    /// As [`SimtKernel::run_on`].
    ///
    /// # Panics
    /// As [`SimtKernel::run_on`]; if a tensor doesn't lie in its memory.
    pub fn run_tensors(
        &self,
        arguments: &mut [Array],
        given: &[GivenTensor<'_>],
        mode: Mode,
    ) -> Result<Outcome, Error> {
        let declared = &self.abi.arguments;
        assert_eq!(arguments.len(), declared.len(), "every argument is given");
        for (argument, declared) in arguments.iter().zip(declared) {
            let (Argument::Tensor { dtype, .. } | Argument::Scalar { dtype, .. }) = declared;
            assert_eq!(argument.dtype(), *dtype, "arguments have the declared formats");
        }
        let is_tensor = |(_, declared): &(&Array, &Argument)| matches!(declared, Argument::Tensor { .. });
        let tensors = arguments.iter().zip(declared).filter(is_tensor).map(|(argument, _)| argument);
        for (argument, given) in tensors.zip(given) {
            let (there, reached) = (argument.len(), reach(given));
            assert!(
                reached.is_some_and(|reached| reached <= there),
                "{given:?} doesn't lie in {there} elements"
            );
        }
        let mut memory: Vec<Vec<Line>> = arguments.iter().map(lines).collect();
        let number = |position: usize| memory.get(position)?.first().map(word);
        let bound = self.abi.bind_tensors(given, &number)?;
        let slot = |(lines, declared): (&mut Vec<Line>, &Argument)| match declared {
            Argument::Tensor { .. } => lines.as_mut_ptr() as u64,
            Argument::Scalar { .. } => word(&lines[0]),
        };
        let mut slots: Vec<u64> = memory.iter_mut().zip(declared).map(slot).collect();
        slots.extend(bound.slots());
        let mut log = if self.abi.logs { log::empty(LOG_WORDS) } else { Vec::new() };
        slots.extend(self.abi.logs.then_some(log.as_mut_ptr() as u64));
        // SAFETY: there is a slot for everything that the ABI lists, and tensors have the shapes that are bound, whose elements
        // lie in their memory, as was looked at above.
        let trace = unsafe { self.run_as(&slots, bound.blocks() as u64, mode) }?;
        for ((array, lines), declared) in arguments.iter_mut().zip(&memory).zip(declared) {
            if let Argument::Tensor { mutable: true, .. } = declared {
                let bytes: Vec<u8> = lines.iter().flat_map(|line| line.0).collect();
                let bytes = &bytes[..array.len() * array.dtype().bytes()];
                *array = Array::from_bytes(array.dtype(), array.shape(), bytes);
            }
        }
        Ok(Outcome { trace, log: log::decode(&self.sites, &log) })
    }
}

/// How many elements a tensor reaches over, from where its kernel is told that it lies; `None` for more than there are numbers.
fn reach(given: &GivenTensor<'_>) -> Option<usize> {
    if given.extents.contains(&0) {
        return Some(0);
    }
    let behind_first = match given.strides {
        None => given.extents.iter().try_fold(1usize, |count, &extent| count.checked_mul(extent))? - 1,
        Some(strides) => {
            given.extents.iter().zip(strides).try_fold(0usize, |behind, (&extent, stride)| {
                let stride = usize::try_from(stride.unsigned_abs()).ok()?;
                behind.checked_add((extent - 1).checked_mul(stride)?)
            })?
        }
    };
    given.offset.checked_add(behind_first)?.checked_add(1)
}

/// A scalar's slot.
fn word(line: &Line) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = line.0;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_reaches_to_its_last_element() {
        let of = |extents: &[usize], strides: Option<&[i64]>, offset| {
            reach(&GivenTensor { extents, strides, offset })
        };
        assert_eq!(of(&[3, 4], None, 0), Some(12));
        assert_eq!(of(&[3, 4], Some(&[-10, 2]), 5), Some(5 + 20 + 6 + 1));
        assert_eq!((of(&[3, 0], Some(&[100, 1]), 7), of(&[], None, 2)), (Some(0), Some(3)));
        assert_eq!(of(&[1 << 40, 1 << 40], None, 0), None);
        assert_eq!(of(&[3], Some(&[i64::MIN]), 0), None);
    }
}
