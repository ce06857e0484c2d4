//! Merges ops that compute the same: equal kind, attributes and operands, the first of which is in scope.
//!
//! Loads of tensors that the kernel only reads are values like any other. Loads of a tensor that it writes
//! are left alone: a store may lie between.

use super::replace_uses;
use crate::kernel::{Kernel, OpData, RegionId, ValueId};
use crate::ops::Op;
use std::collections::HashMap;

/// Merges equal ops in the scopes where the first is visible.
pub(super) fn run(kernel: &mut Kernel) {
    let mut merge = Merge { known: Vec::new(), replacement: HashMap::new() };
    merge.region(kernel, kernel.body());
    replace_uses(kernel, &merge.replacement);
}

struct Merge {
    /// Ops in scope, innermost region last.
    known: Vec<OpData>,
    replacement: HashMap<ValueId, ValueId>,
}

impl Merge {
    fn region(&mut self, kernel: &Kernel, region: RegionId) {
        let outer = self.known.len();
        for &op in &kernel.region(region).ops {
            let mut data = kernel.op(op).clone();
            for operand in &mut data.operands {
                *operand = self.replacement.get(operand).copied().unwrap_or(*operand);
            }
            if is_value(kernel, &data) {
                match self.known.iter().find(|known| known.op == data.op && known.operands == data.operands) {
                    Some(known) => {
                        self.replacement
                            .extend(data.results.iter().copied().zip(known.results.iter().copied()));
                    }
                    None => self.known.push(data),
                }
            } else {
                for &inner in &data.regions {
                    self.region(kernel, inner);
                }
            }
        }
        self.known.truncate(outer);
    }
}

/// Whether an op's results depend on its operands only.
pub(crate) fn is_value(kernel: &Kernel, data: &OpData) -> bool {
    let reads_output = data.op.effect().reads() && kernel.ty(data.operands[0]).is_mutable();
    data.regions.is_empty()
        && !data.op.has_effect()
        && !reads_output
        && !matches!(data.op, Op::Partition(_) | Op::View(_))
}
