//! Which devices run a target's code.

/// Which devices run a target's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunsOn {
    /// This machine's processor.
    Host,
    /// NVIDIA's GPUs by compute capability (PTX ISA, ".target").
    Capability {
        /// 9 of 9.0.
        major: i32,
        /// 0 of 9.0.
        minor: i32,
        /// Which others run it.
        reach: Reach,
    },
    /// GPUs whose driver calls them what the target is called.
    Processor,
}

/// Which GPUs besides those of its own compute capability run a target's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// All later ones: `sm_80`.
    Later,
    /// Later ones of its family, which have the same major number: `sm_120f`.
    Family,
    /// None: `sm_90a`.
    Alone,
}

impl RunsOn {
    pub(super) const fn since(major: i32, minor: i32) -> RunsOn {
        RunsOn::Capability { major, minor, reach: Reach::Later }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Family, TARGETS};

    /// Compilers go by the name and launches by the field.
    #[test]
    fn a_target_is_called_what_it_runs_on() {
        for target in TARGETS {
            let (family, called) = match target.runs_on {
                RunsOn::Host => (Family::Cpu, String::from("cpu")),
                RunsOn::Processor => (Family::Amdgpu, target.name.to_owned()),
                RunsOn::Capability { major, minor, reach } => {
                    let suffix = match reach {
                        Reach::Later => "",
                        Reach::Family => "f",
                        Reach::Alone => "a",
                    };
                    (Family::Nvptx, format!("sm_{major}{minor}{suffix}"))
                }
            };
            assert_eq!((target.family, target.name), (family, called.as_str()));
        }
    }
}
