//! Shared memory through which the threads of a block give each other elements: where each op's buffers lie.
//!
//! An op that moves elements between threads writes buffers, waits, and reads them; only what is staged for a product
//! outlives its op, until the product, and the stages that a loop's tiles are copied to are the loop's. So buffers are
//! handed out round a ring ([`ring`]), and memory that was read since the last barrier must not be written before the
//! next one ([`crate::gpu::exchange::barriers`]): with a ring a following op usually writes elsewhere and needs no barrier of its own
//! for that. What blocks of a cluster send each other comes at any time, to buffers that are nobody else's.

mod requests;
mod ring;

use super::Exchanges;
use crate::dtype::DType;
use crate::kernel::OpId;
use requests::Request;
use ring::Ring;
use std::collections::HashMap;

/// What buffers begin at a multiple of, in bytes: 32 banks.
pub const SCRATCH_ALIGNMENT: u64 = 128;

/// The ring is at least this large where the kernel's largest op needs less: room for two small ops.
const SMALL_RING: u64 = 8 * 1024;

/// A buffer of elements of one format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// Bytes from the start of shared memory.
    pub offset: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// The format of its elements, in their storage type.
    pub dtype: DType,
}

impl Buffer {
    /// Whether two buffers have bytes in common.
    pub fn overlaps(&self, other: &Buffer) -> bool {
        self.offset < other.offset + other.bytes && other.offset < self.offset + self.bytes
    }
}

/// Every op's buffers.
#[derive(Clone, Debug, Default)]
pub(in crate::gpu) struct Scratch {
    buffers: HashMap<OpId, Vec<Buffer>>,
    bytes: u64,
    largest: Option<OpId>,
}

impl Scratch {
    /// Hands out buffers behind the rings of pipelines, in a block that may have so much shared memory.
    pub(in crate::gpu) fn of(exchanges: &Exchanges<'_>, available: u64) -> Scratch {
        let base = exchanges.pipelines.bytes().next_multiple_of(SCRATCH_ALIGNMENT);
        let ops = exchanges.kernel().walk();
        let positions: HashMap<OpId, usize> = ops.iter().enumerate().map(|(i, &op)| (op, i)).collect();
        let all: Vec<(OpId, Vec<Request>)> = ops.iter().map(|&op| (op, exchanges.requests(op))).collect();
        let total = |requests: &[Request]| requests.iter().map(|request| request.bytes()).sum::<u64>();
        let largest = all.iter().map(|(_, requests)| total(requests)).max().unwrap_or(0);
        let mut ring = Ring::of(largest.max(SMALL_RING.min(available)));
        let mut scratch = Scratch { bytes: base, ..Scratch::default() };
        let exchanging = all.iter().filter(|(_, requests)| !requests.is_empty());
        let (sent, others): (Vec<_>, Vec<_>) =
            exchanging.partition(|(op, _)| exchanges.laid_out.is_sent(*op));
        let sent = sent.into_iter().map(|exchange| (exchange, 0..=all.len()));
        let used = |op: &OpId| positions[op]..=positions[&last_reader(exchanges, *op)];
        let others = others.into_iter().map(|exchange| (exchange, used(&exchange.0)));
        for ((op, requests), used) in sent.chain(others) {
            let bytes = total(requests);
            let mut offset = base + ring.place(bytes, used);
            if scratch.bytes < offset + bytes {
                (scratch.bytes, scratch.largest) = (offset + bytes, Some(*op));
            }
            for request in requests {
                let buffer = Buffer { offset, bytes: request.bytes(), dtype: request.dtype };
                offset += buffer.bytes;
                scratch.buffers.entry(*op).or_default().push(buffer);
            }
        }
        scratch
    }

    /// The op's buffers, in the order of its requests.
    pub(in crate::gpu) fn buffers(&self, op: OpId) -> &[Buffer] {
        self.buffers.get(&op).map_or(&[], Vec::as_slice)
    }

    /// Shared memory of a block, rings among it, in bytes.
    pub(in crate::gpu) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Moves every buffer to this byte.
    #[cfg(test)]
    pub(in crate::gpu) fn begin_all_at(&mut self, offset: u64) {
        self.buffers.values_mut().flatten().for_each(|buffer| buffer.offset = offset);
    }

    /// The op whose buffers end last.
    pub(in crate::gpu) fn largest(&self) -> Option<OpId> {
        self.largest
    }
}

/// The last op that reads an op's buffers.
fn last_reader(exchanges: &Exchanges<'_>, op: OpId) -> OpId {
    let kernel = exchanges.kernel();
    match exchanges.copies.of_loop(op) {
        Some(_) => {
            *kernel.walk_in(kernel.op(op).regions[0]).last().expect("verified: a loop's region yields")
        }
        None => exchanges.laid_out.staged.get(&op).copied().unwrap_or(op),
    }
}
