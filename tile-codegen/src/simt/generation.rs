//! Kinds of GPUs that are modelled, as far as instructions of one name differ between them. Nothing else here asks a GPU for
//! its name.

/// A kind of GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generation {
    /// NVIDIA's, whose instructions say themselves what they do.
    Nvidia,
    /// The MI200 series.
    Cdna2,
    /// The MI300 series.
    Cdna3,
    /// The MI350 series.
    Cdna4,
    /// The RX 7000 series.
    Rdna3,
    /// The RX 9000 series.
    Rdna4,
}

/// How the names of processors begin.
const NAMES: &[(&str, Generation)] = &[
    ("sm_", Generation::Nvidia),
    ("gfx90a", Generation::Cdna2),
    ("gfx94", Generation::Cdna3),
    ("gfx950", Generation::Cdna4),
    ("gfx11", Generation::Rdna3),
    ("gfx120", Generation::Rdna4),
];

impl Generation {
    /// That of a processor, such as `sm_90a` or `gfx942`.
    ///
    /// # Errors
    /// Where it isn't modelled, in words.
    pub(super) fn of(processor: &str) -> Result<Generation, String> {
        let found = NAMES.iter().find(|(name, _)| processor.starts_with(name));
        found.map(|&(_, generation)| generation).ok_or_else(|| {
            let names: Vec<String> = NAMES.iter().map(|(name, _)| format!("`{name}…`")).collect();
            format!("GPUs like `{processor}` aren't modelled, only those called {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tile_ir::target::{Family, TARGETS};

    #[test]
    fn every_target_is_of_a_generation_that_is_modelled() {
        for target in TARGETS.iter().filter(|target| target.family != Family::Cpu) {
            let generation = Generation::of(target.name).unwrap_or_else(|message| panic!("{message}"));
            assert_eq!(generation == Generation::Nvidia, target.family == Family::Nvptx, "{target}");
        }
    }

    #[test]
    fn what_is_not_modelled_is_no_other_generation() {
        for processor in ["cpu", "gfx908", "gfx1030", "gfx1250"] {
            let message = Generation::of(processor).unwrap_err();
            assert!(message.starts_with(&format!("GPUs like `{processor}` aren't modelled")), "{message}");
        }
    }
}
