//! What a kernel prints and asserts: one record of the log at a time.

use super::region::Emitter;
use crate::emit::Value;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::ValueId;
use tile_ir::kernel::OpData;
use tile_ir::log::Site;

impl<'a, 'c> Emitter<'a, 'c> {
    pub(super) fn say(&mut self, data: &'a OpData) {
        let (ir, log) = (self.ir, self.log.expect("a kernel that says something has a log"));
        let site = Site::of(self.instance, data).expect("the op says something");
        if site.condition.is_none() {
            return self.record(&site, &data.operands, None);
        }
        let (condition, values) =
            data.operands.split_first().expect("verified: an assertion has a condition");
        let (fails, position) = self.first_false(*condition);
        ir.if_then(fails, || {
            log.count_failure(ir);
            self.record(&site, values, Some(position));
        });
    }

    /// Whether an element of a condition is false, and the position of the first.
    fn first_false(&mut self, condition: ValueId) -> (IntValue<'c>, IntValue<'c>) {
        let ir = self.ir;
        let none = ir.i64(self.count_of(condition));
        let first = self.through(condition, &[none.into()], |_, position, holds, carried| {
            let first = carried[0].into_int_value();
            let is_first = ir.icmp(IntPredicate::EQ, first, none);
            let fails = ir.xor(holds.into_int_value(), ir.bool(true));
            vec![ir.select(ir.and(is_first, fails), position.into(), first.into())]
        });
        let first = first[0].into_int_value();
        (ir.icmp(IntPredicate::NE, first, none), first)
    }

    fn record(&mut self, site: &Site, values: &[ValueId], position: Option<IntValue<'c>>) {
        let (ir, log) = (self.ir, self.log.expect("a kernel that says something has a log"));
        let record = log.reserve(ir, site);
        ir.if_then(log.fits(ir, record, site), || {
            log.write_head(ir, record, site, position);
            let mut first = site.head_words() as i64;
            for &value in values {
                self.through(value, &[], |emitter, position, element, _| {
                    let at = ir.add(ir.i64(first), position);
                    log.write(ir, record, at, element, emitter.dtype(value));
                    Vec::new()
                });
                first += self.count_of(value);
            }
        });
    }

    fn count_of(&self, value: ValueId) -> i64 {
        if self.is_tile(value) { self.shape(value).iter().product() } else { 1 }
    }

    /// Goes through a value's elements in row-major order, with the position of each and what is carried.
    fn through(
        &mut self,
        value: ValueId,
        initial: &[Value<'c>],
        body: impl FnOnce(&mut Self, IntValue<'c>, Value<'c>, &[Value<'c>]) -> Vec<Value<'c>>,
    ) -> Vec<Value<'c>> {
        let ir = self.ir;
        let shape = if self.is_tile(value) { self.shape(value) } else { Vec::new() };
        if shape.is_empty() {
            let element = self.element(value, &[]);
            let next = body(self, ir.i64(0), element, initial);
            return next;
        }
        let extents: Vec<IntValue<'c>> = shape.iter().map(|&extent| ir.i64(extent)).collect();
        let count = ir.i64(shape.iter().product());
        ir.for_loop((ir.i64(0), count, ir.i64(1)), initial, |position, carried| {
            let index = ir.delinearize(position, &extents);
            let element = self.element(value, &index);
            body(self, position, element, carried)
        })
    }
}
