//! Which instructions this machine has, of those that embedded code may use.

use tile_ir::target::{Architecture, CpuLevel};

/// The levels that this machine has, as [`crate::embedded::EmbeddedCode::Cpu`] names them, the best first.
pub(crate) fn supported() -> impl Iterator<Item = &'static CpuLevel> {
    let levels = Architecture::host().into_iter().flat_map(Architecture::levels);
    levels.filter(|level| level.all_features().all(|feature| detected(feature) == Some(true)))
}

/// The best level of this machine that tells of any kernel's code, not of products alone.
pub(crate) fn best() -> Option<&'static CpuLevel> {
    supported().find(|level| level.is_general)
}

/// Asks the standard library for each of these features, which wants them as literals.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! ask {
    ($macro:ident, $feature:ident, $($name:tt)*) => {
        match $feature {
            $($name => Some(std::arch::$macro!($name)),)*
            _ => None,
        }
    };
}

/// Whether the processor has a feature; `None` of one that nobody asks for here.
fn detected(feature: &str) -> Option<bool> {
    #[cfg(target_arch = "x86_64")]
    return ask!(
        is_x86_feature_detected, feature,
        "sse4.2" "popcnt" "avx2" "fma" "f16c" "bmi2" "avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl" "avx512bf16"
        "avx512vnni"
    );
    #[cfg(target_arch = "aarch64")]
    return ask!(is_aarch64_feature_detected, feature, "neon" "lse" "dotprod" "bf16" "i8mm");
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
            assert!(detected(feature).is_some(), "{feature}");
        }
        assert_eq!(detected("a feature that no processor has"), None);
    }

    #[test]
    fn a_machine_has_the_levels_below_its_best() {
        let Some(architecture) = Architecture::host() else { return };
        let (all, found): (Vec<_>, Vec<_>) = (architecture.levels().collect(), supported().collect());
        assert_eq!(found, all[all.len() - found.len()..]);
        assert!(best().is_none_or(|best| best.is_general && found.contains(&best)));
    }
}
