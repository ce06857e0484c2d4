//! Products of a few rows and columns that are contiguous in memory.
//!
//! Register blocks read rows of `b`, so such columns are transposed when they are packed, which takes as many shuffles as
//! the products of several rows of a block. Where fewer rows than that are multiplied by them, a row and a column are
//! multiplied along K instead: the lanes of a vector sum up the products of neighbouring elements, and are added up at the
//! end. Rows are taken one after the other for each vector of columns, which is in the first cache from the second row on.

use super::super::region::Emitter;
use super::Needed;
use super::block::Product;
use super::factor::Strided;
use super::left::LeftRow;
use super::sums::SumsBlock;
use crate::emit::{LoopHint, Value, vector_type};
use inkwell::values::IntValue;

impl<'c> Emitter<'_, 'c> {
    /// Multiplies the rows by whole vectors of columns, as many as are needed, as deep as they are: whole vectors as well.
    pub(super) fn dots(&self, product: &Product<'_, 'c>, b: &Strided<'c>, needed: Needed<'c>) {
        let (ir, lanes) = (self.ir, product.plan.block.lanes);
        let columns = (ir.i64(0), needed.columns, ir.i64(lanes));
        ir.each(columns, LoopHint::Rolled, |column| {
            ir.each((ir.i64(0), needed.rows, ir.i64(1)), LoopHint::Rolled, |row| {
                self.dots_of_row(product, b, [row, column]);
            });
        });
    }

    /// Multiplies a row by a vector of columns.
    fn dots_of_row(&self, product: &Product<'_, 'c>, b: &Strided<'c>, place: [IntValue<'c>; 2]) {
        let (ir, lanes) = (self.ir, product.plan.block.lanes);
        let block = SumsBlock { place, rows: 1, has_last_row: None, vectors: 1, last: lanes };
        let first = self.first_sums(product.sums, block)[0].into_vector_value();
        self.ask_for_sums(product.sums, block);
        let zeros = vec![first.get_type().const_zero().into(); lanes as usize];
        let range = (product.steps[0], product.steps[1], ir.i64(lanes));
        let row = &self.rows_of_left(&product.a, place[0], 1)[0];
        let partial = ir.hinted_loop(range, LoopHint::Rolled, &zeros, |step, sums| {
            self.step_of_dots(product, row, b, step, place[1], sums)
        });
        let partial = partial.into_iter().map(|sums| sums.into_vector_value()).collect();
        let sums = ir.transposed(partial).into_iter().fold(first, |all, sums| self.sum(all, sums));
        let sums = self.with_sums_in_memory(product.sums, block, vec![sums.into()]);
        self.store_sums(product.sums, block, &sums);
    }

    /// A vector of the row times one of each column from the first on.
    fn step_of_dots(
        &self,
        product: &Product<'_, 'c>,
        row: &LeftRow<'c>,
        b: &Strided<'c>,
        step: IntValue<'c>,
        first: IntValue<'c>,
        sums: &[Value<'c>],
    ) -> Vec<Value<'c>> {
        let (ir, plan) = (self.ir, product.plan);
        let (lanes, group) = (plan.block.lanes, plan.contraction.group());
        let vector = vector_type(self.word_of(product), lanes as u32).into();
        let a = self.load_left(row, vector, step).into_vector_value();
        let products = sums.iter().zip(0..).map(|(sum, further)| {
            let place = [ir.mul(step, ir.i64(group)), ir.add(first, ir.i64(further))];
            let b = self.packed_vector(b, self.address_in(b, place), None, (lanes * group) as u32, plan);
            self.add_product(plan, [a, b], sum.into_vector_value()).into()
        });
        products.collect()
    }
}
