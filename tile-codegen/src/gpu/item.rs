//! `item`: the element of a tile that has one, as a scalar in every thread.
//!
//! One thread holds the element; the others read it from shared memory. A scalar may decide a branch, so the
//! target is told that it is the same in all threads.

use super::exchange;
use super::fragment::Fragment;
use super::region::Emitter;
use super::shared::Request;
use crate::emit::Value;
use tile_ir::gpu::Scheduled;
use tile_ir::kernel::OpData;
use tile_ir::{OpId, ValueId};

/// The shared memory that the op needs.
pub(super) fn requests(scheduled: &Scheduled, data: &OpData) -> Vec<Request> {
    vec![exchange::request(scheduled, data.operands[0])]
}

impl<'c> Emitter<'_, 'c> {
    pub(super) fn item(&mut self, op: OpId, data: &OpData) {
        let (source, result) = (data.operands[0], data.results[0]);
        let value = match self.tile(source).clone() {
            Fragment::Uniform(value) => value,
            fragment => self.shared_item(op, source, &fragment),
        };
        self.set_scalar(result, value);
    }

    fn shared_item(&mut self, op: OpId, source: ValueId, fragment: &Fragment<'c>) -> Value<'c> {
        let buffer = self.plan.buffers(op)[0];
        self.reserve(&[buffer]);
        self.share(buffer, fragment, &self.mapping(source));
        self.sync();
        self.pending.read(buffer);
        let value = self.read_shared(buffer, self.i32(0));
        self.dialect.uniform(self.ir, value)
    }
}
