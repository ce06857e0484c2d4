//! How many registers a tile may take: code is unrolled over the slots of a thread, so this bounds it too.

use crate::error::Error;
use tile_ir::gpu::{Scheduled, most_blocks};
use tile_ir::{Instance, Kernel, Loc, OpId, TargetDesc, ValueId};

/// 32-bit registers per thread of the largest tile: a tile that takes more than this fills the register file of a
/// whole multiprocessor on its own.
const MAX_WORDS: usize = 256;

/// Refuses tiles that are far too large, before anything is decided of their elements one by one.
pub(super) fn check_elements(instance: &Instance, target: &TargetDesc) -> Result<(), Error> {
    for data in instance.walk().into_iter().map(|op| instance.op(op)) {
        for &result in &data.results {
            let Some(tile) = instance.ty(result).as_tile() else { continue };
            let extents = tile.shape.iter().map(|extent| extent.as_const().unwrap_or(i64::MAX) as u64);
            let elements = extents.fold(1, u64::saturating_mul);
            let needed = elements / (u64::from(target.max_threads) * most_blocks(target));
            if needed > MAX_WORDS as u64 {
                return Err(refused(instance, target, result, needed as usize, data.loc));
            }
        }
    }
    Ok(())
}

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
    if scheduled.ty(value).as_tile().is_none() {
        return Ok(());
    }
    let dtype = scheduled.dtype(value);
    let needed = scheduled.distribution(value).slots() as usize * dtype.bytes().div_ceil(4);
    if needed <= MAX_WORDS {
        return Ok(());
    }
    Err(refused(scheduled, target, value, needed, loc))
}

fn refused(kernel: &Kernel, target: &TargetDesc, value: ValueId, needed: usize, loc: Loc) -> Error {
    Error::Registers {
        kernel: kernel.name.clone(),
        target: target.name.to_owned(),
        tile: kernel.ty(value).to_string(),
        needed,
        available: MAX_WORDS,
        loc,
    }
}
