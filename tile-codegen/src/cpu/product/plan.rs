//! How each `mma` of an instance is computed: its register blocks, and what of its factors is packed.
//!
//! The order is that of Goto and van de Geijn ("Anatomy of High-Performance Matrix Multiplication", 2008): a block of
//! sums stays in registers while a column of `a` is multiplied by a row of `b`, over the whole depth. `b` is packed in
//! **panels**, as wide as a register block, one row of the panel after the other, so that it streams. Of `a` one element
//! at a time is repeated in every lane, so any two constant strides do: a tile in scratch memory is read where it is.
//!
//! A loop that does nothing but add products to a tile has the factors of several turns packed side by side, and one
//! multiplication as deep as all of them: the sums are in registers for longer ([`super::accumulate`]).

use super::super::LINE_BYTES;
use super::super::fuse::Fusion;
use super::super::region::extents;
use super::super::round_up::{div_ceil, whole_pieces};
use super::Remembered;
use super::accumulate::{Accumulation, accumulation};
use super::ahead::CHUNK;
use super::beside::is_packed_beside;
use super::contraction::{Contraction, Operands, TILE_ROWS, TileProduct};
use super::keep::KeptLeft;
use super::lasting::Lasting;
use super::places::KeptRight;
use super::right::reads_stored_columns;
use crate::cpu::memory::scratch::element_bytes;
use crate::cpu::vectors::processor::Processor;
use crate::emit::Ir;
use crate::llvm::Machine;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use std::collections::HashMap;
use tile_ir::kernel::OpData;
use tile_ir::target::CpuLevel;
use tile_ir::{DType, Instance, Op, RegionId, Type, ValueId};

/// The block of sums that registers hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct RegisterBlock {
    /// Rows at most.
    pub(in super::super) rows: i64,
    /// Vectors side by side.
    pub(in super::super) vectors: i64,
    /// Elements of a vector.
    pub(in super::super) lanes: i64,
    /// Steps along K that a turn of its loop takes.
    pub(in super::super) steps: i64,
}

impl RegisterBlock {
    /// The block for sums of so many bits.
    fn of(processor: &Processor, bits: i64) -> RegisterBlock {
        let block = processor.block;
        RegisterBlock { lanes: block.lanes * 32 / bits.max(32), ..block }
    }

    /// The block for products of so many rows and columns, of which registers hold so many vectors of a row of `b` beside the
    /// sums. As wide as that it reads the fewest elements of `a` for its multiply-adds; it is narrower where that leaves no
    /// columns over. Of fewer rows than it has it is wider, so that there are as many sums, none of which waits for another,
    /// and rows of `b` are read in longer pieces.
    fn of_shape(self, [m, n]: [i64; 2], of_right: i64) -> RegisterBlock {
        let (sums, columns) = (self.rows * self.vectors, div_ceil(n, self.lanes));
        if m > self.rows {
            let widest = of_right.min(columns.max(self.vectors));
            let whole = (self.vectors..=widest).rev().find(|vectors| columns % vectors == 0);
            let vectors = whole.unwrap_or(widest);
            return RegisterBlock { rows: sums / vectors, vectors, ..self };
        }
        let room = (sums / m).min(columns);
        let vectors = 1 << room.max(1).ilog2();
        RegisterBlock { vectors: self.vectors.max(vectors), ..self }
    }

    /// The block of four tiles of sums for products of so many rows and columns: of one tile's rows or columns the four lie
    /// next to each other, so that none waits for another.
    fn of_tiles(m: i64, n: i64) -> RegisterBlock {
        let (rows, vectors) = if m <= TILE_ROWS {
            (TILE_ROWS, 4)
        } else if n <= TILE_ROWS {
            (4 * TILE_ROWS, 1)
        } else {
            (2 * TILE_ROWS, 2)
        };
        RegisterBlock { rows, vectors, lanes: TILE_ROWS, steps: 1 }
    }

    /// Bytes of the registers that hold the sums.
    pub(in super::super) fn bytes(&self) -> i64 {
        self.rows * self.width() * 4
    }

    /// Columns.
    pub(super) fn width(&self) -> i64 {
        self.vectors * self.lanes
    }

    /// How rows are shared out to blocks that differ by one row at most.
    pub(super) fn rows_of(&self, m: i64) -> BlocksOfRows {
        let blocks = div_ceil(m, self.rows);
        match m % blocks {
            0 => BlocksOfRows { rows: m / blocks, blocks, high: blocks },
            high => BlocksOfRows { rows: m / blocks + 1, blocks, high },
        }
    }
}

/// Register blocks below each other: first those of so many rows, then those of one row less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlocksOfRows {
    pub(super) rows: i64,
    pub(super) blocks: i64,
    /// How many have so many rows.
    pub(super) high: i64,
}

impl BlocksOfRows {
    /// Whether a block has all rows, and not one less; `None` where all have.
    pub(super) fn is_high<'c>(&self, ir: &Ir<'c>, block: IntValue<'c>) -> Option<IntValue<'c>> {
        (self.high < self.blocks).then(|| ir.icmp(IntPredicate::ULT, block, ir.i64(self.high)))
    }

    /// The first row of a block.
    pub(super) fn first_row<'c>(&self, ir: &Ir<'c>, block: IntValue<'c>) -> IntValue<'c> {
        let missing = ir.up_to(ir.lesser(block, ir.i64(self.high)), block);
        ir.sub(ir.mul(block, ir.i64(self.rows)), missing)
    }

    /// How many blocks have some of the first rows, so many.
    pub(super) fn blocks_for<'c>(&self, ir: &Ir<'c>, rows: IntValue<'c>) -> IntValue<'c> {
        let blocks = |rows: IntValue<'c>, of: i64| ir.udiv(ir.add(rows, ir.i64(of - 1)), ir.i64(of));
        let high = ir.i64(self.high * self.rows);
        if self.high == self.blocks {
            return blocks(rows, self.rows);
        }
        let low = ir.add(ir.i64(self.high), blocks(ir.sub(rows, high), self.rows - 1));
        ir.select_int(ir.icmp(IntPredicate::ULE, rows, high), blocks(rows, self.rows), low)
    }
}

/// In which order `a` is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrderOfA {
    ByRows,
    ByColumns,
}

/// One `mma`.
pub(in super::super) struct Plan {
    /// Matrices.
    pub(super) batch: i64,
    pub(super) m: i64,
    pub(super) n: i64,
    /// The depth of one `mma`.
    pub(super) k: i64,
    /// Turns of its loop whose products are multiplied together.
    pub(super) turns: i64,
    pub(super) contraction: Contraction,
    /// The format of packed elements.
    pub(super) packed: DType,
    pub(super) block: RegisterBlock,
    /// What stays of `a` for the next blocks.
    pub(super) kept_a: Option<KeptLeft>,
    /// Whether what comes next of `b` is packed while this multiplies.
    pub(super) beside: bool,
    /// What is packed of `b` and stays for the next blocks.
    pub(super) kept_b: Option<KeptRight>,
    /// What is packed once for all turns of its loop.
    pub(super) lasting: Option<Lasting>,
}

impl Plan {
    /// The plan of a product that a loop adds to a tile.
    fn of(instance: &Instance, data: &OpData, machine: &Machine) -> Plan {
        let operands = operands(instance, data);
        let (sum, k) = (operands.sum, operands.depth);
        let result = shape(instance, data.results[0]);
        let [batch @ .., m, n] = result.as_slice() else { unreachable!("verified: `mma` has matrices") };
        let processor = Processor::of(machine);
        let block = RegisterBlock::of(&processor, sum.bits() as i64);
        let has = |feature: &str| machine.has(feature);
        let contraction = Contraction::of(Operands { rows: *m, ..operands }, block.lanes, has);
        let block = match contraction {
            Contraction::Tiles(_) => RegisterBlock::of_tiles(*m, *n),
            _ => block.of_shape([*m, *n], processor.of_right),
        };
        let packed = contraction.packed(sum);
        let (shape, bytes) = ([*m, *n, k].map(|extent| extent as u64), element_bytes(packed));
        let turns = match contraction {
            Contraction::Tiles(_) => tile_ir::cpu::turns_of_tiles(shape, bytes),
            _ => tile_ir::cpu::turns_at_once(shape, bytes),
        };
        Plan {
            batch: batch.iter().product(),
            m: *m,
            n: *n,
            k,
            turns: turns as i64,
            contraction,
            packed,
            block,
            kept_a: None,
            beside: false,
            kept_b: None,
            lasting: None,
        }
    }

    /// The same of a product that is multiplied by itself.
    fn alone(self) -> Plan {
        Plan { turns: 1, ..self }
    }

    /// Whether what is packed of `a` or of `b`, by its number, stays for other multiplications.
    pub(in super::super) fn is_kept(&self, factor: usize) -> bool {
        let lasts = self.lasting.as_ref().is_some_and(|lasting| lasting.factors[factor]);
        lasts || if factor == 0 { self.kept_a.is_some() } else { self.kept_b.is_some() }
    }

    /// Elements along K that are multiplied together at most.
    pub(super) fn depth(&self) -> i64 {
        self.k * self.turns
    }

    /// Whether all steps along K make whole turns of the register blocks' loop.
    pub(super) fn has_whole_turns(&self) -> bool {
        self.k % (self.block.steps * self.contraction.group()) == 0
    }

    /// Register blocks of a product.
    pub(super) fn blocks(&self) -> i64 {
        self.panels() * self.blocks_of_rows()
    }

    /// Register blocks side by side, and panels of `b`.
    pub(super) fn panels(&self) -> i64 {
        div_ceil(self.n, self.block.width())
    }

    /// Register blocks below each other.
    pub(super) fn blocks_of_rows(&self) -> i64 {
        self.block.rows_of(self.m).blocks
    }

    /// Places along K that multiplications have at most, where they are whole tiles.
    fn whole_depth(&self) -> i64 {
        let unit = self.contraction.tiles().map_or(1, TileProduct::depth);
        whole_pieces(self.depth(), unit)
    }

    /// Places along K of a panel of `b`: as deep as the product, and as the last square that is transposed into it goes
    /// beyond.
    fn panel_depth(&self) -> i64 {
        let square = self.block.lanes * self.contraction.group();
        let beyond = if self.k % square == 0 { 0 } else { square - self.contraction.group() };
        self.whole_depth() + beyond
    }

    /// Elements of a panel of `b`.
    pub(super) fn panel(&self) -> i64 {
        self.panel_depth() * self.block.width()
    }

    /// Chunks of steps along K that a register block takes, where the product is as deep as it may be.
    pub(super) fn chunks(&self) -> i64 {
        (self.depth() / self.contraction.group() / CHUNK).max(1)
    }

    /// Elements of packed `b`, of one multiplication.
    pub(super) fn packed_b(&self) -> i64 {
        self.panels() * self.panel()
    }

    /// The place in packed `b` of the first of what is multiplied at once with an element.
    pub(super) fn place_of_b<'c>(&self, ir: &Ir<'c>, [row, column]: [IntValue<'c>; 2]) -> IntValue<'c> {
        let (width, group) = (ir.i64(self.block.width()), ir.i64(self.contraction.group()));
        let panel = ir.mul(ir.udiv(column, width), ir.i64(self.panel()));
        let row = ir.mul(ir.udiv(row, group), ir.mul(width, group));
        ir.add(ir.add(panel, row), ir.mul(ir.urem(column, width), group))
    }

    /// Elements of packed `b` from the first vector of a row's piece of so many to another of its vectors; `None` where pieces
    /// lie across panels differently.
    pub(super) fn place_in_piece(&self, vectors: i64, vector: i64) -> Option<i64> {
        let (of_panel, lanes) = (self.block.vectors, self.block.lanes);
        let is_the_same = vectors % of_panel == 0 || of_panel % vectors == 0;
        let place = vector / of_panel * self.panel() + vector % of_panel * lanes * self.contraction.group();
        is_the_same.then_some(place)
    }

    /// Elements from a row of packed `a` to the next, and from what is multiplied at once to what is next.
    pub(super) fn strides_of_a(&self, order: OrderOfA) -> [i64; 2] {
        let padded = |extent: i64| whole_pieces(extent, self.block.lanes);
        let group = self.contraction.group();
        if let Some(tiles) = self.contraction.tiles() {
            return [self.lines_of_a() * tiles.depth(), group];
        }
        match order {
            OrderOfA::ByRows => [padded(self.depth()) + self.block.lanes, group],
            OrderOfA::ByColumns => [group, padded(self.m) * group],
        }
    }

    /// Cache lines of a row of `a` that tiles are read of: an odd number, so that no two of few rows meet in the first cache,
    /// with one at least behind the row, to which what is copied may go.
    fn lines_of_a(&self) -> i64 {
        let bytes = self.whole_depth() * element_bytes(self.packed) as i64;
        (bytes / i64::from(LINE_BYTES) + 1) | 1
    }

    /// Elements of packed `a`, of one multiplication: whole cache lines.
    pub(super) fn slot(&self) -> i64 {
        let rows = match self.contraction {
            // What is transposed goes to whole tiles.
            Contraction::Tiles(_) => whole_pieces(self.m, TILE_ROWS),
            _ => self.m,
        };
        let elements = [OrderOfA::ByRows, OrderOfA::ByColumns].map(|order| {
            let [row, column] = self.strides_of_a(order);
            row * rows + column * self.depth() / self.contraction.group()
        });
        let line = i64::from(LINE_BYTES) / element_bytes(self.packed) as i64;
        whole_pieces(elements[0].max(elements[1]), line)
    }

    /// Bytes of scratch memory for the packed factors of one matrix.
    fn packed_bytes(&self) -> [u64; 2] {
        let slots = self.kept_a.as_ref().map_or(1, KeptLeft::all_slots);
        let places = self.kept_b.as_ref().map_or(1, |kept| kept.places);
        [slots * self.slot(), places * self.packed_b()]
            .map(|elements| elements as u64 * element_bytes(self.packed))
    }
}

fn shape(instance: &Instance, value: ValueId) -> Vec<i64> {
    match instance.ty(value) {
        Type::Tile(ty) => extents(&ty.shape),
        _ => unreachable!("verified: `mma` multiplies tiles"),
    }
}

/// What an `mma` multiplies.
fn operands(instance: &Instance, data: &OpData) -> Operands {
    let dtype = |value| instance.ty(value).elem().known().expect("an instance has no dtype parameters");
    let [.., m, k] = shape(instance, data.operands[0])[..] else {
        unreachable!("verified: `mma` has matrices")
    };
    let factors = [0, 1].map(|i| dtype(data.operands[i]));
    Operands { factors, sum: dtype(data.results[0]), rows: m, depth: k }
}

/// Whether a level multiplies a product of an instance as those below it don't.
pub(in super::super) fn gain(instance: &Instance, level: &CpuLevel) -> bool {
    let all: Vec<&str> = level.all_features().collect();
    let ops = instance.walk().into_iter().map(|op| instance.op(op));
    ops.filter(|data| data.op == Op::Mma).any(|data| {
        let with = |features: &[&str]| {
            let has = |feature: &str| features.contains(&feature);
            Contraction::of(operands(instance, data), level.lanes as i64, has)
        };
        with(&all) != with(&all[level.features.len()..])
    })
}

/// What is known of an instance's products, by the tile that each gives.
pub(in super::super) struct Products<'a> {
    plans: HashMap<ValueId, Plan>,
    /// Loops that add products to a tile, by the tile that the loop gives.
    accumulations: HashMap<ValueId, Accumulation<'a>>,
}

impl<'a> Products<'a> {
    pub(in super::super) fn of(instance: &'a Instance, fusion: &Fusion<'a>, machine: &Machine) -> Self {
        let mut products = Products { plans: HashMap::new(), accumulations: HashMap::new() };
        products.collect(instance, None, instance.body(), fusion, machine);
        products
    }

    /// Those in a region, of the op around them.
    fn collect(
        &mut self,
        instance: &'a Instance,
        around: Option<&OpData>,
        region: RegionId,
        fusion: &Fusion<'a>,
        machine: &Machine,
    ) {
        for &op in &instance.region(region).ops {
            let data = instance.op(op);
            if data.op == Op::Mma {
                let mut plan = Plan::of(instance, data, machine).alone();
                plan.lasting = Lasting::of(instance, fusion, around, data).filter(|_| plan.batch == 1);
                self.plans.entry(data.results[0]).or_insert(plan);
            }
            let found = accumulation(instance, fusion, data).map(|found| {
                let plan = Plan::of(instance, found.product, machine);
                (found, plan)
            });
            let is_packed =
                |(found, plan): &(Accumulation<'_>, Plan)| !reads_stored_columns(fusion, found.product, plan);
            if let Some((accumulation, mut plan)) = found.filter(is_packed) {
                let bytes = plan.slot() as u64 * element_bytes(plan.packed);
                plan.kept_a = KeptLeft::of(instance, fusion, data, accumulation.product, bytes);
                plan.kept_b = KeptRight::of(instance, fusion, accumulation.product, &plan);
                plan.beside = plan.kept_b.is_some() && is_packed_beside(fusion, accumulation.product, &plan);
                self.plans.insert(accumulation.product.results[0], plan);
                self.accumulations.insert(data.results[0], accumulation);
            }
            for &inner in &data.regions {
                self.collect(instance, Some(data), inner, fusion, machine);
            }
        }
    }

    /// How the `mma` that gives this tile is computed.
    pub(in super::super) fn plan(&self, product: ValueId) -> &Plan {
        self.plans.get(&product).expect("every `mma` has a plan")
    }

    /// What is kept of products' factors.
    pub(super) fn remembered(&self) -> Vec<Remembered<'_>> {
        let mut all: Vec<Remembered<'_>> = self
            .plans
            .iter()
            .map(|(&product, plan)| Remembered {
                product,
                left: plan.kept_a.as_ref(),
                right: plan.kept_b.as_ref(),
            })
            .collect();
        all.sort_unstable_by_key(|remembered| remembered.product);
        all
    }

    /// Whether any is of tiles in registers.
    pub(in super::super) fn have_tiles(&self) -> bool {
        self.plans.values().any(|plan| plan.contraction.tiles().is_some())
    }

    /// Whether a range of blocks should go down the columns of the grid: what is packed of `b` stays, and `a` isn't packed.
    pub(in super::super) fn go_down(&self) -> bool {
        self.plans.values().any(|plan| plan.kept_b.is_some() && plan.contraction.tiles().is_some())
    }

    /// The loop that gives this tile, if all it does is to add products to it.
    pub(in super::super) fn accumulation(&self, result: ValueId) -> Option<&Accumulation<'a>> {
        self.accumulations.get(&result)
    }

    /// Whether a product's factors are packed in a loop that adds it to a tile.
    pub(in super::super) fn is_accumulated(&self, product: ValueId) -> bool {
        self.accumulations.values().any(|accumulation| accumulation.product.results[0] == product)
    }

    /// Bytes of scratch memory for the packed factors of an `mma`: of those that it is given in memory where it can read
    /// them, none.
    pub(in super::super) fn packed_bytes(
        &self,
        instance: &Instance,
        fusion: &Fusion<'a>,
        data: &OpData,
    ) -> [u64; 2] {
        let plan = self.plan(data.results[0]);
        let [a, b] = plan.packed_bytes();
        let read_in_place = super::factor::is_read_in_place(instance, fusion, plan, data.operands[0]);
        [if read_in_place { 0 } else { a }, b]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_shared_out_evenly() {
        let block = RegisterBlock { rows: 12, vectors: 2, lanes: 16, steps: 1 };
        assert_eq!(block.rows_of(24), BlocksOfRows { rows: 12, blocks: 2, high: 2 });
        assert_eq!(block.rows_of(128), BlocksOfRows { rows: 12, blocks: 11, high: 7 });
        assert_eq!(block.rows_of(13), BlocksOfRows { rows: 7, blocks: 2, high: 1 });
        assert_eq!(block.rows_of(1), BlocksOfRows { rows: 1, blocks: 1, high: 1 });
    }

    #[test]
    fn blocks_of_few_rows_are_wide() {
        let block = RegisterBlock { rows: 12, vectors: 2, lanes: 16, steps: 1 };
        let vectors = |m, n| block.of_shape([m, n], 4).vectors;
        assert_eq!([1, 2, 4, 8, 12, 128].map(|m| vectors(m, 256)), [16, 8, 4, 2, 2, 4]);
        assert_eq!(vectors(1, 64), 4, "as wide as the product");
        assert_eq!(vectors(1, 8), 2);
    }

    #[test]
    fn blocks_are_as_wide_as_leaves_no_columns_over() {
        let block = RegisterBlock { rows: 12, vectors: 2, lanes: 16, steps: 1 };
        let shape = |m, n, of_right| {
            let block = block.of_shape([m, n], of_right);
            [block.rows, block.vectors]
        };
        let of_columns =
            [(16, [12, 2]), (32, [12, 2]), (33, [8, 3]), (64, [6, 4]), (65, [6, 4]), (96, [8, 3])];
        for (n, block) in of_columns.into_iter().chain([(160, [12, 2]), (176, [6, 4]), (256, [6, 4])]) {
            assert_eq!(shape(128, n, 4), block, "{n} columns");
        }
        assert_eq!(shape(128, 64, 2), [12, 2], "no registers for more of a row");
        assert_eq!(shape(12, 64, 4), [12, 2], "all rows, so that each column is read once");
    }
}
