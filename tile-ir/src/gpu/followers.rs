//! Loads of a loop whose tiles are known as soon as a turn's number is, so that memory can be asked for them turns ahead.
//!
//! A load of a view follows the counter by its index. A gather of rows follows it by its tiles of indices: rows that don't
//! change, mostly, and columns that go on with the counter. What these are computed of must need no memory and no other
//! turn, so that it can be computed of a later turn's number, too: that is the load's *address*.

use crate::analysis::uses::Uses;
use crate::kernel::{Kernel, OpId, RegionId, ValueId};
use crate::ops::Op;
use crate::types::Type;
use std::collections::HashSet;

/// A load that follows a loop's counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::gpu) struct Follower {
    pub(in crate::gpu) load: OpId,
    /// The ops of the loop that compute its indices of the counter, in their order; none of a load of a view, whose index
    /// is the counter itself.
    pub(in crate::gpu) address: Vec<OpId>,
}

/// The loads of a loop's region that follow its counter, of tensors that nobody writes.
pub(in crate::gpu) fn followers(kernel: &Kernel, region: RegionId) -> impl Iterator<Item = Follower> {
    let turn = Turn { kernel, region, inside: defined_in(kernel, region) };
    kernel.region(region).ops.iter().filter_map(move |&load| turn.follower(load))
}

/// The ops that compute the addresses of loads of a loop's region, in their order.
pub(in crate::gpu) fn addresses(kernel: &Kernel, region: RegionId, followers: &[Follower]) -> Vec<OpId> {
    let needed: HashSet<OpId> = followers.iter().flat_map(|follower| &follower.address).copied().collect();
    kernel.region(region).ops.iter().copied().filter(|op| needed.contains(op)).collect()
}

/// Of these [`addresses`] the ops that nothing needs but each other and ops that are gone.
pub(in crate::gpu) fn unused(kernel: &Kernel, uses: &Uses, addresses: &[OpId], gone: &[OpId]) -> Vec<OpId> {
    let mut unused = Vec::new();
    // An op's users stand behind it.
    for &op in addresses.iter().rev() {
        let mut users = kernel.op(op).results.iter().flat_map(|&result| uses.of_value(result));
        if users.all(|user| unused.contains(user) || gone.contains(user)) {
            unused.push(op);
        }
    }
    unused
}

/// What a turn of a loop defines.
struct Turn<'k> {
    kernel: &'k Kernel,
    region: RegionId,
    inside: HashSet<ValueId>,
}

impl Turn<'_> {
    fn follower(&self, load: OpId) -> Option<Follower> {
        match self.kernel.op(load).op {
            Op::GatherLoad => self.gather(load),
            _ => self.follows_counter(load).then(|| Follower { load, address: Vec::new() }),
        }
    }

    fn counter(&self) -> ValueId {
        self.kernel.region(self.region).params[0]
    }

    fn is_outside(&self, value: ValueId) -> bool {
        !self.inside.contains(&value)
    }

    /// Whether an op loads a view's tile whose index is the counter or doesn't change.
    fn follows_counter(&self, op: OpId) -> bool {
        let Some(load) = self.kernel.op(op).load() else { return false };
        let view = self.kernel.ty(load.view).as_partition().expect("verified: a view");
        let counter = self.counter();
        !view.tensor.mutable
            && self.is_outside(load.view)
            && load.pad.is_none_or(|pad| self.is_outside(pad))
            && load.index.contains(&counter)
            && load.index.iter().all(|&index| index == counter || self.is_outside(index))
    }

    /// A gather whose indices are computed of the counter, and of what doesn't change.
    fn gather(&self, gather: OpId) -> Option<Follower> {
        let &[tensor, pad, ref indices @ ..] = self.kernel.op(gather).operands.as_slice() else {
            unreachable!("verified: a gather has a tensor, a pad and indices")
        };
        let Type::Tensor(ty) = self.kernel.ty(tensor) else { unreachable!("verified: a tensor") };
        if ty.mutable || !self.is_outside(tensor) || !self.is_outside(pad) {
            return None;
        }
        let mut wanted: HashSet<ValueId> = indices.iter().copied().collect();
        wanted.retain(|&index| !self.is_outside(index));
        let mut address = Vec::new();
        for &op in self.kernel.region(self.region).ops.iter().rev() {
            let data = self.kernel.op(op);
            if !data.results.iter().any(|result| wanted.remove(result)) {
                continue;
            }
            if !data.op.is_repeatable() {
                return None;
            }
            address.push(op);
            wanted.extend(data.operands.iter().filter(|&&operand| !self.is_outside(operand)));
        }
        address.reverse();
        // What is left are the loop's parameters: the counter, if there is nothing that other turns give.
        (wanted == HashSet::from([self.counter()])).then_some(Follower { load: gather, address })
    }
}

/// Everything that a region defines, in nested ones too.
fn defined_in(kernel: &Kernel, region: RegionId) -> HashSet<ValueId> {
    let mut regions = vec![region];
    let mut defined = HashSet::new();
    while let Some(region) = regions.pop() {
        let data = kernel.region(region);
        defined.extend(data.params.iter().copied());
        for &op in &data.ops {
            defined.extend(kernel.op(op).results.iter().copied());
            regions.extend(kernel.op(op).regions.iter().copied());
        }
    }
    defined
}
