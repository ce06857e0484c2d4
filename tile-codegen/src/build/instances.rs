//! What is said of the instances of a kernel together: that optional arguments make them many, and of those that a target
//! can't hold each once.

use super::output::LeftOut;
use super::scan::Found;
use std::collections::{BTreeSet, HashSet};
use tile_ir::Bindings;
use tile_ir::specialize::Binding;

/// How many instances of a kernel are compiled without a word. Cargo shows nothing of a build script that runs, so that a
/// build which takes minutes should say why in the end.
const MANY: usize = 128;

/// Warns of a kernel with many instances of which its optional arguments are a reason: nobody wrote down how many they make.
pub(super) fn many(found: &Found) -> Option<String> {
    let count = found.instances.len();
    let optional: BTreeSet<&str> = found
        .kernel
        .optional
        .values()
        .map(|presence| presence.parameter.as_str())
        .filter(|parameter| given_and_not(&found.instances, parameter))
        .collect();
    if count <= MANY || optional.is_empty() {
        return None;
    }
    let distinct = |is_wanted: &dyn Fn(&str) -> bool| {
        let part = |bindings: &Bindings| -> Vec<String> {
            let wanted = bindings.iter().filter(|(name, _)| is_wanted(name));
            wanted.map(|(name, value)| format!("{name} = {value}")).collect()
        };
        found.instances.iter().map(part).collect::<HashSet<_>>().len()
    };
    let named = distinct(&|name| !optional.contains(name));
    let ways = distinct(&|name| optional.contains(name));
    let plural = if optional.len() == 1 { "" } else { "s" };
    let each = if named * ways == count { "" } else { "up to " };
    let names: Vec<String> = optional.iter().map(|name| format!("`{name}`")).collect();
    let first = optional.first().copied().unwrap_or_default();
    Some(format!(
        "{}: kernel `{}` has {count} instances, each of which is compiled for every target: {named} of its list, each in \
         {each}{ways} ways, with and without {} optional argument{plural} ({}); say in the list which are wanted, \
         `instances(…, {first} = true)`, or name the combinations that matter, `instances(…; …)`",
        found.place,
        found.kernel.name,
        optional.len(),
        names.join(", ")
    ))
}

/// Whether some instances have a `bool` parameter and others not.
fn given_and_not(instances: &[Bindings], parameter: &str) -> bool {
    [true, false].into_iter().all(|given| {
        let is = |(name, value): &(String, Binding)| name == parameter && *value == Binding::Bool(given);
        instances.iter().any(|bindings| bindings.iter().any(is))
    })
}

/// Those of the instances that are left out of which something is said, each with the number of others that it is said of,
/// too: those for the same target that differ in `bool`s alone, optional arguments among them, and so mostly need as much.
pub(super) fn told(left_out: &[LeftOut]) -> Vec<(&LeftOut, usize)> {
    let mut told: Vec<(&LeftOut, usize)> = Vec::new();
    for one in left_out {
        match told
            .iter_mut()
            .find(|(first, _)| first.target.name == one.target.name && tiles(first).eq(tiles(one)))
        {
            Some((_, others)) => *others += 1,
            None => told.push((one, 0)),
        }
    }
    told
}

/// What an instance has beside `bool`s.
fn tiles(left_out: &LeftOut) -> impl Iterator<Item = &(String, Binding)> {
    left_out.bindings.iter().filter(|(_, value)| !matches!(value, Binding::Bool(_)))
}
