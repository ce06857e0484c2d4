//! Buffer resources of AMD's GPUs, whose bounds the hardware checks, and loads that go to shared memory at once (the
//! CDNA and RDNA ISA manuals, "Buffer Addressing", "Range checking"; LLVM's AMDGPU usage guide).

use super::is;
use crate::simt::block::Block;
use crate::simt::fault::Problem;
use crate::simt::generation::Generation;
use crate::simt::host_module::Gpu;
use crate::simt::instruction::{Call, LaneProblem, Operation, Party, Then};

/// A buffer: where it begins, and how many bytes it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simt) struct Resource {
    base: u64,
    bytes: u64,
}

/// How a GPU reads the last word of a resource.
#[derive(Clone, Copy, Debug)]
enum Descriptor {
    /// GFX9, whose buffers without a stride check offsets.
    Cdna,
    /// GFX10 and later, which are told what to check.
    Rdna,
}

impl Descriptor {
    /// `None` where there are no resources.
    fn of(gpu: Gpu) -> Option<Descriptor> {
        match gpu.generation {
            Generation::Cdna2 | Generation::Cdna3 | Generation::Cdna4 => Some(Descriptor::Cdna),
            Generation::Rdna3 | Generation::Rdna4 => Some(Descriptor::Rdna),
            Generation::Nvidia => None,
        }
    }

    /// Bits of the word: CDNA 3 ISA manual, table "Buffer Resource Descriptor", bits 96 to 127; RDNA 3 ISA manual, the
    /// table of that name.
    ///
    /// # Errors
    /// Where the word says anything but a plain buffer whose offsets are checked.
    fn check(self, word: u32) -> Result<(), Problem> {
        let bits = |first: u32, last: u32| word >> first & ((1 << (last - first + 1)) - 1);
        let misuse =
            |what: &str| Err(Problem::Misuse(format!("a buffer resource of word {word:#010x} {what}")));
        let format = match self {
            Descriptor::Cdna => bits(15, 18),
            Descriptor::Rdna => bits(12, 18),
        };
        if format == 0 {
            return misuse("has no format, and so is void");
        }
        if bits(23, 23) != 0 || bits(30, 31) != 0 {
            return misuse("isn't a buffer without swizzles");
        }
        match self {
            Descriptor::Rdna if bits(28, 29) != 3 => misuse("doesn't check offsets"),
            _ => Ok(()),
        }
    }
}

pub(super) fn find(name: &str, gpu: Gpu) -> Option<Operation> {
    if is(name, "make.buffer.rsrc") {
        let descriptor = Descriptor::of(gpu)?;
        return Operation::alone(move |block, call| {
            if call.word(1) != 0 {
                return Err(Problem::Misuse("a buffer with a stride isn't modelled".to_owned()));
            }
            descriptor.check(call.number(3))?;
            let resource = Resource { base: call.word(0), bytes: call.word(2) };
            let known = block.resources.iter().position(|other| *other == resource);
            let number = known.unwrap_or(block.resources.len());
            if known.is_none() {
                block.resources.push(resource);
            }
            call.give_word(0, number as u64 + 1);
            Ok(Then::GoOn)
        });
    }
    if is(name, "raw.ptr.buffer.load") {
        return Operation::alone(|block, call| {
            let bytes = call.instruction.results[0].bytes;
            let data = match address(block, call, 0, bytes)? {
                Some(address) => block.load(call, address, bytes, bytes.min(4))?,
                None => vec![0; bytes],
            };
            call.give(0, &data);
            Ok(Then::GoOn)
        });
    }
    if is(name, "raw.ptr.buffer.store") {
        return Operation::alone(|block, call| {
            let data = call.bytes(0);
            if let Some(address) = address(block, call, 1, data.len())? {
                block.store(call, address, data, data.len().min(4))?;
            }
            Ok(Then::GoOn)
        });
    }
    match name {
        "global.load.lds" => Operation::together(Party::Warp, |block, calls| {
            to_shared(block, calls, 1, |_, call| {
                Ok(Some(call.word(0).wrapping_add_signed(i64::from(call.integer(3)))))
            })
        }),
        "raw.ptr.buffer.load.lds" => Operation::together(Party::Warp, |block, calls| {
            to_shared(block, calls, 1, |block, call| {
                let offset = u64::from(call.number(3)) + u64::from(call.number(5));
                in_bounds(block, call, 0, [offset, u64::from(call.number(4))], call.number(2) as usize)
            })
        }),
        _ => None,
    }
}

/// The address that the operands from `first` on give, a resource and two offsets; `None` outside the buffer.
fn address(block: &Block<'_>, call: &Call<'_>, first: usize, bytes: usize) -> Result<Option<u64>, Problem> {
    let offsets = [call.word(first + 1), call.word(first + 2)];
    in_bounds(block, call, first, offsets, bytes)
}

/// The second offset isn't part of what is checked.
fn in_bounds(
    block: &Block<'_>,
    call: &Call<'_>,
    resource: usize,
    [offset, scalar]: [u64; 2],
    bytes: usize,
) -> Result<Option<u64>, Problem> {
    let number = (call.word(resource) as usize).wrapping_sub(1);
    let Some(resource) = block.resources.get(number) else {
        return Err(Problem::Misuse("uses a buffer resource that nothing made".to_owned()));
    };
    if offset >= resource.bytes {
        return Ok(None);
    }
    if offset + bytes as u64 > resource.bytes {
        let what = format!(
            "accesses {bytes} bytes at byte {offset} of a buffer of {}, partly outside",
            resource.bytes
        );
        return Err(Problem::Misuse(what));
    }
    Ok(Some(resource.base + offset + scalar))
}

/// Each lane's bytes go to the place of its number in shared memory, from the first lane's address on.
fn to_shared(
    block: &mut Block<'_>,
    calls: &[Call<'_>],
    target: usize,
    from: impl Fn(&Block<'_>, &Call<'_>) -> Result<Option<u64>, Problem>,
) -> Result<(), LaneProblem> {
    let base = calls[0].word(target);
    let immediate = if calls[0].operands() == 5 {
        i64::from(calls[0].integer(3))
    } else {
        i64::from(calls[0].integer(5))
    };
    for (lane, call) in calls.iter().enumerate() {
        let bytes = call.number(2) as usize;
        let run = |block: &mut Block<'_>| {
            if call.word(target) != base {
                return Err(Problem::NotUniform { first: base, other: call.word(target) });
            }
            let data = match from(block, call)? {
                Some(address) => block.load(call, address, bytes, bytes.min(4))?,
                None => vec![0; bytes],
            };
            let to = base.wrapping_add_signed(immediate) + (lane * bytes) as u64;
            block.store(call, to, &data, bytes.min(4))
        };
        run(block).map_err(|problem| (call.thread, problem))?;
    }
    Ok(())
}
