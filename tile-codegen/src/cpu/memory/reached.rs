//! Which tensor an op reaches: what every decision about the order of accesses asks first.

use tile_ir::kernel::OpData;
use tile_ir::view::Source;
use tile_ir::{Instance, Op};

/// The tensor that an op reads or writes, with what is selected of it on the way; `None` of an op that does neither. A
/// prefetch does neither.
pub(in crate::cpu) fn reached(instance: &Instance, data: &OpData) -> Option<Source> {
    let tensor = match &data.op {
        op if op.is_load() || op.is_store() => {
            let view = instance.definition(data.operands[0]);
            view.expect("verified: a view is made by `partition`").operands[0]
        }
        Op::GatherLoad | Op::Atomic(_) => data.operands[0],
        _ => return None,
    };
    Some(Source::of(instance, tensor))
}
