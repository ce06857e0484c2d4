//! Whether the instances that a launch may take compute the same, of which it then takes the fastest.
//!
//! They don't where each normalises its own part of a row: with tiles of another extent these are other parts
//! ([`tile_ir::analysis::own_parts`]).

use super::{Assessed, Fitting};
use crate::error::{Error, Result};
use crate::launch::KernelDef;
use tile_ir::Dim;
use tile_ir::analysis::{OwnPart, own_parts};
use tile_ir::specialize::Binding;

/// One that fits, and what it is called.
struct Candidate<'a> {
    instance: &'a str,
    fitting: &'a Fitting,
}

impl Candidate<'_> {
    /// The value of an extent of the kernel for the instance and the sizes of the launch.
    fn value(&self, dim: &Dim) -> Option<usize> {
        let Fitting { prepared, bound, .. } = self.fitting;
        let bound_to = |name: &str| prepared.bindings().iter().find(|(parameter, _)| parameter == name);
        let lookup = |name: &str| match bound_to(name) {
            Some((_, Binding::Const(value))) => i64::try_from(*value).ok(),
            Some(_) => None,
            None => {
                let slot = prepared.abi().sizes.iter().position(|size| size == name)?;
                i64::try_from(*bound.sizes.get(slot)?).ok()
            }
        };
        dim.evaluate(&lookup).ok()
    }

    /// How much of a line a block sees: at most all of it.
    fn seen(&self, it: &OwnPart) -> Option<usize> {
        Some(self.value(&it.part)?.min(self.value(&it.line)?))
    }
}

/// Refuses to choose where the instances that fit compute different things.
pub(super) fn check(kernel: &'static KernelDef, assessed: &[Assessed]) -> Result<()> {
    let fitting = assessed.iter().filter_map(|one| {
        one.outcome.as_ref().ok().map(|fitting| Candidate { instance: &one.instance, fitting })
    });
    let fitting: Vec<Candidate<'_>> = fitting.collect();
    let [first, others @ ..] = fitting.as_slice() else { return Ok(()) };
    if others.is_empty() {
        return Ok(());
    }
    for it in own_parts(kernel.kernel()?) {
        let Some(seen) = first.seen(&it) else { continue };
        let other = others.iter().find(|other| other.seen(&it).is_some_and(|other| other != seen));
        if let Some(other) = other {
            return Err(disagreement(kernel, &it, [first, other]));
        }
    }
    Ok(())
}

fn disagreement(kernel: &KernelDef, it: &OwnPart, [first, other]: [&Candidate<'_>; 2]) -> Error {
    let OwnPart { loc, reduction, tensor, axis, line, part } = it;
    let seen = [first, other].into_iter().filter_map(|one| one.seen(it));
    let seen = seen.map(|elements| elements.to_string()).collect::<Vec<_>>().join(" and of ");
    let file = &first.fitting.prepared.abi().file;
    let place =
        if loc.is_known() && !file.is_empty() { format!(" at {}", loc.in_file(file)) } else { String::new() };
    let length =
        first.value(line).map_or_else(String::new, |length| format!(", which has {length} elements"));
    Error::InstancesDiffer {
        kernel: kernel.name().to_owned(),
        instances: [first.instance, other.instance].map(ToOwned::to_owned),
        difference: format!(
            "`{reduction}`{place} is of a block's own tile alone: of {seen} elements along axis {axis} of \
             {tensor}{length}. If it is meant to be of all of them, say `where({line:#} <= {part:#})`, which leaves out \
             instances with shorter tiles, or go through the tiles of longer lines in a loop; if it is meant to be of a \
             tile, name the instance at the launch"
        ),
    }
}
