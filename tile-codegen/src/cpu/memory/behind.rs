//! Storing one block's row while the next block computes.
//!
//! Softmax goes through a row three times: for the maximum, for the exponentials and their sum, and for the division of
//! what is stored. During the second pass memory is idle; during the third the processor waits for memory; and out-of-order
//! execution doesn't reach far enough ahead to overlap the two. So a block **leaves** its store to the range's next block,
//! whose loop of exponentials stores one line of that row per iteration.
//!
//! The block's scratch memory then has to outlive the block: blocks use two halves of it alternately. Only those lines of
//! memory are left that the row fills completely and for which all elements exist that the store reads. The last block of a
//! range leaves nothing, so that the range is complete when it ends. The delay can't be observed: the output is one that
//! the kernel doesn't read, and the kernel has no atomics.
//!
//! A row that the host's loop makes and the store reads has one place for all blocks: an iteration reads from it before it
//! writes there.
//!
//! Loops that compute little wait for memory themselves, so a store beside them only slows both down: a layer normalisation
//! in C, in which the sums' loop stored the previous row, ran at three quarters of the rate that it has when one comes
//! after the other. The exception are processors with room in their first caches, or with many outstanding requests
//! ([`crate::cpu::vectors::processor`]), if the loop prefetches what it reads itself and the store reads little.

use super::buffer::{Buffers, Elsewhere};
use super::parts::{Bounds, Covering, Row, RowLoop};
use super::scratch::{Place, Scratch};
use super::streaming::{self, LineStart, Lines, RowLines};
use crate::cpu::fuse::{Fusion, is_reduction_of_rows};
use crate::cpu::lines::reduce::lanes_of;
use crate::cpu::region::{Emitter, extents, tile_bytes};
use crate::cpu::vectors::processor::{BesideStore, Processor};
use crate::emit::Ir;
use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue, VectorValue};
use tile_ir::abi::KernelAbi;
use tile_ir::kernel::OpData;
use tile_ir::view::Source;
use tile_ir::{Instance, Op};

/// The most scratch memory of a block that has two halves: what the second cache has room for beside the rows.
const MOST_BYTES: u64 = 128 << 10;

/// What comes between the halves, beyond whole pages: loads are checked against earlier stores by the lowest twelve bits of
/// the address, and loops over one half read while they write the other.
const APART: u64 = 2048;

const PAGE_BYTES: u64 = 4096;

/// A store that the next block does, and the reduction in whose loop it does.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Behind<'a> {
    store: &'a OpData,
    host: &'a OpData,
    /// How many bytes ahead of itself the host asks, where it waits for memory.
    asks_ahead: Option<i64>,
    /// The row that the store reads and the host's loop writes, which both blocks have in one place: what is read in a turn of
    /// that loop lies where the turn writes, or further on.
    in_place: Option<Place>,
}

/// Bytes from one half of scratch memory to the other.
fn distance(scratch_bytes: u64) -> u64 {
    scratch_bytes.next_multiple_of(PAGE_BYTES) + APART
}

/// Scratch memory of blocks of which each has so much.
pub(in crate::cpu) fn bytes(behind: Option<Behind<'_>>, scratch_bytes: u64) -> u64 {
    behind.map_or(0, |_| distance(scratch_bytes)) + scratch_bytes
}

/// The half of scratch memory that the block of a number has, and that which the block before has; the first one is at `base`.
pub(in crate::cpu) fn halves<'a, 'c>(
    ir: &'a Ir<'c>,
    instance: &Instance,
    scratch: &'a Scratch,
    behind: Option<Behind<'_>>,
    base: PointerValue<'c>,
    number: IntValue<'c>,
) -> [Buffers<'a, 'c>; 2] {
    let of = |half, in_place| Buffers::new(ir, instance, scratch, half, in_place);
    let Some(behind) = behind else { return [base; 2].map(|base| of(base, None)) };
    let is_odd = ir.and(number, ir.i64(1));
    let distance = ir.i64(distance(scratch.bytes()) as i64);
    let offset = ir.mul(is_odd, distance);
    let in_place = behind.in_place.map(|place| Elsewhere { place, base });
    [offset, ir.sub(distance, offset)].map(|offset| of(ir.bytes_further(base, offset), in_place))
}

/// The number of the block before; the first of a range has none, and is given its own.
pub(in crate::cpu) fn block_before<'c>(
    ir: &Ir<'c>,
    number: IntValue<'c>,
    first: IntValue<'c>,
) -> IntValue<'c> {
    let has_one = ir.icmp(IntPredicate::UGT, number, first);
    ir.sub(number, ir.zext_or_trunc(has_one, 64))
}

/// What a kernel's blocks leave to the next, if they do.
pub(in crate::cpu) fn decide<'a>(
    instance: &'a Instance,
    fusion: &Fusion<'a>,
    scratch: &Scratch,
    processor: &Processor,
) -> Option<Behind<'a>> {
    let abi = KernelAbi::of(instance);
    let ops: Vec<&OpData> = instance.region(instance.body()).ops.iter().map(|&op| instance.op(op)).collect();
    let is_plain = ops.iter().all(|data| data.regions.is_empty() && !matches!(data.op, Op::Mma | Op::Item));
    if abi.persistent || abi.logs || !is_plain || scratch.bytes() > MOST_BYTES {
        return None;
    }
    let mut stores = ops.iter().copied().filter(|data| data.op.is_store());
    let store = stores.next().filter(|store| stores.next().is_none() && is_left(instance, fusion, store))?;
    let loops: Vec<&OpData> = ops
        .iter()
        .copied()
        .filter(|data| is_reduction_of_rows(instance, data) && !fusion.is_hosted(data))
        .filter(|data| fusion.shape_of(data.operands[0]) == fusion.shape_of(store.operands[1]))
        .collect();
    let computes = |host: &&OpData| {
        std::iter::once(*host).chain(fusion.hosted_by(host)).any(|data| fusion.computes_functions(data))
    };
    let ahead_of = |beside: BesideStore| {
        let rows = fusion.streams_of(store);
        let longest = rows.iter().map(|load| tile_bytes(instance, load.results[0])).max().unwrap_or(0);
        beside.ahead_in(longest).filter(|_| rows.len() <= BesideStore::MOST_ROWS)
    };
    let reads = || match (loops.as_slice(), processor.prefetching.beside_store) {
        ([only], Some(beside)) => ahead_of(beside).map(|ahead| (*only, ahead)),
        _ => None,
    };
    let (host, asks_ahead) = match loops.iter().copied().rfind(computes) {
        Some(computing) => (computing, None),
        None => reads().map(|(host, ahead)| (host, Some(ahead)))?,
    };
    Some(Behind { store, host, asks_ahead, in_place: place_of_row(fusion, scratch, [host, store]) })
}

/// The place of the row that a host's loop writes and a store reads, if nothing else is ever written there, and each element
/// is read where it is needed.
fn place_of_row<'a>(fusion: &Fusion<'a>, scratch: &Scratch, [host, store]: [&'a OpData; 2]) -> Option<Place> {
    let row = fusion.made_by(host)?.results[0];
    let reads = fusion.reads(store);
    let is_in_place = reads.iter().filter(|read| read.tile == row).all(|read| read.in_place);
    scratch.own_place(row).filter(|_| is_in_place)
}

/// Whether a store is of one row, in whole lines, of a tile that is read from scratch memory and tensors, to an output that
/// nobody reads meanwhile.
fn is_left<'a>(instance: &'a Instance, fusion: &Fusion<'a>, store: &'a OpData) -> bool {
    let tile = instance.ty(store.operands[1]).as_tile().expect("verified: a tile is stored");
    let elem = tile.elem.known().expect("an instance has no dtype parameters");
    let shape = extents(&tile.shape);
    let (&width, rows) = shape.split_last().expect("verified: a tile has rank 1 or more");
    let source = Source::reached_by(instance, store).expect("a store reaches a tensor");
    let view = instance.ty(store.operands[0]).as_partition().expect("verified: a view");
    let is_dense = view.tensor.layout.is_none() && source.selections.is_empty();
    is_dense
        && rows.iter().all(|&extent| extent == 1)
        && streaming::elements_of_line(width, elem).is_some()
        && !fusion.computes_functions(store)
        && fusion.row_gathers_of(store).is_empty()
        && streaming::written(instance).contains(&source.argument)
}

/// A row whose lines were left, and how many elements of it.
#[derive(Clone)]
pub(in crate::cpu) struct Left<'c> {
    lines: Lines<'c>,
    elements: IntValue<'c>,
    /// Whether every turn of the loop has some of them.
    is_whole: bool,
}

/// What a turn of a loop stores of such a row.
pub(in crate::cpu) struct LeftLine<'c> {
    /// Whether there is something; `None` where there is in every turn.
    is_left: Option<IntValue<'c>>,
    turn: IntValue<'c>,
    elements: VectorValue<'c>,
}

/// The block before, as the next one knows it.
pub(in crate::cpu) struct Previous<'a, 'c> {
    behind: Behind<'a>,
    /// Emits what the block before would: it has that block's index, and its half of scratch memory.
    emitter: Box<Emitter<'a, 'c>>,
    /// Whether it left its store.
    has_left: IntValue<'c>,
    /// Whether there is a next block in the range, to leave a store to.
    has_next: IntValue<'c>,
    /// While the loop is emitted that stores them, the lines that were left.
    left: Option<Left<'c>>,
    /// Whether this block leaves its own store, once that is known.
    pub(in crate::cpu) leaves: Option<IntValue<'c>>,
}

impl<'a, 'c> Previous<'a, 'c> {
    /// The block before, by an emitter that has emitted nothing yet; whether it left its store, and whether there is a next.
    pub(in crate::cpu) fn new(
        behind: Behind<'a>,
        mut emitter: Emitter<'a, 'c>,
        [has_left, has_next]: [IntValue<'c>; 2],
    ) -> Self {
        let instance = emitter.instance;
        for &op in &instance.region(instance.body()).ops {
            let data = instance.op(op);
            if !data.results.is_empty() && !data.results.iter().any(|&result| emitter.is_tile(result)) {
                emitter.op(data);
            }
        }
        Previous { behind, emitter: Box::new(emitter), has_left, has_next, left: None, leaves: None }
    }

    /// The row whose lines the block before left. What doesn't change along it is read once.
    fn left(&mut self) -> Left<'c> {
        let (ir, emitter, store) = (self.emitter.ir, &mut self.emitter, self.behind.store);
        for load in emitter.fusion.streams_of(store) {
            let window = emitter.window_of(load);
            emitter.open_stream(load, &window, Bounds::Unchecked);
        }
        emitter.read_single_elements(store.operands[1]);
        let window = emitter.window_of(store);
        let row = Row { index: &row_index(ir, window.shape()), whole: false };
        let lines = emitter.lines_of_row(&window, row, lanes_of(window.width()));
        let elements = ir.select_int(self.has_left, ir.sub(lines.rest, lines.first), ir.i64(0));
        Left { lines, elements, is_whole: false }
    }
}

/// The index of the one row of a tile of these extents.
fn row_index<'c>(ir: &Ir<'c>, shape: &[i64]) -> Vec<IntValue<'c>> {
    vec![ir.i64(0); shape.len() - 1]
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// The reduction whose loop reads from memory, stores what the block before left, and asks for what it reads itself; and how
    /// many bytes ahead it does.
    pub(in crate::cpu) fn host_that_asks(&self) -> Option<(&'a OpData, i64)> {
        let behind = self.previous.as_ref()?.behind;
        Some((behind.host, behind.asks_ahead?))
    }

    /// The store that this block leaves to the next one, if it does.
    pub(in crate::cpu) fn left_store(&self) -> Option<&'a OpData> {
        self.previous.as_ref().map(|previous| previous.behind.store)
    }

    /// Emits the loops of an op over rows of a shape; where these are the ones for it, they also store the lines that the block
    /// before left. Mostly all turns have some, and all that the loops read exists: for that case they are emitted without a
    /// question in them. `emit` is told whether all exists.
    pub(in crate::cpu) fn beside_store(
        &mut self,
        data: &'a OpData,
        shape: &[i64],
        emit: &mut dyn FnMut(&mut Self, bool),
    ) {
        let is_host = |previous: &&mut Previous<'a, 'c>| std::ptr::eq(previous.behind.host, data);
        let Some(previous) = self.previous.as_mut().filter(is_host) else { return emit(self, false) };
        let (ir, left) = (previous.emitter.ir, previous.left());
        let &width = shape.last().expect("verified: the reduced axis exists");
        let (lanes, index) = (lanes_of(width), row_index(ir, shape));
        let row = Row { index: &index, whole: false };
        let covers = self.covering(RowLoop { data, shape, row, lanes }, ir.i64(width)).covers;
        let has_all = ir.icmp(IntPredicate::EQ, left.elements, ir.i64(width / lanes * lanes));
        let conditions = [covers, left.lines.streams].into_iter().flatten();
        let is_whole = conditions.fold(has_all, |all, condition| ir.and(all, condition));
        ir.on_each_side(is_whole, |is_whole| {
            let mut left = left.clone();
            left.is_whole = is_whole;
            left.lines.streams =
                left.lines.streams.map(|streams| if is_whole { ir.bool(true) } else { streams });
            self.give_left(Some(left));
            emit(self, is_whole);
            self.give_left(None);
        });
    }

    /// While a loop is emitted again, what the block before left has been stored.
    pub(in crate::cpu) fn take_left(&mut self) -> Option<Left<'c>> {
        self.previous.as_mut().and_then(|previous| previous.left.take())
    }

    /// Ends that.
    pub(in crate::cpu) fn give_left(&mut self, left: Option<Left<'c>>) {
        if let Some(previous) = &mut self.previous {
            previous.left = left;
        }
    }

    /// In the turn of a loop for the elements from one on: as many of the row whose lines the block before left, if this is the
    /// loop that stores them. They are read before the turn writes to the row's place.
    pub(in crate::cpu) fn read_behind(&mut self, turn: IntValue<'c>) -> Option<LeftLine<'c>> {
        let ir = self.ir;
        let Previous { behind, emitter, left: Some(left), .. } = self.previous.as_mut()? else { return None };
        let (lines, value) = (&left.lines, behind.store.operands[1]);
        let row = row_index(ir, lines.window.shape());
        let rows = [RowLines { lines: lines.clone(), value }];
        let start = LineStart { base: lines.first, further: turn };
        let mut read = || emitter.line_elements(&rows, &row, start)[0];
        if left.is_whole {
            return Some(LeftLine { is_left: None, turn, elements: read() });
        }
        let is_left = ir.icmp(IntPredicate::ULT, turn, left.elements);
        let none = lines.vector(ir).const_zero().into();
        let elements = ir.if_else(is_left, || vec![read().into()], || vec![none])[0].into_vector_value();
        Some(LeftLine { is_left: Some(is_left), turn, elements })
    }

    /// Stores what was read in this turn. At its end: tensors' rows mostly begin pages, and a load waits for an earlier store
    /// whose address has the same lowest twelve bits.
    pub(in crate::cpu) fn store_behind(&mut self, line: Option<LeftLine<'c>>) {
        let (ir, Some(LeftLine { is_left, turn, elements })) = (self.ir, line) else { return };
        let Some(Previous { emitter, left: Some(Left { lines, .. }), .. }) = &self.previous else { return };
        let start = LineStart { base: lines.first, further: turn };
        let put = || emitter.put_line(lines, elements, start);
        match is_left {
            Some(is_left) => ir.if_then(is_left, put),
            None => put(),
        }
    }

    /// Whether the block leaves the lines of its row to the next, if a store is one that may be left.
    pub(in crate::cpu) fn leaves(
        &mut self,
        data: &'a OpData,
        covering: &Covering<'a, 'c>,
    ) -> Option<IntValue<'c>> {
        let is_store = |previous: &&mut Previous<'a, 'c>| std::ptr::eq(previous.behind.store, data);
        let previous = self.previous.as_mut().filter(is_store)?;
        let has_next = previous.has_next;
        previous.leaves = Some(covering.covers.map_or(has_next, |covers| self.ir.and(covers, has_next)));
        previous.leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::compiled::{launch, machine};
    use crate::cpu::product::Products;
    use tile_test_edit::Edit;

    /// Of rows in tiles of so many: `x − max x`, then what the body makes `%r` of it, as `%d`.
    fn kernel(rows: usize, body: &str) -> String {
        let tile = format!("tile<{rows} x 256 x f32>");
        format!(
            "kernel @k(%x: tensor<64 x 256 x f32>, %y: mut tensor<64 x 256 x f32>) {{
  %vx = partition %x [{rows}, 256] : partition<64 x 256 x f32, [{rows}, 256]>
  %vy = partition %y [{rows}, 256] : mut partition<64 x 256 x f32, [{rows}, 256]>
  %i, %j = block_index %vy : index, index
  %t = load %vx[%i, %j] : {tile}
  %m = reduce max %t axis 1 : tile<{rows} x 1 x f32>
  %mb = broadcast %m : {tile}
  %d = sub %t, %mb : {tile}
{body}  %s = reduce sum %e axis 1 : tile<{rows} x 1 x f32>
  %sb = broadcast %s : {tile}
  %r = div %e, %sb : {tile}
  store %vy, %r
}}
"
        )
        .edit("TILE", &tile)
    }

    /// Bytes of scratch memory that a kernel's blocks have, in code for a level.
    fn scratch_bytes_at(level: &str, source: &str) -> u64 {
        launch(&Instance::parse(source, &[]).unwrap(), level).scratch_bytes
    }

    fn scratch_bytes(source: &str) -> u64 {
        scratch_bytes_at("x86-64-v3", source)
    }

    /// A row of 1 KiB, the maximum and the sum; two such halves are 2 KiB more than a page apart.
    #[test]
    fn a_row_is_left_where_the_next_blocks_loop_computes_functions() {
        let own = 1024 + 2 * 64;
        let exponentials = kernel(1, "  %e = exp %d : TILE\n");
        assert_eq!(scratch_bytes(&exponentials), 4096 + 2048 + own);
        let squares = kernel(1, "  %e = mul %d, %d : TILE\n");
        assert_eq!(scratch_bytes(&squares), own, "loops that wait for memory store nothing besides");
        let rows = kernel(2, "  %e = exp %d : TILE\n");
        assert_eq!(scratch_bytes(&rows), 2 * 1024 + 2 * 64, "two rows");
    }

    #[test]
    fn outputs_that_blocks_read_or_that_wait_for_others_are_not_left() {
        let own = 1024 + 2 * 64;
        let source = kernel(1, "  %e = exp %d : TILE\n");
        let read = source.edit("%t = load %vx[%i, %j]", "%t = load %vy");
        assert_eq!(scratch_bytes(&read), own, "a tile of the output");
        let twice = source.edit("  store %vy, %r\n", "  store %vy, %r\n  store %vy, %e\n");
        assert_eq!(scratch_bytes(&twice), own, "two stores");
        let said = source.edit("  store", "  print 0 \"done\"\n  store");
        assert_eq!(scratch_bytes(&said), own, "a message");
    }

    /// A row by the root of its squares' sum, times so many weights.
    fn scaled(weights: usize) -> String {
        let each = |line: &dyn Fn(usize) -> String| (0..weights).map(line).collect::<String>();
        let parameters = each(&|i| format!("%w{i}: tensor<1 x 256 x f32>, "));
        let factors = each(&|i| {
            format!(
                "  %v{i} = partition %w{i} [1, 256] : partition<1 x 256 x f32, [1, 256]>
  %t{i} = load %v{i}[%0, %0] : tile<1 x 256 x f32>
  %r{} = mul %r{i}, %t{i} : tile<1 x 256 x f32>
",
                i + 1
            )
        });
        format!(
            "kernel @k(%x: tensor<64 x 256 x f32>, {parameters}%y: mut tensor<64 x 256 x f32>) {{
  %vx = partition %x [1, 256] : partition<64 x 256 x f32, [1, 256]>
  %vy = partition %y [1, 256] : mut partition<64 x 256 x f32, [1, 256]>
  %i, %j = block_index %vy : index, index
  %0 = constant 0 : index
  %t = load %vx[%i, %j] : tile<1 x 256 x f32>
  %e = mul %t, %t : tile<1 x 256 x f32>
  %s = reduce sum %e axis 1 : tile<1 x 1 x f32>
  %k = rsqrt %s : tile<1 x 1 x f32>
  %kb = broadcast %k : tile<1 x 256 x f32>
  %r0 = mul %t, %kb : tile<1 x 256 x f32>
{factors}  store %vy, %r{weights}
}}
"
        )
    }

    /// Two halves of the sum, whose place the root takes over, a page and 2 KiB apart.
    #[test]
    fn a_row_is_left_to_a_loop_that_reads_where_rows_are_brought_near() {
        let own = 64;
        assert_eq!(scratch_bytes_at("x86-64-v4-rows", &scaled(1)), 4096 + 2048 + own);
        assert_eq!(scratch_bytes_at("x86-64-v4-pairs", &scaled(1)), own, "a small first cache");
        assert_eq!(
            scratch_bytes_at("x86-64-v4", &scaled(1)),
            4096 + 2048 + own,
            "where stores keep loads waiting"
        );
        assert_eq!(scratch_bytes_at("x86-64-v4-rows", &scaled(2)), own, "three rows to read");
        let wide = |level| scratch_bytes_at(level, &scaled(1).edit("256", "8192"));
        assert_eq!(scratch_bytes_at("x86-64-v4-tiles", &scaled(1)), 4096 + 2048 + own);
        assert_eq!(wide("x86-64-v4-tiles"), own, "more than the first cache has room for");
        assert_eq!(wide("x86-64-v4-rows"), 4096 + 2048 + own);
    }

    /// As much as comes while the loop goes through it; long rows leave less room for it in the first cache.
    #[test]
    fn a_loop_that_stores_asks_less_far_ahead_in_long_rows() {
        let asks_ahead = |level: &str, columns: usize| {
            let source = scaled(1).edit("256", &columns.to_string());
            decided(&Instance::parse(&source, &[]).unwrap(), level, |behind| behind?.asks_ahead)
        };
        assert_eq!(asks_ahead("x86-64-v4-rows", 4096), Some(8 << 10));
        assert_eq!(asks_ahead("x86-64-v4-rows", 8192), Some(4 << 10));
        assert_eq!(asks_ahead("x86-64-v4", 4096), Some(4 << 10));
        assert_eq!(asks_ahead("x86-64-v4-tiles", 8192), None, "nothing is left");
    }

    /// What is seen of a decision for a level.
    fn decided<T>(instance: &Instance, level: &str, seen: impl Fn(Option<Behind<'_>>) -> T) -> T {
        let machine = machine(level);
        let fusion = Fusion::of(instance);
        let products = Products::of(instance, &fusion, &machine);
        let scratch = Scratch::of(instance, &fusion, &products);
        seen(decide(instance, &fusion, &scratch, &Processor::of(&machine)))
    }

    /// The row of exponentials is read where it is overwritten; one that takes over the place of a row which is made before
    /// the host's loop isn't.
    #[test]
    fn the_row_that_is_left_lies_where_the_next_ones_is_written() {
        let in_place = |source: &str| {
            let instance = Instance::parse(source, &[]).unwrap();
            decided(&instance, "x86-64-v3", |behind| behind.unwrap().in_place.is_some())
        };
        assert!(in_place(&kernel(1, "  %e = exp %d : TILE\n")));
        let early = "  %a = exp %d : TILE
  %w = reduce min %a axis 1 : tile<1 x 1 x f32>
  %wb = broadcast %w : TILE
  %b = sub %a, %wb : TILE
  %e = exp %b : TILE
";
        assert!(!in_place(&kernel(1, early)));
    }
}
