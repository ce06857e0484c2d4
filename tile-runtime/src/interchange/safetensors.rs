//! `.safetensors` files: tensors by name, as Hugging Face keeps weights.

use super::stored::{Problem, check_names, read_tensor, refused};
use super::{Info, Stored};
use crate::device::Device;
use crate::element::Element;
use crate::error::Result;
use crate::tensor::Tensor;
use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{Dtype, SafeTensorError};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tile_ir::DType;

/// The format's name of ours.
fn stored_dtype(dtype: DType) -> Option<Dtype> {
    Some(match dtype {
        DType::Bool => Dtype::BOOL,
        DType::I8 => Dtype::I8,
        DType::I16 => Dtype::I16,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        DType::U8 => Dtype::U8,
        DType::U16 => Dtype::U16,
        DType::U32 => Dtype::U32,
        DType::U64 => Dtype::U64,
        DType::F8E4M3FN => Dtype::F8_E4M3,
        DType::F8E5M2 => Dtype::F8_E5M2,
        DType::F8E8M0FNU => Dtype::F8_E8M0,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
        DType::Index => return None,
    })
}

/// Bytes at the begin of a file that say how long the header is.
const LENGTH_BYTES: u64 = size_of::<u64>() as u64;

/// The most bytes of a header, for the format's library, too.
const MOST_BYTES: u64 = 100_000_000;

/// An open file: its header is in memory, and a tensor's elements are read when it is asked for.
///
/// Several threads can read of one at once. If somebody changes the file meanwhile, what is read is what there is then, or an
/// error.
pub struct Archive {
    path: PathBuf,
    file: File,
    /// Where the elements of all tensors begin.
    begin: u64,
    tensors: BTreeMap<String, TensorInfo>,
    metadata: BTreeMap<String, String>,
}

impl Archive {
    /// Opens a file and reads its header.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::interchange::safetensors::{Archive, write};
    /// use tile::{Device, Tensor};
    /// let path = std::env::temp_dir().join(format!("tile-{}.safetensors", std::process::id()));
    /// let (device, one) = (Device::cpu(), half::bf16::ONE);
    /// write(&path, &[("bias", &Tensor::full(&device, [3], one)?)])?;
    /// let file = Archive::open(&path)?;
    /// assert_eq!((file.names(), file.tensor(&device, "bias")?.to_vec()?), (vec!["bias".to_owned()], vec![one; 3]));
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::File`] where the file can't be read or isn't one of these.
    pub fn open(path: impl AsRef<Path>) -> Result<Archive> {
        let path = path.as_ref();
        let failed = |error: io::Error| refused(path, error);
        let file = File::open(path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        if bytes < LENGTH_BYTES {
            return Err(refused(
                path,
                format!("it has {bytes} bytes, and not even the length of its header"),
            ));
        }
        let mut length = [0; LENGTH_BYTES as usize];
        (&file).read_exact(&mut length).map_err(failed)?;
        let length = u64::from_le_bytes(length);
        if length > MOST_BYTES {
            let problem =
                format!("its header has {length} bytes, and one of such files has at most {MOST_BYTES}");
            return Err(refused(path, problem));
        }
        if length > bytes.saturating_sub(LENGTH_BYTES) {
            return Err(refused(path, format!("its header has {length} bytes, and the file {bytes}")));
        }
        let mut header = vec![0; length as usize];
        (&file).read_exact(&mut header).map_err(failed)?;
        let header: Metadata = serde_json::from_slice(&header)
            .map_err(|error| refused(path, format!("its header isn't one of such files: {error}")))?;
        let begin = LENGTH_BYTES + length;
        let end = begin.saturating_add(header.data_len() as u64);
        if end != bytes {
            let problem = format!("its tensors end at byte {end}, and the file at byte {bytes}");
            return Err(refused(path, problem));
        }
        let metadata = header.metadata().iter().flatten();
        let metadata = metadata.map(|(key, value)| (key.clone(), value.clone())).collect();
        let tensors = header.tensors().into_iter().map(|(name, info)| (name, info.clone())).collect();
        Ok(Archive { path: path.to_owned(), file, begin, tensors, metadata })
    }

    /// The names of the tensors, sorted.
    pub fn names(&self) -> Vec<String> {
        self.tensors.keys().cloned().collect()
    }

    /// What there is under a name; `None` where there is nothing.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::interchange::safetensors::{Archive, write};
    /// use tile::{Device, Tensor};
    /// let path = std::env::temp_dir().join(format!("tile-info-{}.safetensors", std::process::id()));
    /// let device = Device::cpu();
    /// write(&path, &[("bias", &Tensor::<half::bf16>::zeros(&device, [3])?), ("steps", &Tensor::<u64>::zeros(&device, [])?)])?;
    /// let file = Archive::open(&path)?;
    /// for name in file.names() {
    ///     let info = file.info(&name).expect("it is one of the names");
    ///     println!("{name}: {} {:?}", info.format, info.shape); // bias: BF16 [3]
    /// }
    /// assert_eq!(file.info("bias").unwrap().dtype, Some(tile::ir::DType::BF16));
    /// assert_eq!(file.info("scale"), None);
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), tile::Error>(())
    /// ```
    pub fn info(&self, name: &str) -> Option<Info> {
        let stored = self.tensors.get(name)?;
        let dtype = DType::ALL.iter().copied().find(|&dtype| stored_dtype(dtype) == Some(stored.dtype));
        Some(Info { dtype, format: stored.dtype.to_string(), shape: stored.shape.clone() })
    }

    /// What the file says of itself, such as `format` and who made it; empty where it says nothing.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// The tensor of a name, on a device.
    ///
    /// # Errors
    /// [`crate::Error::File`] where there is none, or one of another format, and where the file can't be read; as
    /// [`Tensor::zeros`] else.
    pub fn tensor<T: Element>(&self, device: &Device, name: &str) -> Result<Tensor<T>> {
        let missing = || refused(&self.path, format!("it holds no tensor `{name}`, but {:?}", self.names()));
        let stored = self.tensors.get(name).ok_or_else(missing)?;
        if stored_dtype(T::DTYPE) != Some(stored.dtype) {
            let (given, wanted) = (stored.dtype, T::DTYPE.rust_name());
            return Err(refused(&self.path, format!("`{name}` holds {given}, not {wanted}")));
        }
        let of_tensor =
            |problem: Problem| Problem { text: format!("tensor `{name}`: {}", problem.text), ..problem };
        let refused = |problem| refused(&self.path, of_tensor(problem));
        let mut place = self.begin + stored.data_offsets.0 as u64;
        let read = |part: &mut [u8]| {
            read_exact_at(&self.file, part, place)?;
            place += part.len() as u64;
            Ok(())
        };
        read_tensor(device, &stored.shape, read, &refused)
    }
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut archive = f.debug_struct("Archive");
        archive.field("path", &self.path).field("names", &self.names()).field("metadata", &self.metadata);
        archive.finish()
    }
}

/// Reads bytes of a file from a place on, whoever else reads of it.
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut place: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        #[cfg(unix)]
        let read = std::os::unix::fs::FileExt::read_at(file, bytes, place);
        #[cfg(windows)]
        let read = std::os::windows::fs::FileExt::seek_read(file, bytes, place);
        match read {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                bytes = &mut bytes[count..];
                place += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A tensor in the form that the format's library takes.
struct Held<'a> {
    dtype: Dtype,
    shape: &'a [usize],
    bytes: Vec<u8>,
}

impl safetensors::View for &Held<'_> {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

/// The name in a file's header of what isn't a tensor.
const METADATA: &str = "__metadata__";

/// Writes a `.safetensors` file with tensors of these names.
///
/// # Errors
/// [`crate::Error::File`] where two tensors have one name, or one has the format's own `__metadata__`, and where the file
/// can't be written; as [`Tensor::to_vec`](crate::TensorRef::to_vec) else.
pub fn write(path: impl AsRef<Path>, tensors: &[(&str, &dyn Stored)]) -> Result<()> {
    let path = path.as_ref();
    check_names(path, tensors)?;
    if tensors.iter().any(|(name, _)| *name == METADATA) {
        let problem =
            format!("a tensor is called `{METADATA}`, which means something else in such files; rename it");
        return Err(refused(path, problem));
    }
    let held = tensors.iter().map(|(name, tensor)| {
        let dtype = stored_dtype(tensor.dtype())
            .ok_or_else(|| refused(path, format!("`{name}` holds {}", tensor.dtype().rust_name())))?;
        Ok((*name, Held { dtype, shape: tensor.shape(), bytes: tensor.bytes()? }))
    });
    let held: Vec<_> = held.collect::<Result<_>>()?;
    let named = held.iter().map(|(name, held)| (*name, held));
    safetensors::serialize_to_file(named, None, path).map_err(|error| match error {
        SafeTensorError::IoError(error) => refused(path, error),
        error => refused(path, error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn the_kind_of_a_systems_error_is_kept() {
        let one = Tensor::full(&Device::cpu(), [2], 1.0f32).unwrap();
        let missing = "/nowhere/x.safetensors";
        for error in
            [Archive::open(missing).map(drop), write(missing, &[("one", &one)])].map(Result::unwrap_err)
        {
            let kind = Some(io::ErrorKind::NotFound);
            assert!(matches!(&error, Error::File { kind: given, .. } if *given == kind), "{error}");
        }
    }

    /// A file that goes with the test.
    struct Written(PathBuf);

    impl Written {
        fn new(header: &str, elements: &[u8]) -> Written {
            static FILES: AtomicUsize = AtomicUsize::new(0);
            let number = FILES.fetch_add(1, Ordering::Relaxed);
            let name = format!("tile-archive-{}-{number}.safetensors", std::process::id());
            let path = std::env::temp_dir().join(name);
            let length = (header.len() as u64).to_le_bytes();
            std::fs::write(&path, [&length, header.as_bytes(), elements].concat()).unwrap();
            Written(path)
        }

        fn open(&self) -> Result<Archive> {
            Archive::open(&self.0)
        }

        fn refused(&self) -> String {
            let message = self.open().unwrap_err().to_string();
            message.strip_prefix(&format!("`{}`: ", self.0.display())).unwrap().to_owned()
        }
    }

    impl Drop for Written {
        fn drop(&mut self) {
            std::fs::remove_file(&self.0).unwrap();
        }
    }

    fn entry(name: &str, dtype: &str, shape: &str, [begin, end]: [usize; 2]) -> String {
        format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{begin},{end}]}}"#)
    }

    fn one(dtype: &str, shape: &str, offsets: [usize; 2]) -> String {
        format!("{{{}}}", entry("x", dtype, shape, offsets))
    }

    #[test]
    fn what_is_there_is_told_without_an_element_type() {
        let formats = [
            ("BOOL", 1, Some(DType::Bool)),
            ("I8", 1, Some(DType::I8)),
            ("I16", 2, Some(DType::I16)),
            ("I32", 4, Some(DType::I32)),
            ("I64", 8, Some(DType::I64)),
            ("U8", 1, Some(DType::U8)),
            ("U16", 2, Some(DType::U16)),
            ("U32", 4, Some(DType::U32)),
            ("U64", 8, Some(DType::U64)),
            ("F8_E4M3", 1, Some(DType::F8E4M3FN)),
            ("F8_E5M2", 1, Some(DType::F8E5M2)),
            ("F8_E8M0", 1, Some(DType::F8E8M0FNU)),
            ("F16", 2, Some(DType::F16)),
            ("BF16", 2, Some(DType::BF16)),
            ("F32", 4, Some(DType::F32)),
            ("F64", 8, Some(DType::F64)),
            ("C64", 8, None),
            ("F8_E4M3FNUZ", 1, None),
        ];
        for (format, bytes, dtype) in formats {
            let file = Written::new(&one(format, "[2,3]", [0, 6 * bytes]), &vec![1; 6 * bytes]);
            let expected = Info { dtype, format: format.to_owned(), shape: vec![2, 3] };
            assert_eq!(file.open().unwrap().info("x"), Some(expected));
            assert_eq!(file.open().unwrap().info("y"), None);
        }
        // Two to a byte.
        let info = Written::new(&one("F4", "[4]", [0, 2]), &[0; 2]).open().unwrap().info("x").unwrap();
        assert_eq!((info.dtype, info.format.as_str(), info.shape), (None, "F4", vec![4]));
    }

    #[test]
    fn what_a_file_says_of_itself_is_told() {
        let x = entry("x", "U8", "[1]", [0, 1]);
        let file = Written::new(&format!(r#"{{"__metadata__":{{"b":"2","format":"pt"}},{x}}}"#), &[5]);
        let archive = file.open().unwrap();
        let pairs: Vec<(&str, &str)> = archive.metadata().iter().map(|(k, v)| (&**k, &**v)).collect();
        assert_eq!((pairs, archive.names()), (vec![("b", "2"), ("format", "pt")], vec!["x".to_owned()]));
        let shown = format!(
            r#"Archive {{ path: {:?}, names: ["x"], metadata: {{"b": "2", "format": "pt"}} }}"#,
            file.0
        );
        assert_eq!(format!("{archive:?}"), shown);
        assert!(Written::new(&format!("{{{x}}}"), &[5]).open().unwrap().metadata().is_empty());
    }

    #[test]
    fn elements_are_read_wherever_they_lie() {
        fn check<T: Element + PartialEq>(format: &str, elements: [T; 2]) {
            let bytes = size_of::<T>();
            let parts = [
                entry("first", "U8", "[3]", [0, 3]),
                entry("odd", format, "[1,2]", [3, 3 + 2 * bytes]),
                entry("none", format, "[4,0]", [3 + 2 * bytes; 2]),
                entry("scalar", format, "[]", [3 + 2 * bytes, 3 + 3 * bytes]),
            ];
            let stored = crate::tensor::transfer::bytes(&elements);
            // A header of each length modulo 8: elements lie at any address.
            for padding in 0..8 {
                let header = format!("{{{}}}{}", parts.join(","), " ".repeat(padding));
                let file = Written::new(&header, &[&[7, 8, 9], stored, &stored[..bytes]].concat());
                let archive = file.open().unwrap();
                for device in [Device::cpu(), Device::reference()] {
                    let odd = archive.tensor::<T>(&device, "odd").unwrap();
                    assert_eq!((odd.shape(), odd.to_vec().unwrap()), (&[1, 2][..], elements.to_vec()));
                    assert_eq!(archive.tensor::<T>(&device, "none").unwrap().shape(), [4, 0]);
                    let scalar = archive.tensor::<T>(&device, "scalar").unwrap();
                    assert_eq!((scalar.shape(), scalar.to_vec().unwrap()), (&[][..], vec![elements[0]]));
                    assert_eq!(archive.tensor::<u8>(&device, "first").unwrap().to_vec().unwrap(), [7, 8, 9]);
                }
            }
        }
        check("BOOL", [true, false]);
        check("I8", [-1i8, 2]);
        check("I16", [-1i16, 2]);
        check("I32", [-1i32, 2]);
        check("I64", [-1i64, 2]);
        check("U8", [1u8, 2]);
        check("U16", [1u16, 2]);
        check("U32", [1u32, 2]);
        check("U64", [1u64, 2]);
        check("F8_E4M3", [1.0, -0.5].map(crate::f8e4m3fn::from_f32));
        check("F8_E5M2", [1.0, -0.5].map(crate::f8e5m2::from_f32));
        check("F8_E8M0", [1.0, 0.5].map(crate::f8e8m0fnu::from_f32));
        check("F16", [1.0, -0.5].map(half::f16::from_f32));
        check("BF16", [1.0, -0.5].map(half::bf16::from_f32));
        check("F32", [1.0f32, -0.5]);
        check("F64", [1.0f64, -0.5]);
    }

    #[test]
    fn a_tensor_of_many_parts_is_whole() {
        let count = (1 << 20) + 700_001;
        let mut elements = vec![3u8; 2 * count];
        elements[2 * count - 2..].copy_from_slice(&[0x34, 0x12]);
        let file = Written::new(&one("U16", &format!("[{count}]"), [0, 2 * count]), &elements);
        let x = file.open().unwrap().tensor::<u16>(&Device::cpu(), "x").unwrap().to_vec().unwrap();
        assert!(x.len() == count && x[..count - 1] == vec![0x0303; count - 1] && x[count - 1] == 0x1234);
    }

    /// Only what is asked for is read: the file has more than memory.
    #[test]
    #[cfg(unix)]
    fn a_file_that_is_larger_than_memory_is_opened() {
        let large = 1 << 36;
        let parts = [
            entry("large", "U8", &format!("[{large}]"), [0, large]),
            entry("x", "U8", "[2]", [large, large + 2]),
        ];
        let header = format!("{{{}}}", parts.join(","));
        let file = Written::new(&header, &[]);
        let bytes = LENGTH_BYTES + header.len() as u64 + large as u64 + 2;
        File::options().write(true).open(&file.0).unwrap().set_len(bytes).unwrap();
        let archive = file.open().unwrap();
        assert_eq!(archive.info("large").unwrap().shape, [large]);
        assert_eq!(archive.tensor::<u8>(&Device::cpu(), "x").unwrap().to_vec().unwrap(), [0, 0]);
    }

    #[test]
    fn files_that_end_early_are_refused() {
        let header = one("F32", "[2]", [0, 8]);
        let file = Written::new(&header, &[0; 8]);
        let whole = std::fs::read(&file.0).unwrap();
        let archive = file.open().unwrap();
        for length in (0..whole.len()).rev() {
            std::fs::write(&file.0, &whole[..length]).unwrap();
            assert!(file.open().is_err(), "{length}");
        }
        assert_eq!(file.refused(), "it has 0 bytes, and not even the length of its header");
        let after = archive.tensor::<f32>(&Device::cpu(), "x").unwrap_err().to_string();
        assert!(after.contains("`: tensor `x`: "), "{after}");
        std::fs::write(&file.0, &whole[..20]).unwrap();
        assert_eq!(file.refused(), format!("its header has {} bytes, and the file 20", header.len()));
        std::fs::write(&file.0, &whole[..whole.len() - 1]).unwrap();
        let (end, bytes) = (whole.len(), whole.len() - 1);
        assert_eq!(file.refused(), format!("its tensors end at byte {end}, and the file at byte {bytes}"));
        assert_eq!(whole.len(), 8 + header.len() + 8);
    }

    #[test]
    fn headers_that_lie_are_refused() {
        let refused = |header: &str| Written::new(header, &[0; 8]).refused();
        let of = |entries: &[String]| refused(&format!("{{{}}}", entries.join(",")));
        let says = |problem: &str| format!("its header isn't one of such files: {problem}");
        let offset = says("invalid offset for tensor `x`");
        // Behind the end, backwards, with room before, and of other extents.
        assert!(refused(&one("F32", "[4]", [0, 16])).starts_with("its tensors end at byte "));
        assert_eq!(refused(&one("F32", "[2]", [8, 0])), offset);
        assert_eq!(refused(&one("F32", "[1]", [4, 8])), offset);
        let sizes = says("invalid shape, data type, or offset for tensor");
        assert_eq!(refused(&one("F32", "[3]", [0, 8])), sizes);
        assert_eq!(refused(&one("F32", "[]", [0, 8])), sizes);
        let overflow = says("overflow computing buffer size from shape and/or element type");
        assert_eq!(refused(&one("F32", "[4294967296,4294967296]", [0, 8])), overflow);
        let last = usize::MAX;
        assert!(refused(&one("U8", &format!("[{last}]"), [0, last])).contains("overflow"));
        // Two that overlap, and what is said twice.
        let [a, x] = [entry("a", "F32", "[2]", [0, 8]), entry("x", "F32", "[1]", [4, 8])];
        assert_eq!(of(&[a, x.clone()]), offset);
        assert!(of(&[x.clone(), x]).contains("invalid offset"), "twice");
        for text in
            ["", "[]", "{", "\u{1}", r#"{"x":1}"#, &one("F3", "[2]", [0, 8]), &one("F32", "[-2]", [0, 8])]
        {
            assert!(refused(text).starts_with(&says("")), "{text}");
        }
        // Nothing has as long a header.
        let file = Written::new("{}", &[]);
        for length in [MOST_BYTES, 3] {
            std::fs::write(&file.0, [&length.to_le_bytes()[..], b"{}"].concat()).unwrap();
            assert_eq!(file.refused(), format!("its header has {length} bytes, and the file 10"));
        }
        for length in [u64::MAX, i64::MAX as u64, MOST_BYTES + 1] {
            std::fs::write(&file.0, [&length.to_le_bytes()[..], b"{}"].concat()).unwrap();
            let expected =
                format!("its header has {length} bytes, and one of such files has at most 100000000");
            assert_eq!(file.refused(), expected);
        }
    }

    #[test]
    fn what_is_asked_for_wrongly_is_said() {
        let file = Written::new(&one("BOOL", "[3]", [0, 3]), &[0, 1, 2]);
        let archive = file.open().unwrap();
        let refused = |error: Error| error.to_string().split_once("`: ").unwrap().1.to_owned();
        let cpu = Device::cpu();
        assert_eq!(
            refused(archive.tensor::<bool>(&cpu, "x").unwrap_err()),
            "tensor `x`: it holds the byte 2, and of bool only 0 and 1 are"
        );
        assert_eq!(refused(archive.tensor::<u8>(&cpu, "x").unwrap_err()), "`x` holds BOOL, not u8");
        let missing = refused(archive.tensor::<u8>(&cpu, "y").unwrap_err());
        assert_eq!(missing, r#"it holds no tensor `y`, but ["x"]"#);
    }

    #[test]
    fn names_that_the_format_can_not_have_are_refused() {
        let path = std::env::temp_dir().join(format!("tile-names-{}.safetensors", std::process::id()));
        let one = Tensor::full(&Device::cpu(), [2], 1.0f32).unwrap();
        let refused = |names: [&str; 2]| {
            write(&path, &names.map(|name| (name, &one as &dyn Stored))).unwrap_err().to_string()
        };
        assert!(refused(["a", "a"]).ends_with("two tensors are called `a`; give each a name of its own"));
        assert!(refused(["a", METADATA]).ends_with("which means something else in such files; rename it"));
        assert!(!path.exists());
    }
}
