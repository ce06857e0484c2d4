//! Where the threads of a block wait for each other before an op: the least that what they exchange needs.
//!
//! An op that exchanges elements writes its buffers, waits, and reads them: that wait is its own. It waits before it
//! writes, too, where a buffer lies over what may have been read since the last barrier; a product waits where what is
//! staged for it was written since. What a loop reads in one turn is known to the next: its body is gone through until
//! nothing new is found. Threads also wait where one may read from memory what another one of the block wrote, and where
//! atomic operations may come to an element in another thread than the one that came there before ([`atomics`]).
//!
//! Where the blocks of a cluster share tiles, threads wait before an op for those of all blocks, but what warps of a block
//! exchange, and what blocks are sent, lets other blocks go on as they may. So what such blocks write to each other is asked of
//! all that was read since the last barrier of the cluster.

mod atomics;

use super::Exchanges;
use super::scratch::Scratch;
use crate::gpu::Buffer;
use crate::kernel::{OpData, OpId, RegionId, ValueId};
use crate::ops::Op;
use crate::types::Type;
use crate::view::Source;
use atomics::Atomics;
use std::collections::HashSet;

/// The ops of a kernel before which the threads that hold tiles wait for each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::gpu) struct Barriers {
    before: HashSet<OpId>,
}

impl Barriers {
    pub(in crate::gpu) fn of(exchanges: &Exchanges<'_>, scratch: &Scratch) -> Barriers {
        let kernel = exchanges.kernel();
        let atomics = Atomics::of(kernel);
        let mut placing = Placing { exchanges, scratch, atomics, barriers: Barriers::default() };
        placing.region(kernel.body(), State::default());
        placing.barriers
    }

    /// Whether threads wait before the op.
    pub(in crate::gpu) fn are_before(&self, op: OpId) -> bool {
        self.before.contains(&op)
    }
}

/// What was read since the last barrier, and what was written to be read after the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    reads: HashSet<Buffer>,
    writes: HashSet<Buffer>,
    /// What was read since the last barrier of the cluster.
    reads_in_cluster: HashSet<Buffer>,
    /// The atomic operations since the last barrier.
    atomics: HashSet<OpId>,
}

impl State {
    /// What may have happened on one of two ways.
    fn or(mut self, other: State) -> State {
        self.reads.extend(other.reads);
        self.writes.extend(other.writes);
        self.reads_in_cluster.extend(other.reads_in_cluster);
        self.atomics.extend(other.atomics);
        self
    }

    fn clear(&mut self) {
        *self = State::default();
    }
}

fn meet(some: &HashSet<Buffer>, others: &[Buffer]) -> bool {
    others.iter().any(|other| some.iter().any(|buffer| buffer.overlaps(other)))
}

struct Placing<'p> {
    exchanges: &'p Exchanges<'p>,
    scratch: &'p Scratch,
    atomics: Atomics,
    barriers: Barriers,
}

impl Placing<'_> {
    fn region(&mut self, region: RegionId, mut state: State) -> State {
        let exchanges = self.exchanges;
        for &op in &exchanges.kernel().region(region).ops {
            let data = exchanges.kernel().op(op);
            if !exchanges.pipelines.replace(data) && !exchanges.copies.replace(op) {
                state = self.op(op, data, state);
            }
        }
        state
    }

    /// The state after an op, from that before it.
    fn op(&mut self, op: OpId, data: &OpData, mut state: State) -> State {
        match &data.op {
            kind if kind.is_loop() => return self.repeated(op, data, state),
            Op::If => {
                let [then, otherwise] = [0, 1].map(|i| self.region(data.regions[i], state.clone()));
                return then.or(otherwise);
            }
            Op::Print { .. } | Op::Assert { .. } => return self.told(op, data, state),
            Op::Atomic(atomic) => {
                if atomic.order.releases() {
                    self.wait(op, &mut state);
                }
                self.follow(op, &mut state);
                if atomic.order.acquires() {
                    state.clear();
                }
                self.exchange(op, &mut state);
                if !atomic.order.acquires() && self.scratch.buffers(op).is_empty() {
                    state.atomics.insert(op);
                }
            }
            Op::Mma | Op::MmaScaled => self.product(op, &mut state),
            Op::ConvertLayout if self.exchanges.laid_out.staged.contains_key(&op) => {
                let buffers = self.reserved(op, &mut state);
                state.writes.extend(buffers);
            }
            _ if data.op.is_load() || data.op.is_store() => {
                if self.is_seen_by_others(data) {
                    self.wait(op, &mut state);
                }
            }
            _ => self.exchange(op, &mut state),
        }
        state
    }

    /// A loop, which may have no turn.
    fn repeated(&mut self, op: OpId, data: &OpData, mut state: State) -> State {
        self.reserved(op, &mut state);
        let region = data.regions[0];
        let is_copied = self.exchanges.copies.of_loop(op).is_some();
        let turn = |placing: &mut Self, mut state: State| {
            if is_copied {
                // Each turn waits for the copies of all threads.
                state.clear();
            }
            placing.region(region, state)
        };
        self.turns(state, turn)
    }

    /// The state after any number of turns.
    fn turns(&mut self, before: State, turn: impl Fn(&mut Self, State) -> State) -> State {
        let mut state = before;
        loop {
            let known = self.barriers.before.len();
            let next = state.clone().or(turn(self, state.clone()));
            if next == state && known == self.barriers.before.len() {
                return state;
            }
            state = next;
        }
    }

    /// An atomic operation, which may have to come after others since the last barrier.
    fn follow(&mut self, op: OpId, state: &mut State) {
        if state.atomics.iter().any(|&earlier| self.atomics.must_follow(op, earlier)) {
            self.wait(op, state);
        }
    }

    fn wait(&mut self, op: OpId, state: &mut State) {
        self.barriers.before.insert(op);
        state.clear();
    }

    /// The op's buffers, which nobody reads any more.
    fn reserved(&mut self, op: OpId, state: &mut State) -> Vec<Buffer> {
        let buffers = self.scratch.buffers(op).to_vec();
        let of_others = self.written_by_blocks(op);
        let is_read = meet(&state.reads, &buffers) || meet(&state.reads_in_cluster, of_others.as_slice());
        if is_read || self.barriers.are_before(op) {
            self.wait(op, state);
        }
        buffers
    }

    /// The buffer of a reduction that the blocks of a cluster write in each other's memory before they wait at its barrier.
    /// What is sent instead has a buffer that nothing else reads.
    fn written_by_blocks(&self, op: OpId) -> Option<Buffer> {
        let (laid_out, data) = (self.exchanges.laid_out, self.exchanges.kernel().op(op));
        let joins_blocks = matches!(data.op, Op::Reduce { .. })
            && !laid_out.reduction(data).blocks.is_empty()
            && !laid_out.is_sent(op);
        joins_blocks.then(|| *self.scratch.buffers(op).last().expect("blocks that are joined have a buffer"))
    }

    /// An op that writes its buffers, waits, and reads them.
    fn exchange(&mut self, op: OpId, state: &mut State) {
        let buffers = self.reserved(op, state);
        if buffers.is_empty() {
            return;
        }
        let before = std::mem::take(state);
        if self.written_by_blocks(op).is_none() {
            state.reads_in_cluster = before.reads_in_cluster;
        }
        state.reads_in_cluster.extend(&buffers);
        state.reads.extend(buffers);
    }

    /// A message: threads find the first position of a condition that is false, if that is a tile, and where to write the
    /// elements that they hold, if there are any. An assertion does the second where it fails.
    fn told(&mut self, op: OpId, data: &OpData, mut state: State) -> State {
        let buffers = self.reserved(op, &mut state);
        let [record, positions @ ..] = buffers.as_slice() else { unreachable!("a message has a record") };
        let (is_assertion, finds) = (matches!(data.op, Op::Assert { .. }), !positions.is_empty());
        if finds {
            state.clear();
            state.reads.extend(positions);
        }
        let mut values = data.operands.iter().skip(usize::from(is_assertion));
        if !values.any(|value| self.exchanges.laid_out.distributions.contains_key(value)) {
            return state;
        }
        let told = State { reads: HashSet::from([*record]), ..State::default() };
        if is_assertion { state.or(told) } else { told }
    }

    fn product(&mut self, op: OpId, state: &mut State) {
        if !self.exchanges.laid_out.products.contains_key(&op) {
            return self.exchange(op, state);
        }
        let factors = self.staged_for(op);
        if meet(&state.writes, &factors) || self.barriers.are_before(op) {
            self.wait(op, state);
        }
        state.reads.extend(factors);
    }

    /// Where the factors of a product lie in shared memory: in the buffers of their conversions, or of the loop that
    /// they are copied for.
    fn staged_for(&self, product: OpId) -> Vec<Buffer> {
        let staged = self.exchanges.laid_out.staged.iter().filter(|&(_, &reader)| reader == product);
        let holder = |&convert: &OpId| self.exchanges.copies.loop_of(convert).unwrap_or(convert);
        staged.flat_map(|(convert, _)| self.scratch.buffers(holder(convert))).copied().collect()
    }

    /// Whether threads that hold copies of elements may read from memory what one of them writes there.
    fn is_seen_by_others(&self, data: &OpData) -> bool {
        let kernel = self.exchanges.kernel();
        let (view, tile) = match data.load() {
            Some(load) => (load.view, data.results[0]),
            None => (data.operands[0], data.operands[1]),
        };
        let is_copied =
            |tile| self.exchanges.laid_out.distributions.get(tile).is_some_and(|d| d.copies() != 0);
        if !is_copied(&tile) {
            return false;
        }
        let written = |view: ValueId| {
            let partition = kernel.definition(view).expect("verified: a view is made by `partition`");
            Source::of(kernel, partition.operands[0]).argument
        };
        match data.op.is_load() {
            true => matches!(kernel.ty(view), Type::Partition(view) if view.tensor.mutable),
            false => {
                let mut loads =
                    kernel.walk().into_iter().map(|op| kernel.op(op)).filter(|data| data.op.is_load());
                loads.any(|data| written(data.operands[0]) == written(view))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::gpu::{Scheduled, schedule};
    use crate::kernel::OpId;
    use crate::ops::Op;
    use crate::{Instance, TargetDesc};
    use tile_test_edit::Edit;

    fn scheduled(body: &str) -> Scheduled {
        let source = format!(
            "kernel @rows(%x: tensor<m x 1024 x f32>, %y: mut tensor<m x 1024 x f32>) {{
  %vx = partition %x [1, 1024] : partition<m x 1024 x f32, [1, 1024]>
  %vy = partition %y [1, 1024] : mut partition<m x 1024 x f32, [1, 1024]>
  %i, %j = block_index %vy : index, index
  %t = load %vx[%i, %j] : tile<1 x 1024 x f32>
  %from = constant 0 : index
  %to = constant 9 : index
{body}  store %vy, %r
}}
"
        );
        schedule(Instance::parse(&source, &[]).unwrap(), TargetDesc::named("sm_80").unwrap(), None)
    }

    /// Which of the kernel's reductions threads wait before, in the order in which they stand.
    fn waits(scheduled: &Scheduled) -> Vec<bool> {
        let is_reduction = |op: &OpId| matches!(scheduled.op(*op).op, Op::Reduce { .. });
        scheduled.walk().into_iter().filter(is_reduction).map(|op| scheduled.waits_before(op)).collect()
    }

    const SUM: &str = "%s = reduce sum %t axis 1 : tile<1 x 1 x f32>
  %sb = broadcast %s : tile<1 x 1024 x f32>
  %u = div %t, %sb : tile<1 x 1024 x f32>
";

    #[test]
    fn what_lies_elsewhere_needs_no_barrier() {
        let most = "%m = reduce max %u axis 1 : tile<1 x 1 x f32>
  %mb = broadcast %m : tile<1 x 1024 x f32>
  %r = div %u, %mb : tile<1 x 1024 x f32>
";
        let scheduled = scheduled(&format!("  {SUM}  {most}"));
        assert_eq!(waits(&scheduled), [false, false]);
        let buffers: Vec<_> = scheduled.walk().into_iter().flat_map(|op| scheduled.buffers(op)).collect();
        // A partial sum of each warp in each buffer.
        assert_eq!(buffers.iter().map(|buffer| buffer.offset).collect::<Vec<_>>(), [0, 128]);
    }

    /// Between two turns that write the same bytes nothing else makes threads wait.
    #[test]
    fn a_turn_waits_for_what_the_turn_before_read() {
        let body = format!(
            "  %r = for %p = %from to %to carry (%t = %t) : tile<1 x 1024 x f32> {{\n  {SUM}    yield %u\n  }}\n"
        )
        .edit("(%t = %t)", "(%c = %t)")
        .edit("reduce sum %t", "reduce sum %c");
        assert_eq!(waits(&scheduled(&body)), [true]);
    }

    /// When a thread writes the first buffer again all have read it: they have waited in between for the second.
    #[test]
    fn two_exchanges_of_a_turn_wait_for_each_other() {
        let second = "%m = reduce max %u axis 1 : tile<1 x 1 x f32>
  %mb = broadcast %m : tile<1 x 1024 x f32>
  %w = div %u, %mb : tile<1 x 1024 x f32>
";
        let body = format!(
            "  %r = for %p = %from to %to carry (%c = %t) : tile<1 x 1024 x f32> {{\n  {}  {second}    yield %w\n  }}\n",
            SUM.edit("reduce sum %t", "reduce sum %c")
        );
        assert_eq!(waits(&scheduled(&body)), [false, false]);
    }

    /// Between two turns of the second reduction warps of each block have waited for each other, and blocks haven't. The first one
    /// joins what a block has alone, to whose buffer no other block writes.
    #[test]
    fn blocks_wait_for_what_others_read_the_turn_before() {
        let source = "\
kernel @levelled(%x: tensor<256 x 256 x f32>, %y: mut tensor<256 x 256 x f32>) {
  %vx = partition %x [256, 256] : partition<256 x 256 x f32, [256, 256]>
  %vy = partition %y [256, 256] : mut partition<256 x 256 x f32, [256, 256]>
  %i, %j = block_index %vy : index, index
  %pad = constant 0.0 : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<256 x 256 x f32>
  %0 = constant 0 : index
  %3 = constant 3 : index
  %result = for %p = %0 to %3 carry (%all = %t) : tile<256 x 256 x f32> {
    %rows = reduce max %all axis 1 : tile<256 x 1 x f32>
    %most = reduce max %rows axis 0 : tile<1 x 1 x f32>
    %b = broadcast %most : tile<256 x 256 x f32>
    %next = sub %all, %b : tile<256 x 256 x f32>
    yield %next
  }
  store_masked %vy, %result
}
";
        let target = TargetDesc::named("sm_90a").unwrap();
        let scheduled = schedule(Instance::parse(source, &[]).unwrap(), target, None);
        assert_eq!(scheduled.blocks_per_tile(), 4);
        assert_eq!(waits(&scheduled), [false, true]);
    }

    /// One way through the branch exchanges nothing, so that the second reduction can't rely on its barrier.
    #[test]
    fn a_branch_counts_as_either_of_its_ways() {
        let body = format!(
            "  %flag = lt %i, %to : bool
  %u2 = if %flag : tile<1 x 1024 x f32> {{
  {SUM}    yield %u
  }} else {{
    yield %t
  }}
  %r = for %p = %from to %to carry (%c = %u2) : tile<1 x 1024 x f32> {{
    %n = reduce max %c axis 1 : tile<1 x 1 x f32>
    %nb = broadcast %n : tile<1 x 1024 x f32>
    %w = div %c, %nb : tile<1 x 1024 x f32>
    %o = reduce sum %w axis 1 : tile<1 x 1 x f32>
    %ob = broadcast %o : tile<1 x 1024 x f32>
    %v = div %w, %ob : tile<1 x 1024 x f32>
    yield %v
  }}
"
        );
        assert_eq!(waits(&scheduled(&body)), [false, false, false]);
    }
}
