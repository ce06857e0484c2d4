//! NumPy's files: one array in a `.npy`, several by name in a `.npz`, which is a ZIP archive of the former.
//!
//! The format is that of `numpy.lib.format`. NumPy has no `bf16` and no floats of 8 bits; such tensors are refused.

use super::Stored;
use super::stored::{elements, refused};
use crate::device::Device;
use crate::element::Element;
use crate::error::Result;
use crate::tensor::Tensor;
use npyz::{NpyHeader, Order, WriteOptions, WriterBuilder};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use tile_ir::DType;
use zip::{CompressionMethod, ZipArchive, ZipWriter, write::SimpleFileOptions};

/// NumPy's name of a format: byte order, kind and bytes.
fn numpy_name(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Bool => "|b1",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        _ => return None,
    })
}

impl<T: Element> Tensor<T> {
    /// The array of a `.npy` file on a device. One in Fortran's order has the strides of that.
    ///
    /// ```
    /// use tile_runtime::{Device, Tensor, interchange::npy};
    /// let path = std::env::temp_dir().join(format!("tile-{}.npy", std::process::id()));
    /// let x = Tensor::from_vec(&Device::cpu(), vec![1.5f32, 2.5, 3.5], [3, 1])?;
    /// npy::write(&path, &x.t()?)?;
    /// assert_eq!(Tensor::<f32>::read_npy(&Device::cpu(), &path)?.to_host()?.to_string(), "[[1.5, 2.5, 3.5]]");
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), tile_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::File`] where the file can't be read or holds elements of another format; as [`Tensor::zeros`]
    /// else.
    pub fn read_npy(device: &Device, path: impl AsRef<Path>) -> Result<Tensor<T>> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| refused(path, error.to_string()))?;
        read(device, path, BufReader::new(file))
    }
}

/// Writes a `.npy` file.
///
/// # Errors
/// [`crate::Error::File`] where NumPy has no such elements or the file can't be written; as
/// [`Tensor::to_vec`](crate::TensorRef::to_vec) else.
pub fn write(path: impl AsRef<Path>, tensor: &dyn Stored) -> Result<()> {
    let path = path.as_ref();
    let file = File::create(path).map_err(|error| refused(path, error.to_string()))?;
    write_to(path, BufWriter::new(file), tensor)
}

/// Writes a `.npz` file with arrays of these names, uncompressed as `numpy.savez` does.
///
/// ```
/// use tile_runtime::{Device, Tensor, interchange::npy};
/// let path = std::env::temp_dir().join(format!("tile-{}.npz", std::process::id()));
/// let device = Device::cpu();
/// let (weights, steps) = (Tensor::full(&device, [2, 2], 0.5f32)?, Tensor::from_iter(&device, [7u64])?);
/// npy::write_all(&path, &[("weights", &weights), ("steps", &steps)])?;
/// let mut file = npy::Archive::open(&path)?;
/// assert_eq!(file.names(), ["weights", "steps"]);
/// assert_eq!(file.tensor::<u64>(&device, "steps")?.to_vec()?, [7]);
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), tile_runtime::Error>(())
/// ```
///
/// # Errors
/// As [`write()`].
pub fn write_all(path: impl AsRef<Path>, tensors: &[(&str, &dyn Stored)]) -> Result<()> {
    let path = path.as_ref();
    let file = File::create(path).map_err(|error| refused(path, error.to_string()))?;
    let failed = |error: zip::result::ZipError| refused(path, error.to_string());
    let mut archive = ZipWriter::new(BufWriter::new(file));
    // Members may be larger than the 4 GiB of the oldest ZIP.
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
    for (name, tensor) in tensors {
        archive.start_file(format!("{name}.npy"), options).map_err(failed)?;
        write_to(path, &mut archive, *tensor)?;
    }
    archive.finish().map(drop).map_err(failed)
}

/// An open `.npz` file.
pub struct Archive {
    path: PathBuf,
    archive: ZipArchive<BufReader<File>>,
}

impl Archive {
    /// Opens a file and reads the list of its arrays.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn open(path: impl AsRef<Path>) -> Result<Archive> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| refused(path, error.to_string()))?;
        let archive = ZipArchive::new(BufReader::new(file));
        let archive = archive.map_err(|error| refused(path, error.to_string()))?;
        Ok(Archive { path: path.to_owned(), archive })
    }

    /// The names of the arrays, in the file's order.
    pub fn names(&self) -> Vec<String> {
        let names = self.archive.file_names().flatten();
        names.map(|name| name.strip_suffix(".npy").unwrap_or(&name).to_owned()).collect()
    }

    /// The array of a name, on a device.
    ///
    /// # Errors
    /// [`crate::Error::File`] where there is none, or one of another format; as [`Tensor::zeros`] else.
    pub fn tensor<T: Element>(&mut self, device: &Device, name: &str) -> Result<Tensor<T>> {
        let held = || format!("it holds no array `{name}`, but {:?}", self.names());
        let missing = (!self.names().iter().any(|held| held == name)).then(held);
        if let Some(problem) = missing {
            return Err(refused(&self.path, problem));
        }
        let member = self.archive.by_name(&format!("{name}.npy"));
        let member = member.map_err(|error| refused(&self.path, error.to_string()))?;
        read(device, &self.path, member)
    }
}

fn read<T: Element>(device: &Device, path: &Path, mut file: impl Read) -> Result<Tensor<T>> {
    let failed = |error: std::io::Error| refused(path, error.to_string());
    let header = header(&mut file).map_err(failed)?;
    let (given, wanted) = (header.dtype().descr(), numpy_name(T::DTYPE).unwrap_or("no format of NumPy"));
    if given != format!("'{wanted}'") {
        let problem = format!("its elements are {given}, and {} is '{wanted}'", T::DTYPE.rust_name());
        return Err(refused(path, problem));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    let elements =
        elements::<T>(&bytes).filter(|elements| elements.len() as u64 == header.len()).ok_or_else(|| {
            refused(path, format!("it holds {} bytes of {} elements", bytes.len(), header.len()))
        })?;
    let mut shape: Vec<usize> = header.shape().iter().map(|&extent| extent as usize).collect();
    match header.order() {
        Order::C => Tensor::from_vec(device, elements, shape),
        Order::Fortran => {
            shape.reverse();
            Tensor::from_vec(device, elements, shape)?.into_reversed_axes()
        }
    }
}

/// Reads the header of an array. Its extents are looked at first: `npyz` multiplies them, in either order, and doesn't ask
/// whether the product has room, be the last factor 0.
fn header(file: &mut impl Read) -> io::Result<NpyHeader> {
    let mut bytes = Vec::new();
    let mut more = |count: u64, bytes: &mut Vec<u8>| file.by_ref().take(count).read_to_end(bytes);
    // The magic string, and a version, of which the first has two bytes for the length of the text and others four.
    more(8, &mut bytes)?;
    let counted = if bytes.get(6) == Some(&1) { 2 } else { 4 };
    more(counted, &mut bytes)?;
    let length = bytes.iter().skip(8).rev().fold(0, |length, &byte| length << 8 | u64::from(byte));
    more(length, &mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let shape = text.split("shape").nth(1).and_then(|rest| rest.split(['(', ')']).nth(1)).unwrap_or("");
    let mut extents = shape.split(',').filter_map(|extent| extent.trim().parse::<u64>().ok());
    if extents.try_fold(1u64, |count, extent| count.checked_mul(extent.max(1))).is_none() {
        return Err(io::Error::other(format!("its shape ({shape}) has more elements than can be counted")));
    }
    NpyHeader::from_reader(&mut bytes.as_slice())
}

fn write_to(path: &Path, file: impl Write, tensor: &dyn Stored) -> Result<()> {
    let dtype = tensor.dtype();
    let name = numpy_name(dtype).ok_or_else(|| {
        refused(
            path,
            format!("NumPy has no {}; convert the tensor, or write a .safetensors", dtype.rust_name()),
        )
    })?;
    let failed = |error: std::io::Error| refused(path, error.to_string());
    let shape: Vec<u64> = tensor.shape().iter().map(|&extent| extent as u64).collect();
    let scalar = name.parse().expect("the names are NumPy's");
    let mut file = WriteOptions::new_header_only()
        .dtype(npyz::DType::new_scalar(scalar))
        .shape(&shape)
        .writer(file)
        .write_header_only()
        .map_err(failed)?;
    file.write_all(&tensor.bytes()?).and_then(|()| file.flush()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(shape: &str, elements: &[f32]) -> Vec<u8> {
        let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
        let length = u16::try_from(text.len()).unwrap().to_le_bytes();
        let bytes = elements.iter().flat_map(|element| element.to_le_bytes());
        b"\x93NUMPY\x01\x00".iter().copied().chain(length).chain(text.into_bytes()).chain(bytes).collect()
    }

    fn read_file(bytes: &[u8]) -> Result<Tensor<f32>> {
        read(&Device::cpu(), Path::new("x.npy"), bytes)
    }

    #[test]
    fn a_shape_that_the_elements_do_not_fill_is_said() {
        let message = |shape| read_file(&file(shape, &[1.0, 2.0])).unwrap_err().to_string();
        assert_eq!(read_file(&file("(2, 1)", &[1.0, 2.0])).unwrap().to_vec().unwrap(), [1.0, 2.0]);
        assert_eq!(message("(3,)"), "`x.npy`: it holds 8 bytes of 3 elements");
        assert_eq!(
            message("(4294967296, 8589934592)"),
            "`x.npy`: its shape (4294967296, 8589934592) has more elements than can be counted"
        );
        assert!(message("(0, 4294967296, 8589934592)").ends_with("has more elements than can be counted"));
        assert!(message("(4294967296, 8589934592, 0)").ends_with("has more elements than can be counted"));
    }

    /// Cut off anywhere, or with any byte exchanged for what means something in a header, a file is read or refused.
    #[test]
    #[cfg_attr(miri, ignore = "thousands of texts, and nothing unsafe")]
    fn damaged_files_are_errors() {
        let whole = file("(2, 1)", &[1.0, 2.0]);
        for place in 0..whole.len() {
            assert!(read_file(&whole[..place]).is_err(), "cut off at {place}");
            for byte in *b"\x00\xff9-,(){}'<f " {
                let mut damaged = whole.clone();
                damaged[place] = byte;
                if let Ok(tensor) = read_file(&damaged) {
                    assert_eq!(tensor.len(), 2, "byte {place} is {byte}");
                }
            }
        }
    }
}
