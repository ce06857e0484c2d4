//! Which targets' code a GPU runs.

use tile_ir::target::Family;

/// What decides which code runs on a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Architecture {
    /// An NVIDIA GPU of a compute capability.
    Nvidia {
        /// 9 of 9.0.
        major: i32,
        /// 0 of 9.0.
        minor: i32,
    },
    /// An AMD GPU, by the processor's name: `gfx942`.
    Amd(String),
}

/// Of two targets that run on a GPU, the greater makes more of it: compute capability, and whether the code is for
/// that one or its family alone.
pub(crate) type Rank = (i32, i32, bool);

impl Architecture {
    /// The architecture that a name of HIP's says, `gfx942:sramecc+:xnack-`. Code that doesn't say which of these settings
    /// it needs runs with all of them (LLVM's AMDGPU usage guide, "Target ID").
    pub(crate) fn of_target_id(id: &str) -> Architecture {
        Architecture::Amd(id.split(':').next().unwrap_or(id).to_owned())
    }

    /// The family of the targets that may run here.
    pub(crate) fn family(&self) -> Family {
        match self {
            Architecture::Nvidia { .. } => Family::Nvptx,
            Architecture::Amd(_) => Family::Amdgpu,
        }
    }

    /// The name as targets have it: `sm_90`, `gfx942`.
    pub(crate) fn name(&self) -> String {
        match self {
            Architecture::Nvidia { major, minor } => format!("sm_{major}{minor}"),
            Architecture::Amd(processor) => processor.clone(),
        }
    }

    /// How much a target's code makes of the GPU; `None` where it doesn't run.
    ///
    /// `sm_80` runs on compute capability 8.0 and every later one, `sm_120f` on 12.0 and later ones of its family, which is 12,
    /// `sm_90a` on 9.0 alone (PTX ISA, ".target"), `gfx942` on that processor alone.
    pub(crate) fn rank(&self, target: &str) -> Option<Rank> {
        match self {
            Architecture::Nvidia { major, minor } => {
                let name = target.strip_prefix("sm_")?;
                let number: i32 = name.trim_end_matches(['a', 'f']).parse().ok()?;
                let capability = (number / 10, number % 10);
                let own = (*major, *minor);
                let (runs, is_special) = match &name[name.len() - 1..] {
                    "a" => (capability == own, true),
                    "f" => (capability <= own && capability.0 == own.0, true),
                    _ => (capability <= own, false),
                };
                runs.then_some((capability.0, capability.1, is_special))
            }
            Architecture::Amd(processor) => (processor == target).then_some((0, 0, true)),
        }
    }

    /// Of what is for targets, each by its name, that which makes most of the GPU; `None` where nothing runs.
    pub(crate) fn best_of<T>(
        &self,
        candidates: impl Iterator<Item = T>,
        target: impl Fn(&T) -> &'static str,
    ) -> Option<T> {
        let ranked = candidates.filter_map(|candidate| Some((self.rank(target(&candidate))?, candidate)));
        ranked.max_by_key(|&(rank, _)| rank).map(|(_, candidate)| candidate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tile_ir::target::TARGETS;

    fn best(targets: &[&'static str], architecture: &Architecture) -> Option<&'static str> {
        architecture.best_of(targets.iter().copied(), |target| target)
    }

    #[test]
    fn a_gpu_gets_the_latest_code_that_it_runs() {
        let targets = ["cpu", "sm_80", "sm_90a", "sm_100a", "gfx942"];
        let best = |major, minor| best(&targets, &Architecture::Nvidia { major, minor });
        assert_eq!(best(7, 5), None);
        assert_eq!(best(8, 6), Some("sm_80"));
        assert_eq!(best(9, 0), Some("sm_90a"));
        assert_eq!(best(10, 0), Some("sm_100a"));
        // Code for exactly one GPU doesn't run on a later one.
        assert_eq!(best(10, 3), Some("sm_80"));
        assert_eq!(best(12, 0), Some("sm_80"));
    }

    /// Some later GPUs have less shared memory than the first of their kin.
    #[test]
    fn a_gpu_gets_code_that_asks_for_no_more_shared_memory_than_it_has() {
        let all: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        let best = |major, minor| best(&all, &Architecture::Nvidia { major, minor });
        assert_eq!([best(8, 0), best(8, 6), best(8, 9)], [Some("sm_80"), Some("sm_86"), Some("sm_89")]);
        assert_eq!([best(12, 0), best(12, 1)], [Some("sm_120f"); 2]);
        // Code for a family doesn't run on a later one.
        assert_eq!(best(13, 0), Some("sm_89"));
        assert_eq!([best(9, 0), best(10, 0)], [Some("sm_90a"), Some("sm_100a")]);
    }

    #[test]
    fn an_amd_gpu_gets_the_code_of_its_processor() {
        let targets = ["cpu", "sm_80", "gfx90a", "gfx942", "gfx950"];
        let gfx942 = Architecture::of_target_id("gfx942:sramecc+:xnack-");
        assert_eq!(gfx942.name(), "gfx942");
        assert_eq!(best(&targets, &gfx942), Some("gfx942"));
        assert_eq!(best(&targets, &Architecture::of_target_id("gfx1100")), None);
        assert_eq!(best(&targets, &Architecture::of_target_id("gfx90a:sramecc+:xnack-")), Some("gfx90a"));
    }
}
