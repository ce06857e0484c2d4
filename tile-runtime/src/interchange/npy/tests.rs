//! NumPy's files as they are, and as somebody has damaged them.

use super::*;
use crate::stream::Graph;

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
    for shape in ["[4294967296, 8589934592]", "(4_294_967_296, 8_589_934_592)", "(0x100000000, 0x200000000)"]
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
        b"\x93NUMPY\x02\x00".iter().copied().chain(length.to_le_bytes()).chain(header).collect::<Vec<u8>>()
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
        read::<T>(&Device::cpu(), &file[..], bytes, &|problem| refused(Path::new("x.npy"), problem))?.to_vec()
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
    let as_bf16 = read::<half::bf16>(&Device::cpu(), &bytes[..], None, &refused).map(drop).map_err(read_as);
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
    // Inside of a graph no elements are read.
    for written in [|path, kept| write(path, kept), |path, kept| write_all(path, &[("kept", kept)])]
        as [fn(&Path, &Tensor<f32>) -> Result<()>; 2]
    {
        let error = Graph::new(&Device::cpu()).run(|_| written(&path, &kept)).unwrap_err();
        assert!(matches!(error, Error::Stream { .. }), "{error}");
    }
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
        refused("e.txt").ends_with("array `e.txt`: it isn't an array in NumPy's format of version 1, 2 or 3")
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
    let refused = Archive::open(&path).unwrap().tensor::<f32>(&Device::cpu(), "x").unwrap_err().to_string();
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
    let arrays = [("a", Array::of(Path::new("x.npz"), &stored).unwrap())];
    let written = |room| {
        let file = Small { bytes: io::Cursor::default(), room };
        write_archive(Path::new("x.npz"), file, &arrays)
    };
    let least = (0..1000).find(|&room| written(room).is_ok()).unwrap();
    let mut whole = io::Cursor::new(Vec::new());
    write_archive(Path::new("x.npz"), &mut whole, &arrays).unwrap();
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
