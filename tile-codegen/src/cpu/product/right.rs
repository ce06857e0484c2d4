//! `b` as register blocks read it: packed in panels, or in place.
//!
//! Packing puts `b` in the order in which register blocks read it, and near, for each time that they do. A product with no
//! more rows than a register block reads each element once, so packing would be a needless copy: vectors are converted, and
//! rows that one instruction multiplies are interleaved, on their way to the registers. If the columns are contiguous in
//! memory, that is done for a few rows only ([`super::dots`]). Those that a loop computes in each turn, weights of 4 bits, say,
//! are then multiplied turn by turn.

use super::super::fuse::Fusion;
use super::super::region::Emitter;
use super::factor::{Factor, Strided, behind_transposition};
use super::plan::{OrderOfA, Plan};
use super::rows::Turns;
use crate::cpu::memory::buffer::Buffer;
use inkwell::IntPredicate;
use inkwell::values::{IntValue, VectorValue};
use tile_ir::kernel::OpData;

/// Rows of `a` for which columns that are lines of memory aren't transposed.
const FEW_ROWS: i64 = 4;

/// Rows of `b` that are read beside each other.
const ROWS_AT_ONCE: i64 = 8;

/// `b` of a product whose elements are read once.
pub(super) struct InPlace<'c> {
    from: Strided<'c>,
    /// Whether it is read where it is: all of it exists.
    pub(super) is_read: IntValue<'c>,
}

/// Where register blocks read `b`.
pub(super) enum Right<'c> {
    Packed(Buffer<'c>),
    /// Where it is, in rows that are lines of memory.
    Rows(Strided<'c>),
    /// Where it is, in columns that are.
    Columns(Strided<'c>),
}

impl<'c> InPlace<'c> {
    pub(super) fn right(&self) -> Right<'c> {
        let from = self.from.clone();
        if from.contiguous == 1 { Right::Rows(from) } else { Right::Columns(from) }
    }

    /// Steps along K that all register blocks multiply by before they go on, where these aren't all.
    ///
    /// Of one row of `a`, a row of `b` takes longer to come than its products take: where several register blocks share it, it
    /// is read from its begin to its end beside few others, as the processor foresees it. The sums go through the first cache
    /// meanwhile.
    pub(super) fn slice(&self, plan: &Plan) -> Option<i64> {
        let is_shared = self.from.contiguous == 1 && plan.m == 1 && plan.n > plan.block.width();
        is_shared.then(|| ROWS_AT_ONCE / plan.contraction.group())
    }
}

/// The columns of `b` that a register block reads.
pub(super) enum Panel<'c> {
    Packed(Buffer<'c>),
    /// Of rows, from this column on.
    Rows(Strided<'c>, IntValue<'c>),
}

/// Whether few rows read the columns of a `b` that is computed and stored where they are.
pub(super) fn reads_stored_columns(fusion: &Fusion<'_>, product: &OpData, plan: &Plan) -> bool {
    let [(_, a_lies_across), (b, is_transposed)] =
        [0, 1].map(|factor| behind_transposition(fusion, product.operands[factor]));
    let is_read = plan.m <= FEW_ROWS && !a_lies_across && has_whole_vectors(plan, 0);
    is_read && is_transposed && fusion.is_stored(b) && plan.contraction.tiles().is_none()
}

/// Whether a `b` that has neighbours along this axis is whole vectors.
fn has_whole_vectors(plan: &Plan, contiguous: usize) -> bool {
    plan.n % plan.block.lanes == 0 && plan.k % at_once(plan, contiguous) == 0
}

/// Steps along K that are read at once of a `b` that has neighbours along this axis.
fn at_once(plan: &Plan, contiguous: usize) -> i64 {
    let lanes = if contiguous == 1 { 1 } else { plan.block.lanes };
    lanes * plan.contraction.group()
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// `b` of a matrix where it is; `None` where it is packed.
    pub(super) fn b_in_place(
        &self,
        product: &OpData,
        plan: &Plan,
        matrix: IntValue<'c>,
    ) -> Option<InPlace<'c>> {
        match self.factor(product.operands[1], matrix, plan) {
            Factor::Strided(from) if self.reads_in_place(product, plan, from.contiguous) => {
                let is_read = self.is_all_there(&from, [plan.k, plan.n]);
                Some(InPlace { from, is_read })
            }
            _ => None,
        }
    }

    /// `b` of the multiplication of these turns of a loop where it is; `None` where it is packed.
    pub(super) fn b_of_turns_in_place(
        &mut self,
        product: &'a OpData,
        plan: &Plan,
        turns: Turns<'c>,
    ) -> Option<InPlace<'c>> {
        let contiguous = self.contiguous_axis_of(product.operands[1], plan)?;
        if !self.reads_in_place(product, plan, contiguous) {
            return None;
        }
        let (ir, rows) = (self.ir, self.rows_of_b(product, plan, turns)?);
        let rest = ir.urem(rows.depth, ir.i64(at_once(plan, contiguous)));
        let conditions = [
            rows.is_whole,
            ir.icmp(IntPredicate::EQ, rest, ir.i64(0)),
            ir.icmp(IntPredicate::UGT, rows.depth, ir.i64(0)),
        ];
        Some(InPlace { from: rows.from, is_read: ir.all(conditions) })
    }

    /// Whether a `b` may be read where it is that has neighbours along this axis: each element from memory once, in whole
    /// vectors, and columns beside rows that are lines as well. Tiles are read as they are packed alone.
    fn reads_in_place(&self, product: &OpData, plan: &Plan, contiguous: usize) -> bool {
        if plan.contraction.tiles().is_some() {
            return false;
        }
        let is_read_once = match contiguous {
            1 => plan.blocks_of_rows() == 1,
            _ => plan.m <= FEW_ROWS && self.order_of_a(product.operands[0], plan) == OrderOfA::ByRows,
        };
        has_whole_vectors(plan, contiguous) && is_read_once
    }

    /// The columns of `b` from one on that is the first of a panel.
    pub(super) fn panel_of(&self, right: &Right<'c>, plan: &Plan, column: IntValue<'c>) -> Panel<'c> {
        let ir = self.ir;
        match right {
            Right::Packed(buffer) => {
                let number = ir.udiv(column, ir.i64(plan.block.width()));
                Panel::Packed(self.buffers.further(buffer, ir.mul(number, ir.i64(plan.panel()))))
            }
            Right::Rows(from) => Panel::Rows(from.clone(), column),
            Right::Columns(_) => unreachable!("columns are multiplied without panels"),
        }
    }

    /// What of `b` register blocks multiply at once: at this step along K, the vector of this number.
    pub(super) fn load_right(
        &self,
        panel: &Panel<'c>,
        plan: &Plan,
        step: IntValue<'c>,
        vector: i64,
    ) -> VectorValue<'c> {
        let (ir, lanes, group) = (self.ir, plan.block.lanes, plan.contraction.group());
        match panel {
            Panel::Packed(buffer) => {
                let row = ir.mul(step, ir.i64(plan.block.width() * group));
                let at = ir.add(row, ir.i64(vector * lanes * group));
                self.buffers.load_lanes(buffer, at, None, (lanes * group) as u32)
            }
            Panel::Rows(from, column) => {
                let column = ir.add(*column, ir.i64(vector * lanes));
                self.joined_rows(from, plan, [ir.mul(step, ir.i64(group)), column])
            }
        }
    }

    /// Vectors of the rows that are multiplied at once, from this row on, joined as they are packed.
    pub(super) fn joined_rows(
        &self,
        from: &Strided<'c>,
        plan: &Plan,
        [row, column]: [IntValue<'c>; 2],
    ) -> VectorValue<'c> {
        let ir = self.ir;
        let lines = (0..plan.contraction.group()).map(|further| {
            let address = self.address_in(from, [ir.add(row, ir.i64(further)), column]);
            self.packed_vector(from, address, None, plan.block.lanes as u32, plan)
        });
        ir.interleaved(lines.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::Products;
    use crate::cpu::fuse::Fusion;
    use crate::llvm::Machine;
    use crate::options::Cpu;
    use crate::system::System;
    use tile_ir::target::CpuLevel;
    use tile_ir::{Instance, Op};

    /// Whether the factors of several turns are packed together of a product of so many rows by what is computed of bytes.
    fn is_packed(rows: usize) -> bool {
        let source =
            "kernel @k<M>(%x: tensor<m x k x f32>, %w: tensor<n x k x i8>, %y: mut tensor<m x n x f32>) {
  %vx = partition %x [M, 64] : partition<m x k x f32, [M, 64]>
  %vw = partition %w [32, 64] : partition<n x k x i8, [32, 64]>
  %vy = partition %y [M, 32] : mut partition<m x n x f32, [M, 32]>
  %i, %j = block_index %vy : index, index
  %zero = constant 0.0 : f32
  %none = constant 0 : i8
  %start = splat %zero : tile<M x 32 x f32>
  %first = constant 0 : index
  %end = extent ceil_div(k, 64) : index
  %sum = for %p = %first to %end carry (%acc = %start) : tile<M x 32 x f32> {
    %a = load_masked %vx[%i, %p] pad %zero : tile<M x 64 x f32>
    %bytes = load_masked %vw[%j, %p] pad %none : tile<32 x 64 x i8>
    %wide = cast %bytes : tile<32 x 64 x f32>
    %weights = exp %wide : tile<32 x 64 x f32>
    %b = permute %weights [1, 0] : tile<64 x 32 x f32>
    %next = mma %a, %b, %acc : tile<M x 32 x f32>
    yield %next
  }
  store_masked %vy, %sum
}
";
        let instance = Instance::parse(source, &[("M", rows)]).unwrap();
        let level = CpuLevel::named("x86-64-v4").unwrap();
        let machine = Machine::cpu(Cpu::Level(level), System::Elf).unwrap();
        let fusion = Fusion::of(&instance);
        let products = Products::of(&instance, &fusion, &machine);
        let product = instance.walk().into_iter().map(|op| instance.op(op)).find(|data| data.op == Op::Mma);
        products.is_accumulated(product.unwrap().results[0])
    }

    #[test]
    fn few_rows_read_the_columns_that_a_turn_computes() {
        assert_eq!([1, 4, 5, 64].map(is_packed), [false, false, true, true]);
    }
}
