//! The buffers that each op asks for: the table of what goes through shared memory.

use super::super::Exchanges;
use super::SCRATCH_ALIGNMENT;
use crate::dtype::DType;
use crate::gpu::access::is_used;
use crate::gpu::{Scan, Step, Way};
use crate::kernel::{OpData, OpId, ValueId};
use crate::log::Site;
use crate::ops::Op;

/// A buffer that an op asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) dtype: DType,
    pub(super) elements: u64,
}

impl Request {
    pub(super) fn bytes(self) -> u64 {
        (self.elements * self.dtype.bytes() as u64).next_multiple_of(SCRATCH_ALIGNMENT)
    }
}

impl Exchanges<'_> {
    /// The buffers that an op needs, in the order in which its emitter has them.
    pub(super) fn requests(&self, op: OpId) -> Vec<Request> {
        let data = self.kernel().op(op);
        match &data.op {
            _ if self.pipelines.replace(data) || self.copies.replace(op) => Vec::new(),
            Op::For => self.stages(op),
            Op::ConvertLayout => self.converted(op, data),
            Op::Reshape(_) if self.moves.reshape(op).is_some() => Vec::new(),
            Op::Reshape(_) | Op::Item => self.varying(data.operands[0]),
            Op::Reduce { .. } => self.joined(op, data),
            Op::Mma | Op::MmaScaled if self.laid_out.products.contains_key(&op) => Vec::new(),
            Op::Mma => self.tiles(&data.operands[..2]),
            Op::Scan { .. } | Op::ReduceWith { .. } | Op::ScanWith { .. } => match self.laid_out.scan(data) {
                Some(scan) => self.scanned(&scan),
                None => self.tiles(&data.operands[..data.operands.len() / 2]),
            },
            Op::Histogram(_) => self.tiles(&data.results),
            Op::Gather { .. } => self.tiles(&data.operands[..1]),
            Op::Scatter { .. } => self.tiles(&data.operands[1..]),
            Op::Sort { .. } => self.sorted(data),
            Op::Print { .. } | Op::Assert { .. } => self.told(data),
            Op::Atomic(_) if is_used(self.kernel(), data) => self.shared_results(data),
            _ => self.moved(op, data),
        }
    }

    fn tile(&self, tile: ValueId) -> Request {
        let elements = self.laid_out.distributions[&tile].shape().iter().product();
        Request { dtype: self.laid_out.dtype(tile), elements }
    }

    fn tiles(&self, tiles: &[ValueId]) -> Vec<Request> {
        tiles.iter().map(|&tile| self.tile(tile)).collect()
    }

    /// A tile, unless all its elements are one value.
    fn varying(&self, tile: ValueId) -> Vec<Request> {
        if self.uniform.contains(&tile) { Vec::new() } else { vec![self.tile(tile)] }
    }

    fn converted(&self, op: OpId, data: &OpData) -> Vec<Request> {
        match self.laid_out.ways[&op] {
            _ if self.uniform.contains(&data.operands[0]) => Vec::new(),
            Way::Renamed(_) => Vec::new(),
            Way::Swizzled(_) | Way::RowMajor => self.tiles(&data.results),
            Way::InRounds { bytes } => {
                let dtype = self.laid_out.dtype(data.results[0]);
                vec![Request { dtype, elements: bytes / dtype.bytes() as u64 }]
            }
        }
    }

    /// A partial result of each warp along the axis, and of each block; and the mbarrier that counts what blocks send.
    fn joined(&self, op: OpId, data: &OpData) -> Vec<Request> {
        let reduction = self.laid_out.reduction(data);
        let counts = [reduction.exchanged_by_warps(), reduction.exchanged_by_blocks()].into_iter().flatten();
        let partial = counts.map(|elements| Request { dtype: reduction.dtype, elements });
        let arrival = self.laid_out.is_sent(op).then_some(Request { dtype: DType::U64, elements: 1 });
        partial.chain(arrival).collect()
    }

    /// The sums of parts of lines that warps join.
    fn scanned(&self, scan: &Scan) -> Vec<Request> {
        let parts = scan.steps.iter().filter_map(|step| match step {
            Step::Warps { parts, .. } => Some(*parts),
            Step::Registers(_) | Step::Lanes(_) | Step::Pieces => None,
        });
        let threads = self.laid_out.threads.count();
        let of_step =
            |parts: u64| scan.formats.iter().map(move |&dtype| Request { dtype, elements: parts * threads });
        parts.flat_map(of_step).collect()
    }

    /// The elements, the places of those that are kept, and keys that other warps compare with theirs.
    fn sorted(&self, data: &OpData) -> Vec<Request> {
        let sorting = self.laid_out.sorting(data);
        let keys = Request { dtype: sorting.words().1, elements: sorting.exchanged_words() };
        let keys = (keys.elements > 0).then_some(keys);
        [self.tile(data.operands[0]), self.tile(data.results[1])].into_iter().chain(keys).collect()
    }

    fn moved(&self, op: OpId, data: &OpData) -> Vec<Request> {
        let Some(movement) = self.moves.movement(op) else { return Vec::new() };
        let exchanged = (0..data.operands.len()).filter(|&operand| movement.is_exchanged(operand));
        exchanged.flat_map(|operand| self.varying(data.operands[operand])).collect()
    }

    /// What one thread found, where others hold copies of the element.
    fn shared_results(&self, data: &OpData) -> Vec<Request> {
        let copied = |result: &&ValueId| self.laid_out.distributions[*result].copies() != 0;
        data.results.iter().filter(copied).map(|&result| self.tile(result)).collect()
    }

    /// The record's place, and for a tile as condition the first position that is false in each thread.
    fn told(&self, data: &OpData) -> Vec<Request> {
        let site = Site::of(&self.laid_out.instance, data).expect("the op says something");
        let condition = data.operands.first().filter(|_| site.condition.is_some());
        let differs =
            |value| self.laid_out.distributions.contains_key(value) && !self.uniform.contains(value);
        let positions = condition
            .is_some_and(differs)
            .then_some(Request { dtype: DType::U32, elements: self.laid_out.threads.count() });
        [Request { dtype: DType::U64, elements: 1 }].into_iter().chain(positions).collect()
    }

    /// All stages of the tiles that are copied ahead.
    fn stages(&self, op: OpId) -> Vec<Request> {
        let copied = self.copies.of_loop(op);
        copied.map(|copied| Request { dtype: DType::U8, elements: copied.bytes() }).into_iter().collect()
    }
}
