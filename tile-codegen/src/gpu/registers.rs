//! How many registers a tile may take: code is unrolled over the slots of a thread, so this bounds it too.

use crate::error::Error;
use tile_ir::gpu::Scheduled;
use tile_ir::{Loc, OpId, TargetDesc, ValueId};

/// 32-bit registers per thread of the largest tile: a tile that takes more than this fills the register file of a
/// whole multiprocessor on its own.
const MAX_WORDS: usize = 256;

/// Refuses tiles that no thread could hold. What lies in shared memory for a product isn't held.
pub(super) fn check(scheduled: &Scheduled, target: &TargetDesc) -> Result<(), Error> {
    for op in scheduled.walk().into_iter().filter(|&op| is_held(scheduled, op)) {
        let data = scheduled.op(op);
        let held = data.results.iter().filter(|&&result| !scheduled.pipelines().holds(result));
        for &result in held {
            check_tile(scheduled, target, result, data.loc)?;
        }
    }
    Ok(())
}

/// Whether threads hold what an op gives.
fn is_held(scheduled: &Scheduled, op: OpId) -> bool {
    scheduled.staged_for(op).is_none() && !scheduled.copies().replace(op)
}

fn check_tile(scheduled: &Scheduled, target: &TargetDesc, value: ValueId, loc: Loc) -> Result<(), Error> {
    let Some(tile) = scheduled.ty(value).as_tile() else { return Ok(()) };
    let dtype = scheduled.dtype(value);
    let needed = scheduled.distribution(value).slots() as usize * dtype.bytes().div_ceil(4);
    if needed <= MAX_WORDS {
        return Ok(());
    }
    Err(Error::Registers {
        kernel: scheduled.name.clone(),
        target: target.name.to_owned(),
        tile: tile.to_string(),
        needed,
        available: MAX_WORDS,
        loc,
    })
}
