//! Buffer resources of AMD's GPUs, whose bounds the hardware checks, and loads that go to shared memory at once (the
//! CDNA and RDNA ISA manuals, "Buffer Addressing", "Range checking"; LLVM's AMDGPU usage guide).

use super::is;
use crate::simt::block::Block;
use crate::simt::fault::Problem;
use crate::simt::instruction::{Call, LaneProblem, Operation, Party, Then};

/// A buffer: where it begins, and how many bytes it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simt) struct Resource {
    base: u64,
    bytes: u64,
}

pub(super) fn find(name: &str) -> Option<Operation> {
    if is(name, "make.buffer.rsrc") {
        return Operation::alone(|block, call| {
            if call.word(1) != 0 {
                return Err(Problem::Misuse("a buffer with a stride isn't modelled".to_owned()));
            }
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
