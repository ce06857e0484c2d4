//! Choices of a compilation that don't change what the kernel means.

use crate::symbol;
use crate::system::System;
use tile_ir::target::{CpuLevel, Family};
use tile_ir::{Instance, cpu, passes};

/// The instruction set that CPU code may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Cpu {
    /// Everything that the machine running the compiler has.
    #[default]
    Host,
    /// What processors of a level have: of any architecture, whichever the compiler runs on.
    Level(&'static CpuLevel),
}

impl Cpu {
    /// The level's name; `host` for the host.
    pub const fn name(self) -> &'static str {
        match self {
            Cpu::Host => "host",
            Cpu::Level(level) => level.name,
        }
    }
}

/// Options of a compilation.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Options {
    /// The entry's symbol; the kernel's name if absent. Objects that are linked together need distinct ones. Letters that
    /// aren't ASCII become numbers: [`crate::Artifact::symbol`] is the symbol as code has it.
    pub symbol: Option<String>,
    /// The instruction set of CPU code.
    pub cpu: Cpu,
    /// The operating system that CPU code runs on; the compiler's own if nothing else is said.
    pub system: System,
    /// Emits the instance as it is, without [`tile_ir::passes`]: code with and without them must agree.
    pub skip_passes: bool,
}

impl Options {
    /// The instance that is emitted for targets of a family.
    pub(crate) fn prepared(&self, instance: &Instance, family: Family) -> Instance {
        match family {
            _ if self.skip_passes => instance.clone(),
            Family::Cpu => cpu::widened_late(passes::optimize(instance.clone())),
            Family::Nvptx | Family::Amdgpu => passes::optimize(instance.clone()),
        }
    }

    /// The entry's symbol for a kernel of this name.
    pub(crate) fn symbol_of(&self, kernel: &str) -> String {
        symbol::of_name(self.symbol.as_deref().unwrap_or(kernel))
    }
}
