//! Blocks of sums in registers that are tiles: 16 rows of 64 bytes each.
//!
//! Four tiles hold sums, next to each other or below each other. A step along K reads as many tiles of `a`, row by row, and
//! of packed `b`, whose rows have neighbours along K side by side, and each pair of them is an instruction. What tiles have at
//! the edges of a product they have by their **configuration**, so that no sum outside is read or written; along K both
//! factors are filled up with zeros. Numbers of tiles are fixed here: LLVM assigns none.

use super::super::LINE_BYTES;
use super::super::buffer::Buffer;
use super::super::region::Emitter;
use super::super::scratch::element_bytes;
use super::Needed;
use super::ahead::Share;
use super::beside::PackedB;
use super::block::Product;
use super::contraction::{TILE_ROWS, TileProduct};
use super::keep::PackedA;
use super::plan::Plan;
use super::sums::{Start, SumsBlock};
use crate::emit::{Ir, LoopHint, Value, vector_type};
use inkwell::IntPredicate;
use inkwell::module::Linkage;
use inkwell::values::{IntValue, PointerValue};

/// Tiles that a processor has.
const TILES: i64 = 8;

/// The first tile that holds no sums.
const FIRST_OF_FACTORS: i64 = 4;

/// The tiles of a register block's sums: rows, and columns of the last of so many tiles side by side.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Shape {
    rows: i64,
    across: i64,
    last: i64,
}

impl Shape {
    /// Tiles below each other.
    fn down(self) -> i64 {
        (self.rows + TILE_ROWS - 1) / TILE_ROWS
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
        (a, b, needed): (Option<&PackedA<'c>>, &PackedB<'c>, Needed<'c>),
        depth: IntValue<'c>,
    ) {
        let (ir, Some(tiles)) = (self.ir, plan.contraction.tiles()) else { return };
        let beyond = ir.urem(depth, ir.i64(tiles.depth()));
        ir.if_then(ir.icmp(IntPredicate::NE, beyond, ir.i64(0)), || {
            let line = vector_type(self.buffers.element_type(plan.packed), tiles.depth() as u32);
            let zeros: Value<'c> = line.const_zero().into();
            if let Some(PackedA { buffer, .. }) = a {
                let [row, _] = plan.strides_of_a(true);
                ir.hinted_loop((ir.i64(0), needed.rows, ir.i64(1)), LoopHint::Rolled, &[], |i, _| {
                    let position = ir.add(ir.mul(i, ir.i64(row)), depth);
                    self.buffers.store_as(buffer, position, zeros);
                    Vec::new()
                });
            }
            let end = ir.add(ir.sub(depth, beyond), ir.i64(tiles.depth()));
            let columns = (ir.i64(0), needed.columns, ir.i64(TILE_ROWS));
            ir.hinted_loop(columns, LoopHint::Rolled, &[], |column, _| {
                ir.hinted_loop((depth, end, ir.i64(tiles.group)), LoopHint::Rolled, &[], |p, _| {
                    self.buffers.store_as(&b.buffer, plan.place_of_b(ir, [p, column]), zeros);
                    Vec::new()
                });
                Vec::new()
            });
        });
    }

    /// Covers a product with blocks of tiles.
    pub(super) fn blocks_of_tiles(
        &self,
        product: &Product<'_, 'c>,
        (tiles, b): (&TileProduct, &Buffer<'c>),
        needed: Needed<'c>,
    ) {
        let (ir, plan) = (self.ir, product.plan);
        let (width, rows) = (plan.block.width(), plan.block.rows);
        let [whole_rows, whole_columns] = [plan.m / rows * rows, plan.n / width * width];
        let panels = |(across, last): (i64, i64), (from, to): (IntValue<'c>, IntValue<'c>)| {
            let shape = |rows: i64| Shape { rows, across, last };
            let [whole, rest] = [shape(rows), shape(plan.m - whole_rows)];
            let changes = whole_rows > 0 && rest.rows > 0;
            if !changes {
                self.configure_tiles(if whole_rows > 0 { whole } else { rest });
            }
            ir.hinted_loop((from, to, ir.i64(width)), LoopHint::Rolled, &[], |j, _| {
                let number = ir.udiv(j, ir.i64(width));
                let panel = self.buffers.further(b, ir.mul(number, ir.i64(plan.panel())));
                let first = ir.mul(number, ir.i64(plan.blocks_of_rows()));
                let block = |shape: Shape, i: IntValue<'c>| {
                    let number = ir.add(first, ir.udiv(i, ir.i64(rows)));
                    self.block_of_tiles(product, (tiles, shape), (&panel, number), [i, j]);
                };
                if whole_rows > 0 {
                    if changes {
                        self.configure_tiles(whole);
                    }
                    let range = (ir.i64(0), ir.lesser(needed.rows, ir.i64(whole_rows)), ir.i64(rows));
                    ir.hinted_loop(range, LoopHint::Rolled, &[], |i, _| {
                        block(whole, i);
                        Vec::new()
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
                Vec::new()
            });
        };
        if whole_columns > 0 {
            let range = (ir.i64(0), ir.lesser(needed.columns, ir.i64(whole_columns)));
            panels((plan.block.vectors, TILE_ROWS), range);
        }
        let rest = plan.n - whole_columns;
        if rest > 0 {
            let across = (rest + TILE_ROWS - 1) / TILE_ROWS;
            let last = rest - (across - 1) * TILE_ROWS;
            panels((across, last), (ir.i64(whole_columns), needed.columns));
        }
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
        product: &Product<'_, 'c>,
        (tiles, shape): (&TileProduct, Shape),
        (panel, number): (&Buffer<'c>, IntValue<'c>),
        [i, j]: [IntValue<'c>; 2],
    ) {
        let (ir, plan) = (self.ir, product.plan);
        let shares: Vec<Share<'c>> =
            product.meanwhile.ahead.iter().map(|ahead| ahead.share(ir, plan, number)).collect();
        self.begin_tiles_of_sums(product, shape, [i, j]);
        let block =
            SumsBlock { rows: shape.rows, has_last_row: None, vectors: shape.across, last: shape.last };
        self.ask_for_sums(product.sums, plan, block, [i, j]);
        let [begin, end] = product.steps;
        let last = ir.add(end, ir.i64(TILE_ROWS - 1));
        let steps = (begin, ir.sub(last, ir.urem(last, ir.i64(TILE_ROWS))), ir.i64(TILE_ROWS));
        ir.hinted_loop(steps, LoopHint::Rolled, &[], |step, _| {
            shares.iter().for_each(|share| share.ask(ir, ir.udiv(step, ir.i64(TILE_ROWS))));
            if let Some(beside) = product.meanwhile.beside {
                self.pack_chunk(beside, plan);
            }
            self.multiply_tiles(product, (tiles, shape), (panel, i), step);
            Vec::new()
        });
        let stride = ir.mul(product.sums.stride, ir.i64(4));
        for (down, across) in shape.places() {
            let row = ir.mul(ir.add(i, ir.i64(down * TILE_ROWS)), product.sums.stride);
            let at = ir.add(row, ir.add(j, ir.i64(across * TILE_ROWS)));
            let address = ir.element(ir.int_type(32).into(), product.sums.to, at);
            self.move_tile("llvm.x86.tilestored64", shape.sums(down, across), (address, stride));
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
            (self.buffers.further(c, at).address, of_row)
        };
        // Every row of a tile is the same one of memory.
        let row_of = |number: Value<'c>| {
            let memory = self.lane_array(number.get_type(), TILE_ROWS);
            ir.store(memory, ir.in_every_lane(number, TILE_ROWS as u32).into());
            (memory, ir.i64(0))
        };
        let is_zero = |number: Value<'c>| match number {
            Value::FloatValue(float) => float.is_const() && float.is_null(),
            Value::IntValue(int) => int.is_const() && int.is_null(),
            _ => false,
        };
        let load = |from: &dyn Fn((i64, i64)) -> (PointerValue<'c>, IntValue<'c>)| {
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
                    let (address, stride) = in_memory(place);
                    let address = ir.select(condition, row.0.into(), address.into()).into_pointer_value();
                    (address, ir.select_int(condition, row.1, stride))
                });
            }
        }
    }

    /// One step along K: tiles of `a` times tiles of `b`, added to the sums.
    fn multiply_tiles(
        &self,
        product: &Product<'_, 'c>,
        (tiles, shape): (&TileProduct, Shape),
        (panel, i): (&Buffer<'c>, IntValue<'c>),
        step: IntValue<'c>,
    ) {
        let (ir, plan) = (self.ir, product.plan);
        let row_of_b = plan.block.width() * tiles.group;
        let bytes = |elements: IntValue<'c>| ir.mul(elements, ir.i64(element_bytes(panel.dtype) as i64));
        let load = "llvm.x86.tileloadd64";
        let [mut loaded_a, mut loaded_b] = [None; 2];
        for (down, across) in shape.places() {
            if loaded_a != Some(down) && (shape.down() > shape.across || across == 0) {
                let row = ir.add(i, ir.i64(down * TILE_ROWS));
                let address = self.address_in_left(&product.a, [row, step]);
                self.move_tile(load, shape.of_a(down), (address, bytes(product.a.row)));
                loaded_a = Some(down);
            }
            if loaded_b != Some(across) && (shape.down() <= shape.across || down == 0) {
                let at = ir.add(ir.mul(step, ir.i64(row_of_b)), ir.i64(across * TILE_ROWS * tiles.group));
                let address = self.buffers.further(panel, at).address;
                self.move_tile(load, shape.of_b(across), (address, bytes(ir.i64(row_of_b))));
                loaded_b = Some(across);
            }
            let numbers = [shape.sums(down, across), shape.of_a(down), shape.of_b(across)];
            ir.intrinsic(tiles.intrinsic, &[], &numbers.map(|number| self.number_of_tile(number)));
        }
    }

    /// Loads or stores a tile whose first row is at an address, and the others so many bytes after each other.
    fn move_tile(&self, intrinsic: &str, tile: i64, (address, stride): (PointerValue<'c>, IntValue<'c>)) {
        let arguments = [self.number_of_tile(tile), address.into(), stride.into()];
        self.ir.intrinsic(intrinsic, &[], &arguments);
    }

    fn number_of_tile(&self, tile: i64) -> Value<'c> {
        self.ir.int_type(8).const_int(tile as u64, false).into()
    }
}
