//! The order of the instructions of a product, said to LLVM's scheduler of AMD's GPUs.
//!
//! Left alone, it puts reads of shared memory right before the products that need them, which then wait for each; or
//! early, where they occupy registers. Groups of instructions name an order, and a fence keeps one product's groups from
//! taking instructions of another. Neither changes what code computes (LLVM's AMDGPU usage guide,
//! `llvm.amdgcn.sched.group.barrier`, `llvm.amdgcn.sched.barrier`). The hardware, which has several waves to choose
//! from, is told that one which multiplies goes first.

use super::dialect::Device;
use super::matrix::Step;
use crate::emit::{Ir, Value};

/// The priorities of waves that are told: of those that multiply, and of others.
const MULTIPLIES: u64 = 1;
const USUAL: u64 = 0;

/// Instructions of a group, as bits of its mask.
const PRODUCTS: u64 = 0x8;
const SHARED_READS: u64 = 0x100;

impl Device {
    /// Asks that every step's reads come before the products of the step before, where the target's scheduler takes
    /// such wishes. To be called where the product was just emitted.
    pub(super) fn read_a_step_ahead(&self, ir: &Ir<'_>, steps: &[Step]) {
        if !self.takes_groups || steps.iter().all(|step| step.reads == 0) {
            return;
        }
        let number = |number: u64| Value::from(ir.context.i32_type().const_int(number, false));
        let group = |mask: u64, size: usize| {
            if size > 0 {
                let operands = [number(mask), number(size as u64), number(0)];
                ir.intrinsic("llvm.amdgcn.sched.group.barrier", &[], &operands);
            }
        };
        group(SHARED_READS, steps[0].reads);
        for (i, step) in steps.iter().enumerate() {
            group(SHARED_READS, steps.get(i + 1).map_or(0, |next| next.reads));
            group(PRODUCTS, step.products);
        }
        ir.intrinsic("llvm.amdgcn.sched.barrier", &[], &[number(0)]);
    }

    /// From here on this wave goes before others of its SIMD, where that is wanted and the target takes such wishes: they
    /// read memory while it multiplies (CDNA 3 ISA manual, "S_SETPRIO"; a wave begins with priority 0).
    pub(super) fn prefer(&self, ir: &Ir<'_>, is_wanted: bool) {
        self.set_priority(ir, is_wanted, MULTIPLIES);
    }

    /// Ends what [`Self::prefer`] began.
    pub(super) fn prefer_no_more(&self, ir: &Ir<'_>, is_wanted: bool) {
        self.set_priority(ir, is_wanted, USUAL);
    }

    fn set_priority(&self, ir: &Ir<'_>, is_wanted: bool, priority: u64) {
        if self.takes_groups && is_wanted {
            let priority = Value::from(ir.context.i16_type().const_int(priority, false));
            ir.intrinsic("llvm.amdgcn.s.setprio", &[], &[priority]);
        }
    }
}
