//! Where what a loop carries stands among its operands, its body's parameters, and what its body yields.

use crate::ops::Op;

/// Where the first value that a loop carries stands; the others follow it. The results are these values alone.
#[derive(Clone, Copy)]
pub(in crate::gpu) struct Carried {
    /// Among the loop's operands.
    pub(in crate::gpu) initial: usize,
    /// Among its body's parameters.
    pub(in crate::gpu) param: usize,
    /// Among the operands of its body's `yield`.
    pub(in crate::gpu) yielded: usize,
}

impl Carried {
    /// Of a `for`, whose bounds are operands, and whose counter is a parameter.
    pub(in crate::gpu) const FOR: Carried = Carried { initial: 2, param: 1, yielded: 0 };

    /// Of a loop; `None` of another op.
    pub(in crate::gpu) fn of(op: &Op) -> Option<Carried> {
        match op {
            Op::For => Some(Carried::FOR),
            // Whether there is a turn is an operand, and whether there is another one is yielded.
            Op::While => Some(Carried { initial: 1, param: 0, yielded: 1 }),
            // The view whose tiles these are is an operand.
            Op::Tiles(_) => Some(Carried { initial: 1, param: 0, yielded: 0 }),
            _ => None,
        }
    }
}
