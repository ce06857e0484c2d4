//! The order of the instructions of a product, said to LLVM's scheduler of AMD's GPUs.
//!
//! Left alone, it puts reads of shared memory right before the products that need them, which then wait for each; or
//! early, where they occupy registers. Groups of instructions name an order, and a fence keeps one product's groups from
//! taking instructions of another. Neither changes what code computes (LLVM's AMDGPU usage guide,
//! `llvm.amdgcn.sched.group.barrier`, `llvm.amdgcn.sched.barrier`).

use super::matrix::Step;
use crate::emit::{Ir, Value};
use crate::gpu::targets::dialect::Device;

/// Instructions of a group, as bits of its mask.
const PRODUCTS: u64 = 0x8;
const SHARED_READS: u64 = 0x100;

impl Device {
    /// Asks that every step's reads come before the products of the step before, where the target's scheduler takes
    /// such wishes. To be called where the product was just emitted.
    pub(in crate::gpu) fn read_a_step_ahead(&self, ir: &Ir<'_>, steps: &[Step]) {
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
}
