//! Op `lookup`: numbers of a table that lies in memory, beside the code.

use super::{Ir, Value};
use inkwell::module::Linkage;
use inkwell::values::{GlobalValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use tile_ir::DType;
use tile_ir::array::Array;
use tile_ir::ops::Literal;

/// Bytes of the largest format, so that tables of the same bytes are one.
const LARGEST_ELEMENT: u32 = 8;

impl<'c> Ir<'c> {
    /// The number of a table at an integer of a format; 0 where it has none.
    pub(crate) fn lookup(&self, table: &[Literal], to: DType, from: DType, place: Value<'c>) -> Value<'c> {
        let place = self.cast(from, DType::I64, place).into_int_value();
        // What is negative is large without a sign.
        let inside = self.icmp(IntPredicate::ULT, place, self.i64(table.len() as i64));
        let place = self.select_int(inside, place, self.i64(0));
        let found = self.load_value(self.offset(self.storage_type(to), self.table(table, to), place), to);
        let none = if to.is_float() { Literal::Float(0.0) } else { Literal::Int(0) };
        self.select(inside, found, self.literal(none, to))
    }

    /// The address of a table, which the module has once.
    fn table(&self, table: &[Literal], to: DType) -> PointerValue<'c> {
        let numbers = self.context.const_string(&Array::of_literals(to, table).to_bytes(), false);
        let is_it = |global: &GlobalValue<'c>| global.get_initializer().is_some_and(|other| other == numbers);
        let global = self.module.get_globals().find(is_it).unwrap_or_else(|| {
            let space = AddressSpace::from(self.features.table_space);
            let global = self.module.add_global(numbers.get_type(), Some(space), "table");
            global.set_initializer(&numbers);
            global.set_constant(true);
            global.set_linkage(Linkage::Internal);
            global.set_alignment(LARGEST_ELEMENT);
            global
        });
        global.as_pointer_value()
    }
}
