//! Factors that consumers bring to shared memory: they write what they hold where a copy would have left it. Before warpgroups
//! multiply by a right factor, they wait for each other; left ones are for tensor memory ([`super::tensor_memory`]).
//!
//! Of two stages one is written while the product of the turn before reads the other. Who writes a stage for the second time
//! has met all others since they waited for the product that read it.

use crate::emit::Value;
use crate::gpu::coordinates::Linear;
use crate::gpu::pipeline::ring::Ring;
use crate::gpu::region::Emitter;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::gpu::pipeline::{BroughtRight, WrittenBy};
use tile_ir::gpu::{MatrixMove, WIDEST};
use tile_ir::{OpId, RegionId, ValueId};
use tile_layout::linear::Distribution;

impl<'a, 'c> Emitter<'a, 'c> {
    /// Brings a right factor to shared memory. Where `running` is the body of a loop whose product goes on, that of the turn before
    /// is waited for, and its stage of the ring left.
    pub(in crate::gpu) fn bring_right(&self, number: usize, op: OpId, running: Option<RegionId>) {
        let brought = &self.scheduled.pipelines().brought_right()[number];
        let right = self.instance.op(op).operands[1];
        let await_product_before = || {
            running.into_iter().for_each(|turn| self.await_turn_before(turn, op, 0));
        };
        if brought.stages == 1 {
            await_product_before();
            self.sync();
            self.write_right(number, brought, right);
        } else {
            self.write_right(number, brought, right);
            await_product_before();
        }
        self.sync();
    }

    /// The first byte of this turn's stage, from the beginning of shared memory, an i32.
    pub(in crate::gpu) fn place_of_right(&self, number: usize) -> IntValue<'c> {
        let (ir, brought) = (self.ir, &self.scheduled.pipelines().brought_right()[number]);
        let first = self.i32(brought.place);
        match brought.stages {
            1 => first,
            _ => ir.add(ir.mul(self.state(Ring::Right(number)).stage, self.i32(brought.stage_bytes)), first),
        }
    }

    fn write_right(&self, number: usize, brought: &BroughtRight, right: ValueId) {
        let ir = self.ir;
        let written = brought.written.as_ref().expect("scheduled: it is known how it is written");
        let begin = ir.element(ir.int_type(8).into(), self.shared, self.place_of_right(number));
        let byte = |position: &[u64]| written.byte(position[0], position[1]);
        match &written.by {
            WrittenBy::Runs(runs) => {
                let address = self.addresses_in(begin, 0, self.scheduled.distribution(right), byte);
                let fragment = self.tile(right);
                self.where_it_holds(self.mapping(right).is_owner(), || {
                    for slots in runs.slots() {
                        let values: Vec<Value<'c>> = slots.iter().map(|&slot| fragment.get(slot)).collect();
                        ir.store_group(address(slots[0]), self.dtype(right), &values);
                    }
                });
            }
            WrittenBy::Matrices(matrices) => {
                let address = self.addresses_in(begin, 0, matrices.rows(), byte);
                self.write_matrices(right, matrices, address);
            }
        }
        // Tensor cores read what threads wrote (PTX ISA, "Async proxy").
        ir.intrinsic("llvm.nvvm.fence.proxy.async.shared_cta", &[], &[]);
    }

    /// Writes a tile to shared memory by matrix stores, whose rows begin at these slots' addresses.
    pub(super) fn write_matrices(
        &self,
        tile: ValueId,
        matrices: &MatrixMove,
        address: impl Fn(u64) -> PointerValue<'c>,
    ) {
        let (ir, fragment, dtype) = (self.ir, self.tile(tile), self.dtype(tile));
        let (row, width) = (WIDEST / dtype.bytes() as u64, matrices.width());
        for (group, first) in (0..).zip((0..matrices.rows().slots()).step_by(row as usize)) {
            let slots = group * width..(group + 1) * width;
            let values: Vec<Value<'c>> = slots.map(|slot| fragment.get(slot)).collect();
            let words = ir.words(&values, dtype);
            self.dialect.store_matrices(ir, address(first), &words, matrices.transposed);
        }
    }

    /// Where slots of a distribution of a factor lie, which begins so many bytes behind an address, and whose positions are at
    /// these bytes of it.
    pub(super) fn addresses_in<'d>(
        &'d self,
        begin: PointerValue<'c>,
        skipped: u64,
        distribution: &'d Distribution,
        byte: impl Fn(&[u64]) -> u64 + 'd,
    ) -> impl Fn(u64) -> PointerValue<'c> + 'd {
        let ir = self.ir;
        let bits: Vec<u64> = distribution.thread_bits().map(&byte).collect();
        let own = Linear::of(ir, self.running_thread(), &bits);
        move |slot| {
            let place = own.at(ir, byte(&distribution.place(slot, 0)), skipped).value(ir);
            ir.element(ir.int_type(8).into(), begin, place)
        }
    }
}
