//! Products of fewer rows than a matrix instruction has, as a few queries that share a head of keys are.
//!
//! With its factors exchanged an instruction has such rows as columns, which lie in lanes. Lanes beyond the last hold the
//! same rows once more: the product is done as if there were all, and takes no register for those that there aren't.

use super::MatrixInstruction;
use tile_layout::linear::{Dim, MatrixShape, Operand};

impl MatrixInstruction {
    /// The instruction with its factors exchanged, for a product of at most as many rows as it then has; `None` where they
    /// aren't a power of two, where some of the missing rows lie in registers, or where a table lacks the exchanged formats.
    pub(crate) fn with_few_rows(self, table: &[MatrixInstruction], rows: u64) -> Option<MatrixInstruction> {
        let exchanged = self.given_exchanged(table)?;
        let are_fewer = rows.is_power_of_two() && rows <= u64::from(exchanged.extents().m);
        let in_lanes = |operand| {
            let fragment = exchanged.fragment(operand);
            let row = |&flat: &u64| fragment.output_coordinate(flat, Dim::Axis(0));
            fragment.columns(Dim::Register).iter().all(|flat| row(flat) < rows)
        };
        (are_fewer && [Operand::A, Operand::Accumulator].into_iter().all(in_lanes)).then_some(exchanged)
    }

    /// Rows, columns and depth of the product that it does.
    pub fn extents(&self) -> MatrixShape {
        let MatrixShape { m, n, k } = self.shape;
        if self.exchanged { MatrixShape { m: n, n: m, k } } else { self.shape }
    }
}

#[cfg(test)]
mod tests {
    use super::super::TARGETS;
    use super::*;

    /// PTX ISA, "Matrix Fragments for mma.m16n8k16": of the accumulator, register `i` of lane `l` has row `l / 4 + i / 2 · 8`
    /// and column `l % 4 · 2 + i % 2` of what it is given to multiply.
    #[test]
    fn few_rows_are_columns_of_an_instruction() {
        let target = TARGETS.iter().find(|target| target.name == "sm_80").unwrap();
        let few = |rows| target.matrix[0].with_few_rows(target.matrix, rows);
        let exchanged = few(8).unwrap();
        assert_eq!(exchanged.extents(), MatrixShape { m: 8, n: 16, k: 16 });
        let sums = exchanged.fragment(Operand::Accumulator);
        for (register, lane) in (0..4).flat_map(|register| (0..32).map(move |lane| (register, lane))) {
            let (row, column) = (lane % 4 * 2 + register % 2, lane / 4 + register / 2 * 8);
            let found = sums.apply(&[(Dim::Register, register), (Dim::Lane, lane)]).unwrap();
            assert_eq!(found, [(Dim::Axis(0), row), (Dim::Axis(1), column)]);
        }
        // The second row is in a register.
        assert_eq!([1, 2, 3, 16].map(|rows| few(rows).is_some()), [false, true, false, false]);
    }

    #[test]
    fn rows_of_amd_are_all_in_lanes() {
        for target in TARGETS.iter().filter(|target| target.name.starts_with("gfx")) {
            let few = |it: &MatrixInstruction| it.with_few_rows(target.matrix, 1).is_some();
            assert!(target.matrix.iter().all(few), "{target}");
        }
    }
}
