//! What an instance becomes in code for a level, as the tests of emitters look at it.

use super::emit;
use crate::llvm::Machine;
use crate::options::Cpu;
use crate::system::System;
use inkwell::context::Context;
use inkwell::targets::FileType;
use tile_ir::Instance;
use tile_ir::abi::Launch;
use tile_ir::target::CpuLevel;

/// The machine of a level, by its name.
pub(super) fn machine(level: &str) -> Machine {
    Machine::cpu(Cpu::Level(CpuLevel::named(level).unwrap()), System::Elf).unwrap()
}

/// The instructions, one to a line.
pub(super) fn assembly(instance: &Instance, level: &str) -> String {
    let (context, machine) = (Context::create(), machine(level));
    let (module, _) = emit(&context, instance, &machine, "k").unwrap();
    String::from_utf8(machine.emit("k", &module, FileType::Assembly).unwrap()).unwrap()
}

/// What launches of it need.
pub(super) fn launch(instance: &Instance, level: &str) -> Launch {
    let context = Context::create();
    emit(&context, instance, &machine(level), "k").unwrap().1
}
