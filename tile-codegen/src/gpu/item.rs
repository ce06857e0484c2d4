//! `item`: the element of a tile that has one, as a scalar in every thread.
//!
//! One thread holds the element; the others read it from shared memory. A scalar may decide a branch, so the
//! target is told that it is the same in all threads.

use super::distribution::Distribution;
use super::fragment::Fragment;
use super::region::Emitter;
use super::shared::Request;
use crate::emit::Value;
use tile_ir::kernel::OpData;
use tile_ir::{Instance, OpId};

/// The shared memory that the op needs.
pub(super) fn requests(instance: &Instance, distribution: Distribution, data: &OpData) -> Vec<Request> {
    let dtype = instance.ty(data.results[0]).elem().known().expect("an instance has no dtype parameters");
    vec![Request { dtype, elements: distribution.padded(1) }]
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

    fn shared_item(&mut self, op: OpId, source: tile_ir::ValueId, fragment: &Fragment<'c>) -> Value<'c> {
        let buffer = self.plan.buffers(op)[0];
        let dtype = self.dtype(source);
        self.reserve(&[buffer]);
        self.share(buffer, fragment, 1, dtype);
        self.sync();
        self.pending.read(buffer);
        let value = self.read_shared(buffer, self.i32(0));
        self.dialect.uniform(self.ir, value)
    }
}
