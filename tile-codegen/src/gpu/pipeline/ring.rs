//! Rings of stages in shared memory: the producer's copies, and how producer and consumers wait for each other.
//!
//! Both count the turns of a pipeline's region: which stage comes next, and the parity of the round through the ring. What
//! is around that, loops and branches, carries these on, so that the producer copies for the next tile of a persistent kernel while
//! the consumers are busy with this one.

use super::mbarrier;
use super::pairs::{BOTH, Pair};
use super::roles::Role;
use crate::emit::Value;
use crate::gpu::fragment::Fragment;
use crate::gpu::region::Emitter;
use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::gpu::Pipeline;
use tile_ir::gpu::pipeline::{Fill, PAIR, Stages, TileCopy};
use tile_ir::kernel::OpData;
use tile_ir::{OpId, RegionId};

/// Where the next turn of a pipeline finds its tiles.
#[derive(Clone, Copy, Debug)]
pub(in crate::gpu) struct RingState<'c> {
    /// The stage, an i32.
    pub(in crate::gpu) stage: IntValue<'c>,
    /// Whether the rounds through the ring before were odd, an i32.
    pub(in crate::gpu) parity: IntValue<'c>,
    /// Whether a product of the turn before may go on still: its stage isn't left.
    pub(in crate::gpu) running: IntValue<'c>,
}

/// What goes round through stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::gpu) enum Ring {
    /// The tiles of a region, stage after stage with its turns.
    Tiles(RegionId),
    /// Sums of this number in tensor memory.
    Sums(usize),
    /// The left factor of this number that consumers bring to shared memory.
    Brought(usize),
    /// The right factor of this number that consumers bring to shared memory, without mbarriers.
    Right(usize),
}

/// How many values a state is.
const STATE_VALUES: usize = 3;

impl<'c> RingState<'c> {
    fn values(self) -> [Value<'c>; STATE_VALUES] {
        [self.stage.into(), self.parity.into(), self.running.into()]
    }

    fn of_values(values: &[Value<'c>]) -> RingState<'c> {
        let [stage, parity, running] = values else { unreachable!("a state is so many values") };
        RingState {
            stage: stage.into_int_value(),
            parity: parity.into_int_value(),
            running: running.into_int_value(),
        }
    }
}

impl<'a, 'c> Emitter<'a, 'c> {
    pub(in crate::gpu) fn pipeline(&self, region: RegionId) -> &'a Pipeline {
        self.scheduled.pipelines().of_region(region).expect("the region has a pipeline")
    }

    /// The rings that threads of this role go round with the turns of a region.
    pub(in crate::gpu) fn rings_of_region(&self, region: RegionId) -> Vec<Ring> {
        let pipelines = self.scheduled.pipelines();
        let (has_tiles, has_sums) = match self.role {
            Role::All => (false, false),
            Role::Producer => (true, false),
            Role::Multiplier => (true, true),
            Role::Consumer => (pipelines.tensor_memory().is_empty(), true),
        };
        let tiles = pipelines.of_region(region).filter(|_| has_tiles).map(|_| Ring::Tiles(region));
        let memory = pipelines.tensor_memory();
        let numbers = (0..memory.sums().len()).map(Ring::Sums);
        let others = numbers.chain((0..memory.brought().len()).map(Ring::Brought));
        let own = others.filter(|&ring| has_sums && self.stages(ring).home == region);
        let right = (0..).zip(pipelines.brought_right());
        let right = right.filter(|(_, brought)| self.role == Role::Consumer && brought.home == region);
        tiles.into_iter().chain(own).chain(right.map(|(number, _)| Ring::Right(number))).collect()
    }

    /// The stages of sums, or of a factor that consumers bring.
    ///
    /// # Panics
    /// If the ring is of others.
    pub(in crate::gpu) fn stages(&self, ring: Ring) -> &Stages {
        let memory = self.scheduled.pipelines().tensor_memory();
        match ring {
            Ring::Tiles(_) | Ring::Right(_) => unreachable!("it has no such mbarriers"),
            Ring::Sums(number) => &memory.sums()[number].stages,
            Ring::Brought(number) => &memory.brought()[number].stages,
        }
    }

    /// How many stages a ring has.
    fn stage_count(&self, ring: Ring) -> u64 {
        match ring {
            Ring::Tiles(region) => self.pipeline(region).stages,
            Ring::Sums(_) | Ring::Brought(_) => self.stages(ring).count,
            Ring::Right(number) => self.scheduled.pipelines().brought_right()[number].stages,
        }
    }

    /// The rings of the regions of a loop or branch, and of those within these.
    pub(in crate::gpu) fn rings_of(&self, op: OpId) -> Vec<Ring> {
        let own = &self.instance.op(op).regions;
        let inside = own.iter().flat_map(|&region| self.instance.walk_in(region));
        let inside = inside.flat_map(|op| &self.instance.op(op).regions);
        own.iter().chain(inside).flat_map(|&region| self.rings_of_region(region)).collect()
    }

    /// The state of a ring; before the first turn that of an empty one.
    pub(in crate::gpu) fn state(&self, ring: Ring) -> RingState<'c> {
        let first = RingState { stage: self.i32(0), parity: self.i32(0), running: self.ir.bool(false) };
        self.pipelined.rings.get(&ring).copied().unwrap_or(first)
    }

    /// The state of the ring of a region's tiles.
    pub(in crate::gpu) fn ring(&self, pipeline: RegionId) -> RingState<'c> {
        self.state(Ring::Tiles(pipeline))
    }

    /// The states of rings, for what carries them on.
    pub(in crate::gpu) fn ring_values(&self, rings: &[Ring]) -> Vec<Value<'c>> {
        rings.iter().flat_map(|&ring| self.state(ring).values()).collect()
    }

    /// Restores what [`Self::ring_values`] gave; gives what follows that.
    pub(in crate::gpu) fn set_rings<'f>(
        &mut self,
        rings: &[Ring],
        values: &'f [Value<'c>],
    ) -> &'f [Value<'c>] {
        let (states, rest) = values.split_at(STATE_VALUES * rings.len());
        for (&ring, state) in rings.iter().zip(states.chunks(STATE_VALUES)) {
            self.pipelined.rings.insert(ring, RingState::of_values(state));
        }
        rest
    }

    /// The mbarrier that says that this turn's stage is filled, of sums or of a factor that consumers bring.
    pub(in crate::gpu) fn full_of(&self, ring: Ring) -> PointerValue<'c> {
        self.barrier_of_stage(self.stages(ring).full(), self.state(ring).stage)
    }

    /// The mbarrier at which this turn's stage is left, of sums or of a factor that consumers bring.
    pub(in crate::gpu) fn empty_of(&self, ring: Ring) -> PointerValue<'c> {
        self.barrier_of_stage(self.stages(ring).empty(), self.state(ring).stage)
    }

    /// Waits until a stage is filled.
    pub(in crate::gpu) fn await_full(&self, ring: Ring) {
        mbarrier::wait(self.ir, self.full_of(ring), self.state(ring).parity);
    }

    /// Waits until a stage was left.
    pub(in crate::gpu) fn await_empty(&self, ring: Ring) {
        let left = self.ir.xor(self.state(ring).parity, self.i32(1));
        mbarrier::wait(self.ir, self.empty_of(ring), left);
    }

    /// Goes on to the next stages, at the end of a region's turn, of the rings that it has.
    pub(in crate::gpu) fn next_stage(&mut self, region: RegionId) {
        for ring in self.rings_of_region(region) {
            let next = self.next_state(ring);
            self.pipelined.rings.insert(ring, next);
        }
    }

    fn next_state(&self, of: Ring) -> RingState<'c> {
        let (ir, ring, stages) = (self.ir, self.state(of), self.stage_count(of));
        let turned = ir.xor(ring.parity, self.i32(1));
        if stages == 1 {
            // Said as a constant, because nobody finds that out of a number that goes round: it would take a register.
            RingState { stage: self.i32(0), parity: turned, ..ring }
        } else {
            let next = ir.add(ring.stage, self.i32(1));
            let wraps = ir.icmp(IntPredicate::EQ, next, self.i32(stages));
            RingState {
                stage: ir.select_int(wraps, self.i32(0), next),
                parity: ir.select_int(wraps, turned, ring.parity),
                ..ring
            }
        }
    }

    /// The stage before a ring's next one.
    fn stage_before(&self, pipeline: &Pipeline, stage: IntValue<'c>) -> IntValue<'c> {
        let ir = self.ir;
        let is_first = ir.icmp(IntPredicate::EQ, stage, self.i32(0));
        ir.select_int(is_first, self.i32(pipeline.stages - 1), ir.sub(stage, self.i32(1)))
    }

    /// The first byte of a tile in a stage, from the beginning of shared memory, an i32.
    pub(in crate::gpu) fn tile_in_ring(
        &self,
        pipeline: &Pipeline,
        copy: &TileCopy,
        stage: IntValue<'c>,
    ) -> IntValue<'c> {
        let ir = self.ir;
        let stage = ir.mul(stage, self.i32(pipeline.stage_bytes));
        ir.add(stage, self.i32(pipeline.ring + copy.offset))
    }

    /// Waits until the tiles are there that an op is the first to read of its region's turn.
    pub(in crate::gpu) fn await_fills(&self, op: OpId) {
        let Some(region) = self.scheduled.pipelines().read_by(op) else { return };
        let (ring, pipeline) = (self.ring(region), self.pipeline(region));
        for fill in pipeline.awaited_by(op) {
            let barrier = self.barrier_of_stage(pipeline.full(fill), ring.stage);
            mbarrier::wait(self.ir, barrier, ring.parity);
        }
    }

    /// Says that a stage of a fill was read, in every warp, or when products are done with it: to all that copy to it.
    fn leave(&self, fill: &Fill, barrier: PointerValue<'c>) {
        match self.role {
            Role::Multiplier => self.leave_by_commit(fill, barrier),
            _ if fill.is_shared() => self.arrive_for_warp_in_pair(barrier),
            _ => self.arrive_for_warp(barrier),
        }
    }

    /// One lane of each warp arrives at an mbarrier.
    pub(in crate::gpu) fn arrive_for_warp(&self, barrier: PointerValue<'c>) {
        let ir = self.ir;
        let speaks = ir.icmp(IntPredicate::EQ, self.lane(), self.i32(0));
        ir.if_then(speaks, || mbarrier::arrive(ir, barrier));
    }

    /// A lane of each warp for each block of the pair arrives at the mbarrier at the same place there.
    fn arrive_for_warp_in_pair(&self, barrier: PointerValue<'c>) {
        let (ir, lane) = (self.ir, self.lane());
        let speaks = ir.icmp(IntPredicate::ULT, lane, self.i32(PAIR));
        ir.if_then(speaks, || mbarrier::arrive_in(ir, barrier, lane));
    }

    /// The running thread's number in its warp, an i32.
    fn lane(&self) -> IntValue<'c> {
        self.ir.and(self.thread, self.i32(self.scheduled.threads().lanes - 1))
    }

    /// Leaves this turn's stage of the tiles that an op is the last to read.
    pub(in crate::gpu) fn leave_stage(&self, op: OpId) {
        let Some(region) = self.scheduled.pipelines().read_by(op) else { return };
        for (fill, barrier) in self.left_by(self.pipeline(region), op, self.ring(region).stage) {
            self.leave(fill, barrier);
        }
    }

    /// Leaves the stage of the turn before, if there was one whose product went on.
    pub(in crate::gpu) fn leave_stage_before(&self, region: RegionId, product: OpId) {
        let (ring, pipeline) = (self.ring(region), self.pipeline(region));
        let before = self.stage_before(pipeline, ring.stage);
        let left = self.left_by(pipeline, product, before);
        self.ir.if_then(ring.running, || left.iter().for_each(|(fill, barrier)| self.leave(fill, *barrier)));
    }

    /// The fills of a stage that an op leaves, with the mbarriers at which it does.
    fn left_by(
        &self,
        pipeline: &'a Pipeline,
        op: OpId,
        stage: IntValue<'c>,
    ) -> Vec<(&'a Fill, PointerValue<'c>)> {
        let fills = pipeline.left_by(op);
        fills
            .map(|fill| (&pipeline.fills[fill], self.barrier_of_stage(pipeline.empty(fill), stage)))
            .collect()
    }

    /// Notes whether the product of the turn before goes on.
    pub(in crate::gpu) fn goes_on(&mut self, region: RegionId, running: bool) {
        let running = self.ir.bool(running);
        self.pipelined.rings.insert(Ring::Tiles(region), RingState { running, ..self.ring(region) });
    }

    /// What the producer does of a load: it copies the tile, or has the element of one that it needs as a number. The
    /// multiplier has such numbers, too.
    pub(in crate::gpu) fn produce(&mut self, op: OpId, data: &OpData) {
        match self.scheduled.pipelines().copy(op) {
            Some(_) if self.role == Role::Multiplier => {}
            Some(_) => self.copy_ahead(op),
            None => self.load_element(data),
        }
    }

    /// Loads the element of a tile that has one.
    fn load_element(&mut self, data: &OpData) {
        let (ir, load) = (self.ir, data.load().expect("a load"));
        let index = self.tile_at(data);
        let window = self.window(load.view, &index, load.pad.is_some());
        let read = || ir.load_group_at(window.first, window.dtype, 1, 1);
        let element = match (&window.mask, load.pad) {
            (Some(mask), Some(pad)) => ir.if_else(mask.any, read, || vec![self.scalar(pad)]),
            _ => read(),
        };
        self.set_tile(data.results[0], Fragment::Uniform(element[0]));
    }

    /// The last load of a fill copies all its tiles.
    fn copy_ahead(&mut self, op: OpId) {
        let pipelines = self.scheduled.pipelines();
        let fills = pipelines.all().flat_map(|(at, pipeline)| {
            pipeline.fills.iter().enumerate().map(move |(number, fill)| (at, number, fill))
        });
        let mut own = fills.filter(|(.., fill)| fill.copies.iter().any(|copy| copy.load == op));
        let (at, number, fill) = own.next().expect("the load is a copy");
        let body = &self.instance.region(at).ops;
        let place = |load: OpId| body.iter().position(|&other| other == load);
        if fill.copies.iter().any(|copy| place(copy.load) > place(op)) {
            return;
        }
        let (ir, pipeline, ring) = (self.ir, self.pipeline(at), self.ring(at));
        let left = ir.xor(ring.parity, self.i32(1));
        mbarrier::wait(ir, self.barrier_of_stage(pipeline.empty(number), ring.stage), left);
        let full = self.barrier_of_stage(pipeline.full(number), ring.stage);
        mbarrier::arrive_expecting(ir, full, fill.bytes());
        for copy in &fill.copies {
            self.copy_tile(pipeline, copy, ring.stage, full);
        }
    }

    fn copy_tile(&self, pipeline: &Pipeline, copy: &TileCopy, stage: IntValue<'c>, full: PointerValue<'c>) {
        let (ir, tile) = (self.ir, copy.tile);
        let data = self.instance.op(copy.load);
        // Of a tile that both blocks of a pair read each copies half of the rows, and the boxes come to both.
        let halves =
            copy.halves.map(|rows| (copy.axes[rows], self.grid.pair.expect("scheduled: blocks are pairs")));
        let skipped = |pair: Pair<'c>, unit: u64| ir.mul(pair.rank, self.i32(tile.rows / PAIR * unit));
        let mut place = self.tile_in_ring(pipeline, copy, stage);
        if let Some((_, pair)) = halves {
            place = ir.add(place, skipped(pair, tile.swizzle.bytes()));
        }
        let first = ir.element(ir.int_type(8).into(), self.shared, place);
        let mut start = self.first_element(data, &copy.may_be_empty);
        if let Some((axis, pair)) = halves {
            start[axis] = ir.add(start[axis], skipped(pair, 1));
        }
        let name = format!("llvm.nvvm.cp.async.bulk.tensor.g2s.tile.{}d", copy.axes.len());
        for panel in 0..tile.panels {
            let offset = self.i32(panel * tile.panel_bytes());
            let mut operands: Vec<Value<'c>> = vec![
                ir.in_cluster(ir.element(ir.int_type(8).into(), first, offset)).into(),
                full.into(),
                self.maps[copy.map].into(),
            ];
            let coordinates = copy.axes.iter().enumerate().map(|(i, &axis)| {
                let skipped = if i == 0 { panel * tile.panel_columns() } else { 0 };
                Value::from(ir.add(start[axis], self.i32(skipped)))
            });
            operands.extend(coordinates);
            // No hint for the cache, and no group of blocks that are one to tensor cores.
            let mask = ir.int_type(16).const_int(if halves.is_some() { BOTH } else { 0 }, false);
            let (has_mask, hint, no) = (ir.bool(halves.is_some()), ir.i64(0), ir.bool(false));
            operands.extend([mask, hint, has_mask, no, self.i32(0)].map(Value::from));
            ir.intrinsic(&name, &[], &operands);
        }
    }

    /// The position of a load's first element along each axis, an i32; outside along one of these where that is empty.
    fn first_element(&self, data: &OpData, may_be_empty: &[usize]) -> Vec<IntValue<'c>> {
        let ir = self.ir;
        let load = data.load().expect("a copy stands for a load");
        let view = self.instance.ty(load.view).as_partition().expect("verified: a view");
        let mut index: Vec<IntValue<'c>> = load.index.iter().map(|&index| self.index(index)).collect();
        for &axis in may_be_empty {
            let extent = self.dim(&view.tensor.extents[axis]);
            let is_empty = ir.icmp(IntPredicate::EQ, extent, ir.i64(0));
            index[axis] = ir.select_int(is_empty, ir.i64(i64::MAX), index[axis]);
        }
        self.first_position(&index, &view.steps)
    }
}
