//! What an AMD code object says of its kernel: the note `NT_AMDGPU_METADATA`, in MessagePack (LLVM's "User Guide for
//! AMDGPU Backend", Code Object V3 Metadata; the MessagePack specification).

use serde_json::{Map, Value};

const PROGRAM_NOTES: usize = 4;
const METADATA: usize = 32;

/// Bytes that are read from the front.
struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn bytes(&mut self, count: usize) -> &'b [u8] {
        let (bytes, rest) = self.0.split_at(count);
        self.0 = rest;
        bytes
    }

    /// A number of so many bytes, the most significant first.
    fn number(&mut self, bytes: usize) -> u64 {
        self.bytes(bytes).iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
    }

    fn value(&mut self) -> Value {
        let tag = self.number(1) as u8;
        match tag {
            0x00..=0x7f => Value::from(tag),
            0x80..=0x8f => self.map(usize::from(tag & 0xf)),
            0x90..=0x9f => self.array(usize::from(tag & 0xf)),
            0xa0..=0xbf => self.string(usize::from(tag & 0x1f)),
            0xc0 => Value::Null,
            0xc2 | 0xc3 => Value::from(tag == 0xc3),
            0xcc..=0xcf => Value::from(self.number(1 << (tag - 0xcc))),
            0xd9..=0xdb => {
                let bytes = self.number(1 << (tag - 0xd9));
                self.string(bytes as usize)
            }
            0xdc | 0xdd => {
                let count = self.number(2 << (tag - 0xdc));
                self.array(count as usize)
            }
            0xde | 0xdf => {
                let count = self.number(2 << (tag - 0xde));
                self.map(count as usize)
            }
            _ => panic!("metadata has no such value: {tag:#x}"),
        }
    }

    fn string(&mut self, bytes: usize) -> Value {
        Value::from(std::str::from_utf8(self.bytes(bytes)).unwrap())
    }

    fn array(&mut self, count: usize) -> Value {
        (0..count).map(|_| self.value()).collect()
    }

    fn map(&mut self, count: usize) -> Value {
        let entry = |_| (self.value().as_str().unwrap().to_owned(), self.value());
        Value::Object((0..count).map(entry).collect::<Map<_, _>>())
    }
}

/// The number of `count` bytes at an offset, the least significant first.
fn number(bytes: &[u8], at: usize, count: usize) -> usize {
    bytes[at..at + count].iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte))
}

/// The metadata among an ELF file's notes (the System V ABI, "Program Header" and "Note Section").
fn notes(file: &[u8]) -> Value {
    let (start, size, count) = (number(file, 32, 8), number(file, 54, 2), number(file, 56, 2));
    let headers = (0..count).map(|i| &file[start + i * size..]);
    for header in headers.filter(|header| number(header, 0, 4) == PROGRAM_NOTES) {
        let (mut at, bytes) = (number(header, 8, 8), number(header, 32, 8));
        let end = at + bytes;
        while at < end {
            let [name, words, kind] = [0, 4, 8].map(|field| number(file, at + field, 4));
            let content = at + 12 + name.next_multiple_of(4);
            if kind == METADATA && file[at + 12..].starts_with(b"AMDGPU\0") {
                return Reader(&file[content..content + words]).value();
            }
            at = content + words.next_multiple_of(4);
        }
    }
    panic!("the code object has no metadata")
}

/// What a code object with one kernel says of it.
pub(crate) fn of_kernel(file: &[u8]) -> Value {
    let mut metadata = notes(file);
    let kernels = metadata["amdhsa.kernels"].as_array_mut().unwrap();
    assert_eq!(kernels.len(), 1, "{kernels:?}");
    kernels.remove(0)
}

#[test]
fn every_length_of_message_pack_is_read() {
    let bytes = [
        &[0x84, 0xa1, b'a', 0xcd, 0x01, 0x02, 0xd9, 0x01, b'b'][..],
        &[0x92, 0x7f, 0xc3, 0xa1, b'c', 0xdc, 0x00, 0x01, 0xc0, 0xa1, b'd', 0xde, 0x00, 0x00],
    ];
    let expected = serde_json::json!({ "a": 258, "b": [127, true], "c": [null], "d": {} });
    assert_eq!(Reader(&bytes.concat()).value(), expected);
}
