//! Where the tensors of a launch lie, as its kernel's code is told: which layouts the instance is made for, and the addresses
//! and strides that it gets.
//!
//! GPUs rely on tensors that begin at a multiple of 16 bytes; the code of the host and the reference device don't. A tensor
//! that begins elsewhere is described from such a multiple on.

use super::footprint::Footprint;
use super::given::{Given, GivenValue, Name};
use super::{ARGUMENTS, Launch};
use crate::device::{Device, Kind};
use crate::error::{Error, Result};
use crate::stream::Access;
use crate::tensor::{Place, Untyped};
use smallvec::SmallVec;
use tile_ir::abi::BindError;
use tile_ir::gpu::TENSOR_ALIGNMENT;
use tile_ir::view::{ArgumentLayout, GivenTensor};
use tile_ir::{DType, ValueId};

/// The arguments that aren't dense and aligned, by number, and how they lie.
pub(super) type Layouts = SmallVec<[(usize, ArgumentLayout); 2]>;

/// The tensor arguments, as a kernel is given them.
pub(super) type GivenTensors<'a> = SmallVec<[GivenTensor<'a>; ARGUMENTS]>;

/// A tensor as a kernel is given it, and the address from which it is described.
pub(super) fn placed(tensor: Untyped<'_>, dtype: DType) -> (u64, GivenTensor<'_>) {
    let (address, extents) = (tensor.start(dtype.bytes()), tensor.shape());
    let strides = if let Place::Strided(strides) = tensor.place() { Some(strides) } else { None };
    let beyond = if is_gpu(tensor.device()) { address % TENSOR_ALIGNMENT } else { 0 };
    // Of no elements code uses neither, but relies on the address all the same.
    let offset = if beyond == 0 || extents.contains(&0) { 0 } else { beyond as usize / dtype.bytes() };
    (address - beyond, GivenTensor { extents, strides, offset })
}

fn is_gpu(device: &Device) -> bool {
    matches!(device.0, Kind::Gpu(_) | Kind::Simulated(_))
}

impl<'a> Launch<'a> {
    /// The tensors, in order.
    pub(super) fn tensors(&self) -> GivenTensors<'a> {
        let tensor = |given: &Given<'a>| match given.value {
            GivenValue::Tensor { tensor, dtype, .. } => Some(placed(tensor, dtype).1),
            GivenValue::Scalar { .. } => None,
        };
        self.arguments.iter().filter_map(tensor).collect()
    }

    /// What the instance must be made for: the layouts of the arguments that aren't dense and aligned.
    ///
    /// # Errors
    /// [`Error::Place`] for a tensor that no instance can be made for.
    pub(super) fn layouts(&self) -> Result<Layouts> {
        let mut layouts = Layouts::new();
        for (number, given) in self.arguments.iter().enumerate() {
            let GivenValue::Tensor { tensor, dtype, access } = given.value else { continue };
            let problem = match tensor.place() {
                Place::Dense if !is_gpu(tensor.device()) => continue,
                Place::Unknown => "has elements that aren't in memory, or no single stride along an axis",
                Place::Strided(_) if access == Access::Write && !tensor.is_writable() => {
                    "is written and has elements that share memory"
                }
                _ => {
                    if let Some(layout) = ArgumentLayout::of(&placed(tensor, dtype).1) {
                        self.check_rank(given.name, &layout, tensor.shape())?;
                        layouts.push((number, layout));
                    }
                    continue;
                }
            };
            return Err(Error::Place {
                kernel: self.kernel.name.to_owned(),
                argument: given.name.to_string(),
                problem,
            });
        }
        Ok(layouts)
    }

    /// A tensor of another rank than the kernel declares is told of as one that is dense.
    fn check_rank(&self, argument: Name, layout: &ArgumentLayout, shape: &[usize]) -> Result<()> {
        let kernel = self.kernel.kernel()?;
        let is_given =
            |param: ValueId| kernel.value(param).name.as_deref().is_some_and(|name| argument.is(name));
        let Some((_, declared)) = kernel.tensors().find(|&(param, _)| is_given(param)) else {
            return Ok(());
        };
        let expected = declared.extents.len();
        match layout.rank() {
            Some(actual) if actual != expected => Err(Error::Arguments(BindError::Rank {
                kernel: self.kernel.name.to_owned(),
                argument: argument.to_string(),
                shape: shape.to_vec(),
                actual,
                expected,
            })),
            _ => Ok(()),
        }
    }

    /// Whether what is written shares no memory with another argument, as code relies on. Arguments that do can only be
    /// made of memory that isn't a tensor's own.
    pub(super) fn check_overlaps(&self) -> Result<()> {
        let footprint = |given: &Given<'a>| match given.value {
            GivenValue::Tensor { tensor, dtype, access } => {
                let footprint = Footprint::of(tensor, dtype.bytes());
                (!footprint.bytes.is_empty()).then_some((given.name, access == Access::Write, footprint))
            }
            GivenValue::Scalar { .. } => None,
        };
        let tensors: SmallVec<[_; ARGUMENTS]> = self.arguments.iter().filter_map(footprint).collect();
        for (position, (name, is_written, footprint)) in tensors.iter().enumerate() {
            for (other, other_is_written, other_footprint) in &tensors[position + 1..] {
                if (*is_written || *other_is_written) && footprint.may_meet(other_footprint) {
                    let (written, other) = if *is_written { (*name, *other) } else { (*other, *name) };
                    let (written, other) = (written.to_string(), other.to_string());
                    return Err(Error::Overlap { kernel: self.kernel.name.to_owned(), written, other });
                }
            }
        }
        Ok(())
    }
}
