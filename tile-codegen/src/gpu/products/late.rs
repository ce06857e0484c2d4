//! Products that are done a turn later (`tile_ir::gpu::pipeline::Late`): their instructions are issued at the end of a
//! turn, just after those of the next turn's first product, and go on while the next turn computes, until what it has
//! computed is to be multiplied in its turn.
//!
//! So a turn's first product is done before the loop, or at the end of the turn before, and the loop is left before
//! that: what is computed stands in it once, and no branch is around instructions that go on, which would make them
//! wait. After the loop the last late product is done alone.
//!
//! The wait stands after one for a tile, a loop of its own, because assemblers move it up as far as a block of code
//! begins, and what should be computed meanwhile down.

use super::warpgroup::Ready;
use crate::emit::{LoopHint, Value};
use crate::gpu::fragment::Fragment;
use crate::gpu::loops::Counted;
use crate::gpu::pipeline::roles::Role;
use crate::gpu::region::Emitter;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::gpu::pipeline::Late;
use tile_ir::{OpId, RegionId, ValueId};

impl<'a, 'c> Emitter<'a, 'c> {
    /// The late product of a pipeline, for those who multiply.
    pub(in crate::gpu) fn late(&self, pipeline: RegionId) -> Option<&'a Late> {
        let pipelines = self.scheduled.pipelines();
        pipelines.of_region(pipeline).filter(|_| self.role == Role::Consumer)?.late.as_ref()
    }

    /// The product that is issued after one that it stands before.
    pub(in crate::gpu) fn overtaken_by(&self, op: OpId) -> Option<OpId> {
        let late = self.late(self.scheduled.pipelines().read_by(op)?)?;
        late.overtaken.filter(|overtaken| overtaken.by == op).map(|overtaken| overtaken.product)
    }

    /// The turns of a loop with a late product, of which there is one at least; gives what the last one yields.
    pub(in crate::gpu) fn late_turns(
        &mut self,
        counted: &Counted<'_, 'a, 'c>,
        late: &'a Late,
        initial: &[Value<'c>],
    ) -> Vec<ValueId> {
        let (ir, region, (start, end, step)) = (self.ir, counted.region(), counted.bounds);
        let states = self.bind(&counted.params, initial);
        self.set_rings(&counted.rings, states);
        self.do_ahead(counted, late, start, None);
        self.begin_alternating(region);
        let initial = self.late_values(counted, late, start);
        let mut last = None;
        ir.loop_left_inside(LoopHint::Rolled, &initial, |values, leave_if| {
            let (number, values) = values.split_first().expect("the loop carries its number");
            let number = number.into_int_value();
            (counted.begin)(self, number);
            let values = self.bind(&counted.params, values);
            let values = self.set_rings(&counted.rings, values);
            self.bind(&late.given, values);
            self.leave_stage(late.beside);
            self.depth += 1;
            let yielded = counted.carried(self.ops(region));
            let ready = self.ready_late(region, late);
            let next = ir.add(number, step);
            leave_if(ir.icmp(IntPredicate::UGE, next, end));
            let rings = self.pipelined.rings.clone();
            let values = self.apart(|emitter| emitter.end_turn(counted, late, next, &ready, &yielded));
            self.pipelined.rings = rings;
            self.depth -= 1;
            last = Some((ready, yielded));
            values
        });
        let (ready, yielded) = last.expect("the loop has a body");
        self.finish_late(region, late, &ready);
        yielded
    }

    /// The end of a turn that isn't the last: what the next one has done ahead, and the late product of this one. Gives
    /// what the loop carries.
    fn end_turn(
        &mut self,
        counted: &Counted<'_, 'a, 'c>,
        late: &'a Late,
        next: IntValue<'c>,
        ready: &Ready<'a, 'c>,
        yielded: &[ValueId],
    ) -> Vec<Value<'c>> {
        self.next_stage(counted.region());
        // Nothing that is done ahead reads the sums, which are there when their product is issued.
        self.set_product(late, ready.sums.clone());
        let values = self.flat_all(yielded);
        self.bind(&counted.params, &values);
        self.do_ahead(counted, late, next, Some(ready));
        self.late_values(counted, late, next)
    }

    /// What the loop carries to the turn of this number.
    fn late_values(
        &self,
        counted: &Counted<'_, 'a, 'c>,
        late: &Late,
        number: IntValue<'c>,
    ) -> Vec<Value<'c>> {
        let mut values = vec![number.into()];
        values.extend(self.flat_all(&counted.params));
        values.extend(self.ring_values(&counted.rings));
        values.extend(self.flat_all(&late.given));
        values
    }

    /// What is done ahead of the turn of this number, and its first product, beside the late one of the turn before.
    fn do_ahead(
        &mut self,
        counted: &Counted<'_, 'a, 'c>,
        late: &'a Late,
        number: IntValue<'c>,
        ready: Option<&Ready<'a, 'c>>,
    ) {
        (counted.begin)(self, number);
        for &op in &late.ahead {
            self.op(op, self.instance.op(op));
        }
        self.warpgroup_product(late.beside, ready.map(|ready| (late, ready)));
    }

    /// The late product of a turn, when its tile is there and the one before is complete.
    fn ready_late(&mut self, pipeline: RegionId, late: &'a Late) -> Ready<'a, 'c> {
        self.await_fills(late.product);
        // Registers from which the product before takes its left factor are written from here on, and no earlier.
        let overtaken = late.overtaken.map(|overtaken| overtaken.product);
        let results: Vec<ValueId> = overtaken.iter().map(|&op| self.instance.op(op).results[0]).collect();
        let going_on = self.flat_all(&results);
        let values = self.await_product(late.sums, 0, &[going_on, self.flat_all(&late.values)].concat());
        let values = self.bind(&results, &values).to_vec();
        overtaken.iter().for_each(|&product| self.leave_stage(product));
        self.leave_stage_before(pipeline, late.product);
        self.goes_on(pipeline, false);
        self.apart(|emitter| {
            emitter.bind(&late.values, &values);
            for &op in &late.ops {
                emitter.op(op, emitter.instance.op(op));
            }
            emitter.ready(late.product)
        })
    }

    /// Issues a late product: the sums of the turn that has begun.
    pub(in crate::gpu) fn issue_late(&mut self, pipeline: RegionId, late: &Late, ready: &Ready<'a, 'c>) {
        let multiplied = self.issue_product(ready);
        self.pass_turn(pipeline);
        self.set_tile(late.sums, Fragment::Slots(multiplied));
        self.goes_on(pipeline, true);
    }

    /// The last turn's late product, after the loop.
    fn finish_late(&mut self, pipeline: RegionId, late: &Late, ready: &Ready<'a, 'c>) {
        self.end_alternating(pipeline);
        self.begin_products();
        let multiplied = self.issue_product(ready);
        self.set_product(late, multiplied);
        self.await_product(self.instance.op(late.product).results[0], 0, &[]);
        self.leave_stage(late.product);
        self.next_stage(pipeline);
    }

    fn set_product(&mut self, late: &Late, sums: Vec<Value<'c>>) {
        self.set_tile(self.instance.op(late.product).results[0], Fragment::Slots(sums));
    }
}
