//! Whether the instances that a launch may take compute the same, of which it then takes the fastest.
//!
//! They don't where each normalises, scans or sorts its own part of a row: with tiles of another extent these are other parts
//! ([`tile_ir::analysis::own_parts`]). Nor where each divides the sum of a row by its tile's extent
//! ([`tile_ir::analysis::own_means`]), or where they draw random numbers by the number of an element in its tile, if that is
//! another one in tiles of other extents ([`tile_ir::analysis::draws()`]).

use super::{Assessed, Fitting};
use crate::error::{Error, Result};
use crate::launch::KernelDef;
use std::cell::OnceCell;
use tile_ir::analysis::{self, Draw, OwnMean, OwnPart, own_means, own_parts};
use tile_ir::specialize::Binding;
use tile_ir::{Dim, Loc};

/// One that fits, and what it is called.
struct Candidate<'a> {
    instance: &'a str,
    fitting: &'a Fitting,
    /// What it computes of own parts, once somebody has asked.
    own_parts: OnceCell<Vec<OwnPart>>,
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

    /// How much of a line a block sees: at most all of it. Nothing where the instance doesn't have the computation, as behind a
    /// branch that its parameters don't take.
    fn seen(&self, it: &OwnPart) -> Option<usize> {
        let own = self.own_parts.get_or_init(|| own_parts(self.fitting.prepared.instance()));
        own.iter().find(|own| own.is_that_of(it))?;
        Some(self.value(&it.part)?.min(self.value(&it.line)?))
    }

    /// What the sum of a line is divided by; nothing where the instance doesn't have the quotient.
    fn divisor(&self, it: &OwnMean) -> Option<usize> {
        let instance = self.fitting.prepared.instance();
        instance.walk().into_iter().find(|&op| instance.op(op).loc == it.loc)?;
        self.value(&it.divisor)
    }

    /// The random numbers that it draws by elements' numbers in their tiles.
    fn draws(&self) -> Vec<Draw> {
        analysis::draws(self.fitting.prepared.instance())
    }

    /// ` at src/lib.rs:7:13`; nothing where the place isn't known.
    fn at(&self, loc: Loc) -> String {
        let file = &self.fitting.prepared.abi().file;
        if loc.is_known() && !file.is_empty() { format!(" at {}", loc.in_file(file)) } else { String::new() }
    }
}

/// Refuses to choose where the instances that fit compute different things.
pub(super) fn check(kernel: &'static KernelDef, assessed: &[Assessed]) -> Result<()> {
    let fitting = assessed.iter().filter_map(|one| {
        let fitting = one.outcome.as_ref().ok()?;
        Some(Candidate { instance: &one.instance, fitting, own_parts: OnceCell::new() })
    });
    let fitting: Vec<Candidate<'_>> = fitting.collect();
    if fitting.len() < 2 {
        return Ok(());
    }
    for it in own_parts(kernel.kernel()?) {
        if let Some(two) = apart(&fitting, |one| one.seen(&it)) {
            return Err(differ(kernel, two, other_part(&it, two)));
        }
    }
    for it in own_means(kernel.kernel()?) {
        if let Some(two) = apart(&fitting, |one| one.divisor(&it)) {
            return Err(differ(kernel, two, other_mean(&it, two)));
        }
    }
    let draws: Vec<(&Candidate<'_>, Vec<Draw>)> = fitting.iter().map(|one| (one, one.draws())).collect();
    for (i, (one, ours)) in draws.iter().enumerate() {
        // Of tiles with one row others may differ that agree with these.
        for (other, theirs) in &draws[i + 1..] {
            // Instances with other loops over arrays may have other draws: those of the same place are compared.
            let mut pairs = ours.iter().zip(theirs).filter(|(ours, theirs)| ours.loc == theirs.loc);
            if let Some(pair) = pairs.find(|(ours, theirs)| !ours.is_numbered_as(theirs)) {
                return Err(differ(kernel, [one, other], other_numbers(one, pair)));
            }
        }
    }
    Ok(())
}

/// Two of the instances for which a number isn't the same, among those that have it.
fn apart<'f, 'a>(
    fitting: &'f [Candidate<'a>],
    number: impl Fn(&Candidate<'a>) -> Option<usize>,
) -> Option<[&'f Candidate<'a>; 2]> {
    let mut numbers = fitting.iter().filter_map(|one| Some((one, number(one)?)));
    let (first, ours) = numbers.next()?;
    numbers.find(|(_, number)| *number != ours).map(|(other, _)| [first, other])
}

fn differ(kernel: &KernelDef, instances: [&Candidate<'_>; 2], difference: String) -> Error {
    let instances = instances.map(|candidate| candidate.instance.to_owned());
    Error::InstancesDiffer { kernel: kernel.name().to_owned(), instances, difference }
}

fn other_numbers(first: &Candidate<'_>, (ours, theirs): (&Draw, &Draw)) -> String {
    let place = first.at(ours.loc);
    format!(
        "the random numbers{place} go by an element's number in its tile, in row-major order, so that in tiles {:?} and {:?} \
         an element of a tensor gets different ones. Draw them by its place in the tensor: give positions such as \
         `row * n as u64 + column` to `Tile::random_uniform_at`, `random_normal_at`, `random_bits_at` or `philox`; if they \
         are meant to go by tiles, name the instance at the launch",
        ours.shape, theirs.shape
    )
}

fn other_part(it: &OwnPart, [first, other]: [&Candidate<'_>; 2]) -> String {
    let OwnPart { loc, method, tensor, axis, line, part } = it;
    let seen = [first, other].into_iter().filter_map(|one| one.seen(it));
    let seen = seen.map(|elements| elements.to_string()).collect::<Vec<_>>().join(" and of ");
    let place = first.at(*loc);
    let length =
        first.value(line).map_or_else(String::new, |length| format!(", which has {length} elements"));
    format!(
        "`{method}`{place} is of a block's own tile alone: of {seen} elements along axis {axis} of \
         {tensor}{length}. If it is meant to be of all of them, say `where({line:#} <= {part:#})`, which leaves out \
         instances with shorter tiles, or go through the tiles of longer lines in a loop; if it is meant to be of a \
         tile, name the instance at the launch"
    )
}

fn other_mean(it: &OwnMean, [first, other]: [&Candidate<'_>; 2]) -> String {
    let OwnMean { loc, tensor, axis, line, divisor } = it;
    let divisors = [first, other].into_iter().filter_map(|one| one.value(divisor));
    let divisors = divisors.map(|divisor| divisor.to_string()).collect::<Vec<_>>().join(" and by ");
    let place = first.at(*loc);
    let length = first.value(line).map_or_else(String::new, |length| format!(", with {length} elements,"));
    format!(
        "the sum along axis {axis} of {tensor}{length} is divided{place} by {divisors}, what pads the tile among it. Divide it \
         by the length, `x.sum(axis) / {line:#} as f32`; if the tile's extent is meant, name the instance at the launch"
    )
}
