//! What memory the barriers of an op order: shared memory, through which threads exchange elements, or tensors, too.
//!
//! Threads wait until memory has answered whatever they asked of it, if a barrier orders that memory. What a loop loads a
//! turn ahead would then be waited for before the turn multiplies. So barriers order tensors only where they must: at
//! atomic operations with an order, and between two ops that come to one tensor, of which one writes. These may come to an
//! element in different threads. One op comes to an element in one thread, in whatever turn: it writes where one thread
//! answers for the element, and other tiles have other elements. Atomic operations choose their elements at run time, so
//! that of these one in a loop counts as two.
//!
//! What comes before an op and what after is asked of where it stands: in a loop, all of the loop's ops are both.

use crate::kernel::{Kernel, OpId, RegionId, ValueId};
use crate::ops::{Effect, Op};
use crate::view::Source;
use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

/// What memory a barrier orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orders {
    /// Shared memory of the block.
    SharedMemory,
    /// That, and the tensors.
    AllMemory,
}

/// The ops whose barriers order tensors.
pub(in crate::gpu) fn ordering_tensors(kernel: &Kernel) -> HashSet<OpId> {
    let places = Places::of(kernel);
    let tensors = shared_tensors(kernel, &places);
    let orders = |op: &OpId| {
        let place = &places.0[op];
        has_order(&kernel.op(*op).op) || tensors.iter().any(|accesses| is_between(place, accesses))
    };
    kernel.walk().into_iter().filter(orders).collect()
}

fn has_order(op: &Op) -> bool {
    matches!(op, Op::Atomic(atomic) if atomic.order.acquires() || atomic.order.releases())
}

/// Where an op stands, and all that may run before and after it because it is in one loop with it.
struct Place {
    number: usize,
    turns: RangeInclusive<usize>,
}

impl Place {
    fn may_follow(&self, other: &Place) -> bool {
        other.number <= self.number || self.turns.contains(&other.number)
    }

    fn is_in_loop(&self) -> bool {
        self.turns.start() != self.turns.end()
    }
}

/// Where every op stands.
struct Places(HashMap<OpId, Place>);

impl Places {
    fn of(kernel: &Kernel) -> Places {
        let mut places = Places(HashMap::new());
        places.region(kernel, kernel.body(), None);
        places
    }

    /// The places of a region's ops; `turns` are those of the outermost loop around it.
    fn region(&mut self, kernel: &Kernel, region: RegionId, turns: Option<&RangeInclusive<usize>>) {
        for &op in &kernel.region(region).ops {
            let (data, number) = (kernel.op(op), self.0.len());
            let repeated = data.regions.iter().filter(|_| data.op.is_loop());
            let ops: usize = repeated.map(|&region| kernel.walk_in(region).len()).sum();
            let own = number..=number + ops;
            let turns = turns.or((own.start() != own.end()).then_some(&own));
            self.0.insert(op, Place { number, turns: turns.cloned().unwrap_or(number..=number) });
            data.regions.iter().for_each(|&region| self.region(kernel, region, turns));
        }
    }
}

/// An op that comes to a tensor's elements.
struct Access<'p> {
    place: &'p Place,
    writes: bool,
    /// Whether it writes elements that it chooses at run time.
    is_anywhere: bool,
}

/// The accesses of each tensor that the kernel writes.
fn shared_tensors<'p>(kernel: &Kernel, places: &'p Places) -> Vec<Vec<Access<'p>>> {
    let mut tensors: HashMap<ValueId, Vec<Access<'p>>> = HashMap::new();
    for op in kernel.walk() {
        let data = kernel.op(op);
        let Some(source) = Source::reached_by(kernel, data) else { continue };
        let effect = data.op.effect();
        let is_anywhere = effect == Effect::ReadsAndWrites;
        let access = Access { place: &places.0[&op], writes: effect.writes(), is_anywhere };
        tensors.entry(source.argument).or_default().push(access);
    }
    tensors.into_values().filter(|accesses| accesses.iter().any(|access| access.writes)).collect()
}

/// Whether what stands here may come after one access and before another one that isn't to change places with it.
fn is_between(place: &Place, accesses: &[Access<'_>]) -> bool {
    let may_meet = |before: &Access<'_>, after: &Access<'_>| {
        let is_one = before.place.number == after.place.number;
        (before.writes || after.writes) && (!is_one || before.is_anywhere && before.place.is_in_loop())
    };
    let is_before_any = |before: &Access<'_>| {
        let mut after = accesses.iter().filter(|access| access.place.may_follow(place));
        after.any(|after| may_meet(before, after))
    };
    accesses.iter().filter(|access| place.may_follow(access.place)).any(is_before_any)
}

#[cfg(test)]
mod tests {
    use super::Orders;
    use crate::gpu::schedule;
    use crate::ops::Op;
    use crate::{Instance, TargetDesc};

    /// What the kernel's reductions order, in the order in which they stand.
    fn orders(body: &str) -> Vec<Orders> {
        let source = format!(
            "kernel @rows(%x: tensor<m x 1024 x f32>, %y: mut tensor<m x 1024 x f32>, %c: mut tensor<n x i32>) {{
  %vx = partition %x [1, 1024] : partition<m x 1024 x f32, [1, 1024]>
  %vy = partition %y [1, 1024] : mut partition<m x 1024 x f32, [1, 1024]>
  %i, %j = block_index %vy : index, index
  %from = constant 0 : index
  %to = constant 9 : index
  %one = constant 1 : i32
  %t = load %vx[%i, %j] : tile<1 x 1024 x f32>
{body}}}
"
        );
        let instance = Instance::parse(&source, &[]).unwrap_or_else(|error| panic!("{error}"));
        let scheduled = schedule(instance, TargetDesc::named("gfx1201").unwrap(), None);
        let ops = scheduled.walk().into_iter();
        let reductions = ops.filter(|&op| matches!(scheduled.op(op).op, Op::Reduce { .. }));
        reductions.map(|op| scheduled.orders(op)).collect()
    }

    fn sum(of: &str, name: &str) -> String {
        format!(
            "  %s{name} = reduce sum %{of} axis 1 : tile<1 x 1 x f32>\n  \
             %b{name} = broadcast %s{name} : tile<1 x 1024 x f32>\n  \
             %{name} = div %{of}, %b{name} : tile<1 x 1024 x f32>\n"
        )
    }

    const STORE: &str = "  store %vy, %u\n";
    const LOAD: &str = "  %old = load %vy : tile<1 x 1024 x f32>\n";

    #[test]
    fn inputs_and_what_is_only_stored_need_no_order() {
        assert_eq!(orders(&(sum("t", "u") + STORE)), [Orders::SharedMemory]);
        let turns = format!(
            "  %r = for %p = %from to %to carry (%c2 = %t) : tile<1 x 1024 x f32> {{\n{}{STORE}    yield %u\n  }}\n",
            sum("c2", "u")
        );
        assert_eq!(orders(&turns), [Orders::SharedMemory], "one op comes to an element in one thread");
    }

    #[test]
    fn what_stands_between_a_load_and_a_store_orders_them() {
        let body = sum("t", "u")
            + LOAD
            + &sum("old", "v")
            + "  store %vy, %v\n"
            + &sum("v", "w")
            + "  store %vy, %w\n";
        assert_eq!(orders(&body), [Orders::SharedMemory, Orders::AllMemory, Orders::AllMemory]);
        let after = LOAD.to_owned()
            + &sum("old", "u")
            + STORE
            + &sum("u", "v")
            + "  store %vy, %v\n"
            + &sum("v", "w");
        assert_eq!(orders(&after)[..2], [Orders::AllMemory; 2]);
    }

    #[test]
    fn in_a_loop_what_follows_comes_before_too() {
        let body = format!(
            "  %r = for %p = %from to %to carry (%c2 = %t) : tile<1 x 1024 x f32> {{\n{}{LOAD}  \
             %n = add %u, %old : tile<1 x 1024 x f32>\n  store %vy, %n\n    yield %n\n  }}\n",
            sum("c2", "u")
        );
        assert_eq!(orders(&body), [Orders::AllMemory]);
    }

    const COUNT: &str = "  atomic store relaxed device %c[%ones], %ones\n";

    /// A reduction between the atomic operations of two turns, or before the only one.
    #[test]
    fn an_atomic_operation_in_a_loop_may_come_to_an_element_again() {
        let turns = |before: &str, turn: &str, after: &str| {
            let reduction = sum("c2", "u");
            let ones = "  %ones = splat %one : tile<4 x i32>\n";
            orders(&format!(
                "{ones}{before}  %r = for %p = %from to %to carry (%c2 = %t) : tile<1 x 1024 x f32> {{\n\
                 {reduction}{turn}    yield %u\n  }}\n{after}  store %vy, %r\n"
            ))
        };
        assert_eq!(turns("", COUNT, ""), [Orders::AllMemory]);
        assert_eq!(turns("", "", COUNT), [Orders::SharedMemory]);
        assert_eq!(turns(COUNT, "", COUNT), [Orders::AllMemory]);
    }

    #[test]
    fn an_atomic_operation_with_an_order_orders_all_memory() {
        let source = |order: &str| {
            format!(
                "kernel @k(%c: mut tensor<n x i32>, %y: mut tensor<m x i32>) {{
  %vy = partition %y [4] : mut partition<m x i32, [4]>
  %one = constant 1 : i32
  %ones = splat %one : tile<4 x i32>
  %old = atomic add {order} device %c[%ones], %ones : tile<4 x i32>
  store %vy, %old
}}
"
            )
        };
        for (order, expected) in [("relaxed", Orders::SharedMemory), ("acq_rel", Orders::AllMemory)] {
            let instance = Instance::parse(&source(order), &[]).unwrap_or_else(|error| panic!("{error}"));
            let scheduled = schedule(instance, TargetDesc::named("gfx1201").unwrap(), None);
            let ops = scheduled.walk().into_iter();
            let mut atomics = ops.filter(|&op| matches!(scheduled.op(op).op, Op::Atomic(_)));
            assert_eq!(scheduled.orders(atomics.next().unwrap()), expected, "{order}");
        }
    }
}
