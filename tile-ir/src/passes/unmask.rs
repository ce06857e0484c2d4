//! Mask elimination: a masked load or store whose tile lies inside its tensor, for every index that it can have,
//! loses its mask. Of run-time sizes it knows what the kernel's conditions say: a tile of 64 of `m` lies inside where
//! `m % 64 == 0`. What they don't decide, targets decide per tile.

use crate::analysis::{Facts, Ranges, bounds};
use crate::kernel::Kernel;
use crate::ops::Op;

/// Removes the masks that the bounds of the index show to be full.
pub(super) fn run(kernel: &mut Kernel) {
    let ranges = Ranges::under(kernel, Facts::of(kernel));
    for op in kernel.walk() {
        let data = kernel.op(op);
        if !matches!(data.op, Op::LoadMasked | Op::StoreMasked) {
            continue;
        }
        let bounds = bounds::bounds(kernel, &ranges, op);
        if bounds.is_ok_and(|bounds| bounds.iter().all(|bound| bound.decide() == Some(true))) {
            let data = kernel.op_mut(op);
            match data.op {
                Op::LoadMasked => {
                    data.op = Op::Load { checked: true };
                    data.operands.remove(1);
                }
                _ => data.op = Op::Store,
            }
        }
    }
}
