//! Which tile a block of a persistent kernel takes: [`tile_ir::tile_order::index_of`] as code.

use super::Ir;
use inkwell::IntPredicate;
use inkwell::types::IntType;
use inkwell::values::IntValue;
use tile_ir::Dim;
use tile_ir::tile_order::{Arithmetic, TileOrder, index_of, taken, tile_in_part};

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
        let numbers = Numbers { ir: self, ty: self.context.i64_type() };
        index_of(&numbers, &order.map(|rows| numbers.extent(rows)), space, number)
    }

    /// The number of the tile that a block takes whose turn has this number, of so many blocks and tiles.
    pub(crate) fn taken_tile(
        &self,
        order: &TileOrder<Dim>,
        number: IntValue<'c>,
        blocks_and_tiles: [IntValue<'c>; 2],
    ) -> IntValue<'c> {
        let numbers = Numbers { ir: self, ty: number.get_type() };
        taken(&numbers, order, number, blocks_and_tiles)
    }

    /// The index, i32s, of the tile of a block, of which successive ones go in turn to the parts of a device. A launch
    /// has fewer than 2³¹ blocks, so that 32 bits suffice.
    pub(crate) fn tile_in_part(
        &self,
        order: &TileOrder<Dim>,
        space: &[IntValue<'c>],
        parts: u32,
        block: IntValue<'c>,
    ) -> Vec<IntValue<'c>> {
        let numbers = Numbers { ir: self, ty: self.context.i32_type() };
        let narrow = |number| self.zext_or_trunc(number, 32);
        let space: Vec<_> = space.iter().map(|&extent| narrow(extent)).collect();
        let blocks = space.iter().fold(numbers.number(1), |blocks, &extent| self.mul(blocks, extent));
        let number = tile_in_part(&numbers, numbers.number(parts.into()), blocks, narrow(block));
        index_of(&numbers, &order.map(|rows| numbers.extent(rows)), &space, number)
    }

    /// A number of places, of which a launch has fewer than 2³¹, as one that is known to be small: divisions by it are
    /// short.
    pub(crate) fn short(&self, number: IntValue<'c>) -> IntValue<'c> {
        self.zext_or_trunc(self.zext_or_trunc(number, 32), 64)
    }
}

/// Numbers of the same width, of which there are constants.
#[derive(Clone, Copy)]
struct Numbers<'a, 'c> {
    ir: &'a Ir<'c>,
    ty: IntType<'c>,
}

impl<'c> Numbers<'_, 'c> {
    fn extent(&self, rows: &Dim) -> IntValue<'c> {
        let rows = rows.as_const().expect("an instance's tile extents are numbers");
        self.ty.const_int(rows as u64, true)
    }
}

impl<'c> Arithmetic for Numbers<'_, 'c> {
    type Number = IntValue<'c>;
    type Truth = IntValue<'c>;

    fn number(&self, value: u64) -> IntValue<'c> {
        self.ty.const_int(value, false)
    }

    fn add(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        self.ir.add(a, b)
    }

    fn sub(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        self.ir.sub(a, b)
    }

    fn mul(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        self.ir.mul(a, b)
    }

    fn div(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        self.ir.udiv(a, b)
    }

    fn rem(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        self.ir.urem(a, b)
    }

    fn below(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        self.ir.icmp(IntPredicate::ULT, a, b)
    }

    fn both(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        self.ir.and(a, b)
    }

    fn choose(&self, condition: IntValue<'c>, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        self.ir.select_int(condition, a, b)
    }

    fn repeat<const N: usize>(
        &self,
        state: [IntValue<'c>; N],
        goes_on: impl Fn(&[IntValue<'c>; N]) -> IntValue<'c>,
        step: impl Fn(&[IntValue<'c>; N]) -> [IntValue<'c>; N],
    ) -> [IntValue<'c>; N] {
        let last = self.ir.while_loop(goes_on(&state), &state.map(Into::into), |state| {
            let state = std::array::from_fn(|i| state[i].into_int_value());
            let next = step(&state);
            (goes_on(&next), next.map(Into::into).to_vec())
        });
        std::array::from_fn(|i| last[i].into_int_value())
    }
}
