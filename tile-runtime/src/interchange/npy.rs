//! NumPy's files: one array in a `.npy`, several by name in a `.npz`, which is a ZIP archive of the former.
//!
//! The format is that of `numpy.lib.format`. NumPy has no `bf16` and no floats of 8 bits; such tensors are refused.

mod header;

use super::stored::{check_names, read_tensor, refused};
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
        let failed = |error: io::Error| refused(path, error.to_string());
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        // A pipe says nothing of what comes.
        let bytes = metadata.is_file().then_some(metadata.len());
        read(device, BufReader::new(file), bytes, &|problem| refused(path, problem))
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
    let file = File::create(path).map_err(|error| refused(path, error.to_string()))?;
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
/// let file = npy::Archive::open(&path)?;
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
    let file = File::create(path).map_err(|error| refused(path, error.to_string()))?;
    write_archive(path, BufWriter::new(file), tensors, &formats)
}

fn write_archive(
    path: &Path,
    file: impl Write + Seek,
    tensors: &[(&str, &dyn Stored)],
    formats: &[&str],
) -> Result<()> {
    let failed = |error: zip::result::ZipError| refused(path, error.to_string());
    let mut archive = ZipWriter::new(file);
    // Members may be larger than the 4 GiB of the oldest ZIP.
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
    for ((name, tensor), format) in tensors.iter().zip(formats) {
        archive.start_file(format!("{name}.npy"), options).map_err(failed)?;
        write_array(path, &mut archive, *tensor, format)?;
    }
    let mut file = archive.finish().map_err(failed)?;
    // Dropped, it would keep to itself that there was no room for the list of members.
    file.flush().map_err(|error| refused(path, error.to_string()))
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
        let file = File::open(path).map_err(|error| refused(path, error.to_string()))?;
        let archive = ZipArchive::new(BufReader::new(file));
        let archive = archive.map_err(|error| refused(path, error.to_string()))?;
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
    /// use tile_runtime::{Device, Tensor, interchange::npy};
    /// let path = std::env::temp_dir().join(format!("tile-info-{}.npz", std::process::id()));
    /// npy::write_all(&path, &[("weights", &Tensor::<f32>::zeros(&Device::cpu(), [2, 3])?)])?;
    /// let file = npy::Archive::open(&path)?;
    /// let info = file.info("weights").expect("it is there");
    /// assert_eq!((info.dtype, info.format.as_str()), (Some(tile_ir::DType::F32), "<f4"));
    /// assert_eq!((info.shape, file.info("bias")), (vec![2, 3], None));
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), tile_runtime::Error>(())
    /// ```
    pub fn info(&self, name: &str) -> Option<Info> {
        let header = self.with_member(name, |mut member| {
            Header::read(&mut member).map_err(|error| refused(&self.path, error.to_string()))
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
        let refused = |problem| refused(&self.path, format!("array `{name}`: {problem}"));
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
        made(member.map_err(|error| refused(&self.path, error.to_string()))?)
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
    refused: &dyn Fn(String) -> Error,
) -> Result<Tensor<T>> {
    let failed = |error: io::Error| refused(error.to_string());
    let mut file = file.take(bytes.unwrap_or(u64::MAX));
    let Header { format, is_fortran, shape, count } = Header::read(&mut file).map_err(failed)?;
    let (wanted, name) = (numpy_name(T::DTYPE), T::DTYPE.rust_name());
    if wanted != Some(named(&format, T::DTYPE).as_ref()) {
        let wanted = wanted.map_or_else(|| format!("NumPy has no {name}"), |it| format!("{name} is '{it}'"));
        return Err(refused(format!("its elements are '{format}', and {wanted}")));
    }
    // Looked at first, because a header may ask for any amount of memory.
    let held = file.limit();
    if bytes.is_some() && count.checked_mul(size_of::<T>() as u64) != Some(held) {
        return Err(refused(format!("it holds {held} bytes of {count} elements")));
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
        _ => Err(refused(format!("it goes on behind its {count} elements"))),
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
    let failed = |error: io::Error| refused(path, error.to_string());
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
        let bytes: Vec<u8> = elements.iter().flat_map(|element| element.to_le_bytes()).collect();
        file_of("<f4", shape, &bytes)
    }

    fn file_of(format: &str, shape: &str, elements: &[u8]) -> Vec<u8> {
        let text = format!("{{'descr': '{format}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let length = u16::try_from(text.len()).unwrap().to_le_bytes();
        [b"\x93NUMPY\x01\x00", &length[..], text.as_bytes(), elements].concat()
    }

    fn read_file(bytes: &[u8]) -> Result<Tensor<f32>> {
        read(&Device::cpu(), bytes, Some(bytes.len() as u64), &|problem| refused(Path::new("x.npy"), problem))
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
            let bytes = Some(file.len() as u64);
            read::<T>(&Device::cpu(), &file[..], bytes, &|problem| refused(Path::new("x.npy"), problem))?
                .to_vec()
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
        let refused = |problem| refused(Path::new("x.npy"), problem);
        let read_as = |error: Error| error.to_string();
        let as_f64 = read::<f64>(&Device::cpu(), &bytes[..], None, &refused).map(drop).map_err(read_as);
        assert_eq!(as_f64.unwrap_err(), "`x.npy`: its elements are '<f4', and f64 is '<f8'");
        let as_bf16 =
            read::<half::bf16>(&Device::cpu(), &bytes[..], None, &refused).map(drop).map_err(read_as);
        assert_eq!(as_bf16.unwrap_err(), "`x.npy`: its elements are '<f4', and NumPy has no bf16");
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
    fn an_archive_tells_what_it_holds() {
        let path = std::env::temp_dir().join(format!("tile-told-{}.npz", std::process::id()));
        let file = ZipWriter::new(File::create(&path).unwrap());
        let members: [(&str, &[u8]); 5] = [
            ("a.npy", &file_of("<f4", "(2, 1)", &[0; 8])),
            ("b.npy", &file_of("<u1", "()", &[7])),
            ("c.npy", &file_of(">f4", "(1, 0)", &[])),
            ("d", &file_of("<i2", "(1,)", &[1, 0])),
            ("e.txt", b"no array"),
        ];
        let write = |mut zip: ZipWriter<File>, (name, bytes): &(&str, &[u8])| {
            zip.start_file(*name, SimpleFileOptions::default()).unwrap();
            zip.write_all(bytes).unwrap();
            zip
        };
        members.iter().fold(file, write).finish().unwrap();
        let archive = Archive::open(&path).unwrap();
        assert_eq!(archive.names(), ["a", "b", "c", "d", "e.txt"]);
        assert_eq!(
            format!("{archive:?}"),
            format!(r#"Archive {{ path: {path:?}, names: ["a", "b", "c", "d", "e.txt"] }}"#)
        );
        let told = |name| archive.info(name).map(|info| (info.dtype, info.format, info.shape));
        let info = |dtype, format: &str, shape| Some((dtype, format.to_owned(), shape));
        assert_eq!(told("a"), info(Some(DType::F32), "<f4", vec![2, 1]));
        assert_eq!(told("b"), info(Some(DType::U8), "<u1", vec![]));
        assert_eq!(told("c"), info(None, ">f4", vec![1, 0]));
        assert_eq!(told("d"), info(Some(DType::I16), "<i2", vec![1]));
        assert_eq!((told("e.txt"), told("f")), (None, None));
        let cpu = Device::cpu();
        assert_eq!(archive.tensor::<u8>(&cpu, "b").unwrap().to_vec().unwrap(), [7]);
        assert_eq!(archive.tensor::<i16>(&cpu, "d").unwrap().to_vec().unwrap(), [1]);
        let refused = |name| archive.tensor::<u8>(&cpu, name).unwrap_err().to_string();
        assert!(
            refused("e.txt")
                .ends_with("array `e.txt`: it isn't an array in NumPy's format of version 1, 2 or 3")
        );
        assert!(refused("f").contains("it holds no array `f`, but [\"a\", "), "{}", refused("f"));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_member_that_was_changed_is_refused() {
        let path = std::env::temp_dir().join(format!("tile-changed-{}.npz", std::process::id()));
        write_all(&path, &[("x", &tensor(1.5f32))]).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let elements = [1.5f32, 1.5].map(f32::to_le_bytes).concat();
        let place = bytes.windows(8).position(|part| part == elements).unwrap();
        bytes[place] = 1;
        std::fs::write(&path, bytes).unwrap();
        let refused =
            Archive::open(&path).unwrap().tensor::<f32>(&Device::cpu(), "x").unwrap_err().to_string();
        assert!(refused.to_lowercase().contains("checksum"), "{refused}");
        std::fs::remove_file(path).unwrap();
    }

    /// What a pipe gives has no length, so the elements are counted.
    #[test]
    fn elements_of_a_stream_are_counted() {
        let bytes = file("(2,)", &[1.0, 2.0]);
        let read = |bytes: &[u8]| {
            read::<f32>(&Device::cpu(), bytes, None, &|problem| refused(Path::new("x.npy"), problem))
        };
        assert_eq!(read(&bytes).unwrap().to_vec().unwrap(), [1.0, 2.0]);
        assert!(read(&bytes[..bytes.len() - 1]).is_err());
        let more = read(&[&bytes[..], &[0]].concat()).unwrap_err().to_string();
        assert_eq!(more, "`x.npy`: it goes on behind its 2 elements");
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
