//! Loops. What they carry besides the kernel's values is the state of rings and of stages that threads copy to.

use super::pipeline::ring::Ring;
use super::pipeline::roles::Role;
use super::products::warpgroup::{Running, undefined};
use super::region::Emitter;
use crate::emit::{LoopHint, Shared, Value};
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::kernel::OpData;
use tile_ir::tile_order::TileOrder;
use tile_ir::{Dim, OpId, RegionId, ValueId};

/// A loop whose turns are counted, as threads of one role do it.
pub(super) struct Counted<'f, 'a, 'c> {
    pub(super) op: OpId,
    data: &'a OpData,
    /// The first number, the end, and the step.
    pub(super) bounds: (IntValue<'c>, IntValue<'c>, IntValue<'c>),
    /// Which of the values that the kernel says it carries these threads have.
    has: Vec<usize>,
    /// These in its turns.
    pub(super) params: Vec<ValueId>,
    /// The rings whose states it carries.
    pub(super) rings: Vec<Ring>,
    /// Is told the number of each turn.
    pub(super) begin: &'f dyn Fn(&mut Emitter<'a, 'c>, IntValue<'c>),
}

impl Counted<'_, '_, '_> {
    /// Its turn.
    pub(super) fn region(&self) -> RegionId {
        self.data.regions[0]
    }

    /// Those of the values that it carries that these threads have.
    pub(super) fn carried(&self, values: &[ValueId]) -> Vec<ValueId> {
        self.has.iter().map(|&i| values[i]).collect()
    }
}

impl<'a, 'c> Emitter<'a, 'c> {
    pub(super) fn for_loop(&mut self, op: OpId, data: &'a OpData) {
        let bounds = (self.index(data.operands[0]), self.index(data.operands[1]), self.ir.i64(1));
        let region = data.regions[0];
        let (&counter, params) =
            self.instance.region(region).params.split_first().expect("verified: `for` has a counter");
        self.begin_copies(op, counter, bounds.0, bounds.1);
        let begin = |emitter: &mut Self, i: IntValue<'c>| emitter.set_scalar(counter, i.into());
        let kept = self.kept_sums(region);
        if let (Some(sums), Role::Multiplier) = (kept, self.role) {
            self.begin_sums(sums);
        }
        let ends = [bounds.0, bounds.1];
        self.issue_ahead(region, ends);
        self.begin_bringing(region);
        self.counted_loop(op, data, bounds, &data.operands[2..], params, begin);
        match (kept, self.role) {
            (Some(sums), Role::Multiplier) => self.end_sums(sums),
            (Some(sums), _) => self.take_kept_sums(sums, data, ends),
            (None, _) => {}
        }
        self.settle_behind(region, data, ends);
    }

    pub(super) fn tile_loop(&mut self, op: OpId, data: &'a OpData, order: &TileOrder<Dim>) {
        let view = self.instance.ty(data.operands[0]).as_partition().expect("verified: a view");
        let space: Vec<_> = view.grid().iter().map(|dim| self.dim(dim)).collect();
        let params = &self.instance.region(data.regions[0]).params;
        let (ir, is_short) = (self.ir, self.scheduled.shares_grid());
        // A launch that doesn't know of the loop could start a block for each tile: there are fewer than 2³¹.
        let short = move |number| if is_short { ir.short(number) } else { number };
        let space: Vec<_> = space.into_iter().map(short).collect();
        let Shared { tiles, blocks } = self.grid.shared_tiles.unwrap_or_else(|| {
            let tiles = space.iter().fold(ir.i64(1), |tiles, &extent| ir.mul(tiles, extent));
            Shared {
                tiles,
                blocks: self.grid.blocks.expect("a persistent kernel's launch says how tiles are shared"),
            }
        });
        let (first, end, step) = self.own_tiles(tiles, self.grid.block[0], blocks);
        // So many and a step more are fewer than 2³², and each number that is kept from tile to tile takes one register.
        let kept = |number| if is_short { ir.resize(number, 32, false) } else { number };
        let bounds = (kept(first), kept(end), kept(step));
        let begin = |emitter: &mut Self, number: IntValue<'c>| {
            let number = ir.taken_tile(order, number, [bounds.2, bounds.1]);
            emitter.grid.tile_index = emitter.own_tile(order, &space, ir.resize(number, 64, false));
        };
        self.counted_loop(op, data, bounds, &data.operands[1..], params, begin);
    }

    /// A loop whose turns are counted; `begin` is told the number of each. Besides what the kernel says it carries
    /// the states of rings, and the stage of tiles that are copied ahead.
    fn counted_loop(
        &mut self,
        op: OpId,
        data: &'a OpData,
        bounds: (IntValue<'c>, IntValue<'c>, IntValue<'c>),
        initial: &[ValueId],
        params: &'a [ValueId],
        begin: impl Fn(&mut Self, IntValue<'c>),
    ) {
        let has: Vec<usize> = (0..params.len()).filter(|&i| self.has(params[i])).collect();
        let own = has.iter().map(|&i| params[i]).collect();
        let counted = Counted { op, data, bounds, has, params: own, rings: self.rings_of(op), begin: &begin };
        let running = self.running_product(data);
        let first = self.first_values(op, &counted.carried(initial), None);
        let fresh = running.as_ref().and_then(|running| running.fresh_sums(self, data, initial));
        let initial = match fresh {
            Some(_) => {
                self.pipelined.fresh.insert(data.regions[0]);
                self.first_values(op, initial, fresh)
            }
            None => first.clone(),
        };
        let results = counted.carried(&data.results);
        let finals = if running.is_none() && self.late(data.regions[0]).is_none() {
            self.turns(&counted, &initial)
        } else {
            // Where there are no turns no instruction may be waited for: that of a sum that it didn't define.
            let ir = self.ir;
            let exists = ir.icmp(IntPredicate::ULT, bounds.0, bounds.1);
            ir.if_else(exists, || self.turns_that_exist(&counted, running, &initial), || first)
        };
        let states = self.bind(&results, &finals);
        self.set_rings(&counted.rings, states);
    }

    /// The turns of a loop; gives what it carries to the end.
    fn turns(&mut self, counted: &Counted<'_, 'a, 'c>, initial: &[Value<'c>]) -> Vec<Value<'c>> {
        // A turn of a pipeline waits: two of them together gain nothing.
        let hint = if counted.rings.is_empty() { LoopHint::Free } else { LoopHint::Rolled };
        let op = counted.op;
        self.ir.hinted_loop(counted.bounds, hint, initial, |number, values| {
            (counted.begin)(self, number);
            let states = self.bind(&counted.params, values);
            self.set_rings(&counted.rings, states);
            self.begin_copied_turn(op, number, values);
            self.multiply_ahead(counted.region(), [number, counted.bounds.1]);
            self.depth += 1;
            let yielded = self.ops(counted.region());
            self.depth -= 1;
            self.next_stage(counted.region());
            let mut values = self.flat_all(&counted.carried(yielded));
            values.extend(self.ring_values(&counted.rings));
            values.extend(self.next_copied_stage(op));
            values
        })
    }

    /// The turns of a pipeline that has one at least, and what they leave to be done after them.
    fn turns_that_exist(
        &mut self,
        counted: &Counted<'_, 'a, 'c>,
        running: Option<Running>,
        initial: &[Value<'c>],
    ) -> Vec<Value<'c>> {
        let results = counted.carried(&counted.data.results);
        let results = match self.late(counted.region()) {
            Some(late) => self.late_turns(counted, late, initial),
            None => {
                let finals = self.turns(counted, initial);
                let states = self.bind(&results, &finals);
                self.set_rings(&counted.rings, states);
                results
            }
        };
        if let Some(running) = running {
            self.finish_product(counted.region(), running);
        }
        let mut finals = self.flat_all(&results);
        finals.extend(self.ring_values(&counted.rings));
        finals
    }

    /// What a loop gives of a product whose sums it yields.
    pub(super) fn yielded_as(&self, data: &OpData, product: OpId) -> ValueId {
        let sum = self.instance.op(product).results[0];
        let end = self.instance.region(data.regions[0]).ops.last();
        let end = self.instance.op(*end.expect("verified: a loop's region yields"));
        let place = end.operands.iter().position(|&operand| operand == sum);
        data.results[place.expect("scheduled: the loop yields the sums")]
    }

    /// What a loop begins with; any numbers in place of the sums of this number, which its first product doesn't read.
    fn first_values(&self, op: OpId, initial: &[ValueId], fresh: Option<usize>) -> Vec<Value<'c>> {
        let values = initial.iter().enumerate().flat_map(|(i, &value)| {
            let flat = self.flat(value);
            if Some(i) == fresh { flat.into_iter().map(undefined).collect() } else { flat }
        });
        let mut values: Vec<Value<'c>> = values.collect();
        values.extend(self.ring_values(&self.rings_of(op)));
        values.extend(self.copied_stage(op));
        values
    }

    pub(super) fn while_loop(&mut self, data: &'a OpData) {
        let (&condition, initial) =
            data.operands.split_first().expect("verified: `while` has a first condition");
        let region = data.regions[0];
        let params = &self.instance.region(region).params;
        let (first, initial, ir) = (self.index(condition), self.flat_all(initial), self.ir);
        let finals = ir.while_loop(first, &initial, |carried| {
            self.bind(params, carried);
            self.depth += 1;
            let (&again, next) =
                self.ops(region).split_first().expect("verified: `while` yields its condition first");
            self.depth -= 1;
            (self.index(again), self.flat_all(next))
        });
        self.bind(&data.results, &finals);
    }
}
