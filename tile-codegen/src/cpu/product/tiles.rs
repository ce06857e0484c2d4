//! Blocks of sums in tile registers of 16 rows of 64 bytes each.
//!
//! Four tile registers hold sums, side by side or below each other. A step along K reads the tiles of `a`, row by row, and
//! of packed `b` that these are sums of, and multiplies each pair of them by one instruction. The rows of packed `b` have
//! neighbours along K side by side. At the edges of a product tiles are smaller by their **configuration**, so that no sum
//! outside is read or written; along K both factors are padded with zeros. The registers' numbers are assigned here,
//! because LLVM assigns none.

use super::super::LINE_BYTES;
use super::super::region::Emitter;
use super::super::round_up::div_ceil;
use super::block::Product;
use super::contraction::{TILE_ROWS, TileProduct};
use super::keep::PackedA;
use super::plan::{OrderOfA, Plan};
use super::sums::Start;
use super::{Factors, Needed};
use crate::cpu::elements::IndexRange;
use crate::cpu::memory::buffer::Buffer;
use crate::cpu::memory::scratch::element_bytes;
use crate::emit::{Ir, LoopHint, Value, vector_type};
use inkwell::module::Linkage;
use inkwell::values::{IntValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};

/// Tiles that a processor has.
const TILES: i64 = 8;

/// The first tile that holds no sums.
const FIRST_OF_FACTORS: i64 = 4;

/// The tiles of a register block's sums: rows, and columns of the last of so many tiles side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    rows: i64,
    across: i64,
    last: i64,
}

impl Shape {
    /// Tiles below each other.
    fn down(self) -> i64 {
        div_ceil(self.rows, TILE_ROWS)
    }

    /// Rows of the tile of sums in this place from above.
    fn rows_of(self, down: i64) -> i64 {
        TILE_ROWS.min(self.rows - down * TILE_ROWS)
    }

    /// Columns of the tile of sums in this place from the left.
    fn columns_of(self, across: i64) -> i64 {
        if across + 1 == self.across { self.last } else { TILE_ROWS }
    }

    /// The number of a tile of sums.
    fn sums(self, down: i64, across: i64) -> i64 {
        down * self.across + across
    }

    /// The places of all tiles of sums, the tiles of one factor all before the next of the other: of that of which there
    /// are more.
    fn places(self) -> impl Iterator<Item = (i64, i64)> {
        let (down, across) = (self.down(), self.across);
        (0..down * across).map(move |number| match down <= across {
            true => (number % down, number / down),
            false => (number / across, number % across),
        })
    }

    /// The number of the tile of `a` in this place: the factor of fewer tiles has all of its own.
    fn of_a(self, down: i64) -> i64 {
        let held = self.down().min(self.across);
        if self.down() <= self.across { FIRST_OF_FACTORS + down } else { passing(held, down, self.down()) }
    }

    /// The number of the tile of `b` in this place.
    fn of_b(self, across: i64) -> i64 {
        let held = self.down().min(self.across);
        if self.down() <= self.across {
            passing(held, across, self.across)
        } else {
            FIRST_OF_FACTORS + across
        }
    }

    /// What a step along K does: every tile of a factor is loaded once, before the first that it multiplies.
    fn step(self) -> Vec<Part> {
        let mut parts = Vec::new();
        for (down, across) in self.places() {
            if across == 0 {
                parts.push(Part::LoadA(down));
            }
            if down == 0 {
                parts.push(Part::LoadB(across));
            }
            parts.push(Part::Multiply(down, across));
        }
        parts
    }

    /// What tells a processor how large each tile is ("Intel 64 and IA-32 Architectures Software Developer's Manual",
    /// volume 2, `LDTILECFG`): a palette, bytes of a row of each, and rows of each.
    fn configuration(self) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[0] = 1;
        let mut tile = |number: i64, rows: i64, columns: i64| {
            bytes[16 + 2 * number as usize] = (4 * columns) as u8;
            bytes[48 + number as usize] = rows as u8;
        };
        for (down, across) in self.places() {
            tile(self.sums(down, across), self.rows_of(down), self.columns_of(across));
            tile(self.of_a(down), self.rows_of(down), TILE_ROWS);
            tile(self.of_b(across), TILE_ROWS, self.columns_of(across));
        }
        bytes
    }
}

/// Part of a step along K, by the places of the tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    LoadA(i64),
    LoadB(i64),
    Multiply(i64, i64),
}

/// Sums of a register block that the next one moves from the first cache to where they go, while it multiplies.
struct SumsLeft<'c> {
    /// The block's rows.
    rows: PointerValue<'c>,
    /// Where the first of them goes.
    to: PointerValue<'c>,
    /// The next row that is moved; behind the last one where none is left.
    next: PointerValue<'c>,
}

/// A product that is covered with blocks of tiles.
struct TileBlocks<'p, 'c> {
    product: &'p Product<'p, 'c>,
    /// The instruction that multiplies them.
    tiles: &'p TileProduct,
    /// What the block before has left, at any time.
    left: SumsLeft<'c>,
}

/// The rows of a tile in memory.
#[derive(Clone, Copy)]
struct TileRows<'c> {
    first: PointerValue<'c>,
    /// Bytes from a row to the next.
    stride: IntValue<'c>,
}

/// The number of a tile of the factor of which tiles pass by, beside so many that stay: in turns those that are left, of which
/// the last is the last's, because it may be smaller.
fn passing(held: i64, place: i64, count: i64) -> i64 {
    let left = TILES - FIRST_OF_FACTORS - held;
    if place + 1 == count { TILES - 1 } else { FIRST_OF_FACTORS + held + place % (left - 1).max(1) }
}

/// Gives the tiles back, so that the system needn't keep them for this thread.
pub(in super::super) fn release_tiles(ir: &Ir<'_>) {
    ir.intrinsic("llvm.x86.tilerelease", &[], &[]);
}

impl<'c> Emitter<'_, 'c> {
    /// Fills packed factors up with zeros along K, to whole tiles, from so deep on.
    pub(super) fn fill_tiles(
        &self,
        plan: &Plan,
        Factors { a, b, needed }: Factors<'_, 'c>,
        depth: IntValue<'c>,
    ) {
        let (ir, Some(tiles)) = (self.ir, plan.contraction.tiles()) else { return };
        let beyond = ir.urem(depth, ir.i64(tiles.depth()));
        ir.if_then(ir.icmp(IntPredicate::NE, beyond, ir.i64(0)), || {
            let line = vector_type(self.buffers.element_type(plan.packed), tiles.depth() as u32);
            let zeros: Value<'c> = line.const_zero().into();
            if let Some(PackedA { buffer, .. }) = a {
                let [row, _] = plan.strides_of_a(OrderOfA::ByRows);
                ir.each((ir.i64(0), needed.rows, ir.i64(1)), LoopHint::Rolled, |i| {
                    let position = ir.add(ir.mul(i, ir.i64(row)), depth);
                    self.buffers.store_as(buffer, position, zeros);
                });
            }
            let end = ir.add(ir.sub(depth, beyond), ir.i64(tiles.depth()));
            let columns = (ir.i64(0), needed.columns, ir.i64(TILE_ROWS));
            ir.each(columns, LoopHint::Rolled, |column| {
                ir.each((depth, end, ir.i64(tiles.group)), LoopHint::Rolled, |p| {
                    self.buffers.store_as(&b.buffer, plan.place_of_b(ir, [p, column]), zeros);
                });
            });
        });
    }

    /// Covers a product with blocks of tiles.
    pub(super) fn blocks_of_tiles(
        &self,
        product: &Product<'_, 'c>,
        tiles: &TileProduct,
        b: &Buffer<'c>,
        needed: Needed<'c>,
    ) {
        let (ir, plan) = (self.ir, product.plan);
        let (width, rows) = (plan.block.width(), plan.block.rows);
        let blocks = &TileBlocks { product, tiles, left: self.nothing_left(plan) };
        let [whole_rows, whole_columns] = [plan.m / rows * rows, plan.n / width * width];
        let panels = |across: i64, last: i64, columns: IndexRange<'c>| {
            let shape = |rows: i64| Shape { rows, across, last };
            let [whole, rest] = [shape(rows), shape(plan.m - whole_rows)];
            let changes = whole_rows > 0 && rest.rows > 0;
            if !changes {
                self.configure_tiles(if whole_rows > 0 { whole } else { rest });
            }
            ir.each(columns.by(ir.i64(width)), LoopHint::Rolled, |j| {
                let number = ir.udiv(j, ir.i64(width));
                let panel = self.buffers.further(b, ir.mul(number, ir.i64(plan.panel())));
                let block = |shape: Shape, i: IntValue<'c>| {
                    self.block_of_tiles(blocks, shape, &panel, [i, j]);
                };
                if whole_rows > 0 {
                    if changes {
                        self.configure_tiles(whole);
                    }
                    let range = (ir.i64(0), ir.lesser(needed.rows, ir.i64(whole_rows)), ir.i64(rows));
                    ir.each(range, LoopHint::Rolled, |i| {
                        block(whole, i);
                    });
                }
                if rest.rows > 0 {
                    let is_needed = ir.icmp(IntPredicate::UGT, needed.rows, ir.i64(whole_rows));
                    ir.if_then(is_needed, || {
                        if changes {
                            self.configure_tiles(rest);
                        }
                        block(rest, ir.i64(whole_rows));
                    });
                }
            });
        };
        if whole_columns > 0 {
            let columns = IndexRange::up_to(ir, ir.lesser(needed.columns, ir.i64(whole_columns)));
            panels(plan.block.vectors, TILE_ROWS, columns);
        }
        let rest = plan.n - whole_columns;
        if rest > 0 {
            let across = div_ceil(rest, TILE_ROWS);
            let last = rest - (across - 1) * TILE_ROWS;
            panels(across, last, IndexRange { start: ir.i64(whole_columns), end: needed.columns });
        }
        self.move_all_rows(blocks);
        if let Some(beside) = product.meanwhile.beside {
            self.pack_rest(beside, plan);
        }
    }

    fn configure_tiles(&self, shape: Shape) {
        let (ir, bytes) = (self.ir, shape.configuration());
        let constant = ir.context.const_string(&bytes, false);
        let global = ir.module.add_global(constant.get_type(), None, "tiles");
        global.set_initializer(&constant);
        global.set_constant(true);
        global.set_linkage(Linkage::Private);
        global.set_alignment(LINE_BYTES);
        ir.intrinsic("llvm.x86.ldtilecfg", &[], &[global.as_pointer_value().into()]);
    }

    fn block_of_tiles(
        &self,
        blocks: &TileBlocks<'_, 'c>,
        shape: Shape,
        panel: &Buffer<'c>,
        [i, j]: [IntValue<'c>; 2],
    ) {
        let (ir, product, left) = (self.ir, blocks.product, &blocks.left);
        let plan = product.plan;
        self.begin_tiles_of_sums(product, shape, [i, j]);
        let rows_of_step = plan.block.rows / (1 << plan.chunks().min(plan.block.rows).ilog2());
        let [begin, end] = product.steps;
        let last = ir.add(end, ir.i64(TILE_ROWS - 1));
        let steps = (begin, ir.sub(last, ir.urem(last, ir.i64(TILE_ROWS))), ir.i64(TILE_ROWS));
        ir.each(steps, LoopHint::Rolled, |step| {
            if let Some(beside) = product.meanwhile.beside {
                self.pack_chunk(beside, plan);
            }
            self.move_some_rows(blocks, rows_of_step);
            self.multiply_tiles(blocks, shape, panel, [i, step]);
        });
        let sums = product.sums;
        let at = ir.add(ir.mul(i, sums.stride), j);
        let to = ir.element(ir.int_type(32).into(), sums.to, at);
        let is_whole = shape.rows == plan.block.rows && shape.across * shape.last == plan.block.width();
        let (to, stride) = if is_whole {
            self.move_all_rows(blocks);
            ir.store(left.to, to.into());
            ir.store(left.next, ir.i64(0).into());
            (left.rows, ir.i64(plan.block.width()))
        } else {
            (to, sums.stride)
        };
        for (down, across) in shape.places() {
            let at = ir.add(ir.mul(ir.i64(down * TILE_ROWS), stride), ir.i64(across * TILE_ROWS));
            let first = ir.element(ir.int_type(32).into(), to, at);
            let rows = TileRows { first, stride: ir.mul(stride, ir.i64(4)) };
            self.move_tile("llvm.x86.tilestored64", shape.sums(down, across), rows);
        }
    }

    /// Room for a register block's sums on their way to memory.
    fn nothing_left(&self, plan: &Plan) -> SumsLeft<'c> {
        let ir = self.ir;
        let left = SumsLeft {
            rows: self.lane_array(ir.int_type(32).into(), plan.block.rows * plan.block.width()),
            to: self.lane_array(ir.context.ptr_type(AddressSpace::default()).into(), 1),
            next: self.lane_array(ir.context.i64_type().into(), 1),
        };
        ir.store(left.next, ir.i64(plan.block.rows).into());
        left
    }

    /// Moves all rows that are left.
    fn move_all_rows(&self, blocks: &TileBlocks<'_, 'c>) {
        let (ir, left, rows) = (self.ir, &blocks.left, blocks.product.plan.block.rows);
        let first = ir.load(ir.context.i64_type().into(), left.next).into_int_value();
        ir.each((first, ir.i64(rows), ir.i64(1)), LoopHint::Rolled, |row| {
            self.move_row(blocks, row);
        });
        ir.store(left.next, ir.i64(rows).into());
    }

    /// Moves so many of the rows that are left.
    fn move_some_rows(&self, blocks: &TileBlocks<'_, 'c>, count: i64) {
        let (ir, left) = (self.ir, &blocks.left);
        let first = ir.load(ir.context.i64_type().into(), left.next).into_int_value();
        ir.if_then(ir.icmp(IntPredicate::ULT, first, ir.i64(blocks.product.plan.block.rows)), || {
            (0..count).for_each(|row| self.move_row(blocks, ir.add(first, ir.i64(row))));
            ir.store(left.next, ir.add(first, ir.i64(count)).into());
        });
    }

    fn move_row(&self, blocks: &TileBlocks<'_, 'c>, row: IntValue<'c>) {
        let (ir, left) = (self.ir, &blocks.left);
        let (plan, sums) = (blocks.product.plan, blocks.product.sums);
        let word = ir.int_type(32).into();
        let pointer = ir.context.ptr_type(AddressSpace::default()).into();
        let to = ir.load(pointer, left.to).into_pointer_value();
        let from = ir.element(word, left.rows, ir.mul(row, ir.i64(plan.block.width())));
        let to = ir.element(word, to, ir.mul(row, sums.stride));
        for vector in 0..plan.block.vectors {
            let [from, to] = [from, to].map(|row| ir.element(word, row, ir.i64(vector * TILE_ROWS)));
            let line = ir.load_at(vector_type(word, TILE_ROWS as u32).into(), from, Some(LINE_BYTES));
            ir.store_at(to, line, Some(4));
        }
    }

    /// Gives the tiles of sums what they begin with.
    fn begin_tiles_of_sums(&self, product: &Product<'_, 'c>, shape: Shape, [i, j]: [IntValue<'c>; 2]) {
        let (ir, plan) = (self.ir, product.plan);
        let c = &product.sums.c;
        let of_row = ir.i64(plan.n * 4);
        let in_memory = |(down, across): (i64, i64)| {
            let row = ir.mul(ir.add(i, ir.i64(down * TILE_ROWS)), ir.i64(plan.n));
            let at = ir.add(row, ir.add(j, ir.i64(across * TILE_ROWS)));
            TileRows { first: self.buffers.further(c, at).address, stride: of_row }
        };
        // Every row of a tile is the same one of memory.
        let row_of = |number: Value<'c>| {
            let memory = self.lane_array(number.get_type(), TILE_ROWS);
            ir.store(memory, ir.in_every_lane(number, TILE_ROWS as u32).into());
            TileRows { first: memory, stride: ir.i64(0) }
        };
        let is_zero = |number: Value<'c>| match number {
            Value::FloatValue(float) => float.is_const() && float.is_null(),
            Value::IntValue(int) => int.is_const() && int.is_null(),
            _ => false,
        };
        let load = |from: &dyn Fn((i64, i64)) -> TileRows<'c>| {
            for (down, across) in shape.places() {
                self.move_tile("llvm.x86.tileloadd64", shape.sums(down, across), from((down, across)));
            }
        };
        match product.sums.start {
            Start::InMemory => load(&in_memory),
            Start::Number(number) if is_zero(number) => {
                for (down, across) in shape.places() {
                    let number = self.number_of_tile(shape.sums(down, across));
                    ir.intrinsic("llvm.x86.tilezero", &[], &[number]);
                }
            }
            Start::Number(number) => {
                let row = row_of(number);
                load(&|_| row);
            }
            Start::NumberWhere(number, condition) => {
                let row = row_of(number);
                load(&|place| {
                    let rows = in_memory(place);
                    let first = ir.select(condition, row.first.into(), rows.first.into());
                    let stride = ir.select_int(condition, row.stride, rows.stride);
                    TileRows { first: first.into_pointer_value(), stride }
                });
            }
        }
    }

    /// One step along K: tiles of `a` from row `i` on times tiles of `b`, added to the sums.
    fn multiply_tiles(
        &self,
        blocks: &TileBlocks<'_, 'c>,
        shape: Shape,
        panel: &Buffer<'c>,
        [i, step]: [IntValue<'c>; 2],
    ) {
        let (ir, &TileBlocks { product, tiles, .. }) = (self.ir, blocks);
        let plan = product.plan;
        let row_of_b = plan.block.width() * tiles.group;
        let bytes = |elements: IntValue<'c>| ir.mul(elements, ir.i64(element_bytes(panel.dtype) as i64));
        for part in shape.step() {
            match part {
                Part::LoadA(down) => {
                    let row = ir.add(i, ir.i64(down * TILE_ROWS));
                    let first = self.address_in_left(&product.a, [row, step]);
                    // Its lines aren't needed again soon, and shouldn't drive those of the panel out of the first cache.
                    let rows = TileRows { first, stride: bytes(product.a.row) };
                    self.move_tile("llvm.x86.tileloaddt164", shape.of_a(down), rows);
                }
                Part::LoadB(across) => {
                    let column = ir.i64(across * TILE_ROWS * tiles.group);
                    let at = ir.add(ir.mul(step, ir.i64(row_of_b)), column);
                    let first = self.buffers.further(panel, at).address;
                    let rows = TileRows { first, stride: bytes(ir.i64(row_of_b)) };
                    self.move_tile("llvm.x86.tileloadd64", shape.of_b(across), rows);
                }
                Part::Multiply(down, across) => {
                    let numbers = [shape.sums(down, across), shape.of_a(down), shape.of_b(across)];
                    ir.intrinsic(tiles.intrinsic, &[], &numbers.map(|number| self.number_of_tile(number)));
                }
            }
        }
    }

    /// Loads or stores a tile.
    fn move_tile(&self, intrinsic: &str, tile: i64, rows: TileRows<'c>) {
        let arguments = [self.number_of_tile(tile), rows.first.into(), rows.stride.into()];
        self.ir.intrinsic(intrinsic, &[], &arguments);
    }

    fn number_of_tile(&self, tile: i64) -> Value<'c> {
        self.ir.int_type(8).const_int(tile as u64, false).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every shape of four tiles, cut anywhere.
    fn shapes() -> Vec<Shape> {
        let wholes = [(2, 2), (1, 4), (4, 1)];
        let of = |(down, across): (i64, i64)| {
            (1..=down * TILE_ROWS).flat_map(move |rows| {
                (1..=across).flat_map(move |across| {
                    [1, 7, TILE_ROWS].into_iter().map(move |last| Shape { rows, across, last })
                })
            })
        };
        wholes.into_iter().flat_map(of).collect()
    }

    /// The rules by which `TDPBF16PS` and the others refuse tiles ("Intel 64 and IA-32 Architectures Software Developer's
    /// Manual", volume 2, "AMX-E4"): in the order in which a step loads and multiplies.
    #[test]
    fn tiles_fit_each_other_in_every_shape() {
        for shape in shapes() {
            let bytes = shape.configuration();
            let rows = |tile: i64| i64::from(bytes[48 + tile as usize]);
            let columns = |tile: i64| i64::from(bytes[16 + 2 * tile as usize]);
            let (mut held, mut multiplied) = ([None; TILES as usize], Vec::new());
            for part in shape.step() {
                match part {
                    Part::LoadA(down) => held[shape.of_a(down) as usize] = Some(part),
                    Part::LoadB(across) => held[shape.of_b(across) as usize] = Some(part),
                    Part::Multiply(down, across) => {
                        let [sums, a, b] = [shape.sums(down, across), shape.of_a(down), shape.of_b(across)];
                        assert!(sums < FIRST_OF_FACTORS && a >= FIRST_OF_FACTORS && b >= FIRST_OF_FACTORS);
                        assert_eq!(held[a as usize], Some(Part::LoadA(down)), "{shape:?}");
                        assert_eq!(held[b as usize], Some(Part::LoadB(across)), "{shape:?}");
                        assert_eq!((rows(sums), columns(sums)), (rows(a), columns(b)), "{shape:?}");
                        assert_eq!((columns(a), rows(b)), (64, 16), "{shape:?}");
                        assert_eq!(rows(sums), shape.rows_of(down));
                        assert_eq!(columns(sums), 4 * shape.columns_of(across));
                        multiplied.push(sums);
                    }
                }
            }
            multiplied.sort_unstable();
            assert_eq!(multiplied, (0..shape.down() * shape.across).collect::<Vec<_>>(), "{shape:?}");
        }
    }
}
