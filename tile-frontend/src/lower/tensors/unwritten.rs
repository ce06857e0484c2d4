//! Outputs that nothing is stored to: their elements would stay as they are, whatever the kernel computes.

use crate::diagnostic::Diagnostic;
use crate::lower::Lowering;
use std::collections::HashSet;
use tile_ir::kernel::OpData;
use tile_ir::view::Source;
use tile_ir::{Op, ValueId};

impl Lowering {
    /// The outputs that ops store to, but for the first ones.
    pub(in crate::lower) fn written_since(&self, first: usize) -> HashSet<ValueId> {
        let ops = self.kernel.op_ids().skip(first).map(|op| self.kernel.op(op));
        let views = ops.filter(|data| data.op.is_store()).map(|data| data.operands[0]);
        let partitions = views.filter_map(|view| self.kernel.definition(view));
        partitions.map(|partition| Source::of(&self.kernel, partition.operands[0]).argument).collect()
    }

    /// What is said of partition views of outputs through which nothing is stored; nothing in kernels that print or assert,
    /// where what is computed is seen elsewhere.
    pub(in crate::lower) fn unwritten_outputs(&self) -> Vec<Diagnostic> {
        let ops: Vec<&OpData> = self.kernel.walk().into_iter().map(|op| self.kernel.op(op)).collect();
        if ops.iter().any(|data| data.op.is_message()) {
            return Vec::new();
        }
        let argument = |tensor: ValueId| Source::of(&self.kernel, tensor).argument;
        let mut written: HashSet<ValueId> = self.written_elsewhere.clone();
        written.extend(self.written_since(0));
        let is_unwritten = |data: &&&OpData| {
            let view = data.results.first().and_then(|&view| self.kernel.ty(view).as_partition());
            matches!(data.op, Op::Partition(_))
                && view.is_some_and(|view| view.tensor.mutable)
                && !written.contains(&argument(data.operands[0]))
        };
        ops.iter()
            .filter(is_unwritten)
            .filter_map(|data| {
                let name =
                    self.kernel.value(argument(data.operands[0])).name.as_deref().unwrap_or("an output");
                let message = format!("nothing is stored to `{name}`, so a launch leaves it as it is");
                let help = format!("store a tile, `{name}.store_masked(tile);`, or leave the argument out");
                Some(Diagnostic::new(*self.spans.get(&data.loc)?, message).help(help))
            })
            .collect()
    }
}
