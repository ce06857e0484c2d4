//! New tensors: constants, sequences, random numbers, and the elements of the host's collections.

use super::transfer::{allocated, bytes};
use super::view::dense_of;
use super::{Tensor, memory};
use crate::device::{Device, Kind};
use crate::element::{Element, Float, Number};
use crate::error::{Error, Result};
use tile_ir::ops::philox::philox;

/// Elements that are made before a GPU is given them.
const PART: usize = 1 << 20;

/// Bytes of a file that are read before a tensor is given them. A processor's second cache keeps about as many.
#[cfg(any(feature = "npy", feature = "safetensors"))]
const READ_BYTES: usize = 1 << 20;

impl<T: Element> Tensor<T> {
    /// A tensor of zeros (`false` for `bool`).
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::OutOfMemory`]; [`Error::Stream`] inside of a graph's closure; [`Error::DeviceLost`] and
    /// [`Error::Driver`] if the device fails.
    pub fn zeros(device: &Device, shape: impl AsRef<[usize]>) -> Result<Tensor<T>> {
        let (memory, descriptor) = allocated::<T>(device, shape.as_ref(), memory::zeroed)?;
        Ok(Tensor::new(memory, descriptor))
    }

    /// A tensor of zeros in the host's memory, pinned there so that a GPU copies from and to it while the host goes on
    /// ([`TensorRef::copy_from_on`](crate::TensorRef::copy_from_on)), and faster than otherwise. It is a tensor of the CPU
    /// like others. Pages that are pinned are missing elsewhere; what is dropped is kept for the next one of its size
    /// ([`Device::trim`]). For the CPU and the reference device it is ordinary memory.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Tensor};
    /// let mut staged = Tensor::<f32>::pinned(&Device::best()?, [4])?;
    /// staged.as_mut_slice()?[0] = 1.0;
    /// assert_eq!((staged.device(), staged.to_vec()?), (&Device::cpu(), vec![1.0, 0.0, 0.0, 0.0]));
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::zeros`].
    pub fn pinned(device: &Device, shape: impl AsRef<[usize]>) -> Result<Tensor<T>> {
        let (memory, descriptor) = allocated::<T>(device, shape.as_ref(), memory::pinned)?;
        Ok(Tensor::new(memory, descriptor))
    }

    /// A tensor with every element equal to `value`.
    ///
    /// # Errors
    /// As [`Tensor::zeros`].
    pub fn full(device: &Device, shape: impl AsRef<[usize]>, value: T) -> Result<Tensor<T>> {
        let mut tensor = Tensor::zeros(device, shape)?;
        tensor.fill(value)?;
        Ok(tensor)
    }

    /// A tensor with the elements of a slice, in row-major order.
    ///
    /// # Errors
    /// [`Error::ElementCount`] if the slice doesn't fill the shape; as [`Tensor::zeros`] else.
    pub fn from_slice(device: &Device, elements: &[T], shape: impl AsRef<[usize]>) -> Result<Tensor<T>> {
        let shape = shape.as_ref();
        dense_of(elements, shape)?;
        let mut tensor = Tensor::zeros(device, shape)?;
        tensor.copy_from_slice(elements)?;
        Ok(tensor)
    }

    /// A tensor with the elements of a vector, in row-major order. They are copied, on the processor too: a tensor's memory
    /// begins a cache line and, if it is large, lies in huge pages, and a vector's does neither. Where a copy is too much,
    /// [`TensorView::of_slice`](crate::TensorView::of_slice) is a view of a vector where it lies.
    ///
    /// # Errors
    /// As [`Tensor::from_slice`].
    pub fn from_vec(device: &Device, elements: Vec<T>, shape: impl AsRef<[usize]>) -> Result<Tensor<T>> {
        Tensor::from_slice(device, &elements, shape)
    }

    /// A tensor whose bytes a function writes, a part after the other in row-major order. They are those of valid elements.
    #[cfg(any(feature = "npy", feature = "safetensors"))]
    pub(crate) fn from_parts(
        device: &Device,
        shape: &[usize],
        mut write: impl FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<Tensor<T>> {
        let mut tensor = Tensor::zeros(device, shape)?;
        let bytes = tensor.len() * size_of::<T>();
        let mut room = vec![0; bytes.min(READ_BYTES)];
        for first in (0..bytes).step_by(READ_BYTES) {
            let part = &mut room[..READ_BYTES.min(bytes - first)];
            write(part)?;
            tensor.location.write(first, part)?;
        }
        Ok(tensor)
    }

    /// A vector of what an iterator gives.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Tensor};
    /// let squares = Tensor::from_iter(&Device::cpu(), (1..=4).map(|i| i * i))?;
    /// assert_eq!(squares.into_shape([2, 2])?.to_host()?.to_string(), "[[ 1,  4],\n [ 9, 16]]");
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::zeros`].
    pub fn from_iter(device: &Device, elements: impl IntoIterator<Item = T>) -> Result<Tensor<T>> {
        let elements: Vec<T> = elements.into_iter().collect();
        let count = elements.len();
        Tensor::from_vec(device, elements, [count])
    }

    /// A tensor whose element at each index is what a function gives for it, called in row-major order.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Tensor};
    /// let tens = Tensor::from_fn(&Device::cpu(), [2, 3], |[i, j]| (10 * i + j) as f32)?;
    /// assert_eq!(tens.to_vec()?, [0.0, 1.0, 2.0, 10.0, 11.0, 12.0]);
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::zeros`], before the function is called.
    pub fn from_fn<const R: usize>(
        device: &Device,
        shape: [usize; R],
        mut element: impl FnMut([usize; R]) -> T,
    ) -> Result<Tensor<T>> {
        let mut tensor = Tensor::zeros(device, shape)?;
        let index_of = |mut place: usize| {
            let mut index = shape;
            for (position, extent) in index.iter_mut().zip(shape).rev() {
                *position = place % extent;
                place /= extent;
            }
            index
        };
        let elements: Vec<T> = (0..tensor.len()).map(|place| element(index_of(place))).collect();
        tensor.copy_from_slice(&elements)?;
        Ok(tensor)
    }
}

impl<T: Number> Tensor<T> {
    /// A tensor of ones.
    ///
    /// # Errors
    /// As [`Tensor::zeros`].
    pub fn ones(device: &Device, shape: impl AsRef<[usize]>) -> Result<Tensor<T>> {
        Tensor::full(device, shape, T::ONE)
    }

    /// The numbers from `start` on, `step` apart, as long as they are before `end`. Each is computed by itself, in `f64`
    /// for floats, so that no error adds up.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Tensor};
    /// let device = Device::cpu();
    /// assert_eq!(Tensor::arange(&device, 0, 5, 2)?.to_vec()?, [0, 2, 4]);
    /// assert_eq!(Tensor::arange(&device, 1.0f32, 0.0, -0.25)?.to_vec()?, [1.0, 0.75, 0.5, 0.25]);
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Sequence`] where `step` is 0 or not finite, or a bound isn't; as [`Tensor::zeros`] else.
    pub fn arange(device: &Device, start: T, end: T, step: T) -> Result<Tensor<T>> {
        let refused = || Error::Sequence {
            sequence: format!("from {start} to {end} in steps of {step}"),
            problem: "it has no number of elements; the step must not be 0, and all three be finite"
                .to_owned(),
        };
        if T::DTYPE.is_float() {
            let (start, end, step) = (start.to_float(), end.to_float(), step.to_float());
            let count = match end - start {
                distance if distance.is_finite() => (distance / step).ceil(),
                // Between two numbers of which one is below 0 it may be more than any number, in how few steps ever.
                _ => (end / step - start / step).ceil(),
            };
            // An infinite step divides every distance to 0.
            if !count.is_finite() || !step.is_finite() || step == 0.0 {
                return Err(refused());
            }
            let element = |i: u64| match i as f64 * step {
                distance if distance.is_finite() => T::from_float(start + distance),
                // Half of it is a number.
                _ => T::from_float(2.0 * (step / 2.0).mul_add(i as f64, start / 2.0)),
            };
            // Where the format rounds, numbers before the end may become it. The quotient is rounded as well, so there may be
            // one more.
            let is_before = |i: u64| match step > 0.0 {
                true => element(i).to_float() < end,
                false => element(i).to_float() > end,
            };
            let count = first_without((count.max(0.0) as u64).saturating_add(1), is_before);
            return generated(device, &[usize::try_from(count).unwrap_or(usize::MAX)], element);
        }
        let (start, end, step) = (start.to_int(), end.to_int(), step.to_int());
        if step == 0 {
            return Err(refused());
        }
        let count = (end - start + step - step.signum()) / step;
        let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
        generated(device, &[count], |i| T::from_int(start + i128::from(i) * step))
    }
}

impl<T: Float> Tensor<T> {
    /// So many numbers from `start` to `end`, both included, equally far apart.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Tensor};
    /// assert_eq!(Tensor::linspace(&Device::cpu(), 0.0f32, 1.0, 5)?.to_vec()?, [0.0, 0.25, 0.5, 0.75, 1.0]);
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::zeros`].
    pub fn linspace(device: &Device, start: T, end: T, count: usize) -> Result<Tensor<T>> {
        let (first, last) = (start.to_float(), end.to_float());
        let steps = (count.max(2) - 1) as f64;
        let is_wide = !((last - first) * steps).is_finite();
        let between = |i: f64| {
            if !is_wide {
                return first + (last - first) * i / steps;
            }
            // Half of the distance is a number where the distance is none, so it goes from the nearer end.
            let (from, to, steps_away) =
                if 2.0 * i <= steps { (first, last, i) } else { (last, first, steps - i) };
            let part = steps_away / steps;
            from + (to * part - from * part)
        };
        let at = |i: u64| match i + 1 == count as u64 && count > 1 {
            true => end,
            false => T::from_float(between(i as f64)),
        };
        generated(device, &[count], at)
    }

    /// Random numbers, equally likely everywhere in [0, 1). Element `i` is made of word 0 of Philox4x32-10 with counter
    /// `i` and key `seed`, as a kernel's `philox(i, seed)` gives it: its high 24 bits, as a fraction.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Tensor};
    /// let x = Tensor::<f32>::random(&Device::cpu(), [100, 100], 7)?.to_vec()?;
    /// let mean = x.iter().sum::<f32>() / 10_000.0;
    /// assert!((mean - 0.5).abs() < 0.02 && x.iter().all(|x| (0.0..1.0).contains(x)));
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::zeros`].
    pub fn random(device: &Device, shape: impl AsRef<[usize]>, seed: u64) -> Result<Tensor<T>> {
        let below_one = T::from_float(1.0).to_float();
        let element = move |i: u64| {
            let value = T::from_float(fraction(words(i, seed)[0]));
            // A narrow format may round to 1, which is left out.
            if value.to_float() < below_one { value } else { T::ZERO }
        };
        generated(device, shape.as_ref(), element)
    }

    /// Random numbers, normally distributed with mean 0 and standard deviation 1. Element `i` is made of words 0 and 1 of
    /// Philox4x32-10 with counter `i` and key `seed`, by Box and Muller's method as a kernel's `random_normal_at(i, seed)`
    /// does it, of the same numbers in f32: of f32 it is the same within the accuracy of that one's `log` and `cos`, and
    /// other formats are rounded from the same.
    ///
    /// # Errors
    /// As [`Tensor::zeros`].
    pub fn normal(device: &Device, shape: impl AsRef<[usize]>, seed: u64) -> Result<Tensor<T>> {
        let element = move |i: u64| {
            let [first, second] = words(i, seed);
            // Of (0, 1], so that the logarithm is finite. Close to 1 it is what rounding to f32 leaves of it, as in a kernel.
            let chance = f64::from(first as f32 + 1.0) * 2f64.powi(-32);
            let radius = (-2.0 * chance.ln()).sqrt();
            T::from_float(radius * (std::f64::consts::TAU * fraction(second)).cos())
        };
        generated(device, shape.as_ref(), element)
    }
}

impl<T: Number> Tensor<T> {
    /// The identity matrix of so many rows.
    ///
    /// # Errors
    /// As [`Tensor::zeros`].
    pub fn eye(device: &Device, rows: usize) -> Result<Tensor<T>> {
        let mut matrix = Tensor::zeros(device, [rows, rows])?;
        let diagonal = matrix.view_mut().moved(|view| match rows {
            0 => Ok(view.clone()),
            _ => tile_layout::Movement::diagonal(view, 0, 0, 1),
        });
        diagonal?.fill(T::ONE)?;
        Ok(matrix)
    }
}

/// The first of so many numbers for which something doesn't hold that holds for all before it, or how many there are.
fn first_without(count: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut least, mut most) = (0, count);
    while least < most {
        let middle = least + (most - least) / 2;
        if holds(middle) { least = middle + 1 } else { most = middle }
    }
    least
}

/// A tensor whose elements are made of their numbers, where they lie; for a GPU, a part after the other.
fn generated<T: Element>(device: &Device, shape: &[usize], element: impl Fn(u64) -> T) -> Result<Tensor<T>> {
    let mut tensor = Tensor::zeros(device, shape)?;
    if !matches!(device.0, Kind::Gpu(_)) {
        let elements = tensor.as_mut_slice()?.iter_mut().zip(0..);
        elements.for_each(|(place, number)| *place = element(number));
        return Ok(tensor);
    }
    let count = tensor.len();
    for first in (0..count).step_by(PART) {
        let part: Vec<T> = (first..count.min(first + PART)).map(|number| element(number as u64)).collect();
        tensor.location.write(first * size_of::<T>(), bytes(&part))?;
    }
    Ok(tensor)
}

/// Words 0 and 1 of the generator.
fn words(position: u64, seed: u64) -> [u32; 2] {
    let both = philox(position, seed);
    [both as u32, (both >> 32) as u32]
}

/// A word's high 24 bits as a fraction of 1: every value is an `f32`.
fn fraction(word: u32) -> f64 {
    f64::from(word >> 8) / f64::from(1 << 24)
}
