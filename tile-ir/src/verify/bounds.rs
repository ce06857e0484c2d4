//! Unmasked loads and stores: each index has a range, and no range is outside for every size.

use super::{Verifier, VerifyError};
use crate::analysis::{Ranges, Unbounded, bounds};
use crate::kernel::OpId;
use crate::ops::Op;

impl Verifier<'_> {
    /// Every unmasked load and store must be one whose bounds hold, or can be checked at a launch.
    pub(super) fn bounds(&mut self) {
        let unmasked = |op: &Op| matches!(op, Op::Load { .. } | Op::Store);
        let ops: Vec<OpId> =
            self.kernel.walk().into_iter().filter(|&op| unmasked(&self.kernel.op(op).op)).collect();
        if ops.is_empty() {
            return;
        }
        let ranges = Ranges::of(self.kernel);
        for op in ops {
            let data = self.kernel.op(op);
            let masked = bounds::masked(&data.op);
            let problem = match bounds::bounds(self.kernel, &ranges, op) {
                Err(Unbounded { operand, message }) => Some((operand, message)),
                Ok(bounds) => bounds.iter().find(|bound| bound.decide() == Some(false)).map(|bound| {
                    let tensor = self.kernel.tensor_name(data.operands[0]);
                    let violation = bound.violation(&tensor, &|_| None);
                    (None, violation.ok().flatten().unwrap_or_default())
                }),
            };
            if let Some((operand, message)) = problem {
                let bounded = match operand {
                    Some(_) if self.tiles.first.is_some() => {
                        "; the index of the loop's tile, loop counters, sizes, constants and arithmetic on them are \
                         bounded, the number of the block is not"
                    }
                    Some(_) => {
                        "; block indices, loop counters, sizes, constants and arithmetic on them are bounded"
                    }
                    None => "",
                };
                let help = Some(format!("use `{masked}`, which is defined for every index{bounded}"));
                self.errors.push(VerifyError { message, loc: data.loc, operand, help });
            }
        }
    }
}
