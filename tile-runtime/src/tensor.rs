//! Tensors: dense row-major arrays in a device's memory.

use crate::cuda;
use crate::device::{Device, Kind};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::host::HostBuffer;
use std::fmt;
use std::marker::PhantomData;
use tile_ir::gpu::TENSOR_ALIGNMENT;
use tile_layout::element_count;

/// A dense row-major array in the memory of a device.
///
/// ```
/// use tile_runtime::{Device, Tensor};
/// let device = Device::cpu();
/// let x = Tensor::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// assert_eq!(x.to_host()?.to_string(), "[[1, 2],\n [3, 4]]");
/// # Ok::<(), tile_runtime::Error>(())
/// ```
pub struct Tensor<T> {
    device: Device,
    shape: Vec<usize>,
    storage: Storage,
    element: PhantomData<T>,
}

pub(crate) enum Storage {
    Host(HostBuffer),
    Cuda(cuda::Buffer),
    /// The address of memory that another library has allocated on the device, and frees.
    Foreign(u64),
}

/// The number of elements and bytes of a shape.
fn sizes<T>(shape: &[usize]) -> Result<(usize, usize)> {
    let too_large = || Error::TooLarge { shape: shape.to_vec() };
    let count = element_count(shape).ok_or_else(too_large)?;
    let bytes = count.checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok());
    Ok((count, bytes.ok_or_else(too_large)?))
}

impl<T: Element> Tensor<T> {
    /// A tensor of zeros (`false` for `bool`).
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::OutOfMemory`] or [`Error::Driver`].
    pub fn zeros(device: &Device, shape: impl AsRef<[usize]>) -> Result<Tensor<T>> {
        let shape = shape.as_ref().to_vec();
        let (_, bytes) = sizes::<T>(&shape)?;
        let storage = match &device.0 {
            Kind::Reference | Kind::Cpu => Storage::Host(HostBuffer::zeroed(bytes)?),
            Kind::Cuda(context) => Storage::Cuda(context.zeroed(bytes)?),
        };
        Ok(Tensor { device: device.clone(), shape, storage, element: PhantomData })
    }

    /// A tensor with the elements of a slice, in row-major order.
    ///
    /// # Errors
    /// [`Error::ElementCount`] if the slice doesn't fill the shape; as [`Tensor::zeros`] else.
    pub fn from_slice(device: &Device, elements: &[T], shape: impl AsRef<[usize]>) -> Result<Tensor<T>> {
        let shape = shape.as_ref();
        let (expected, bytes) = sizes::<T>(shape)?;
        if elements.len() != expected {
            return Err(Error::ElementCount { shape: shape.to_vec(), expected, given: elements.len() });
        }
        let mut tensor = Tensor::zeros(device, shape)?;
        // SAFETY: elements are plain numbers without padding, and any byte may be read.
        let source = unsafe { std::slice::from_raw_parts(elements.as_ptr().cast::<u8>(), bytes) };
        tensor.write(source)?;
        Ok(tensor)
    }

    /// A tensor with the elements of a vector, in row-major order.
    ///
    /// # Errors
    /// As [`Tensor::from_slice`].
    pub fn from_vec(device: &Device, elements: Vec<T>, shape: impl AsRef<[usize]>) -> Result<Tensor<T>> {
        Tensor::from_slice(device, &elements, shape)
    }

    /// A tensor with every element equal to `value`.
    ///
    /// # Errors
    /// As [`Tensor::zeros`].
    pub fn full(device: &Device, shape: impl AsRef<[usize]>, value: T) -> Result<Tensor<T>> {
        let shape = shape.as_ref();
        let (count, _) = sizes::<T>(shape)?;
        Tensor::from_vec(device, vec![value; count], shape)
    }

    /// A tensor in memory that another library has allocated on the device, such as that of a PyTorch tensor: dense
    /// and row-major. It is not freed here.
    ///
    /// # Safety
    /// From `address` on there are as many elements as the shape says, each with a valid value, and they stay there as
    /// long as the tensor is used. While a launch uses the tensor, nobody else writes them, nor reads them if the launch
    /// writes them; on a GPU this concerns what other streams do, too.
    ///
    /// # Errors
    /// [`Error::TooLarge`]; [`Error::Address`] if the address isn't a multiple of 16, which compiled code relies on.
    pub unsafe fn from_raw(device: &Device, address: u64, shape: impl AsRef<[usize]>) -> Result<Tensor<T>> {
        let shape = shape.as_ref().to_vec();
        let (_, bytes) = sizes::<T>(&shape)?;
        let refused = |problem: String| Error::Address { device: device.name(), address, problem };
        if !address.is_multiple_of(TENSOR_ALIGNMENT) {
            return Err(refused(format!("it isn't a multiple of {TENSOR_ALIGNMENT} bytes")));
        }
        if address == 0 && bytes > 0 {
            return Err(refused(format!("it is null, and {bytes} bytes are needed")));
        }
        // Of no elements the address is never used, but references need one.
        let address = if bytes == 0 { TENSOR_ALIGNMENT } else { address };
        Ok(Tensor { device: device.clone(), shape, storage: Storage::Foreign(address), element: PhantomData })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match (&mut self.storage, &self.device.0) {
            (Storage::Host(buffer), _) => buffer.as_bytes_mut().copy_from_slice(bytes),
            (Storage::Cuda(buffer), Kind::Cuda(context)) if !bytes.is_empty() => {
                context.upload(bytes, buffer)?
            }
            _ => {}
        }
        Ok(())
    }

    /// The elements in row-major order, after every launch that writes them.
    ///
    /// # Errors
    /// [`Error::Driver`] if the device fails.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut elements = vec![T::default(); self.len()];
        let bytes = size_of_val(elements.as_slice());
        // SAFETY: the vector has that many initialised bytes; a device only ever holds valid elements (`bool`
        // is 0 or 1 by the IR's rules).
        let target = unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast::<u8>(), bytes) };
        match (&self.storage, &self.device.0) {
            (Storage::Host(buffer), _) => target.copy_from_slice(buffer.as_bytes()),
            (Storage::Cuda(buffer), Kind::Cuda(context)) => context.download(buffer, target)?,
            (Storage::Foreign(address), Kind::Cuda(context)) => context.download_from(*address, target)?,
            (Storage::Foreign(address), _) => {
                // SAFETY: who made the tensor vouches for that many bytes there, and for their values.
                target.copy_from_slice(unsafe { std::slice::from_raw_parts(*address as *const u8, bytes) });
            }
            (Storage::Cuda(_), _) => {}
        }
        Ok(elements)
    }

    /// The elements with their shape, to be printed or indexed.
    ///
    /// # Errors
    /// As [`Tensor::to_vec`].
    pub fn to_host(&self) -> Result<HostTensor<T>> {
        Ok(HostTensor { elements: self.to_vec()?, shape: self.shape.clone() })
    }

    /// The same elements on another device.
    ///
    /// # Errors
    /// As [`Tensor::to_vec`] and [`Tensor::zeros`].
    pub fn copy_to(&self, device: &Device) -> Result<Tensor<T>> {
        Tensor::from_vec(device, self.to_vec()?, &self.shape)
    }

    /// A tensor with the elements of an `ndarray` array, in row-major order.
    ///
    /// # Errors
    /// As [`Tensor::zeros`].
    #[cfg(feature = "ndarray")]
    pub fn from_ndarray<D: ndarray::Dimension>(
        device: &Device,
        array: &ndarray::ArrayRef<T, D>,
    ) -> Result<Tensor<T>> {
        Tensor::from_vec(device, array.iter().copied().collect(), array.shape())
    }

    /// The elements as an `ndarray` array.
    ///
    /// # Errors
    /// As [`Tensor::to_vec`].
    #[cfg(feature = "ndarray")]
    pub fn to_ndarray(&self) -> Result<ndarray::ArrayD<T>> {
        let array = ndarray::ArrayD::from_shape_vec(self.shape.clone(), self.to_vec()?);
        Ok(array.expect("a tensor has as many elements as its shape says"))
    }
}

impl<T> Tensor<T> {
    /// Extents, outermost axis first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The device that holds the elements.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The address of the first element, for reading.
    pub(crate) fn address(&self) -> u64 {
        match (&self.storage, &self.device.0) {
            (Storage::Cuda(buffer), Kind::Cuda(context)) => context.address(buffer),
            (Storage::Host(buffer), _) => buffer.as_ptr() as u64,
            (Storage::Foreign(address), _) => *address,
            (Storage::Cuda(_), _) => 0,
        }
    }

    /// The address of the first element, for writing.
    pub(crate) fn address_mut(&mut self) -> u64 {
        match (&mut self.storage, &self.device.0) {
            (Storage::Cuda(buffer), Kind::Cuda(context)) => context.address_mut(buffer),
            (Storage::Host(buffer), _) => buffer.as_mut_ptr() as u64,
            (Storage::Foreign(address), _) => *address,
            (Storage::Cuda(_), _) => 0,
        }
    }
}

impl<T> fmt::Debug for Tensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor<{}>{:?} on {}", std::any::type_name::<T>(), self.shape, self.device.name())
    }
}

/// A tensor's elements on the host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostTensor<T> {
    elements: Vec<T>,
    shape: Vec<usize>,
}

impl<T: Copy> HostTensor<T> {
    /// Extents, outermost axis first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The elements in row-major order.
    pub fn as_slice(&self) -> &[T] {
        &self.elements
    }

    /// The element at a multi-index; `None` outside.
    pub fn get(&self, index: impl AsRef<[usize]>) -> Option<T> {
        let index = index.as_ref();
        let inside =
            index.len() == self.shape.len() && index.iter().zip(&self.shape).all(|(i, extent)| i < extent);
        inside.then(|| self.elements[tile_layout::linear_index(index, &self.shape)])
    }
}

/// How many entries a long axis shows at each end.
const EDGE: usize = 3;
/// The number of elements from which on axes are abbreviated.
const ABBREVIATE: usize = 1000;

impl<T: fmt::Display> fmt::Display for HostTensor<T> {
    /// Nested brackets with aligned columns; large tensors show the ends of each axis.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let precision = f.precision();
        let text = |element: &T| match precision {
            Some(precision) => format!("{element:.precision$}"),
            None => element.to_string(),
        };
        let short = self.elements.len() >= ABBREVIATE;
        let mut texts: Vec<Option<String>> = vec![None; self.elements.len()];
        self.visit(short, 0, 0, &mut |i| texts[i] = Some(text(&self.elements[i])));
        let width = texts.iter().flatten().map(String::len).max().unwrap_or(0);
        self.write(f, short, &texts, width, 0, 0)
    }
}

impl<T> HostTensor<T> {
    /// The entries of an axis that are shown; `None` stands for those left out.
    fn shown(&self, short: bool, axis: usize) -> Vec<Option<usize>> {
        let extent = self.shape[axis];
        if !short || extent <= 2 * EDGE {
            return (0..extent).map(Some).collect();
        }
        (0..EDGE).map(Some).chain([None]).chain((extent - EDGE..extent).map(Some)).collect()
    }

    fn visit(&self, short: bool, axis: usize, start: usize, show: &mut dyn FnMut(usize)) {
        if axis == self.shape.len() {
            return show(start);
        }
        let stride: usize = self.shape[axis + 1..].iter().product();
        for i in self.shown(short, axis).into_iter().flatten() {
            self.visit(short, axis + 1, start + i * stride, show);
        }
    }

    fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        short: bool,
        texts: &[Option<String>],
        width: usize,
        axis: usize,
        start: usize,
    ) -> fmt::Result {
        if axis == self.shape.len() {
            return write!(f, "{:>width$}", texts[start].as_deref().unwrap_or("…"));
        }
        let stride: usize = self.shape[axis + 1..].iter().product();
        let innermost = axis + 1 == self.shape.len();
        let separator = if innermost {
            ", ".to_owned()
        } else {
            format!(",{}", "\n".repeat(self.shape.len() - 1 - axis))
        };
        f.write_str("[")?;
        for (position, entry) in self.shown(short, axis).into_iter().enumerate() {
            if position > 0 {
                f.write_str(&separator)?;
                if !innermost {
                    f.write_str(&" ".repeat(axis + 1))?;
                }
            }
            match entry {
                Some(i) => self.write(f, short, texts, width, axis + 1, start + i * stride)?,
                None => f.write_str("…")?,
            }
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_of_the_wrong_length_is_refused() {
        let error = Tensor::from_slice(&Device::cpu(), &[1.0f32; 5], [2, 3]).unwrap_err();
        assert_eq!(error.to_string(), "5 elements were given for shape [2, 3], which holds 6");
        let error = Tensor::<f32>::zeros(&Device::cpu(), [usize::MAX, 2]).unwrap_err();
        assert!(error.to_string().contains("larger than the address space"), "{error}");
        let error = Tensor::<f32>::zeros(&Device::cpu(), [1 << 40, 1 << 10]).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
    }

    #[test]
    fn elements_round_trip_and_memory_is_aligned() {
        let device = Device::cpu();
        let x = Tensor::from_vec(&device, vec![true, false, true], [3]).unwrap();
        assert_eq!(x.to_vec().unwrap(), [true, false, true]);
        assert_eq!(x.copy_to(&Device::reference()).unwrap().to_vec().unwrap(), [true, false, true]);
        let mut y = Tensor::<f64>::zeros(&device, [0, 7]).unwrap();
        assert_eq!((y.len(), y.address_mut() % 64, y.to_vec().unwrap().len()), (0, 0, 0));
        assert_eq!(Tensor::full(&device, [2], 7i8).unwrap().to_host().unwrap().get([1]), Some(7));
    }

    #[test]
    fn foreign_memory_is_used_where_it_is() {
        let device = Device::cpu();
        let mut memory = Tensor::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [6]).unwrap();
        let address = memory.address_mut();
        // SAFETY: the memory is that of a tensor that lives longer and isn't used meanwhile.
        let at = |address, shape: &[usize]| unsafe { Tensor::<f32>::from_raw(&device, address, shape) };
        let mut foreign = at(address, &[2, 3]).unwrap();
        assert_eq!((foreign.to_vec().unwrap(), foreign.shape()), (memory.to_vec().unwrap(), &[2, 3][..]));
        assert_eq!((foreign.address(), foreign.address_mut()), (address, address));
        drop(foreign);
        assert_eq!(at(address + 16, &[2]).unwrap().to_vec().unwrap(), [5.0, 6.0]);
        assert_eq!(at(0, &[0, 3]).unwrap().to_vec().unwrap(), []);
        let message = |address, shape: &[usize]| at(address, shape).unwrap_err().to_string();
        assert_eq!(
            message(0, &[3]),
            "a tensor can't lie at address 0x0 on cpu: it is null, and 12 bytes are needed"
        );
        assert_eq!(
            message(20, &[3]),
            "a tensor can't lie at address 0x14 on cpu: it isn't a multiple of 16 bytes"
        );
        assert!(message(16, &[usize::MAX, 2]).contains("larger than the address space"));
    }

    #[test]
    fn prints_as_nested_brackets() {
        let host = |shape: &[usize]| HostTensor {
            elements: (0..shape.iter().product::<usize>()).collect(),
            shape: shape.to_vec(),
        };
        assert_eq!(host(&[2, 6]).to_string(), "[[ 0,  1,  2,  3,  4,  5],\n [ 6,  7,  8,  9, 10, 11]]");
        assert_eq!(host(&[2, 1, 2]).to_string(), "[[[0, 1]],\n\n [[2, 3]]]");
        assert_eq!(host(&[2000]).to_string(), "[   0,    1,    2, …, 1997, 1998, 1999]");
        assert_eq!(host(&[]).to_string(), "0");
        assert_eq!(host(&[0]).to_string(), "[]");
        let floats = HostTensor { elements: vec![0.5f32, 12.25], shape: vec![2] };
        assert_eq!(format!("{floats:.1}"), "[ 0.5, 12.2]");
    }

    #[cfg(feature = "ndarray")]
    #[test]
    fn ndarray_round_trip_keeps_the_logical_order() {
        let array = ndarray::arr2(&[[1, 2, 3], [4, 5, 6]]);
        let tensor = Tensor::from_ndarray(&Device::cpu(), &array.t()).unwrap();
        assert_eq!((tensor.shape(), tensor.to_vec().unwrap()), (&[3, 2][..], vec![1, 4, 2, 5, 3, 6]));
        assert_eq!(tensor.to_ndarray().unwrap(), array.t().into_dyn());
    }
}
