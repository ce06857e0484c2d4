//! Shared memory of a block: where each op's buffers lie, decided before anything is emitted, and where
//! barriers are needed.
//!
//! An op that moves data between threads writes buffers, waits, and reads them; only what is staged for a product
//! outlives its op, until the product, and the stages that a loop's tiles are copied to are the loop's. So buffers are
//! handed out round a ring, and memory that was read since the last barrier must not be written before the next one:
//! with a ring a following op usually writes elsewhere and needs no barrier of its own for that.

use super::dialect::SHARED_ALIGNMENT;
use super::{atomics, convert, copies, gather, item, lines, messages, mma, movement, reduce};
use crate::error::Error;
use std::collections::HashMap;
use tile_ir::gpu::Scheduled;
use tile_ir::{DType, Op, OpId, TargetDesc};

/// What rings of copied tiles begin at a multiple of: the pattern of their swizzle repeats so often, in bytes.
const RING_ALIGNMENT: u32 = 1024;

/// The ring is at least this large where the kernel's largest op needs less: room for two small ops.
const SMALL_RING: u64 = 8 * 1024;

/// A buffer of elements of one format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Buffer {
    /// Bytes from the start of shared memory.
    pub(super) offset: u64,
    /// Its size in bytes.
    pub(super) bytes: u64,
    /// The format of its elements, in their storage type.
    pub(super) dtype: DType,
}

/// A buffer that an op asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) dtype: DType,
    pub(super) elements: u64,
}

impl Request {
    fn bytes(self) -> u64 {
        (self.elements * self.dtype.bytes() as u64).next_multiple_of(u64::from(SHARED_ALIGNMENT))
    }
}

/// Every op's buffers.
pub(super) struct SharedPlan {
    buffers: HashMap<OpId, Vec<Buffer>>,
    bytes: u64,
    /// Whether pipelines have rings in it.
    has_rings: bool,
}

impl SharedPlan {
    /// Plans the buffers of a scheduled kernel.
    ///
    /// # Errors
    /// [`Error::SharedMemory`] where what is needed at a time is more than the target has.
    pub(super) fn of(scheduled: &Scheduled, target: &TargetDesc) -> Result<SharedPlan, Error> {
        let base = scheduled.pipelines().bytes().next_multiple_of(u64::from(SHARED_ALIGNMENT));
        let available = u64::from(target.shared_bytes);
        let ops = scheduled.walk();
        let positions: HashMap<OpId, usize> = ops.iter().enumerate().map(|(i, &op)| (op, i)).collect();
        let all: Vec<(OpId, Vec<Request>)> = ops.iter().map(|&op| (op, requests(scheduled, op))).collect();
        let total = |requests: &[Request]| requests.iter().map(|request| request.bytes()).sum::<u64>();
        let largest = all.iter().map(|(_, requests)| total(requests)).max().unwrap_or(0);
        let mut ring = Ring { bytes: largest.max(SMALL_RING.min(available)), next: 0, live: Vec::new() };
        let mut plan =
            SharedPlan { buffers: HashMap::new(), bytes: base, has_rings: !scheduled.pipelines().is_empty() };
        for (position, (op, requests)) in all.iter().enumerate() {
            ring.live.retain(|live| live.until >= position);
            let until = positions[&last_reader(scheduled, *op)];
            let mut offset = base + ring.place(total(requests), until);
            plan.bytes = plan.bytes.max(offset + total(requests));
            for request in requests {
                let buffer = Buffer { offset, bytes: request.bytes(), dtype: request.dtype };
                offset += buffer.bytes;
                plan.buffers.entry(*op).or_default().push(buffer);
            }
            if plan.bytes > available && !requests.is_empty() {
                let (kernel, target) = (scheduled.name.clone(), target.name.to_owned());
                let loc = scheduled.op(*op).loc;
                return Err(Error::SharedMemory { kernel, target, needed: plan.bytes, available, loc });
            }
        }
        Ok(plan)
    }

    /// The op's buffers, in the order of its requests.
    pub(super) fn buffers(&self, op: OpId) -> Vec<Buffer> {
        self.buffers.get(&op).cloned().unwrap_or_default()
    }

    /// What shared memory begins at a multiple of, in bytes.
    pub(super) fn alignment(&self) -> u32 {
        if self.has_rings { RING_ALIGNMENT } else { SHARED_ALIGNMENT }
    }

    /// Shared memory of a block, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Memory that is handed out in turn, round and round.
struct Ring {
    bytes: u64,
    next: u64,
    live: Vec<Live>,
}

/// A buffer until the last op that reads it, by its position.
struct Live {
    start: u64,
    end: u64,
    until: usize,
}

impl Ring {
    /// Hands out memory: what comes next, or from the beginning, or where there is none left beyond the ring's end.
    /// The buffers of one op follow each other, so that none of them splits what is free.
    fn place(&mut self, bytes: u64, until: usize) -> u64 {
        if bytes == 0 {
            return self.next;
        }
        let starts = || [self.next, 0].into_iter().chain(self.live.iter().map(|live| live.end));
        let is_free =
            |&start: &u64| self.live.iter().all(|live| start + bytes <= live.start || live.end <= start);
        let within = starts().filter(is_free).find(|start| start + bytes <= self.bytes);
        let start = within.or_else(|| starts().filter(is_free).min()).unwrap_or(0);
        self.bytes = self.bytes.max(start + bytes);
        self.next = start + bytes;
        self.live.push(Live { start, end: start + bytes, until });
        start
    }
}

/// The last op that reads an op's buffers.
fn last_reader(scheduled: &Scheduled, op: OpId) -> OpId {
    match scheduled.copies().of_loop(op) {
        Some(_) => {
            let inside = scheduled.walk_in(scheduled.op(op).regions[0]);
            *inside.last().expect("verified: a loop's region yields")
        }
        None => scheduled.staged_for(op).unwrap_or(op),
    }
}

fn requests(scheduled: &Scheduled, op: OpId) -> Vec<Request> {
    let data = scheduled.op(op);
    match &data.op {
        _ if scheduled.pipelines().replace(data) || scheduled.copies().replace(op) => Vec::new(),
        Op::Mma if scheduled.product(op).is_some() => Vec::new(),
        Op::Mma => mma::requests(scheduled, data),
        Op::For => copies::requests(scheduled, op),
        Op::ConvertLayout => convert::requests(scheduled, op),
        Op::Reduce { op, axis } => reduce::requests(scheduled, data, *op, *axis),
        Op::ReduceWith { .. }
        | Op::ScanWith { .. }
        | Op::Scan { .. }
        | Op::Sort { .. }
        | Op::Histogram(_) => lines::requests(scheduled, data),
        Op::Gather { .. } | Op::Scatter { .. } => gather::requests(scheduled, data),
        Op::Item => item::requests(scheduled, data),
        Op::Print { .. } | Op::Assert { .. } => messages::requests(scheduled, data),
        Op::Reshape(_) => movement::reshape_requests(scheduled, data),
        Op::Atomic(atomic) => atomics::requests(scheduled, data, *atomic),
        _ => movement::requests(scheduled, data),
    }
}

/// What was read from shared memory since the last barrier, and what was written to be read after the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pending {
    reads: Vec<(u64, u64)>,
    writes: Vec<(u64, u64)>,
}

impl Pending {
    /// Anything may have been read and written: the state where control flow joins.
    pub(super) fn unknown() -> Pending {
        Pending { reads: vec![(0, u64::MAX)], writes: vec![(0, u64::MAX)] }
    }

    /// Notes that a buffer is written, for whoever waits before it is read.
    pub(super) fn write(&mut self, buffer: Buffer) {
        self.writes.push((buffer.offset, buffer.offset + buffer.bytes));
    }

    /// Whether a barrier must come before the buffer is read.
    pub(super) fn is_unseen(&self, buffer: Buffer) -> bool {
        overlaps(&self.writes, buffer)
    }

    /// Notes that a buffer is read.
    pub(super) fn read(&mut self, buffer: Buffer) {
        self.reads.push((buffer.offset, buffer.offset + buffer.bytes));
    }

    /// Whether a barrier must come before the buffer is written.
    pub(super) fn conflicts(&self, buffer: Buffer) -> bool {
        overlaps(&self.reads, buffer)
    }

    /// Notes a barrier.
    pub(super) fn clear(&mut self) {
        self.reads.clear();
        self.writes.clear();
    }
}

fn overlaps(ranges: &[(u64, u64)], buffer: Buffer) -> bool {
    ranges.iter().any(|&(start, end)| start < buffer.offset + buffer.bytes && buffer.offset < end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_op_that_fills_the_ring_begins_where_it_does() {
        let mut ring = Ring { bytes: 1024, next: 0, live: Vec::new() };
        assert_eq!(ring.place(256, 0), 0);
        ring.live.clear();
        assert_eq!((ring.place(1024, 1), ring.bytes), (0, 1024));
    }

    #[test]
    fn a_write_waits_only_for_reads_of_the_same_bytes() {
        let buffer = |offset| Buffer { offset, bytes: 128, dtype: DType::F32 };
        let mut pending = Pending::default();
        pending.read(buffer(0));
        assert!(pending.conflicts(buffer(0)) && !pending.conflicts(buffer(128)));
        pending.clear();
        assert!(!pending.conflicts(buffer(0)));
        assert!(Pending::unknown().conflicts(buffer(256)));
    }
}
