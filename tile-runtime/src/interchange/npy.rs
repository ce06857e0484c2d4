//! NumPy's files: one array in a `.npy`, several by name in a `.npz`, which is a ZIP archive of the former.
//!
//! The format is that of `numpy.lib.format`. NumPy has no `bf16` and no floats of 8 bits; such tensors are refused.

mod header;

use super::stored::{Problem, check_names, read_tensor, refused};
use super::{Info, Stored};
use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use header::Header;
use npyz::{WriteOptions, WriterBuilder};
use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tile_ir::DType;
use zip::read::ZipFile;
use zip::{CompressionMethod, ZipArchive, ZipWriter, result::ZipError, write::SimpleFileOptions};

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
    /// # use tile_runtime as tile;
    /// use tile::{Device, Tensor, interchange::npy};
    /// let path = std::env::temp_dir().join(format!("tile-{}.npy", std::process::id()));
    /// let x = Tensor::from_vec(&Device::cpu(), vec![1.5f32, 2.5, 3.5], [3, 1])?;
    /// npy::write(&path, &x.t()?)?;
    /// assert_eq!(Tensor::<f32>::read_npy(&Device::cpu(), &path)?.to_host()?.to_string(), "[[1.5, 2.5, 3.5]]");
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::File`] where the file can't be read or holds elements of another format; as [`Tensor::zeros`]
    /// else.
    pub fn read_npy(device: &Device, path: impl AsRef<Path>) -> Result<Tensor<T>> {
        let path = path.as_ref();
        let failed = |error: io::Error| refused(path, error);
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        // A pipe says nothing of what comes.
        let bytes = metadata.is_file().then_some(metadata.len());
        read(device, BufReader::new(file), bytes, &|problem| refused(path, problem))
    }
}

/// Writes a `.npy` file. A file that is there stays as it is where NumPy has no such elements, or they can't be read.
///
/// # Errors
/// [`crate::Error::File`] where NumPy has no such elements or the file can't be written; as
/// [`Tensor::to_vec`](crate::TensorRef::to_vec) else.
pub fn write(path: impl AsRef<Path>, tensor: &dyn Stored) -> Result<()> {
    let path = path.as_ref();
    let array = Array::of(path, tensor)?;
    let file = File::create(path).map_err(|error| refused(path, error))?;
    array.write(path, BufWriter::new(file))
}

/// Writes a `.npz` file with arrays of these names, uncompressed as `numpy.savez` does. A file that is there stays as it is
/// where NumPy has no such elements, they can't be read, or two arrays have one name: all are read before the first is written.
///
/// ```
/// # use tile_runtime as tile;
/// use tile::{Device, Tensor, interchange::npy};
/// let path = std::env::temp_dir().join(format!("tile-{}.npz", std::process::id()));
/// let device = Device::cpu();
/// let (weights, steps) = (Tensor::full(&device, [2, 2], 0.5f32)?, Tensor::from_iter(&device, [7u64])?);
/// npy::write_all(&path, &[("weights", &weights), ("steps", &steps)])?;
/// let file = npy::Archive::open(&path)?;
/// assert_eq!(file.names(), ["weights", "steps"]);
/// assert_eq!(file.tensor::<u64>(&device, "steps")?.to_vec()?, [7]);
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), tile::Error>(())
/// ```
///
/// # Errors
/// As [`write()`]; [`crate::Error::File`] where two arrays have one name.
pub fn write_all(path: impl AsRef<Path>, tensors: &[(&str, &dyn Stored)]) -> Result<()> {
    let path = path.as_ref();
    check_names(path, tensors)?;
    let arrays = tensors.iter().map(|(name, tensor)| Ok((*name, Array::of(path, *tensor)?)));
    let arrays: Vec<_> = arrays.collect::<Result<_>>()?;
    let file = File::create(path).map_err(|error| refused(path, error))?;
    write_archive(path, BufWriter::new(file), &arrays)
}

fn write_archive(path: &Path, file: impl Write + Seek, arrays: &[(&str, Array<'_>)]) -> Result<()> {
    let failed = |error: ZipError| refused(path, error);
    let mut archive = ZipWriter::new(file);
    // Members may be larger than the 4 GiB of the oldest ZIP.
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
    for (name, array) in arrays {
        archive.start_file(format!("{name}.npy"), options).map_err(failed)?;
        array.write(path, &mut archive)?;
    }
    let mut file = archive.finish().map_err(failed)?;
    // Dropped, it would keep to itself that there was no room for the list of members.
    file.flush().map_err(|error| refused(path, error))
}

impl From<ZipError> for Problem {
    fn from(error: ZipError) -> Problem {
        match error {
            ZipError::Io(error) => error.into(),
            error => error.to_string().into(),
        }
    }
}

/// An open `.npz` file: an array is read when it is asked for. What several threads ask for is read one after the other.
pub struct Archive {
    path: PathBuf,
    /// The members' names, in the file's order.
    members: Vec<String>,
    archive: Mutex<ZipArchive<BufReader<File>>>,
}

impl Archive {
    /// Opens a file and reads the list of its arrays.
    ///
    /// # Errors
    /// [`crate::Error::File`].
    pub fn open(path: impl AsRef<Path>) -> Result<Archive> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| refused(path, error))?;
        let archive = ZipArchive::new(BufReader::new(file));
        let archive = archive.map_err(|error| refused(path, error))?;
        let members = archive.file_names().flatten().map(|name| name.into_owned()).collect();
        Ok(Archive { path: path.to_owned(), members, archive: Mutex::new(archive) })
    }

    /// The names of the arrays, in the file's order.
    pub fn names(&self) -> Vec<String> {
        let names = self.members.iter().map(|name| name.strip_suffix(".npy").unwrap_or(name));
        names.map(str::to_owned).collect()
    }

    /// What there is under a name; `None` where there is nothing, or no array: [`Archive::tensor`] says why. Of the array only
    /// its header is read.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Tensor, interchange::npy};
    /// let path = std::env::temp_dir().join(format!("tile-info-{}.npz", std::process::id()));
    /// npy::write_all(&path, &[("weights", &Tensor::<f32>::zeros(&Device::cpu(), [2, 3])?)])?;
    /// let file = npy::Archive::open(&path)?;
    /// let info = file.info("weights").expect("it is there");
    /// assert_eq!((info.dtype, info.format.as_str()), (Some(tile::ir::DType::F32), "<f4"));
    /// assert_eq!((info.shape, file.info("bias")), (vec![2, 3], None));
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), tile::Error>(())
    /// ```
    pub fn info(&self, name: &str) -> Option<Info> {
        let header = self.with_member(name, |mut member| {
            Header::read(&mut member).map_err(|error| refused(&self.path, error))
        });
        let Header { format, shape, .. } = header.ok()?;
        let of_format = |&dtype: &DType| numpy_name(dtype) == Some(named(&format, dtype).as_ref());
        let dtype = DType::ALL.iter().copied().find(of_format);
        Some(Info { dtype, format, shape: shape.into_iter().map(|extent| extent as usize).collect() })
    }

    /// The array of a name, on a device.
    ///
    /// # Errors
    /// [`crate::Error::File`] where there is none, or one of another format; as [`Tensor::zeros`] else.
    pub fn tensor<T: Element>(&self, device: &Device, name: &str) -> Result<Tensor<T>> {
        let of_member =
            |problem: Problem| Problem { text: format!("array `{name}`: {}", problem.text), ..problem };
        let refused = |problem| refused(&self.path, of_member(problem));
        self.with_member(name, |member| {
            let bytes = member.size();
            read(device, member, Some(bytes), &refused)
        })
    }

    /// What is made of the member of an array.
    fn with_member<R>(
        &self,
        name: &str,
        made: impl FnOnce(ZipFile<'_, BufReader<File>>) -> Result<R>,
    ) -> Result<R> {
        // A panic leaves nothing but a position in the file, which every member begins with.
        let mut archive = self.archive.lock().unwrap_or_else(PoisonError::into_inner);
        let number = archive.index_for_name(&format!("{name}.npy")).or_else(|| archive.index_for_name(name));
        let missing = || refused(&self.path, format!("it holds no array `{name}`, but {:?}", self.names()));
        let member = archive.by_index(number.ok_or_else(missing)?);
        made(member.map_err(|error| refused(&self.path, error))?)
    }
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive").field("path", &self.path).field("names", &self.names()).finish()
    }
}

/// A header's format as NumPy would name it if it is one of these elements: a byte has no order, whatever is written of one.
fn named(format: &str, dtype: DType) -> Cow<'_, str> {
    match (dtype.bytes(), format.strip_prefix(['<', '>'])) {
        (1, Some(kind)) => Cow::Owned(format!("|{kind}")),
        _ => Cow::Borrowed(format),
    }
}

/// The array of a file of so many bytes, where that is known; `refused` says of which.
fn read<T: Element>(
    device: &Device,
    file: impl Read,
    bytes: Option<u64>,
    refused: &dyn Fn(Problem) -> Error,
) -> Result<Tensor<T>> {
    let failed = |error: io::Error| refused(error.into());
    let mut file = file.take(bytes.unwrap_or(u64::MAX));
    let Header { format, is_fortran, shape, count } = Header::read(&mut file).map_err(failed)?;
    let (wanted, name) = (numpy_name(T::DTYPE), T::DTYPE.rust_name());
    if wanted != Some(named(&format, T::DTYPE).as_ref()) {
        let wanted = wanted.map_or_else(|| format!("NumPy has no {name}"), |it| format!("{name} is '{it}'"));
        return Err(refused(format!("its elements are '{format}', and {wanted}").into()));
    }
    // Looked at first, because a header may ask for any amount of memory.
    let held = file.limit();
    if bytes.is_some() && count.checked_mul(size_of::<T>() as u64) != Some(held) {
        return Err(refused(format!("it holds {held} bytes of {count} elements").into()));
    }
    let mut shape: Vec<usize> = shape.into_iter().map(|extent| extent as usize).collect();
    if is_fortran {
        shape.reverse();
    }
    let tensor = read_tensor(device, &shape, |part| file.read_exact(part), refused)?;
    // An archive compares its checksum where a member ends.
    match file.into_inner().read(&mut [0]).map_err(failed)? {
        0 if is_fortran => tensor.into_reversed_axes(),
        0 => Ok(tensor),
        _ => Err(refused(format!("it goes on behind its {count} elements").into())),
    }
}

/// NumPy's name of a tensor's format.
fn format_of(path: &Path, tensor: &dyn Stored) -> Result<&'static str> {
    let dtype = tensor.dtype();
    let none = || {
        refused(
            path,
            format!("NumPy has no {}; convert the tensor, or write a .safetensors", dtype.rust_name()),
        )
    };
    numpy_name(dtype).ok_or_else(none)
}

/// What a tensor is in a file.
struct Array<'t> {
    /// NumPy's name of it.
    format: &'static str,
    shape: &'t [usize],
    bytes: Vec<u8>,
}

impl<'t> Array<'t> {
    /// Reads a tensor that a file of this path is to have.
    fn of(path: &Path, tensor: &'t dyn Stored) -> Result<Array<'t>> {
        let format = format_of(path, tensor)?;
        Ok(Array { format, shape: tensor.shape(), bytes: tensor.bytes()? })
    }

    fn write(&self, path: &Path, file: impl Write) -> Result<()> {
        let failed = |error: io::Error| refused(path, error);
        let shape: Vec<u64> = self.shape.iter().map(|&extent| extent as u64).collect();
        let scalar = self.format.parse().expect("the names are NumPy's");
        let mut file = WriteOptions::new_header_only()
            .dtype(npyz::DType::new_scalar(scalar))
            .shape(&shape)
            .writer(file)
            .write_header_only()
            .map_err(failed)?;
        file.write_all(&self.bytes).and_then(|()| file.flush()).map_err(failed)
    }
}

#[cfg(test)]
mod tests;
