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
    /// The number of a table at an integer; 0 where it has none.
    pub(crate) fn lookup(&self, table: &[Literal], to: DType, place: Value<'c>) -> Value<'c> {
        let place = place.into_int_value();
        let (ty, length) = (place.get_type(), table.len() as u64);
        // What is negative is large without a sign.
        let limit = ty.const_int(length, false);
        // A format may have no number that large.
        let is_limited = limit.get_zero_extended_constant() == Some(length);
        let inside = is_limited.then(|| self.icmp(IntPredicate::ULT, place, limit));
        let known = inside.map_or(place, |inside| self.select_int(inside, place, ty.const_zero()));
        let place = self.zext_or_trunc(known, 64);
        let address = self.offset(self.storage_type(to), self.table(table, to), place);
        let found = self.load_value(address, to);
        let zero = if to.is_float() { Literal::Float(0.0) } else { Literal::Int(0) };
        inside.map_or(found, |inside| self.select(inside, found, self.literal(zero, to)))
    }

    /// The address of a table, which the module has once.
    fn table(&self, table: &[Literal], to: DType) -> PointerValue<'c> {
        let bytes: Vec<u8> = table.iter().flat_map(|&number| Array::scalar(to, number).to_bytes()).collect();
        let numbers = self.context.const_string(&bytes, false);
        let is_it =
            |global: &GlobalValue<'c>| global.get_initializer().is_some_and(|other| other == numbers);
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
