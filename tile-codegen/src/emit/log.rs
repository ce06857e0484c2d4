//! Records of the log, as [`tile_ir::log`] lays them out: how code reserves and writes them.

use super::{Ir, Value};
use inkwell::values::{IntValue, PointerValue};
use inkwell::{AtomicOrdering, AtomicRMWBinOp, IntPredicate};
use tile_ir::DType;
use tile_ir::log::{CAPACITY, CURSOR, FAILURES, HEADER_WORDS, RECORD_WORDS, Site};

/// The log, and the block that writes to it.
#[derive(Clone, Copy)]
pub(crate) struct Log<'c> {
    pub(crate) address: PointerValue<'c>,
    /// The block's number, an i64.
    pub(crate) block: IntValue<'c>,
}

impl<'c> Log<'c> {
    fn word(&self, ir: &Ir<'c>, index: IntValue<'c>) -> PointerValue<'c> {
        ir.element(ir.context.i64_type().into(), self.address, index)
    }

    /// Adds to a word of the header, which every block may do at once; gives what it was.
    fn advance(&self, ir: &Ir<'c>, word: usize, by: u64) -> IntValue<'c> {
        let pointer = self.word(ir, ir.i64(word as i64));
        let (add, order) = (AtomicRMWBinOp::Add, AtomicOrdering::Monotonic);
        ir.builder.build_atomicrmw(add, pointer, ir.i64(by as i64), order).expect("the word is an i64")
    }

    /// Counts a failed assertion.
    pub(crate) fn count_failure(&self, ir: &Ir<'c>) {
        self.advance(ir, FAILURES, 1);
    }

    /// Reserves a record; gives the place of its first word.
    pub(crate) fn reserve(&self, ir: &Ir<'c>, site: &Site) -> IntValue<'c> {
        self.advance(ir, CURSOR, site.words())
    }

    /// Whether a reserved record may be written.
    pub(crate) fn fits(&self, ir: &Ir<'c>, record: IntValue<'c>, site: &Site) -> IntValue<'c> {
        let pointer = self.word(ir, ir.i64(CAPACITY as i64));
        let capacity = ir.load(ir.context.i64_type().into(), pointer).into_int_value();
        let end = ir.add(record, ir.i64(site.words() as i64));
        ir.icmp(IntPredicate::ULE, end, capacity)
    }

    /// Writes what comes before a record's values; `position` is that of an assertion's false element.
    pub(crate) fn write_head(
        &self,
        ir: &Ir<'c>,
        record: IntValue<'c>,
        site: &Site,
        position: Option<IntValue<'c>>,
    ) {
        let number = ir.i64(i64::from(site.number) + 1);
        let words = [number, self.block].into_iter().chain(position);
        for (i, word) in words.enumerate() {
            self.write_word(ir, record, ir.i64(i as i64), word);
        }
        debug_assert_eq!(site.head_words(), RECORD_WORDS + u64::from(position.is_some()));
    }

    /// Writes a value's stored bits at a word of a record.
    pub(crate) fn write(
        &self,
        ir: &Ir<'c>,
        record: IntValue<'c>,
        at: IntValue<'c>,
        value: Value<'c>,
        dtype: DType,
    ) {
        let bits = match ir.value_to_storage(value, dtype) {
            Value::FloatValue(value) => ir.bits(value),
            value => value.into_int_value(),
        };
        self.write_word(ir, record, at, ir.zext_or_trunc(bits, 64));
    }

    fn write_word(&self, ir: &Ir<'c>, record: IntValue<'c>, at: IntValue<'c>, word: IntValue<'c>) {
        let first = ir.add(record, ir.i64(HEADER_WORDS as i64));
        ir.store(self.word(ir, ir.add(first, at)), word.into());
    }
}
