//! NumPy's files: one array in a `.npy`, several by name in a `.npz`, which is a ZIP archive of the former.
//!
//! The format is that of `numpy.lib.format`. NumPy has no `bf16` and no floats of 8 bits; such tensors are refused.

mod header;

use super::Stored;
use super::stored::{Problem, check_names, elements, refused};
use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use header::Header;
use npyz::{WriteOptions, WriterBuilder};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use tile_ir::DType;
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
        let file = File::open(path).map_err(|error| refused(path, error))?;
        read(device, BufReader::new(file), &|problem| refused(path, problem))
    }
}

/// Writes a `.npy` file. A file that is there stays as it is where NumPy has no such elements.
///
/// # Errors
/// [`crate::Error::File`] where NumPy has no such elements or the file can't be written; as
/// [`Tensor::to_vec`](crate::TensorRef::to_vec) else.
pub fn write(path: impl AsRef<Path>, tensor: &dyn Stored) -> Result<()> {
    let path = path.as_ref();
    let format = format_of(path, tensor)?;
    let file = File::create(path).map_err(|error| refused(path, error))?;
    write_array(path, BufWriter::new(file), tensor, format)
}

/// Writes a `.npz` file with arrays of these names, uncompressed as `numpy.savez` does. A file that is there stays as it is
/// where NumPy has no such elements, or two arrays have one name.
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
/// As [`write()`]; [`crate::Error::File`] where two arrays have one name.
pub fn write_all(path: impl AsRef<Path>, tensors: &[(&str, &dyn Stored)]) -> Result<()> {
    let path = path.as_ref();
    check_names(path, tensors)?;
    let formats = tensors.iter().map(|(_, tensor)| format_of(path, *tensor));
    let formats: Vec<&str> = formats.collect::<Result<_>>()?;
    let file = File::create(path).map_err(|error| refused(path, error))?;
    write_archive(path, BufWriter::new(file), tensors, &formats)
}

fn write_archive(
    path: &Path,
    file: impl Write + Seek,
    tensors: &[(&str, &dyn Stored)],
    formats: &[&str],
) -> Result<()> {
    let failed = |error| refused_archive(path, error);
    let mut archive = ZipWriter::new(file);
    // Members may be larger than the 4 GiB of the oldest ZIP.
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
    for ((name, tensor), format) in tensors.iter().zip(formats) {
        archive.start_file(format!("{name}.npy"), options).map_err(failed)?;
        write_array(path, &mut archive, *tensor, format)?;
    }
    let mut file = archive.finish().map_err(failed)?;
    // Dropped, it would keep to itself that there was no room for the list of members.
    file.flush().map_err(|error| refused(path, error))
}

fn refused_archive(path: &Path, error: ZipError) -> Error {
    match error {
        ZipError::Io(error) => refused(path, error),
        error => refused(path, error.to_string()),
    }
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
        let file = File::open(path).map_err(|error| refused(path, error))?;
        let archive = ZipArchive::new(BufReader::new(file));
        let archive = archive.map_err(|error| refused_archive(path, error))?;
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
        let member = member.map_err(|error| refused_archive(&self.path, error))?;
        let of_member =
            |problem: Problem| Problem { text: format!("array `{name}`: {}", problem.text), ..problem };
        read(device, member, &|problem| refused(&self.path, of_member(problem)))
    }
}

/// The array of a file; `refused` says of which.
fn read<T: Element>(
    device: &Device,
    mut file: impl Read,
    refused: &dyn Fn(Problem) -> Error,
) -> Result<Tensor<T>> {
    let failed = |error: io::Error| refused(error.into());
    let Header { format, is_fortran, shape, count } = Header::read(&mut file).map_err(failed)?;
    let (wanted, name) = (numpy_name(T::DTYPE), T::DTYPE.rust_name());
    // A byte has no order, whatever is written of one.
    let given = match (size_of::<T>(), format.strip_prefix(['<', '>'])) {
        (1, Some(kind)) => format!("|{kind}"),
        _ => format.clone(),
    };
    if wanted != Some(given.as_str()) {
        let wanted = wanted.map_or_else(|| format!("NumPy has no {name}"), |it| format!("{name} is '{it}'"));
        return Err(refused(format!("its elements are '{format}', and {wanted}").into()));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    let elements = elements::<T>(&bytes)
        .filter(|elements| elements.len() as u64 == count)
        .ok_or_else(|| refused(format!("it holds {} bytes of {count} elements", bytes.len()).into()))?;
    let mut shape: Vec<usize> = shape.into_iter().map(|extent| extent as usize).collect();
    match is_fortran {
        false => Tensor::from_vec(device, elements, shape),
        true => {
            shape.reverse();
            Tensor::from_vec(device, elements, shape)?.into_reversed_axes()
        }
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

fn write_array(path: &Path, file: impl Write, tensor: &dyn Stored, format: &str) -> Result<()> {
    let failed = |error: io::Error| refused(path, error);
    let shape: Vec<u64> = tensor.shape().iter().map(|&extent| extent as u64).collect();
    let scalar = format.parse().expect("the names are NumPy's");
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
        read(&Device::cpu(), bytes, &|problem| refused(Path::new("x.npy"), problem))
    }

    fn tensor<T: Element>(element: T) -> Tensor<T> {
        Tensor::full(&Device::cpu(), [2], element).unwrap()
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

    #[test]
    fn headers_that_numpy_does_not_write_are_refused_at_once() {
        for shape in
            ["[4294967296, 8589934592]", "(4_294_967_296, 8_589_934_592)", "(0x100000000, 0x200000000)"]
        {
            assert!(read_file(&file(shape, &[])).is_err(), "{shape}");
        }
        // Two shapes, of which the first has room.
        assert!(read_file(&file("(1,), 'shape': (4294967296, 8589934592)", &[1.0])).is_err());
        assert!(read_file(&file("(1,), 'sh\\x61pe': (4294967296, 8589934592)", &[1.0])).is_err());
        let deep = format!("{}1{}", "[".repeat(64), "]".repeat(64));
        let (done, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(read_file(&file(&deep, &[])).is_err()));
        assert_eq!(ended.recv_timeout(std::time::Duration::from_secs(10)), Ok(true));
    }

    #[test]
    fn a_header_is_as_long_as_one_of_an_array() {
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
        let file = |length: u32| {
            let padding = std::iter::repeat_n(b' ', length as usize - text.len());
            let header = text.bytes().chain(padding).chain(1f32.to_le_bytes());
            b"\x93NUMPY\x02\x00"
                .iter()
                .copied()
                .chain(length.to_le_bytes())
                .chain(header)
                .collect::<Vec<u8>>()
        };
        assert_eq!(read_file(&file(10_000)).unwrap().to_vec().unwrap(), [1.0]);
        let refused = read_file(&file(1 << 20)).unwrap_err().to_string();
        assert_eq!(refused, "`x.npy`: its header has 1048576 bytes, and one of an array has at most 65536");
    }

    #[test]
    fn a_byte_has_no_order() {
        let file = |descr: &str| {
            let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (2,), }}\n");
            let length = (text.len() as u16).to_le_bytes();
            let header = b"\x93NUMPY\x01\x00".iter().copied().chain(length).chain(text.into_bytes());
            header.chain([1, 0]).collect::<Vec<u8>>()
        };
        fn numbers<T: Element>(file: Vec<u8>) -> Result<Vec<T>> {
            read::<T>(&Device::cpu(), &file[..], &|problem| refused(Path::new("x.npy"), problem))?.to_vec()
        }
        for order in ["<", ">", "|"] {
            assert_eq!(numbers::<u8>(file(&format!("{order}u1"))).unwrap(), [1, 0]);
            assert_eq!(numbers::<i8>(file(&format!("{order}i1"))).unwrap(), [1, 0]);
            assert_eq!(numbers::<bool>(file(&format!("{order}b1"))).unwrap(), [true, false]);
        }
        assert!(numbers::<u8>(file("<i1")).is_err());
        assert!(numbers::<u16>(file(">u2")).is_err());
    }

    #[test]
    fn another_format_is_said_with_what_is_wanted() {
        let bytes = file("(1,)", &[1.0]);
        let refused = |problem: Problem| refused(Path::new("x.npy"), problem);
        let read_as = |error: Error| error.to_string();
        let as_f64 = read::<f64>(&Device::cpu(), &bytes[..], &refused).map(drop).map_err(read_as);
        assert_eq!(as_f64.unwrap_err(), "`x.npy`: its elements are '<f4', and f64 is '<f8'");
        let as_bf16 = read::<half::bf16>(&Device::cpu(), &bytes[..], &refused).map(drop).map_err(read_as);
        assert_eq!(as_bf16.unwrap_err(), "`x.npy`: its elements are '<f4', and NumPy has no bf16");
    }

    /// Whoever looks for a file that needn't be there asks for the system's own word.
    #[test]
    fn the_kind_of_a_systems_error_is_kept() {
        let kind = |error: Error| match error {
            Error::File { kind, .. } => kind,
            other => panic!("{other}"),
        };
        let missing = Path::new("/nowhere/x.npy");
        let device = Device::cpu();
        let opened = [
            Tensor::<f32>::read_npy(&device, missing).map(drop),
            Archive::open(missing).map(drop),
            write(missing, &tensor(1.0f32)),
            write_all(missing, &[("x", &tensor(1.0f32))]),
        ];
        for error in opened.map(Result::unwrap_err) {
            assert_eq!(kind(error.clone()), Some(io::ErrorKind::NotFound), "{error}");
            let told = "`/nowhere/x.npy`: No such file or directory (os error 2)";
            assert_eq!(
                (error.to_string().as_str(), std::error::Error::source(&error).is_none()),
                (told, true)
            );
        }
        assert_eq!(kind(read_file(b"\x93NUMPY").unwrap_err()), Some(io::ErrorKind::UnexpectedEof));
        assert_eq!(kind(read_file(&file("(2,)", &[1.0])).unwrap_err()), None);
    }

    #[test]
    fn what_can_not_be_written_leaves_the_file_that_is_there() {
        let path = std::env::temp_dir().join(format!("tile-kept-{}.npy", std::process::id()));
        let (kept, none) = (tensor(1.0f32), tensor(half::bf16::ONE));
        write(&path, &kept).unwrap();
        write(&path, &none).unwrap_err();
        write_all(&path, &[("kept", &kept), ("none", &none)]).unwrap_err();
        let twice = write_all(&path, &[("kept", &kept), ("kept", &kept)]).unwrap_err().to_string();
        assert!(twice.ends_with("two tensors are called `kept`; give each a name of its own"), "{twice}");
        assert_eq!(Tensor::<f32>::read_npy(&Device::cpu(), &path).unwrap().to_vec().unwrap(), [1.0; 2]);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn an_array_of_an_archive_is_named_where_it_is_refused() {
        let path = std::env::temp_dir().join(format!("tile-named-{}.npz", std::process::id()));
        write_all(&path, &[("weights", &tensor(1.0f32))]).unwrap();
        let refused = Archive::open(&path).unwrap().tensor::<i32>(&Device::cpu(), "weights").unwrap_err();
        let expected = "array `weights`: its elements are '<f4', and i32 is '<i4'";
        assert!(refused.to_string().ends_with(expected), "{refused}");
        std::fs::remove_file(path).unwrap();
    }

    /// Room for some bytes, which is looked at when they are flushed.
    struct Small {
        bytes: io::Cursor<Vec<u8>>,
        room: u64,
    }

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.bytes.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            match self.bytes.get_ref().len() as u64 > self.room {
                true => Err(io::ErrorKind::StorageFull.into()),
                false => Ok(()),
            }
        }
    }

    impl Seek for Small {
        fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
            self.bytes.seek(to)
        }
    }

    #[test]
    fn an_archive_without_room_for_its_list_of_members_is_an_error() {
        let stored = tensor(1.0f32);
        let written = |room| {
            let file = Small { bytes: io::Cursor::default(), room };
            write_archive(Path::new("x.npz"), file, &[("a", &stored)], &["<f4"])
        };
        let least = (0..1000).find(|&room| written(room).is_ok()).unwrap();
        let mut whole = io::Cursor::new(Vec::new());
        write_archive(Path::new("x.npz"), &mut whole, &[("a", &stored)], &["<f4"]).unwrap();
        assert_eq!(least, whole.get_ref().len() as u64);
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
