//! Structured control flow: loops that carry values from turn to turn, and branches that give values.

use super::hint::LoopHint;
use super::ir::{Ir, Value, built};
use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::values::{FunctionValue, InstructionValue, IntValue, PhiValue};
use std::cell::RefCell;

/// What a loop counts through, unsigned: from, to before, and by what.
pub(crate) type LoopRange<'c> = (IntValue<'c>, IntValue<'c>, IntValue<'c>);

/// What a loop carries: a place for each value, which is given one from before the loop and one from each turn.
struct Carried<'c>(Vec<PhiValue<'c>>);

impl<'c> Carried<'c> {
    fn values(&self) -> Vec<Value<'c>> {
        self.0.iter().map(|phi| phi.as_basic_value()).collect()
    }

    /// The values that these are where the loop's head is reached from a block.
    fn come_from(&self, block: BasicBlock<'c>, values: &[Value<'c>]) {
        for (phi, value) in self.0.iter().zip(values) {
            phi.add_incoming(&[(value, block)]);
        }
    }
}

impl<'c> Ir<'c> {
    /// The block that instructions are added to.
    fn block(&self) -> BasicBlock<'c> {
        self.builder.get_insert_block().expect("the builder is positioned")
    }

    /// What the loop carries at whose head the builder is.
    fn carried(&self, initial: &[Value<'c>]) -> Carried<'c> {
        Carried(initial.iter().map(|value| built(self.builder.build_phi(value.get_type(), ""))).collect())
    }

    /// The function that is being emitted.
    pub(crate) fn function(&self) -> FunctionValue<'c> {
        self.block().get_parent().expect("a block belongs to a function")
    }

    pub(crate) fn new_block(&self, name: &str) -> BasicBlock<'c> {
        self.context.append_basic_block(self.function(), name)
    }

    pub(crate) fn branch(&self, to: BasicBlock<'c>) -> InstructionValue<'c> {
        built(self.builder.build_unconditional_branch(to))
    }

    pub(crate) fn branch_if(&self, condition: IntValue<'c>, then: BasicBlock<'c>, otherwise: BasicBlock<'c>) {
        built(self.builder.build_conditional_branch(condition, then, otherwise));
    }

    /// `for i in range`, carrying values; `body` gives their next ones.
    pub(crate) fn for_loop(
        &self,
        range: LoopRange<'c>,
        initial: &[Value<'c>],
        body: impl FnOnce(IntValue<'c>, &[Value<'c>]) -> Vec<Value<'c>>,
    ) -> Vec<Value<'c>> {
        self.hinted_loop(range, LoopHint::Free, initial, body)
    }

    /// [`Self::for_loop`] with a word to the optimiser.
    pub(crate) fn hinted_loop(
        &self,
        range: LoopRange<'c>,
        hint: LoopHint,
        initial: &[Value<'c>],
        body: impl FnOnce(IntValue<'c>, &[Value<'c>]) -> Vec<Value<'c>>,
    ) -> Vec<Value<'c>> {
        let (start, end, step) = range;
        let entry = self.block();
        let (header, inside, after) =
            (self.new_block("loop"), self.new_block("body"), self.new_block("after"));
        self.branch(header);
        self.builder.position_at_end(header);
        let counter = built(self.builder.build_phi(start.get_type(), "i"));
        let carried = self.carried(initial);
        let values = carried.values();
        let i = counter.as_basic_value().into_int_value();
        self.branch_if(self.icmp(IntPredicate::ULT, i, end), inside, after);
        self.builder.position_at_end(inside);
        let next = body(i, &values);
        let last = self.block();
        counter.add_incoming(&[(&start, entry), (&self.add(i, step), last)]);
        carried.come_from(entry, initial);
        carried.come_from(last, &next);
        self.hint(self.branch(header), hint);
        self.builder.position_at_end(after);
        values
    }

    /// [`Self::hinted_loop`] that carries nothing.
    pub(crate) fn each(&self, range: LoopRange<'c>, hint: LoopHint, body: impl FnOnce(IntValue<'c>)) {
        self.hinted_loop(range, hint, &[], |i, _| {
            body(i);
            Vec::new()
        });
    }

    /// A loop that runs while a condition holds, carrying values: `first` decides on the first iteration, then
    /// what `body` gives along with the next values.
    pub(crate) fn while_loop(
        &self,
        first: IntValue<'c>,
        initial: &[Value<'c>],
        body: impl FnOnce(&[Value<'c>]) -> (IntValue<'c>, Vec<Value<'c>>),
    ) -> Vec<Value<'c>> {
        self.hinted_while(first, LoopHint::Free, initial, body)
    }

    /// [`Self::while_loop`] with a word to the optimiser.
    pub(crate) fn hinted_while(
        &self,
        first: IntValue<'c>,
        hint: LoopHint,
        initial: &[Value<'c>],
        body: impl FnOnce(&[Value<'c>]) -> (IntValue<'c>, Vec<Value<'c>>),
    ) -> Vec<Value<'c>> {
        let entry = self.block();
        let (header, inside, after) =
            (self.new_block("while"), self.new_block("body"), self.new_block("after"));
        self.branch(header);
        self.builder.position_at_end(header);
        let condition = built(self.builder.build_phi(first.get_type(), "go"));
        let carried = self.carried(initial);
        let values = carried.values();
        self.branch_if(condition.as_basic_value().into_int_value(), inside, after);
        self.builder.position_at_end(inside);
        let (again, next) = body(&values);
        let last = self.block();
        condition.add_incoming(&[(&first, entry), (&again, last)]);
        carried.come_from(entry, initial);
        carried.come_from(last, &next);
        self.hint(self.branch(header), hint);
        self.builder.position_at_end(after);
        values
    }

    /// A loop that is left inside a turn: where `body` calls the function that it is given, and the condition holds. It
    /// gives the values of the next turn. What was defined in a turn up to there can be used after the loop.
    pub(crate) fn loop_left_inside(
        &self,
        hint: LoopHint,
        initial: &[Value<'c>],
        body: impl FnOnce(&[Value<'c>], &dyn Fn(IntValue<'c>)) -> Vec<Value<'c>>,
    ) {
        let entry = self.block();
        let (inside, after) = (self.new_block("loop"), self.new_block("after"));
        self.branch(inside);
        self.builder.position_at_end(inside);
        let carried = self.carried(initial);
        let values = carried.values();
        let leave_if = |is_last| {
            let rest = self.new_block("rest");
            self.branch_if(is_last, after, rest);
            self.builder.position_at_end(rest);
        };
        let next = body(&values, &leave_if);
        let last = self.block();
        carried.come_from(entry, initial);
        carried.come_from(last, &next);
        self.hint(self.branch(inside), hint);
        self.builder.position_at_end(after);
    }

    /// Two branches that give values of the same types.
    pub(crate) fn if_else(
        &self,
        condition: IntValue<'c>,
        then: impl FnOnce() -> Vec<Value<'c>>,
        otherwise: impl FnOnce() -> Vec<Value<'c>>,
    ) -> Vec<Value<'c>> {
        let (yes, no, after) = (self.new_block("then"), self.new_block("else"), self.new_block("after"));
        self.branch_if(condition, yes, no);
        let leave = || {
            let last = self.block();
            self.branch(after);
            last
        };
        self.builder.position_at_end(yes);
        let (a, a_block) = (then(), leave());
        self.builder.position_at_end(no);
        let (b, b_block) = (otherwise(), leave());
        self.builder.position_at_end(after);
        a.iter()
            .zip(&b)
            .map(|(x, y)| {
                let phi = built(self.builder.build_phi(x.get_type(), ""));
                phi.add_incoming(&[(x, a_block), (y, b_block)]);
                phi.as_basic_value()
            })
            .collect()
    }

    /// [`Self::if_else`] whose sides one closure emits, one after the other: it is told whether the condition holds on the
    /// side that it emits, and may change what it borrows.
    pub(crate) fn either_side(
        &self,
        condition: IntValue<'c>,
        side: impl FnMut(bool) -> Vec<Value<'c>>,
    ) -> Vec<Value<'c>> {
        // Two closures can't both borrow what the one changes; the cell lends it to each in turn.
        let side = RefCell::new(side);
        let emit = |holds| (*side.borrow_mut())(holds);
        self.if_else(condition, || emit(true), || emit(false))
    }

    /// [`Self::either_side`] without values.
    pub(crate) fn on_each_side(&self, condition: IntValue<'c>, mut side: impl FnMut(bool)) {
        self.either_side(condition, |holds| {
            side(holds);
            Vec::new()
        });
    }

    /// A branch without values that is taken where a condition doesn't hold.
    pub(crate) fn unless(&self, condition: IntValue<'c>, otherwise: impl FnOnce()) {
        self.if_else(condition, Vec::new, || {
            otherwise();
            Vec::new()
        });
    }

    /// A branch without values.
    pub(crate) fn if_then(&self, condition: IntValue<'c>, then: impl FnOnce()) {
        self.if_else(
            condition,
            || {
                then();
                Vec::new()
            },
            Vec::new,
        );
    }
}
