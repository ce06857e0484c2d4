//! Which instructions code for this machine may use: those that the machine has, or fewer where somebody asks for it.

use crate::environment;
use std::sync::OnceLock;
use tile_ir::target::{Architecture, CpuLevel, TILE_FEATURES, grants_tiles};

/// The environment variable that names the best level which code is taken of and made for.
const VARIABLE: &str = "TILE_CPU_LEVEL";

/// The levels that this machine has.
fn detected() -> impl Iterator<Item = &'static CpuLevel> {
    let levels = Architecture::host().into_iter().flat_map(Architecture::levels);
    levels.filter(|level| level.all_features().all(|feature| has(feature) == Some(true)))
}

/// The level that [`VARIABLE`] names, once and for all launches; `None` where none is named, or one that the machine lacks.
pub(crate) fn asked() -> Option<&'static CpuLevel> {
    static ASKED: OnceLock<Option<&'static CpuLevel>> = OnceLock::new();
    if let Some(asked) = ASKED.get() {
        return *asked;
    }
    let names: Vec<&str> = detected().map(|level| level.name).collect();
    let expected = format!("a level of this machine ({})", names.join(", "));
    // Not while the value is made: who is told that the variable makes no sense may ask for it.
    let asked = environment::said(VARIABLE, &expected, |name| detected().find(|level| level.name == name));
    *ASKED.get_or_init(|| asked)
}

/// The levels that code may be of, as [`crate::embedded::EmbeddedCode::Cpu`] names them, the best first.
pub(crate) fn usable() -> impl Iterator<Item = &'static CpuLevel> {
    below(asked())
}

/// The levels of this machine from the one that is asked for on.
fn below(asked: Option<&'static CpuLevel>) -> impl Iterator<Item = &'static CpuLevel> {
    detected().skip_while(move |level| asked.is_some_and(|asked| level.name != asked.name))
}

/// The best of them that tells of any kernel's code, not of products alone.
pub(crate) fn best() -> Option<&'static CpuLevel> {
    usable().find(|level| level.is_general)
}

/// Asks the standard library for each of these features, which wants them as literals, and by Rust's names.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! ask {
    ($macro:ident, $feature:ident, [$($name:tt)*], [$($other:tt is $rust:tt)*]) => {
        match $feature {
            $($name => Some(std::arch::$macro!($name)),)*
            $($other => Some(std::arch::$macro!($rust)),)*
            _ => None,
        }
    };
}

/// Whether the processor has a feature; `None` of one that nobody asks for here.
fn has(feature: &str) -> Option<bool> {
    if TILE_FEATURES.contains(&feature) {
        return Some(grants_tiles());
    }
    #[cfg(target_arch = "x86_64")]
    return ask!(
        is_x86_feature_detected, feature,
        ["sse4.2" "popcnt" "avx2" "fma" "f16c" "bmi2" "lzcnt" "movbe" "avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl"
            "avx512bf16" "avx512vnni" "avxvnni"],
        ["bmi" is "bmi1" "cx16" is "cmpxchg16b"]
    );
    #[cfg(target_arch = "aarch64")]
    return ask!(is_aarch64_feature_detected, feature, ["neon" "lse" "dotprod" "bf16" "i8mm"], []);
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = feature;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A feature that no machine is asked for would hide its level from all of them.
    #[test]
    fn every_feature_of_this_architecture_is_asked_for() {
        let levels = Architecture::host().into_iter().flat_map(Architecture::levels);
        for feature in levels.flat_map(|level| level.features) {
            assert!(has(feature).is_some(), "{feature}");
        }
        assert_eq!(has("a feature that no processor has"), None);
    }

    #[test]
    fn a_machine_has_the_levels_below_its_best() {
        let Some(architecture) = Architecture::host() else { return };
        let (all, found): (Vec<_>, Vec<_>) = (architecture.levels().collect(), detected().collect());
        assert_eq!(found, all[all.len() - found.len()..]);
        assert!(best().is_none_or(|best| best.is_general && found.contains(&best)));
    }

    #[test]
    fn code_is_of_the_level_that_is_asked_for_or_below() {
        let found: Vec<_> = detected().collect();
        assert_eq!(below(None).collect::<Vec<_>>(), found);
        for (index, level) in found.iter().enumerate() {
            assert_eq!(below(Some(level)).collect::<Vec<_>>(), found[index..]);
        }
    }
}
