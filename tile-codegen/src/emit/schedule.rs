//! Which tile a block of a persistent kernel takes: [`tile_ir::schedule::index_of`] as code.

use super::Ir;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::Dim;
use tile_ir::schedule::{Arithmetic, TileOrder, index_of};

/// What code knows of the tiles that the blocks of a launch share, i64.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared<'c> {
    /// How many are handled.
    pub(crate) tiles: IntValue<'c>,
    /// How many blocks there are.
    pub(crate) blocks: IntValue<'c>,
}

impl<'c> Ir<'c> {
    /// The index of a tile by its number in an order.
    pub(crate) fn tile_index(
        &self,
        order: &TileOrder<Dim>,
        space: &[IntValue<'c>],
        number: IntValue<'c>,
    ) -> Vec<IntValue<'c>> {
        let order =
            order.map(|rows| self.i64(rows.as_const().expect("an instance's tile extents are numbers")));
        index_of(self, &order, space, number)
    }
}

impl<'c> Arithmetic for Ir<'c> {
    type Number = IntValue<'c>;
    type Truth = IntValue<'c>;

    fn number(&self, value: u64) -> IntValue<'c> {
        self.context.i64_type().const_int(value, false)
    }

    fn add(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        Ir::add(self, a, b)
    }

    fn sub(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        Ir::sub(self, a, b)
    }

    fn mul(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        Ir::mul(self, a, b)
    }

    fn div(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        self.udiv(a, b)
    }

    fn rem(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        self.urem(a, b)
    }

    fn below(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        self.icmp(IntPredicate::ULT, a, b)
    }

    fn both(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        self.and(a, b)
    }

    fn choose(&self, condition: IntValue<'c>, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        self.select_int(condition, a, b)
    }

    fn repeat<const N: usize>(
        &self,
        state: [IntValue<'c>; N],
        goes_on: impl Fn(&[IntValue<'c>; N]) -> IntValue<'c>,
        step: impl Fn(&[IntValue<'c>; N]) -> [IntValue<'c>; N],
    ) -> [IntValue<'c>; N] {
        let last = self.while_loop(goes_on(&state), &state.map(Into::into), |state| {
            let state = std::array::from_fn(|i| state[i].into_int_value());
            let next = step(&state);
            (goes_on(&next), next.map(Into::into).to_vec())
        });
        std::array::from_fn(|i| last[i].into_int_value())
    }
}
