//! Loops: where what one carries stands among its operands, its body's parameters, and what its body yields.

use super::Op;

/// Where the first value that a loop carries stands; the others follow it. The results are these values alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Carried {
    /// Among the loop's operands.
    pub(crate) initial: usize,
    /// Among its body's parameters.
    pub(crate) param: usize,
    /// Among the operands of its body's `yield`.
    pub(crate) yielded: usize,
}

impl Carried {
    /// Of a `for`, whose bounds are operands, and whose counter is a parameter.
    pub(crate) const FOR: Carried = Carried { initial: 2, param: 1, yielded: 0 };

    /// Of a loop; `None` of another op.
    pub(crate) const fn of(op: &Op) -> Option<Carried> {
        match op {
            Op::For => Some(Carried::FOR),
            // Whether there is a turn is an operand, and whether there is another one is yielded.
            Op::While => Some(Carried { initial: 1, param: 0, yielded: 1 }),
            // The view whose tiles these are is an operand.
            Op::Tiles(_) => Some(Carried { initial: 1, param: 0, yielded: 0 }),
            // Regions that are no loop's: one is taken, or goes along lines; and what ends any.
            Op::If | Op::ReduceWith { .. } | Op::ScanWith { .. } | Op::Yield => None,
            // Ops without regions.
            Op::Constant { .. } | Op::Extent(_) | Op::BlockId { .. } | Op::BlockCount { .. } => None,
            Op::Unary(_) | Op::Binary(_) | Op::Compare(_) | Op::Classify(_) | Op::Select => None,
            Op::Cast(_) | Op::CastWith(..) | Op::SaturatingCast(_) | Op::Bitcast(_) => None,
            Op::Lookup { .. } | Op::MulAdd => None,
            Op::Splat(_) | Op::Iota { .. } | Op::Broadcast(_) | Op::Reshape(_) | Op::Permute(_) => None,
            Op::Movement(_) | Op::Gather { .. } | Op::Scatter { .. } | Op::Item => None,
            Op::Reduce { .. } | Op::Scan { .. } | Op::Sort { .. } | Op::Histogram(_) => None,
            Op::Mma | Op::MmaScaled | Op::ConvertLayout => None,
            Op::View(_) | Op::Partition(_) | Op::BlockIndex => None,
            Op::LoadMasked | Op::Load { .. } | Op::GatherLoad | Op::StoreMasked | Op::Store => None,
            Op::Atomic(_) | Op::Prefetch | Op::Print { .. } | Op::Assert { .. } => None,
        }
    }
}

impl Op {
    /// Whether the op does its region again and again.
    pub const fn is_loop(&self) -> bool {
        Carried::of(self).is_some()
    }
}
