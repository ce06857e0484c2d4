//! Between which atomic operations of a block threads meet.
//!
//! What a block does to a tensor happens in the order in which its kernel says it. Atomic operations choose their elements,
//! so that two of them may come to one in different threads, of which nothing says which one is first. Those whose order
//! nobody sees are left alone: two that only read, two updates that commute, and two of one element each, which is one
//! thread's. Nothing else comes to a tensor that atomic operations reach.

use crate::analysis::uses::Uses;
use crate::kernel::{Kernel, OpId, ValueId};
use crate::ops::{AtomicKind, Op};
use crate::view::Source;
use std::collections::HashMap;

/// The atomic operations of a kernel.
pub(super) struct Atomics(HashMap<OpId, Access>);

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Access {
    tensor: ValueId,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Of one element, in the thread that comes to all such.
    One { writes: bool },
    /// It only reads.
    Read,
    /// An update whose old elements nobody asks for.
    Update(AtomicKind),
    /// Any other.
    Other,
}

impl Atomics {
    pub(super) fn of(kernel: &Kernel) -> Atomics {
        let uses = Uses::of(kernel);
        let is_atomic = |op: &OpId| matches!(kernel.op(*op).op, Op::Atomic(_));
        let access = |op| Access {
            tensor: Source::of(kernel, kernel.op(op).operands[0]).argument,
            kind: kind_of(kernel, &uses, op),
        };
        Atomics(kernel.walk().into_iter().filter(is_atomic).map(|op| (op, access(op))).collect())
    }

    /// Whether an op must come after another one that threads have done since they last met.
    pub(super) fn must_follow(&self, op: OpId, earlier: OpId) -> bool {
        let (Some(after), Some(before)) = (self.0.get(&op), self.0.get(&earlier)) else { return false };
        after.tensor == before.tensor && !before.kind.may_change_places(after.kind)
    }
}

impl Kind {
    fn writes(self) -> bool {
        match self {
            Kind::One { writes } => writes,
            Kind::Read => false,
            Kind::Update(_) | Kind::Other => true,
        }
    }

    fn may_change_places(self, other: Kind) -> bool {
        match (self, other) {
            (Kind::One { .. }, Kind::One { .. }) => true,
            (Kind::Update(one), Kind::Update(other)) => joined_as(one) == joined_as(other),
            _ => !self.writes() && !other.writes(),
        }
    }
}

/// Updates that are joined alike come to the same in any order: what is subtracted is added.
fn joined_as(kind: AtomicKind) -> AtomicKind {
    if kind == AtomicKind::Sub { AtomicKind::Add } else { kind }
}

/// What an atomic operation is.
fn kind_of(kernel: &Kernel, uses: &Uses, op: OpId) -> Kind {
    let data = kernel.op(op);
    let Op::Atomic(atomic) = data.op else { unreachable!("an atomic operation") };
    let is_asked_for = data.results.iter().any(|&result| !uses.of_value(result).is_empty());
    let indices = kernel.ty(data.operands[1]).as_tile().expect("verified: indices are tiles");
    match atomic.kind {
        kind if indices.shape.iter().all(|extent| extent.as_const() == Some(1)) => {
            Kind::One { writes: kind != AtomicKind::Load }
        }
        AtomicKind::Load => Kind::Read,
        kind if kind.binary().is_some() && !is_asked_for => Kind::Update(kind),
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use crate::gpu::schedule;
    use crate::ops::Op;
    use crate::{Instance, TargetDesc};

    /// Which of a kernel's atomic operations threads wait before, in the order in which they stand.
    fn waits(body: &str) -> Vec<bool> {
        let source = format!(
            "kernel @k(%x: tensor<1024 x i32>, %y: mut tensor<1024 x i32>, %z: mut tensor<1024 x i32>) grid [1] {{
  %vx = partition %x [1024] : partition<1024 x i32, [1024]>
  %0 = constant 0 : index
  %9 = constant 9 : index
  %one = constant 1 : i32
  %first = splat %one : tile<1 x i32>
  %t = load %vx[%0] : tile<1024 x i32>
{body}}}
"
        );
        let instance = Instance::parse(&source, &[]).unwrap_or_else(|error| panic!("{error}"));
        let scheduled = schedule(instance, TargetDesc::named("sm_80").unwrap(), None);
        let is_atomic = |op: &crate::OpId| matches!(scheduled.op(*op).op, Op::Atomic(_));
        scheduled.walk().into_iter().filter(is_atomic).map(|op| scheduled.waits_before(op)).collect()
    }

    const ADD: &str = "%a = atomic add relaxed device %y[%t], %t : tile<1024 x i32>\n";
    const SUB: &str = "%s = atomic sub relaxed device %y[%t], %t : tile<1024 x i32>\n";
    const STORE: &str = "atomic store relaxed device %y[%t], %t\n";
    const STORE_ONE: &str = "atomic store relaxed device %y[%first], %first\n";
    const LOAD: &str = "%l = atomic load relaxed device %y[%t] : tile<1024 x i32>\n";
    const ELSEWHERE: &str = "atomic store relaxed device %z[%t], %t\n";

    #[test]
    fn what_may_change_places_needs_no_barrier() {
        assert_eq!(waits(&[ADD, SUB, ELSEWHERE].concat()), [false; 3]);
        assert_eq!(waits(&[STORE_ONE, STORE_ONE].concat()), [false; 2]);
    }

    #[test]
    fn what_comes_after_a_write_waits_for_it() {
        assert_eq!(waits(&[STORE, ADD].concat()), [false, true]);
        assert_eq!(waits(&[STORE_ONE, ADD, SUB, STORE_ONE].concat()), [false, true, false, true]);
        let used = "  atomic store relaxed device %z[%l], %l\n";
        assert_eq!(waits(&[ADD, LOAD, used].concat()), [false, true, false]);
    }

    /// The operation of a turn comes after that of the turn before, but for updates.
    #[test]
    fn turns_come_one_after_the_other() {
        let turns = |op: &str| format!("  for %p = %0 to %9 {{\n    {op}    yield\n  }}\n");
        assert_eq!(waits(&turns(STORE)), [true]);
        assert_eq!(waits(&turns(ADD)), [false]);
    }
}
