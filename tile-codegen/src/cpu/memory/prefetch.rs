//! Prefetches: one instruction per cache line of each row of a tile that exists.

use crate::cpu::LINE_BYTES;
use crate::cpu::region::Emitter;
use crate::emit::LoopHint;
use crate::emit::prefetch::Rows;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::kernel::OpData;

impl<'a, 'c> Emitter<'a, 'c> {
    pub(in crate::cpu) fn prefetch(&mut self, data: &OpData) {
        let rows = self.rows(data);
        let space: Vec<i64> = rows.space().iter().map(|&extent| extent as i64).collect();
        self.nest(&space, &mut |emitter, row| emitter.prefetch_row(&rows, row));
    }

    fn prefetch_row(&self, rows: &Rows<'c>, row: &[IntValue<'c>]) {
        let ir = self.ir;
        let (start, bytes) = rows.range(ir, row);
        let skipped = ir.line_offset(start, LINE_BYTES.into());
        let any = ir.icmp(IntPredicate::NE, bytes, ir.i64(0));
        let end = ir.select_int(any, ir.add(bytes, skipped), ir.i64(0));
        let first = ir.bytes_further(start, ir.sub(ir.i64(0), skipped));
        ir.each((ir.i64(0), end, ir.i64(LINE_BYTES.into())), LoopHint::Free, |at| {
            ir.prefetch(ir.bytes_further(first, at));
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::compiled::assembly;
    use tile_ir::Instance;

    fn code(prefetch: &str, level: &str) -> String {
        let source = format!(
            "kernel @k(%x: tensor<64 x 64 x f32>, %y: mut tensor<8 x f32>) {{
  %vx = partition %x [8, 16] : partition<64 x 64 x f32, [8, 16]>
  %vy = partition %y [8] : mut partition<8 x f32, [8]>
  %i = block_index %vy : index
  %zero = constant 0.0 : f32
{prefetch}  %t = splat %zero : tile<8 x f32>
  store %vy, %t
}}
"
        );
        assembly(&Instance::parse(&source, &[]).unwrap(), level)
    }

    #[test]
    fn native_code_has_prefetches_where_the_kernel_has() {
        for (level, instruction) in [("x86-64-v3", "prefetcht0"), ("armv8-a", "prfm\tpldl1keep")] {
            assert!(code("  prefetch %vx[%i, %i]\n", level).contains(instruction), "{level}");
            let without = code("", level);
            assert!(!without.contains("prefetch") && !without.contains("prfm"), "{level}");
        }
    }
}
