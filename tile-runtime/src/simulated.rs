//! GPUs that this machine simulates, thread by thread: tensors are in the host's memory, a launch runs the code that the GPU
//! would get, and what a GPU may punish or not, a race, an access outside or a missing wait, is an error of the launch.
//!
//! There is one such device per GPU target. Compiling and running take the compiler, feature `jit`.

use crate::error::{Error, Result};
use std::fmt;
use tile_ir::TargetDesc;
use tile_ir::target::{Family, TARGETS};

/// What the names of these devices begin with.
pub(crate) const PREFIX: &str = "simulated:";

/// Bytes that nobody has behind each tensor, so that an access a little outside one isn't an access of another.
pub(crate) const SPACE_BEHIND: usize = 4 << 10;

/// A GPU that is simulated.
#[derive(Clone, Copy)]
pub(crate) struct Simulated {
    target: &'static TargetDesc,
    /// Its number among the targets.
    position: usize,
}

impl Simulated {
    /// The GPU that runs a target's code.
    ///
    /// # Errors
    /// [`Error::NoDevice`] for another name, or without the compiler.
    pub(crate) fn of(name: &str) -> Result<Simulated> {
        if !cfg!(feature = "jit") {
            return Err(Simulated::without_compiler(name));
        }
        let gpus = || TARGETS.iter().enumerate().filter(|(_, target)| target.family != Family::Cpu);
        let found = gpus().find(|(_, target)| target.name == name);
        let (position, target) = found.ok_or_else(|| {
            let names: Vec<&str> = gpus().map(|(_, target)| target.name).collect();
            let reason = format!("the targets that can be simulated are {}", names.join(", "));
            Error::NoDevice { device: format!("{PREFIX}{name}"), reason }
        })?;
        Ok(Simulated { target, position })
    }

    fn without_compiler(name: &str) -> Error {
        let reason = "simulating a GPU takes the compiler: switch the feature `jit` on".to_owned();
        Error::NoDevice { device: format!("{PREFIX}{name}"), reason }
    }

    pub(crate) fn target(&self) -> &'static TargetDesc {
        self.target
    }

    /// A number that no other device has: others count from 0 on.
    pub(crate) fn number(&self) -> usize {
        usize::MAX - self.position
    }

    /// The name that [`crate::Device::named`] takes.
    pub(crate) fn name(&self) -> String {
        format!("{PREFIX}{}", self.target.name)
    }
}

impl fmt::Debug for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

pub(crate) use code::SimulatedCode;

#[cfg(feature = "jit")]
mod code {
    use super::{Error, PREFIX, Result, TargetDesc};
    use crate::error::SimulatedBlock;
    use crate::{journal, progress};
    use tile_codegen::simt::{self, RunError, SimtKernel};
    use tile_ir::Instance;
    use tile_ir::abi::LaunchSizes;
    use tile_layout::multi_index;

    /// A kernel's code for a GPU that is simulated.
    pub(crate) struct SimulatedCode {
        code: SimtKernel,
        /// For errors.
        target: &'static TargetDesc,
        file: String,
    }

    // SAFETY: what LLVM has of a kernel isn't touched once its code is made; a run calls the code, which is memory that
    // nobody writes, and keeps what changes on its own stack.
    unsafe impl Send for SimulatedCode {}
    // SAFETY: as above.
    unsafe impl Sync for SimulatedCode {}

    impl SimulatedCode {
        /// Compiles an instance, or a variant of it.
        ///
        /// # Errors
        /// [`Error::Compile`].
        pub(crate) fn compile(instance: &Instance, target: &'static TargetDesc) -> Result<SimulatedCode> {
            let title = || journal::title(instance, &format!("{PREFIX}{}", target.name));
            let code = progress::told(title, || simt::compile(instance, target, None));
            let code = code.map_err(|error| Error::Compile {
                kernel: instance.name.clone(),
                message: error.to_string(),
            })?;
            Ok(SimulatedCode { code, target, file: instance.file.clone() })
        }

        /// Runs every block, one after the other as long as none waits for another.
        ///
        /// # Safety
        /// The slots are what the kernel's ABI says, of tensors that nobody else uses meanwhile.
        ///
        /// # Errors
        /// [`Error::Simulation`] with the first fault, [`Error::TensorMap`] for a tensor that the GPU couldn't copy,
        /// [`Error::Refused`] for a grid that it hasn't, and where the host has no stacks for its threads.
        pub(crate) unsafe fn run(&self, kernel: &str, slots: &[u64], bound: &LaunchSizes) -> Result<()> {
            // SAFETY: the caller vouches for the slots.
            let run = unsafe { self.code.run(slots, bound.blocks() as u64) };
            run.map(drop).map_err(|error| match error {
                RunError::TensorMap(error) => Error::TensorMap(error),
                RunError::Fault(fault) => Error::Simulation {
                    kernel: kernel.to_owned(),
                    target: self.target.name,
                    block: match self.code.place_of(fault.block) {
                        Some(place) => SimulatedBlock::Index(multi_index(place as usize, &bound.grid)),
                        None => SimulatedBlock::Number(fault.block),
                    },
                    place: fault.place.in_file(&self.file),
                    problem: format!("thread {}: {}", fault.thread, fault.problem),
                },
                refused @ (RunError::Clusters { .. } | RunError::Grid { .. } | RunError::Stacks { .. }) => {
                    Error::Refused { kernel: kernel.to_owned(), problem: refused.to_string() }
                }
            })
        }
    }
}

#[cfg(all(test, feature = "jit"))]
mod tests {
    use super::*;
    use crate::journal::tests::events;
    use crate::progress::tests::without_patience;
    use std::fmt::Write;
    use tile_ir::Instance;

    /// So many sorts take the compiler some hundred milliseconds.
    #[test]
    #[cfg_attr(miri, ignore = "it compiles")]
    fn a_long_compilation_is_told_of() {
        let mut source = "kernel @sorted(%x: tensor<8192 x f32>, %y: mut tensor<8192 x f32>) {
  %vx = partition %x [8192] : partition<8192 x f32, [8192]>
  %vy = partition %y [8192] : mut partition<8192 x f32, [8192]>
  %i = block_index %vy : index
  %0 = load %vx[%i] : tile<8192 x f32>
"
        .to_owned();
        for sorted in 0..20 {
            let next = sorted + 1;
            let _ = writeln!(
                source,
                "  %s{next}, %p{next} = sort %{sorted} axis 0 : tile<8192 x f32>, tile<8192 x i32>
  %{next} = mul %s{next}, %0 : tile<8192 x f32>"
            );
        }
        source.push_str("  store %vy, %20\n}");
        let instance = Instance::parse(&source, &[]).unwrap();
        let compile = || SimulatedCode::compile(&instance, TargetDesc::named("sm_80").unwrap());
        let (told, code) = without_patience(|| events(compile));
        assert!(code.is_ok());
        assert_eq!(told, "INFO: compiling `sorted` for simulated:sm_80 takes longer than 0.001 s\n");
    }
}

/// Without the compiler there is no such device, and no code for one.
#[cfg(not(feature = "jit"))]
mod code {
    use super::{Result, Simulated, TargetDesc};
    use tile_ir::Instance;
    use tile_ir::abi::LaunchSizes;

    pub(crate) enum SimulatedCode {}

    impl SimulatedCode {
        pub(crate) fn compile(_: &Instance, target: &'static TargetDesc) -> Result<SimulatedCode> {
            Err(Simulated::without_compiler(target.name))
        }

        /// # Safety
        /// Nobody has code to run.
        pub(crate) unsafe fn run(&self, _: &str, _: &[u64], _: &LaunchSizes) -> Result<()> {
            match *self {}
        }
    }
}
