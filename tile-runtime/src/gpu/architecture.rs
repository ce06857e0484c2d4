//! Which targets' code a GPU runs.

use tile_ir::TargetDesc;
use tile_ir::target::{Family, Reach, RunsOn, TARGETS};

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

/// Of two targets that run on a GPU, the greater makes more of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// Whether the GPU's blocks have all the shared memory that the target's may ask for: a later target may be of GPUs that
    /// have more.
    has_room: bool,
    /// The target's compute capability, where it has one.
    capability: (i32, i32),
    /// Whether its code is for that capability or its family alone.
    is_special: bool,
}

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

    /// Why no target's code runs on such a GPU, whose blocks have so many bytes of shared memory, if none does.
    pub(super) fn unsupported(&self, shared_bytes: u64) -> Option<String> {
        if TARGETS.iter().any(|target| self.rank(target, shared_bytes).is_some()) {
            return None;
        }
        let of_family = TARGETS.iter().filter(|target| target.family == self.family());
        let names: Vec<&str> = of_family.map(|target| target.name).collect();
        let gpu = match self {
            Architecture::Nvidia { major, minor } => format!("compute capability {major}.{minor}"),
            Architecture::Amd(processor) => processor.clone(),
        };
        Some(format!("it is of {gpu}, and there is code for {} only", names.join(", ")))
    }

    /// How much a target's code makes of such a GPU, whose blocks have so many bytes of shared memory; `None` where it
    /// doesn't run.
    pub(crate) fn rank(&self, target: &TargetDesc, shared_bytes: u64) -> Option<Rank> {
        let has_room = u64::from(target.shared_bytes) <= shared_bytes;
        match (self, target.runs_on) {
            (
                &Architecture::Nvidia { major, minor },
                RunsOn::Capability { major: since, minor: first, reach },
            ) => {
                let (own, capability) = ((major, minor), (since, first));
                let runs = match reach {
                    Reach::Later => capability <= own,
                    Reach::Family => capability <= own && since == major,
                    Reach::Alone => capability == own,
                };
                let is_special = reach != Reach::Later;
                runs.then_some(Rank { has_room, capability, is_special })
            }
            (Architecture::Amd(processor), RunsOn::Processor) => {
                (processor == target.name).then_some(Rank { has_room, capability: (0, 0), is_special: true })
            }
            (Architecture::Nvidia { .. }, RunsOn::Host | RunsOn::Processor) => None,
            (Architecture::Amd(_), RunsOn::Host | RunsOn::Capability { .. }) => None,
        }
    }

    /// Of what is for targets that which makes most of such a GPU, whose blocks have so many bytes of shared memory; `None`
    /// where nothing runs.
    pub(crate) fn best_of<T>(
        &self,
        shared_bytes: u64,
        candidates: impl Iterator<Item = T>,
        target: impl Fn(&T) -> Option<&'static TargetDesc>,
    ) -> Option<T> {
        let rank = |candidate: &T| self.rank(target(candidate)?, shared_bytes);
        let ranked = candidates.filter_map(|candidate| Some((rank(&candidate)?, candidate)));
        ranked.max_by_key(|&(rank, _)| rank).map(|(_, candidate)| candidate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    fn best(
        targets: &[&'static str],
        architecture: &Architecture,
        shared_bytes: u64,
    ) -> Option<&'static str> {
        let target = |name: &&'static str| TargetDesc::named(name).ok();
        architecture.best_of(shared_bytes, targets.iter().copied(), target)
    }

    #[test]
    fn a_gpu_gets_the_latest_code_that_it_runs() {
        let targets = ["cpu", "sm_80", "sm_90a", "sm_100a", "gfx942"];
        let best = |major, minor| best(&targets, &Architecture::Nvidia { major, minor }, 227 * KIB);
        assert_eq!(best(7, 5), None);
        assert_eq!(best(8, 6), Some("sm_80"));
        assert_eq!(best(9, 0), Some("sm_90a"));
        assert_eq!(best(10, 0), Some("sm_100a"));
        // Code for exactly one GPU doesn't run on a later one.
        assert_eq!(best(10, 3), Some("sm_80"));
        assert_eq!(best(12, 0), Some("sm_80"));
    }

    #[test]
    fn a_gpu_that_runs_no_targets_code_is_told_from_one_that_does() {
        let turing = Architecture::Nvidia { major: 7, minor: 5 };
        let reason = turing.unsupported(64 * KIB).unwrap();
        assert!(
            reason.starts_with("it is of compute capability 7.5, and there is code for sm_80, "),
            "{reason}"
        );
        assert!(!reason.contains("gfx"), "{reason}");
        let old = Architecture::of_target_id("gfx906:xnack-").unsupported(64 * KIB).unwrap();
        assert!(old.starts_with("it is of gfx906, and there is code for gfx90a, "), "{old}");
        assert_eq!(Architecture::Nvidia { major: 8, minor: 7 }.unsupported(163 * KIB), None);
        assert_eq!(Architecture::of_target_id("gfx942:xnack-").unsupported(64 * KIB), None);
    }

    /// Some later GPUs have less shared memory than the first of their kin.
    #[test]
    fn a_gpu_gets_code_that_asks_for_no_more_shared_memory_than_it_has() {
        let all: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        let best = |(major, minor), kib| best(&all, &Architecture::Nvidia { major, minor }, kib * KIB);
        assert_eq!(best((8, 0), 163), Some("sm_80"));
        assert_eq!([best((8, 6), 99), best((8, 9), 99)], [Some("sm_86"), Some("sm_89")]);
        assert_eq!([best((12, 0), 99), best((12, 1), 99)], [Some("sm_120f"); 2]);
        // Code for a family doesn't run on a later one.
        assert_eq!(best((13, 0), 227), Some("sm_89"));
        assert_eq!([best((9, 0), 227), best((10, 0), 227)], [Some("sm_90a"), Some("sm_100a")]);
    }

    /// 8.7 has more shared memory than 8.9, and its code runs there.
    #[test]
    fn code_for_less_shared_memory_goes_before_code_for_a_later_gpu() {
        let ampere = TargetDesc::named("sm_86").unwrap();
        let runs_on = RunsOn::Capability { major: 8, minor: 7, reach: Reach::Later };
        let orin = TargetDesc { name: "sm_87", runs_on, shared_bytes: 163 * 1024, ..*ampere };
        let both = [*ampere, orin].map(|target| &*Box::leak(Box::new(target)));
        let best = |(major, minor), kib: u64| {
            let gpu = Architecture::Nvidia { major, minor };
            gpu.best_of(kib * KIB, both.into_iter(), |target| Some(target)).map(|target| target.name)
        };
        assert_eq!(best((8, 9), 99), Some("sm_86"));
        assert_eq!(best((8, 7), 163), Some("sm_87"));
        assert_eq!(best((9, 0), 227), Some("sm_87"));
        // What may fit is better than nothing.
        let of_orin = Architecture::Nvidia { major: 8, minor: 9 }.rank(&orin, 99 * KIB);
        assert!(of_orin.is_some());
    }

    #[test]
    fn an_amd_gpu_gets_the_code_of_its_processor() {
        let targets = ["cpu", "sm_80", "gfx90a", "gfx942", "gfx950"];
        let gfx942 = Architecture::of_target_id("gfx942:sramecc+:xnack-");
        assert_eq!(gfx942, Architecture::Amd("gfx942".to_owned()));
        let best = |gpu: &Architecture| best(&targets, gpu, 64 * KIB);
        assert_eq!(best(&gfx942), Some("gfx942"));
        assert_eq!(best(&Architecture::of_target_id("gfx1100")), None);
        assert_eq!(best(&Architecture::of_target_id("gfx90a:sramecc+:xnack-")), Some("gfx90a"));
    }
}
