//! Prefetches: the lines of a tile's rows are dealt to the threads of a block; or the rows, where its view asks for
//! copies of whole rows and the target has them.

use crate::gpu::coordinates::{quotient, remainder};
use crate::gpu::region::Emitter;
use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::kernel::OpData;
use tile_ir::{Op, ValueId};

/// What the address and the size of a copy of a row must be multiples of.
const ROW_ALIGNMENT: u64 = 16;

impl<'c> Emitter<'_, 'c> {
    pub(in crate::gpu) fn prefetch(&self, data: &OpData) {
        let Some(line_bytes) = self.dialect.prefetch_line() else { return };
        let (ir, rows) = (self.ir, self.rows(data));
        let (space, lines) = (rows.space(), rows.lines(line_bytes));
        let whole_rows = self.target.bulk_prefetch && self.wants_whole_rows(data.operands[0]);
        let pieces = if whole_rows { 1 } else { lines };
        let count = space.iter().product::<u64>().saturating_mul(pieces);
        // What is larger comes near to nothing.
        if i32::try_from(count).is_err() {
            return;
        }
        let bounds = (self.running_thread(), self.i32(count), self.i32(self.thread_count()));
        ir.for_loop(bounds, &[], |piece, _| {
            let row = self.row_index(quotient(ir, piece, pieces), &space);
            let (start, bytes) = rows.range(ir, &row);
            if whole_rows {
                self.prefetch_row(start, bytes, line_bytes, lines);
            } else {
                let line = ir.resize(remainder(ir, piece, pieces), 64, false);
                self.prefetch_line(start, bytes, line_bytes, line);
            }
            Vec::new()
        });
    }

    fn wants_whole_rows(&self, view: ValueId) -> bool {
        let view = self.instance.definition(view).expect("verified: a view is made by `partition`");
        matches!(&view.op, Op::Partition(cut) if cut.hints.bulk_copy == Some(true))
    }

    /// The index of a row by its number, an i32.
    fn row_index(&self, number: IntValue<'c>, space: &[u64]) -> Vec<IntValue<'c>> {
        let mut rest = number;
        let mut row = vec![self.ir.i64(0); space.len()];
        for (place, &extent) in row.iter_mut().zip(space).rev() {
            *place = self.ir.resize(remainder(self.ir, rest, extent), 64, false);
            rest = quotient(self.ir, rest, extent);
        }
        row
    }

    /// Asks for one of the lines that a range of bytes lies in, if it lies in so many.
    fn prefetch_line(
        &self,
        start: PointerValue<'c>,
        bytes: IntValue<'c>,
        line_bytes: u64,
        line: IntValue<'c>,
    ) {
        let ir = self.ir;
        let skipped = ir.line_offset(start, line_bytes);
        let at = ir.mul(line, ir.i64(line_bytes as i64));
        let any = ir.icmp(IntPredicate::NE, bytes, ir.i64(0));
        let here = ir.and(any, ir.icmp(IntPredicate::ULT, at, ir.add(bytes, skipped)));
        ir.if_then(here, || {
            self.dialect.prefetch(ir, ir.bytes_further(start, ir.sub(at, skipped)), None);
        });
    }

    /// Asks for a range of bytes at once if it is aligned, line by line otherwise.
    fn prefetch_row(&self, start: PointerValue<'c>, bytes: IntValue<'c>, line_bytes: u64, lines: u64) {
        let ir = self.ir;
        let (zero, last) = (ir.i64(0), ir.i64(ROW_ALIGNMENT as i64 - 1));
        let begin = ir.icmp(IntPredicate::EQ, ir.line_offset(start, ROW_ALIGNMENT), zero);
        let end = ir.icmp(IntPredicate::EQ, ir.and(bytes, last), zero);
        let any = ir.icmp(IntPredicate::NE, bytes, zero);
        let at_once = || {
            self.dialect.prefetch(ir, start, Some(ir.resize(bytes, 32, false)));
            Vec::new()
        };
        let by_line = || {
            ir.for_loop((zero, ir.i64(lines as i64), ir.i64(1)), &[], |line, _| {
                self.prefetch_line(start, bytes, line_bytes, line);
                Vec::new()
            })
        };
        ir.if_then(any, || drop(ir.if_else(ir.and(begin, end), at_once, by_line)));
    }
}
