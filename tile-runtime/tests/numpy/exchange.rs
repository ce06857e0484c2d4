//! A library for `check.py`: tensors handed to NumPy and taken from it, in memory by DLPack and in its files.

use half::f16;
use std::ffi::{CStr, c_char};
use tile_runtime::interchange::dlpark::Managed;
use tile_runtime::interchange::dlpark::ffi::DLManagedTensorVersioned;
use tile_runtime::interchange::npy;
use tile_runtime::{Device, Element, Result, Tensor};

/// 0, 1, 2, … as a tensor of shape [2, 3, 4].
fn counted<T: Element>() -> Result<Tensor<T>> {
    let elements: Vec<T> = (0..24).map(T::from_int).collect();
    Tensor::from_vec(&Device::cpu(), elements, [2, 3, 4])
}

/// What is exported under a number; null for an unknown one, or on an error.
#[unsafe(no_mangle)]
pub extern "C" fn exported(number: u32) -> *mut DLManagedTensorVersioned {
    let tensor = match number {
        0 => counted::<i8>().and_then(Tensor::into_dlpack),
        1 => counted::<u16>().and_then(Tensor::into_dlpack),
        2 => counted::<i64>().and_then(Tensor::into_dlpack),
        3 => counted::<f16>().and_then(Tensor::into_dlpack),
        4 => counted::<f32>().and_then(Tensor::into_dlpack),
        5 => counted::<f64>().and_then(Tensor::into_dlpack),
        6 => counted::<f32>().and_then(Tensor::into_reversed_axes).and_then(Tensor::into_dlpack),
        7 => Tensor::<f32>::zeros(&Device::cpu(), [3, 0]).and_then(Tensor::into_dlpack),
        8 => Tensor::full(&Device::cpu(), [2], true).and_then(Tensor::into_dlpack),
        _ => return std::ptr::null_mut(),
    };
    tensor.map_or(std::ptr::null_mut(), Managed::into_raw)
}

/// Takes a tensor of `f32` and gives Σ element · (position + 1), counted in row-major order; NaN on an error. Doubles
/// every element where `doubled` is set.
///
/// # Safety
/// The pointer is that of a tensor that nobody else uses, and isn't used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taken(tensor: *mut DLManagedTensorVersioned, doubled: bool) -> f64 {
    // SAFETY: the caller hands the tensor over.
    let Ok(tensor) = (unsafe { Managed::from_raw(tensor) }) else { return f64::NAN };
    // SAFETY: nobody else uses the tensor.
    let Ok(mut tensor) = (unsafe { Tensor::<f32>::from_dlpack(tensor) }) else { return f64::NAN };
    let elements = tensor.to_vec().unwrap_or_default();
    if doubled {
        let doubles: Vec<f32> = elements.iter().map(|x| 2.0 * x).collect();
        if tensor.copy_from_slice(&doubles).is_err() {
            return f64::NAN;
        }
    }
    elements.iter().zip(1..).map(|(&x, position)| f64::from(x) * f64::from(position)).sum()
}

fn copied<T: Element>(source: &str, target: &str) -> Result<()> {
    let tensor = Tensor::<T>::read_npy(&Device::cpu(), source)?;
    npy::write(target, &tensor.into_reversed_axes()?)
}

fn copied_as(format: &str, source: &str, target: &str) -> Result<()> {
    match format {
        "bool" => copied::<bool>(source, target),
        "int16" => copied::<i16>(source, target),
        "uint64" => copied::<u64>(source, target),
        "float16" => copied::<f16>(source, target),
        "float32" => copied::<f32>(source, target),
        _ => copied::<f64>(source, target),
    }
}

/// Reads a `.npy` file with elements of a format that NumPy names and writes it with its axes reversed; whether that
/// went well.
///
/// # Safety
/// The pointers are those of texts that end with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reversed(
    format: *const c_char,
    source: *const c_char,
    target: *const c_char,
) -> bool {
    // SAFETY: the caller vouches for the texts.
    let text = |pointer| unsafe { CStr::from_ptr(pointer) }.to_str().unwrap_or_default();
    match copied_as(text(format), text(source), text(target)) {
        Ok(()) => true,
        Err(error) => {
            eprintln!("{error}");
            false
        }
    }
}

/// Reads the arrays `a` (`f32`) and `b` (`i64`) of a `.npz` file and writes them to another under each other's name.
///
/// # Safety
/// As [`reversed`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exchanged(source: *const c_char, target: *const c_char) -> bool {
    // SAFETY: the caller vouches for the texts.
    let text = |pointer| unsafe { CStr::from_ptr(pointer) }.to_str().unwrap_or_default();
    let exchange = || {
        let archive = npy::Archive::open(text(source))?;
        let a = archive.tensor::<f32>(&Device::cpu(), "a")?;
        let b = archive.tensor::<i64>(&Device::cpu(), "b")?;
        npy::write_all(text(target), &[("a", &b), ("b", &a)])
    };
    exchange().inspect_err(|error| eprintln!("{error}")).is_ok()
}
