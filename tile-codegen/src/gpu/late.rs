//! Products that are done a turn later (`tile_ir::gpu::pipeline::Late`): what they need is carried to the next turn, where
//! their instructions are issued after those of the first product, and go on while threads compute, until the turn
//! after that begins. The first turn stands before the loop, without one, and after the loop the last one is done
//! alone: a branch around instructions that go on would make them wait.
//!
//! The wait stands after one for a tile, a loop of its own, because assemblers move it up as far as a block of code
//! begins, and what should be computed meanwhile down.

use super::fragment::Fragment;
use super::region::Emitter;
use super::roles::Role;
use super::warpgroup::Ready;
use crate::emit::Value;
use tile_ir::gpu::pipeline::{Late, RingFactor};
use tile_ir::{OpId, ValueId};

impl<'a, 'c> Emitter<'a, 'c> {
    /// The late product of a pipeline, for those who multiply.
    pub(super) fn late(&self, pipeline: OpId) -> Option<&'a Late> {
        let pipelines = self.scheduled.pipelines();
        pipelines.of_loop(pipeline).filter(|_| self.role == Role::Consumer)?.late.as_ref()
    }

    /// What a loop carries for its late product to the next turn.
    pub(super) fn late_values(&self, pipeline: OpId) -> Vec<Value<'c>> {
        self.late(pipeline).map_or_else(Vec::new, |late| self.flat_all(&late.values))
    }

    /// The late product of the turn before, ready to be issued beside a product of this turn; `None` where that product
    /// has none, and in the first turn.
    pub(super) fn ready_beside(&mut self, pipeline: OpId, beside: OpId) -> Option<(&'a Late, Ready<'a, 'c>)> {
        let late = self.late(pipeline).filter(|late| late.beside == beside)?;
        let values = self.turn_before.remove(&pipeline)?;
        Some((late, self.ready_late(pipeline, late, &values)))
    }

    /// The late product of the turn whose values these are, when its tile is there and the one before is complete.
    fn ready_late(&mut self, pipeline: OpId, late: &'a Late, values: &[Value<'c>]) -> Ready<'a, 'c> {
        let (data, right) = (self.instance.op(late.product), self.right_of_late(late));
        self.await_fill(right);
        // Registers from which the product before takes its left factor are written from here on, and no earlier.
        let values = self.await_product(late.sums, 0, values);
        self.leave_stage_before(pipeline, right.fill, 2);
        self.goes_on(pipeline, false);
        self.apart(|emitter| {
            emitter.bind(&late.values, &values);
            for &op in &late.ops {
                emitter.op(op, emitter.instance.op(op));
            }
            let left = emitter.tile(data.operands[0]).clone();
            emitter.ready(late.product, Some(left), emitter.tile(data.operands[2]))
        })
    }

    /// Issues a late product.
    pub(super) fn issue_late(&mut self, pipeline: OpId, late: &Late, ready: &Ready<'a, 'c>) {
        let multiplied = self.issue_product(ready);
        self.pass_turn(pipeline);
        self.set_tile(self.instance.op(late.product).results[0], Fragment::Slots(multiplied));
        self.goes_on(pipeline, true);
    }

    /// The first turn has no late product.
    pub(super) fn end_first_turn(&mut self, pipeline: OpId) {
        if let Some(late) = self.late(pipeline) {
            let sums = self.tile(late.sums).clone();
            self.set_tile(self.instance.op(late.product).results[0], sums);
        }
        self.begin_alternating(pipeline);
    }

    /// The last turn's late product, after its loop, from what the loop carried for it: what the loop gives of its sums.
    pub(super) fn finish_late(
        &mut self,
        pipeline: OpId,
        late: &'a Late,
        (values, result): (&[Value<'c>], ValueId),
    ) {
        let ready = self.ready_late(pipeline, late, values);
        self.end_alternating(pipeline);
        self.begin_products();
        let multiplied = self.issue_product(&ready);
        self.set_tile(result, Fragment::Slots(multiplied));
        self.await_product(result, 0, &[]);
        self.goes_on(pipeline, true);
        self.leave_stage_before(pipeline, self.right_of_late(late).fill, 1);
        self.goes_on(pipeline, false);
    }

    fn right_of_late(&self, late: &Late) -> &'a RingFactor {
        let factors = self.scheduled.pipelines().factors(late.product);
        factors.and_then(|[_, right]| right.as_ref()).expect("scheduled: a late product reads a ring")
    }
}
