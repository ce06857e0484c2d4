//! Who uses what in a kernel.

use crate::kernel::{Kernel, OpId, ValueId};
use std::collections::HashMap;

/// The ops that have each value among their operands, as often as they have it.
pub(crate) struct Uses(HashMap<ValueId, Vec<OpId>>);

impl Uses {
    pub(crate) fn of(kernel: &Kernel) -> Uses {
        let mut uses: HashMap<ValueId, Vec<OpId>> = HashMap::new();
        for op in kernel.walk() {
            for &operand in &kernel.op(op).operands {
                uses.entry(operand).or_default().push(op);
            }
        }
        Uses(uses)
    }

    /// The ops that use a value.
    pub(crate) fn of_value(&self, value: ValueId) -> &[OpId] {
        self.0.get(&value).map_or(&[], Vec::as_slice)
    }

    /// The op that alone uses a value, once.
    pub(crate) fn only(&self, value: ValueId) -> Option<OpId> {
        match self.of_value(value) {
            &[user] => Some(user),
            _ => None,
        }
    }
}
