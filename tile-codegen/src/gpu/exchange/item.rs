//! `item`: the element of a tile that has one, as a scalar in every thread.
//!
//! One thread holds the element; the others read it from shared memory. A scalar may decide a branch, so the
//! target is told that it is the same in all threads.

use crate::emit::Value;
use crate::gpu::fragment::Fragment;
use crate::gpu::region::Emitter;
use tile_ir::kernel::OpData;
use tile_ir::{OpId, ValueId};

impl<'c> Emitter<'_, 'c> {
    pub(in crate::gpu) fn item(&mut self, op: OpId, data: &OpData) {
        let (source, result) = (data.operands[0], data.results[0]);
        let value = match self.tile(source).clone() {
            Fragment::Uniform(value) => value,
            fragment => self.shared_item(op, source, &fragment),
        };
        self.set_scalar(result, value);
    }

    fn shared_item(&self, op: OpId, source: ValueId, fragment: &Fragment<'c>) -> Value<'c> {
        let buffer = self.scheduled.buffers(op)[0];
        self.share(buffer, fragment, &self.mapping(source));
        self.sync();
        let value = self.read_shared(buffer, self.i32(0));
        self.dialect.uniform(self.ir, value)
    }
}
