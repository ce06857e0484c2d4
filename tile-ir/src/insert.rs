//! Ops that passes and steps of a schedule add to a kernel.

use crate::kernel::{Kernel, OpData, RegionId, ValueId};
use crate::loc::Loc;
use crate::ops::Op;
use crate::types::Type;

/// A place in a region where ops are added, one after the other.
pub(crate) struct Inserter<'k> {
    pub(crate) kernel: &'k mut Kernel,
    pub(crate) region: RegionId,
    pub(crate) at: usize,
}

impl<'k> Inserter<'k> {
    pub(crate) fn new(kernel: &'k mut Kernel, region: RegionId, at: usize) -> Self {
        Inserter { kernel, region, at }
    }

    pub(crate) fn insert(&mut self, data: OpData) {
        let op = self.kernel.new_op(data);
        self.kernel.region_mut(self.region).ops.insert(self.at, op);
        self.at += 1;
    }

    pub(crate) fn emit(&mut self, op: Op, operands: Vec<ValueId>, ty: Type) -> ValueId {
        let result = self.kernel.new_value(ty, None);
        self.insert(OpData { op, operands, results: vec![result], regions: Vec::new(), loc: Loc::UNKNOWN });
        result
    }

    pub(crate) fn finish(&mut self, values: Vec<ValueId>) {
        let (results, regions) = (Vec::new(), Vec::new());
        self.insert(OpData { op: Op::Yield, operands: values, results, regions, loc: Loc::UNKNOWN });
    }
}
