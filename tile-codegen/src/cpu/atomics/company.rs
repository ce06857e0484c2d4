//! Whether other threads come to the elements that an atomic operation changes: not where one thread runs a launch, and not
//! where a tensor's updates go to memory of the thread's own first ([`super::privatized`]). Both are known when a range of
//! blocks begins, so operations are emitted twice, with and without company.
//!
//! Alone, an addition of f32 takes a load, an addition and a store, where an atomic one compares and exchanges, ten times as
//! long; what it amounts to, and in which order, is the same.

use super::Access;
use crate::cpu::memory::gathered::Gathered;
use crate::cpu::region::Emitter;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::ops::{Atomic, AtomicKind, Scope};

/// Whether an operation reads and changes elements that nobody beyond the launch may see meanwhile.
pub(super) fn is_of_the_launch(atomic: &Atomic) -> bool {
    let reads_and_changes = !matches!(atomic.kind, AtomicKind::Load | AtomicKind::Store);
    reads_and_changes && atomic.scope != Scope::System
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Emits an operation for a range of blocks whose thread has the elements for itself, and for any other one.
    pub(super) fn in_each_company(
        &mut self,
        access: &Access<'a, 'c>,
        emit: &mut dyn FnMut(&mut Self, &Access<'a, 'c>),
    ) {
        if !is_of_the_launch(&access.atomic) {
            return emit(self, access);
        }
        let (is_alone, base) = self.own_elements(access);
        let tensor = Gathered { base, ..access.tensor.clone() };
        let alone = Access { tensor, is_alone: true, ..access.clone() };
        let ir = self.ir;
        ir.on_each_side(is_alone, |is_alone| emit(self, if is_alone { &alone } else { access }));
    }

    /// Whether the thread has the tensor's elements for itself, and where they lie then.
    fn own_elements(&self, access: &Access<'a, 'c>) -> (IntValue<'c>, PointerValue<'c>) {
        match self.entry.owns.get(&access.tensor.argument) {
            Some(own) => (own.is_used, own.first),
            None => (self.entry.is_alone, access.tensor.base),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::compiled::assembly;
    use tile_ir::Instance;

    /// An update of elements that a tile of indices names, and of as many in rows, whose results nobody uses.
    fn code(update: &str) -> String {
        let source = format!(
            "kernel @k(%i: tensor<n x i32>, %x: tensor<n x f32>, %grid: mut tensor<n x f32>, %y: mut tensor<b x c x f32>) {{
  %vi = partition %i [64] : partition<n x i32, [64]>
  %vx = partition %x [64] : partition<n x f32, [64]>
  %vg = partition %grid [64] : mut partition<n x f32, [64]>
  %b = block_index %vg : index
  %none = constant -1 : i32
  %at = load_masked %vi[%b] pad %none : tile<64 x i32>
  %zero = constant 0.0 : f32
  %t = load_masked %vx[%b] pad %zero : tile<64 x f32>
  %columns = iota 0 : tile<64 x i32>
  %r = cast %b : i32
  %row = splat %r : tile<64 x i32>
  %old = atomic {update} : tile<64 x f32>
  store_masked %vg, %t
}}
"
        );
        assembly(&Instance::parse(&source, &[]).unwrap(), "x86-64-v3")
    }

    /// A thread that is alone adds by an instruction that reads memory, and rows by vectors.
    #[test]
    fn updates_alone_are_loads_and_stores() {
        let scattered = code("add acq_rel device %y[%row, %at], %t");
        assert_eq!(scattered.matches("cmpxchg").count(), 1, "{scattered}");
        assert!(scattered.matches("vaddss").count() > 1, "{scattered}");
        let rows = code("add acq_rel device %y[%row, %columns], %t");
        assert!(rows.contains("vaddps\t("), "{rows}");
        let system = code("add acq_rel system %y[%row, %columns], %t");
        assert!(!system.contains("vaddps"), "others may look on: {system}");
    }
}
