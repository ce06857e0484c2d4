//! Merges ops that compute the same: equal kind, attributes and operands, the first of which is in scope.
//!
//! Loads of tensors that the kernel only reads are values like any other. Loads of a tensor that it writes
//! are left alone: a store may lie between.

use super::replace_uses;
use crate::kernel::{Kernel, OpData, RegionId, ValueId};
use crate::ops::Op;
use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};

/// Merges equal ops in the scopes where the first is visible.
pub(super) fn run(kernel: &mut Kernel) {
    let mut merge = Merge { known: Vec::new(), places: HashMap::new(), replacement: HashMap::new() };
    merge.region(kernel, kernel.body());
    replace_uses(kernel, &merge.replacement);
}

/// What equal ops have in common, but for attributes.
type Key = (Discriminant<Op>, Vec<ValueId>);

struct Merge {
    /// Ops in scope, innermost region last.
    known: Vec<OpData>,
    /// The places in `known` of those with a key.
    places: HashMap<Key, Vec<usize>>,
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
                let places = self.places.entry(key(&data)).or_default();
                match places.iter().map(|&place| &self.known[place]).find(|known| known.op == data.op) {
                    Some(known) => {
                        self.replacement
                            .extend(data.results.iter().copied().zip(known.results.iter().copied()));
                    }
                    None => {
                        places.push(self.known.len());
                        self.known.push(data);
                    }
                }
            } else {
                for &inner in &data.regions {
                    self.region(kernel, inner);
                }
            }
        }
        for data in self.known.drain(outer..) {
            // Places in the region are behind those around it.
            self.places.get_mut(&key(&data)).expect("what is known has a place").pop();
        }
    }
}

fn key(data: &OpData) -> Key {
    (discriminant(&data.op), data.operands.clone())
}

/// Whether an op's results depend on its operands only.
pub(crate) fn is_value(kernel: &Kernel, data: &OpData) -> bool {
    let reads_output = data.op.effect().reads() && kernel.ty(data.operands[0]).is_mutable();
    data.regions.is_empty()
        && !data.op.has_effect()
        && !reads_output
        && !matches!(data.op, Op::Partition(_) | Op::View(_))
}
