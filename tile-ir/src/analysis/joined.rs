//! Which values branches and loops hand on as which: what a region yields is a result of its op, and in a loop, as what goes
//! into it, the carried value of a turn.

use crate::kernel::{Kernel, OpData, ValueId};
use crate::ops::Op;
use std::collections::HashMap;

/// The values that are another's under another name, one way and the other.
pub(crate) struct Joined {
    from: HashMap<ValueId, Vec<ValueId>>,
    into: HashMap<ValueId, Vec<ValueId>>,
}

impl Joined {
    /// Those of all branches and loops of a kernel.
    pub(crate) fn of(kernel: &Kernel) -> Joined {
        let mut joined = Joined { from: HashMap::new(), into: HashMap::new() };
        for data in kernel.walk().into_iter().map(|op| kernel.op(op)) {
            if matches!(data.op, Op::If | Op::For | Op::While | Op::Tiles(_)) {
                joined.add(kernel, data);
            }
        }
        joined
    }

    fn add(&mut self, kernel: &Kernel, data: &OpData) {
        let count = data.results.len();
        // Counters, conditions and views come before what is carried.
        let last = |values: &[ValueId]| values[values.len().saturating_sub(count)..].to_vec();
        let initial = if data.op == Op::If { Vec::new() } else { last(&data.operands) };
        self.hand_on(&initial, &data.results);
        for region in data.regions.iter().map(|&region| kernel.region(region)) {
            let carried = if data.op == Op::If { Vec::new() } else { last(&region.params) };
            self.hand_on(&initial, &carried);
            let end = region.ops.last().map(|&op| kernel.op(op)).filter(|end| end.op == Op::Yield);
            let yielded = end.map_or_else(Vec::new, |end| last(&end.operands));
            self.hand_on(&yielded, &data.results);
            self.hand_on(&yielded, &carried);
        }
    }

    fn hand_on(&mut self, values: &[ValueId], names: &[ValueId]) {
        for (&value, &name) in values.iter().zip(names) {
            self.from.entry(name).or_default().push(value);
            self.into.entry(value).or_default().push(name);
        }
    }

    /// The values that a value may be.
    pub(crate) fn from(&self, value: ValueId) -> &[ValueId] {
        self.from.get(&value).map_or(&[], Vec::as_slice)
    }

    /// What a value may become.
    pub(crate) fn into(&self, value: ValueId) -> &[ValueId] {
        self.into.get(&value).map_or(&[], Vec::as_slice)
    }
}
