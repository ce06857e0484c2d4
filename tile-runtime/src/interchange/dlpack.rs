//! DLPack: tensors that other libraries own and we use, and the other way, without copying.
//!
//! A tensor that is handed over keeps its memory until the other side calls the deleter; one that is taken keeps the
//! other side's until it is dropped. What a GPU has still to do on a tensor is waited for when it is handed over, and what
//! the other side has enqueued with it when that gives it back; who takes one on a GPU waits for the maker's stream first.

use crate::device::{Device, Kind};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use dlpark::ffi::{DLDataType, DLDevice, DLDeviceType, DLManagedTensorVersioned};
use dlpark::metadata::Dynamic;
pub use dlpark::versioned::Dlpack;
use dlpark::{DlpackFlags, ffi};
use std::mem::ManuallyDrop;
use tile_ir::DType;
use tile_ir::target::Family;

/// DLPack's name of a format.
fn data_type(dtype: DType) -> Option<DLDataType> {
    Some(match dtype {
        DType::Bool => DLDataType::BOOL,
        DType::I8 => DLDataType::I8,
        DType::I16 => DLDataType::I16,
        DType::I32 => DLDataType::I32,
        DType::I64 => DLDataType::I64,
        DType::U8 => DLDataType::U8,
        DType::U16 => DLDataType::U16,
        DType::U32 => DLDataType::U32,
        DType::U64 => DLDataType::U64,
        DType::F8E4M3FN => DLDataType::F8E4M3FN,
        DType::F8E5M2 => DLDataType::F8E5M2,
        DType::F8E8M0FNU => DLDataType::F8E8M0FNU,
        DType::F16 => DLDataType::F16,
        DType::BF16 => DLDataType::BF16,
        DType::F32 => DLDataType::F32,
        DType::F64 => DLDataType::F64,
        DType::Index => return None,
    })
}

fn refused(problem: impl Into<String>) -> Error {
    Error::Dlpack { problem: problem.into() }
}

/// The device that a tensor of another library is on.
fn device(of: DLDevice) -> Result<Device> {
    let number = || usize::try_from(of.device_id).map_err(|_| refused("its device has a negative number"));
    match of.device_type {
        // The host's memory, pinned for the one vendor's GPUs or the other's.
        DLDeviceType::CPU | DLDeviceType::CUDAHOST | DLDeviceType::ROCMHOST => Ok(Device::cpu()),
        DLDeviceType::CUDA | DLDeviceType::CUDAMANAGED => Device::cuda(number()?),
        DLDeviceType::ROCM => Device::hip(number()?),
        ffi::DLDeviceType(other) => {
            Err(refused(format!("it is on a device of DLPack's type {other}; copy it to the host first")))
        }
    }
}

/// A tensor that another library has. What that still does with it on streams of its own nobody says when it gives the
/// tensor back, so the end waits for the whole device.
struct Handed<T: Element>(ManuallyDrop<Tensor<T>>);

impl<T: Element> Drop for Handed<T> {
    fn drop(&mut self) {
        let is_over = match &self.0.device().0 {
            Kind::Gpu(context) => context.synchronize_device().is_ok(),
            Kind::Cpu | Kind::Reference | Kind::Simulated(_) => true,
        };
        // Memory that a device may still use stays, where nobody can say when that ends.
        if is_over {
            // SAFETY: it is dropped here alone, once.
            unsafe { ManuallyDrop::drop(&mut self.0) }
        }
    }
}

impl<T: Element> Tensor<T> {
    /// Hands the tensor to another library, which frees it. The elements are there when this returns.
    ///
    /// On a GPU the library may use it on any stream, and free it while that goes on: freeing waits until the device has
    /// nothing to do. Where that can't be waited for, because the device is lost or the library captures a stream, the
    /// memory stays.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Tensor};
    /// let x = Tensor::from_vec(&Device::cpu(), vec![1i32, 2, 3, 4, 5, 6], [2, 3])?;
    /// let theirs = x.into_dlpack()?;
    /// // SAFETY: nobody else uses the memory.
    /// let ours = unsafe { Tensor::<i32>::from_dlpack(theirs) }?;
    /// assert_eq!((ours.shape(), ours.to_vec()?), (&[2, 3][..], vec![1, 2, 3, 4, 5, 6]));
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Dlpack`] where the elements have no single stride along some axis; [`Error::Stream`] inside of a graph's
    /// closure; [`Error::DeviceLost`] and [`Error::Driver`] if the device fails.
    pub fn into_dlpack(self) -> Result<Dlpack> {
        let strides = self.strides().ok_or_else(|| {
            refused("its elements have no single stride along some axis; make a tensor with `to_dense`")
        })?;
        let dtype = data_type(T::DTYPE).ok_or_else(|| refused("its elements are sizes"))?;
        self.finish()?;
        let device = match &self.device().0 {
            Kind::Cpu | Kind::Reference | Kind::Simulated(_) => DLDevice::CPU,
            Kind::Gpu(context) => {
                let device_type = match context.family() {
                    Family::Amdgpu => DLDeviceType::ROCM,
                    _ => DLDeviceType::CUDA,
                };
                DLDevice { device_type, device_id: context.ordinal() as i32 }
            }
        };
        let shape: Vec<i64> = self.shape().iter().map(|&extent| extent as i64).collect();
        let data = if self.is_empty() { std::ptr::null_mut() } else { self.address() as *mut _ };
        let prepared = Dynamic::new(shape.as_slice(), strides.as_slice())
            .prepare_as::<DLManagedTensorVersioned>()
            .map_err(|error| refused(error.to_string()))?;
        let mut tensor = prepared.initialize(Box::new(Handed(ManuallyDrop::new(self))));
        tensor.set_data(data).set_device(device).set_dtype(dtype);
        // SAFETY: shape, strides and type are those of the memory at `data`, which the boxed tensor keeps.
        Ok(unsafe { tensor.finish() })
    }

    /// A tensor in the memory of another library, which is told when it is dropped. One that mustn't be written is
    /// copied.
    ///
    /// # Safety
    /// The tensor is as it says, its elements are valid, and while this value lives nobody writes them, nor reads them
    /// while a launch writes them. What a GPU has to do before is done.
    ///
    /// # Errors
    /// [`Error::Dlpack`] where its elements are of another format, on a device of no kind of ours, or not described as they
    /// should be; [`Error::NoDevice`] where they are on a GPU that can't be used here; [`Error::Address`] where no such
    /// elements can lie at their address; [`Error::TooLarge`]; for one that mustn't be written as
    /// [`to_dense`](crate::TensorRef::to_dense).
    pub unsafe fn from_dlpack(tensor: Dlpack) -> Result<Tensor<T>> {
        let described = tensor.validate().map_err(|error| refused(error.to_string()))?;
        if data_type(T::DTYPE).is_none_or(|dtype| !dtype.matches(described.dtype())) {
            let DLDataType { code, bits, lanes } = described.dtype();
            return Err(refused(format!(
                "its elements have DLPack's type code {}, {bits} bits and {lanes} lanes, and {} is wanted",
                code.0,
                T::DTYPE.rust_name()
            )));
        }
        let device = device(described.device())?;
        let shape: Vec<usize> = described.shape().iter().map(|&extent| extent as usize).collect();
        let strides =
            described.strides_or_compact().map_err(|error| refused(error.to_string()))?.into_owned();
        let address = (described.data_ptr() as u64).wrapping_add(described.byte_offset());
        let is_read_only = tensor.flags().contains(DlpackFlags::READ_ONLY);
        // SAFETY: the caller vouches for the elements that shape and strides reach; the owner is kept with them.
        let taken = unsafe { Tensor::from_raw_owned(&device, address, shape, strides, tensor) }?;
        if is_read_only { taken.to_dense() } else { Ok(taken) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn memory_is_shared_and_kept_until_the_last_owner_drops_it() {
        let x = Tensor::from_iter(&Device::cpu(), 0..12i32).unwrap().into_shape([3, 4]).unwrap();
        let address = x.address();
        let theirs = x.into_dlpack().unwrap();
        assert_eq!(theirs.validate().unwrap().data_ptr() as u64, address);
        // SAFETY: nobody else uses the memory.
        let mut ours = unsafe { Tensor::<i32>::from_dlpack(theirs) }.unwrap();
        ours.slice_mut((.., 0)).unwrap().fill(-1).unwrap();
        assert_eq!((ours.address(), ours.to_vec().unwrap()[..5].to_vec()), (address, vec![-1, 1, 2, 3, -1]));
    }

    #[test]
    fn the_owner_is_told_once() {
        let owner = Arc::new(vec![1.5f64, 2.5]);
        let mut tensor = Dynamic::new([2i64], [1i64]).prepare().unwrap().initialize(Arc::clone(&owner));
        tensor.set_data(owner.as_ptr() as *mut _).set_device(DLDevice::CPU).set_dtype(DLDataType::F64);
        // SAFETY: the description is that of the vector, which the tensor keeps.
        let theirs = unsafe { tensor.finish() };
        // SAFETY: nobody writes the vector.
        let ours = unsafe { Tensor::<f64>::from_dlpack(theirs) }.unwrap();
        assert_eq!((ours.to_vec().unwrap(), Arc::strong_count(&owner)), (vec![1.5, 2.5], 2));
        drop(ours);
        assert_eq!(Arc::strong_count(&owner), 1);
    }

    #[test]
    fn pinned_memory_of_the_host_is_the_hosts() {
        for device_type in [DLDeviceType::CUDAHOST, DLDeviceType::ROCMHOST] {
            let owner = Arc::new(vec![1.5f64, 2.5]);
            let first = owner.as_ptr();
            let mut tensor = Dynamic::new([2i64], [1i64]).prepare().unwrap().initialize(owner);
            let device = DLDevice { device_type, device_id: 0 };
            tensor.set_data(first as *mut _).set_device(device).set_dtype(DLDataType::F64);
            // SAFETY: the description is that of the vector, which the tensor keeps.
            let theirs = unsafe { tensor.finish() };
            // SAFETY: nobody writes the vector.
            let ours = unsafe { Tensor::<f64>::from_dlpack(theirs) }.unwrap();
            assert_eq!((ours.device(), ours.to_vec().unwrap()), (&Device::cpu(), vec![1.5, 2.5]));
        }
    }

    #[test]
    fn strides_go_over_and_what_has_none_does_not() {
        let x = Tensor::from_iter(&Device::cpu(), 0..6u8).unwrap().into_shape([2, 3]).unwrap();
        let turned = x.into_reversed_axes().unwrap().into_dlpack().unwrap();
        assert_eq!(turned.validate().unwrap().strides(), Some(&[1, 3][..]));
        // SAFETY: nobody else uses the memory.
        let back = unsafe { Tensor::<u8>::from_dlpack(turned) }.unwrap();
        assert_eq!(back.to_host().unwrap().to_string(), "[[0, 3],\n [1, 4],\n [2, 5]]");
        let nested = back.into_shape([6]).unwrap().into_dlpack().map(drop).unwrap_err().to_string();
        assert!(nested.contains("no single stride"), "{nested}");
    }

    #[test]
    fn what_does_not_fit_is_refused_and_freed() {
        let handed = |x: Tensor<f32>| x.into_dlpack().unwrap();
        let theirs = handed(Tensor::zeros(&Device::cpu(), [2]).unwrap());
        // SAFETY: nothing is made of elements of another format.
        let error = unsafe { Tensor::<i32>::from_dlpack(theirs) }.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the DLPack tensor can't be exchanged: its elements have DLPack's type code 2, 32 bits and 1 lanes, and i32 is \
             wanted"
        );
        let empty = handed(Tensor::zeros(&Device::cpu(), [0, 3]).unwrap());
        // SAFETY: there is no element.
        assert_eq!(unsafe { Tensor::<f32>::from_dlpack(empty) }.unwrap().shape(), [0, 3]);
    }
}
