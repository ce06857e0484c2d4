//! The shared library's functions for other languages (C ABI). `bench.py` calls them.
//!
//! A function gives 0, or −1 where something is wrong, which [`h200_message`] then says.

use crate::problem::{Problem, Result};
use crate::table::{ROWS, description};
use crate::tensors::AnyTensor;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::OnceLock;
use tile::{Device, Stream};

/// A row with its tensors.
pub struct Prepared {
    problem: &'static dyn Problem,
    tensors: Vec<AnyTensor>,
    device: Device,
    /// The stream of the launch before, which the next one seldom differs from.
    stream: Option<(*mut c_void, Stream)>,
}

impl Prepared {
    /// A stream, by its handle; none elsewhere than on a GPU.
    ///
    /// # Safety
    /// On a GPU, the handle is that of a stream of its primary context, which is there until this value is dropped or takes another.
    unsafe fn take_stream(&mut self, handle: *mut c_void) -> Result<()> {
        if self.device.name().starts_with("cuda")
            && self.stream.as_ref().is_none_or(|known| known.0 != handle)
        {
            // SAFETY: the caller vouches for the stream.
            self.stream = Some((handle, unsafe { Stream::from_raw(&self.device, handle) }?));
        }
        Ok(())
    }
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

fn code_of(result: Result<()>) -> i32 {
    let Err(error) = result else { return 0 };
    // A message with a NUL byte ends there.
    let text: Vec<u8> = error.to_string().into_bytes().into_iter().take_while(|&byte| byte != 0).collect();
    MESSAGE.with_borrow_mut(|message| *message = CString::new(text).unwrap_or_default());
    -1
}

/// What went wrong in the last call of this thread that failed. The text is there until the next one.
#[unsafe(no_mangle)]
pub extern "C" fn h200_message() -> *const c_char {
    MESSAGE.with_borrow(|message| message.as_ptr())
}

/// The rows, as JSON: [`description`]. The text is there as long as the library.
#[unsafe(no_mangle)]
pub extern "C" fn h200_rows() -> *const c_char {
    static ROWS_TEXT: OnceLock<CString> = OnceLock::new();
    ROWS_TEXT.get_or_init(|| CString::new(description().to_string()).unwrap_or_default()).as_ptr()
}

/// Gives a row its tensors: the addresses of `count` dense row-major tensors on a device (`cuda:0`, `cpu`), in the
/// order of [`h200_rows`], for one of the sizes that this lists. Writes a handle for [`h200_launch`] to `prepared`.
///
/// # Safety
/// `device` is a C string; `addresses` are `count` numbers and `prepared` has room for a handle. At the addresses is
/// device memory for the tensors of that size, until [`h200_release`], and nobody else uses it during launches; inputs
/// have been written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h200_prepare(
    row: usize,
    size: usize,
    device: *const c_char,
    addresses: *const u64,
    count: usize,
    prepared: *mut *mut Prepared,
) -> i32 {
    let prepare = || {
        if device.is_null() || addresses.is_null() || prepared.is_null() {
            return Err("a pointer is null".into());
        }
        // SAFETY: the pointer isn't null, and the caller says that it is a C string.
        let name = unsafe { CStr::from_ptr(device) }.to_str()?;
        // SAFETY: the pointer isn't null, and the caller says how many numbers there are.
        let addresses = unsafe { std::slice::from_raw_parts(addresses, count) };
        // SAFETY: the caller vouches for the memory.
        let made = Box::new(unsafe { prepare(row, size, name, addresses) }?);
        // SAFETY: the pointer isn't null, and the caller says that it has room for a handle.
        unsafe { prepared.write(Box::into_raw(made)) };
        Ok(())
    };
    code_of(prepare())
}

/// # Safety
/// As [`h200_prepare`] says of memory at the addresses.
unsafe fn prepare(row: usize, size: usize, device: &str, addresses: &[u64]) -> Result<Prepared> {
    let row =
        ROWS.get(row).ok_or_else(|| format!("there are {} rows, and none of number {row}", ROWS.len()))?;
    let problem =
        row.sizes().nth(size).ok_or_else(|| format!("{} has no size of number {size}", row.name))?;
    let device = Device::named(device)?;
    let specs = problem.tensors();
    if specs.len() != addresses.len() {
        return Err(format!("{} takes {} tensors, not {}", row.name, specs.len(), addresses.len()).into());
    }
    let tensor = |(spec, &address)| {
        // SAFETY: the caller vouches for the memory.
        unsafe { AnyTensor::from_raw(&device, spec, address) }
    };
    let tensors = specs.iter().zip(addresses).map(tensor).collect::<Result<_>>()?;
    Ok(Prepared { problem, tensors, device, stream: None })
}

/// Runs a row: on a GPU its launches are enqueued on a stream (a `cudaStream_t`; null is the default one), elsewhere the
/// stream isn't looked at, and the results are there when this returns.
///
/// # Safety
/// `prepared` is a handle of [`h200_prepare`] that hasn't been released, and no other thread uses it now. On a GPU,
/// `stream` is a stream of its primary context, there until the handle is released or a launch is on another.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h200_launch(prepared: *mut Prepared, stream: *mut c_void) -> i32 {
    // SAFETY: the caller says that the handle is one, and that nobody else uses it; null is none.
    let Some(prepared) = (unsafe { prepared.as_mut() }) else {
        return code_of(Err("the handle is null".into()));
    };
    // SAFETY: the caller says that it is a stream.
    let taken = unsafe { prepared.take_stream(stream) };
    let Prepared { problem, tensors, stream, .. } = prepared;
    code_of(taken.and_then(|()| problem.launch(tensors, stream.as_ref().map(|(_, stream)| stream))))
}

/// Forgets a handle; null is none. The tensors' memory is the caller's.
///
/// # Safety
/// `prepared` is a handle of [`h200_prepare`] that isn't used any more, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn h200_release(prepared: *mut Prepared) {
    if !prepared.is_null() {
        // SAFETY: the caller says that it is a handle, which `h200_prepare` made of a box.
        drop(unsafe { Box::from_raw(prepared) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    fn message() -> String {
        // SAFETY: the message is a C string until the next call of this thread that fails.
        unsafe { CStr::from_ptr(h200_message()) }.to_str().unwrap().to_owned()
    }

    fn row(name: &str) -> usize {
        ROWS.iter().position(|row| row.name == name).unwrap()
    }

    /// The address of a tensor's memory, which begins at a multiple of 64 bytes.
    fn address(memory: &mut Vec<[f32; 16]>, elements: usize) -> (u64, usize) {
        *memory = vec![[f32::NAN; 16]; elements.div_ceil(16) + 1];
        let first = memory.as_ptr().cast::<f32>().align_offset(64);
        ((memory.as_mut_ptr() as usize + first * size_of::<f32>()) as u64, first)
    }

    #[test]
    fn a_row_runs_in_the_callers_memory() {
        let (rows, columns, row) = (70, 131, row("transpose-f32"));
        assert_eq!(ROWS[row].sizes().nth(2).unwrap().tensors()[0].shape, [rows, columns]);
        let (mut x, mut y) = (Vec::new(), Vec::new());
        let ((x_address, x_first), (y_address, y_first)) =
            (address(&mut x, rows * columns), address(&mut y, rows * columns));
        x.as_flattened_mut()[x_first..].iter_mut().enumerate().for_each(|(at, x)| *x = at as f32);
        let (addresses, mut handle) = ([x_address, y_address], ptr::null_mut());
        // SAFETY: the pointers are those of live values, the memory has room for the tensors, and nobody else uses it
        // until the handle is released.
        unsafe {
            assert_eq!(h200_prepare(row, 2, c"cpu".as_ptr(), addresses.as_ptr(), 2, &raw mut handle), 0);
            assert_eq!(h200_launch(handle, ptr::null_mut()), 0, "{}", message());
            h200_release(handle);
        }
        let y = &y.as_flattened()[y_first..];
        for (at, &y) in y[..rows * columns].iter().enumerate() {
            assert_eq!(y, (at % rows * columns + at / rows) as f32, "element {at}");
        }
        assert!(y[rows * columns].is_nan());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let mut handle = ptr::null_mut();
        let mut prepare = |row: usize, size, device: &CStr, addresses: &[u64]| {
            // SAFETY: the pointers are those of live values; no launch follows.
            let code = unsafe {
                h200_prepare(row, size, device.as_ptr(), addresses.as_ptr(), addresses.len(), &raw mut handle)
            };
            assert_eq!(code, -1);
            message()
        };
        assert_eq!(
            prepare(ROWS.len(), 0, c"cpu", &[]),
            format!("there are {0} rows, and none of number {0}", ROWS.len())
        );
        assert_eq!(prepare(0, 9, c"cpu", &[]), "gemm-nn-4096 has no size of number 9");
        assert_eq!(prepare(0, 0, c"cpu", &[64]), "gemm-nn-4096 takes 3 tensors, not 1");
        assert!(prepare(0, 0, c"gpu", &[64; 3]).contains("the names are cpu"));
        assert!(prepare(0, 0, c"cpu", &[64, 64, 7]).contains("isn't a multiple of 2 bytes"));
        // SAFETY: null is no handle.
        assert_eq!(unsafe { h200_launch(ptr::null_mut(), ptr::null_mut()) }, -1);
        assert_eq!(message(), "the handle is null");
        // SAFETY: null is no handle.
        unsafe { h200_release(ptr::null_mut()) };
    }

    #[test]
    fn rows_are_json() {
        // SAFETY: the text is a C string.
        let text = unsafe { CStr::from_ptr(h200_rows()) }.to_str().unwrap();
        let rows: serde_json::Value = serde_json::from_str(text).unwrap();
        let transpose = &rows["rows"][row("transpose-bf16")]["sizes"][0];
        assert_eq!(transpose["bytes"], 2.0 * 2.0 * 16384.0 * 16384.0);
        assert_eq!(transpose["tensors"][1]["shape"], serde_json::json!([16384, 16384]));
        assert_eq!(transpose["tensors"][1]["role"], "output");
        assert_eq!(rows["left_out"].as_array().unwrap().len(), crate::table::LEFT_OUT.len());
    }
}
