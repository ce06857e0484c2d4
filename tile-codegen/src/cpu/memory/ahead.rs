//! Prefetching, while a block computes, of the rows that the next block reads; of short rows, those that a later block
//! reads.
//!
//! A block that goes over its rows several times waits for memory on the first pass and computes on the later ones, when
//! memory is idle: the processor's own prefetchers look ahead along a row, but not from block to block. So the loops over
//! such rows also prefetch the rows that the range's next block will read, each loop a share of them. If some of these
//! loops compute functions (exponentials and the like), only those prefetch: their computations take longer than the lines
//! take to arrive, whereas loops that wait for the second cache or for memory have no time to spare. The rows go to the
//! second cache, because this block's rows are in the first.
//!
//! Which loops prefetch, and into which cache, depends on the processor (`vectors/processor.rs`). Where the first cache has
//! room for further rows, they go there, and only the last loop over a row prefetches, because it waits for its stores. A
//! loop that reads one row while it stores the previous block's ([`super::behind`]) prefetches what it reads itself, some
//! KiB ahead.
//!
//! A block that goes over its rows once leaves prefetching to the processor, or, if it streams its stores past the caches
//! and the processor gains by it, prefetches some KiB ahead of itself. One that transposes its tile, whose rows are too
//! short for the processor's prefetchers, has prefetches of its own ([`super::pieces`]).

use super::parts::Bounds;
use super::views::Window;
use crate::cpu::LINE_BYTES;
use crate::cpu::fuse::{Fusion, is_reduction_of_rows, is_tile};
use crate::cpu::region::{Emitter, tile_bytes};
use crate::cpu::vectors::processor::{LONGEST_NEAR, RowsAhead};
use inkwell::values::IntValue;
use tile_ir::kernel::OpData;
use tile_ir::ops::elementwise::Cost;
use tile_ir::{Instance, Op, RegionId, ValueId};

/// How far ahead at least, in bytes of what blocks read: what is asked for takes as long to come as some KiB to go through.
const BYTES_AHEAD: u64 = 8 << 10;

/// How many blocks ahead the rows are that a block asks for. Products ask for the next block's factors.
pub(in crate::cpu) fn blocks_ahead(instance: &Instance) -> u64 {
    let ops: Vec<&OpData> = instance.walk().into_iter().map(|op| instance.op(op)).collect();
    if ops.iter().any(|data| data.op == Op::Mma) {
        return 1;
    }
    let loads = ops.into_iter().filter(|data| data.op.is_load());
    let tiles = loads.map(|load| load.results[0]).filter(|&value| is_tile(instance, value));
    let bytes = tiles.map(|tile| tile_bytes(instance, tile) as u64);
    BYTES_AHEAD.div_ceil(bytes.max().unwrap_or(BYTES_AHEAD)).max(1)
}

/// Whether a kernel stores what reductions of rows, and no products, give: whether there may be rows to bring near.
pub(in crate::cpu) fn reduces_rows(instance: &Instance) -> bool {
    let ops: Vec<&OpData> = instance.walk().into_iter().map(|op| instance.op(op)).collect();
    ops.iter().any(|data| is_reduction_of_rows(instance, data))
        && ops.iter().any(|data| data.op.is_store())
        && ops.iter().all(|data| data.op != Op::Mma)
}

/// Whether a kernel stores what it loads, and has no products: whether there may be anything to ask memory for.
pub(in crate::cpu) fn moves_rows(instance: &Instance) -> bool {
    let ops: Vec<&OpData> = instance.walk().into_iter().map(|op| instance.op(op)).collect();
    let has = |is: fn(&Op) -> bool| ops.iter().any(|data| is(&data.op));
    has(Op::is_load) && has(Op::is_store) && !has(|op| *op == Op::Mma)
}

/// What a later block reads, or the same loop later, and which loops ask for it.
#[derive(Clone)]
pub(in crate::cpu) struct Ahead<'a, 'c> {
    windows: Vec<Window<'c>>,
    /// How many bytes beyond these windows' places.
    beyond: i64,
    /// The loops that ask, in order, and for how many shares each.
    asking: Vec<(&'a OpData, i64)>,
    /// The shares of the loop that is emitted now, if it asks: from and to.
    now: Option<[i64; 2]>,
    /// Whether they ask only where they store past the caches.
    only_where_streamed: bool,
}

/// A turn of a loop along a row of a tile.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct RowTurn<'r, 'c> {
    /// The tile's extents.
    pub(in crate::cpu) shape: &'r [i64],
    /// The row's index along all axes but the last.
    pub(in crate::cpu) row: &'r [IntValue<'c>],
    /// The first element that the turn handles, and how many it does.
    pub(in crate::cpu) first: IntValue<'c>,
    pub(in crate::cpu) count: i64,
}

impl<'a, 'c> Ahead<'a, 'c> {
    /// The shares of a loop, if it asks: from and to.
    fn shares_of(&self, data: &OpData) -> Option<[i64; 2]> {
        let number = self.asking.iter().position(|(asking, _)| std::ptr::eq(*asking, data))?;
        let before = self.asking[..number].iter().map(|(_, shares)| shares).sum();
        Some([before, before + self.asking[number].1])
    }

    /// What a loop itself reads, so many bytes further on.
    fn of_itself(data: &'a OpData, windows: Vec<Window<'c>>, beyond: i64) -> Self {
        Ahead { windows, beyond, asking: vec![(data, 1)], now: None, only_where_streamed: false }
    }
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Finds what the loops from this op of a region on may bring near.
    pub(in crate::cpu) fn look_ahead(&mut self, data: &'a OpData, region: RegionId) {
        if self.ahead.is_none() && self.goes_over_rows(data) {
            self.ahead = self.rows_ahead(data, region).or_else(|| self.read_once(data, region));
        }
        if let Some(ahead) = &mut self.ahead {
            ahead.now = ahead.shares_of(data);
        }
    }

    /// What the loops from this op on bring near for a later block, if it is the first that reads a tile which others read
    /// again, or that it computes functions of and others go on with.
    fn rows_ahead(&self, data: &'a OpData, region: RegionId) -> Option<Ahead<'a, 'c>> {
        if let Some((host, bytes)) = self.host_that_asks() {
            // Loops over other rows may come before it, and before what its loads are given.
            let windows = self.fusion.streams_of(host).into_iter().map(|load| self.window_if_known(load));
            return Some(Ahead::of_itself(host, windows.collect::<Option<_>>()?, bytes));
        }
        let computes = self.fusion.computes_functions(data);
        let is_wanted = |load: &&OpData| computes || self.fusion.use_count(load.results[0]) > 1;
        let loads = self.fusion.streams_of(data).into_iter().filter(is_wanted);
        let windows: Vec<Window<'c>> = loads.filter_map(|load| self.window_ahead(load)).collect();
        let ops = self.instance.region(region).ops.iter().map(|&op| self.instance.op(op));
        let rest = ops.skip_while(|op| !std::ptr::eq(*op, data));
        let is_left = |op: &OpData| self.left_store().is_some_and(|left| std::ptr::eq(left, op));
        let loops: Vec<&'a OpData> = rest.filter(|op| self.goes_over_rows(op) && !is_left(op)).collect();
        let computing: Vec<&'a OpData> =
            loops.iter().copied().filter(|op| self.fusion.computes_functions(op)).collect();
        let pays = !windows.is_empty() && loops.len() > 1;
        let rows = |op: &OpData| self.shape(op.operands[usize::from(op.op.is_store())]);
        let are_long = windows.iter().any(|window| window.row_bytes() > LONGEST_NEAR);
        let last = || loops.iter().copied().rfind(|op| rows(op) == rows(data)).into_iter().collect();
        let (asking, of_stores) = match self.processor.prefetching.rows {
            RowsAhead::Shares { of_stores } => (loops, of_stores),
            RowsAhead::SharesOfFunctions { .. } | RowsAhead::Last if !computing.is_empty() => (computing, 1),
            RowsAhead::SharesOfFunctions { of_stores } => (loops, of_stores),
            RowsAhead::Last if are_long => (loops, 1),
            RowsAhead::Last => (last(), 1),
        };
        let shares = |op: &OpData| if op.op.is_store() { of_stores } else { 1 };
        let asking = asking.into_iter().map(|op| (op, shares(op))).collect();
        pays.then_some(Ahead { windows, beyond: 0, asking, now: None, only_where_streamed: false })
    }

    /// What a store's loop is the first to read, of places that differ from block to block.
    fn read_once(&self, data: &'a OpData, region: RegionId) -> Option<Ahead<'a, 'c>> {
        let bytes = self.processor.prefetching.once.filter(|_| data.op.is_store())?;
        let ops = self.instance.region(region).ops.iter().map(|&op| self.instance.op(op));
        let before = ops.take_while(|op| !std::ptr::eq(*op, data)).filter(|op| self.goes_over_rows(op));
        let known: Vec<&OpData> = before.flat_map(|op| self.fusion.streams_of(op)).collect();
        let is_new = |load: &&OpData| !known.iter().any(|other| std::ptr::eq(*other, *load));
        let loads = self.fusion.streams_of(data).into_iter();
        let loads = loads.filter(is_new).filter(|load| !self.is_same_in_all_blocks(load));
        let windows: Vec<Window<'c>> = loads.map(|load| self.window_of(load)).collect();
        let ahead = Ahead { only_where_streamed: true, ..Ahead::of_itself(data, windows, bytes) };
        Some(ahead).filter(|ahead| !ahead.windows.is_empty())
    }

    /// Whether a load's place is made of constants.
    fn is_same_in_all_blocks(&self, load: &OpData) -> bool {
        load.load().is_some_and(|load| load.index.iter().all(|&value| self.fusion.is_constant(value)))
    }

    /// Ends the search behind the last loop that asks.
    pub(in crate::cpu) fn looked_ahead(&mut self, data: &'a OpData) {
        let is_last = |ahead: &Ahead| ahead.asking.last().is_some_and(|(last, _)| std::ptr::eq(*last, data));
        self.ahead = self.ahead.take().filter(|ahead| !is_last(ahead));
    }

    fn goes_over_rows(&self, data: &OpData) -> bool {
        let is_reduction = is_reduction_of_rows(self.instance, data) && !self.fusion.is_hosted(data);
        data.op.is_store() || is_reduction
    }

    /// Where the tile lies that the next block loads, if its place depends on the block alone.
    pub(in crate::cpu) fn window_ahead(&self, data: &'a OpData) -> Option<Window<'c>> {
        let (load, next) = (data.load()?, Some(&self.grid.tile_ahead).filter(|next| !next.is_empty())?);
        let index = load.index.iter().map(|&value| self.index_ahead(value, next));
        let index: Vec<IntValue<'c>> = index.collect::<Option<_>>()?;
        Some(self.window_at(load.view, next, &index, Bounds::Unchecked))
    }

    fn index_ahead(&self, value: ValueId, next: &[IntValue<'c>]) -> Option<IntValue<'c>> {
        let data = self.definition(value)?;
        match &data.op {
            Op::Constant { .. } => Some(self.index(value)),
            Op::BlockIndex => next.get(data.results.iter().position(|&result| result == value)?).copied(),
            _ => None,
        }
    }

    /// Asks for this loop's share of what the next block reads, in a turn. `streams` is whether its elements are stored past
    /// the caches.
    pub(in crate::cpu) fn prefetch_ahead(&self, turn: RowTurn<'_, 'c>, streams: Option<IntValue<'c>>) {
        let Some((ahead, shares)) = self.ahead.as_ref().and_then(|ahead| Some((ahead, ahead.now?))) else {
            return;
        };
        let ask = || self.ask_for_shares(ahead, shares, turn);
        match streams {
            Some(streams) if ahead.only_where_streamed => self.ir.if_then(streams, ask),
            None if ahead.only_where_streamed => {}
            _ => ask(),
        }
    }

    fn ask_for_shares(&self, ahead: &Ahead<'a, 'c>, [from, to]: [i64; 2], turn: RowTurn<'_, 'c>) {
        let (ir, Ahead { windows, beyond, asking, .. }) = (self.ir, ahead);
        let RowTurn { shape, row, first, count } = turn;
        let (own, all) = (to - from, asking.iter().map(|(_, shares)| shares).sum::<i64>());
        let is_near = self.processor.prefetching.rows == RowsAhead::Last;
        for window in windows.iter().filter(|window| window.shape() == shape) {
            let before = ir.i64(from * window.width());
            let start = ir.udiv(ir.add(ir.mul(first, ir.i64(own)), before), ir.i64(all));
            let start = self.row_element_anywhere(window, row, start);
            let bytes = count * window.dtype().bytes() as i64 * own / all;
            for line in (0..bytes.max(1)).step_by(LINE_BYTES as usize) {
                let at = ir.bytes_further(start, ir.i64(beyond + line));
                (0..self.processor.prefetching.times)
                    .for_each(|_| if is_near { ir.prefetch(at) } else { ir.prefetch_for_later(at) });
            }
        }
    }
}

impl<'a> Fusion<'a> {
    /// Whether an op's loop computes functions that take more than an instruction, and more than a division.
    pub(in crate::cpu) fn computes_functions(&self, data: &'a OpData) -> bool {
        self.computed_by(data).into_iter().any(is_function)
    }
}

/// Whether a leaf op is a function that is made of many instructions.
pub(in crate::cpu) fn is_function(data: &OpData) -> bool {
    match &data.op {
        Op::Unary(op) => op.cost() == Cost::Function,
        Op::Binary(op) => op.cost() == Cost::Function,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::compiled::assembly;
    use tile_ir::Instance;
    use tile_test_edit::Edit;

    /// A kernel that reads tiles `x` and `w` of 4 rows, whole ones, and stores `result`.
    fn kernel(body: &str) -> String {
        format!(
            "kernel @k(%x: tensor<64 x 256 x f32>, %w: tensor<64 x 256 x f32>, %y: mut tensor<64 x 256 x f32>) {{
  %vx = partition %x [4, 256] : partition<64 x 256 x f32, [4, 256]>
  %vw = partition %w [4, 256] : partition<64 x 256 x f32, [4, 256]>
  %vy = partition %y [4, 256] : mut partition<64 x 256 x f32, [4, 256]>
  %i, %j = block_index %vy : index, index
  %x1 = load %vx[%i, %j] : tile<4 x 256 x f32>
  %w1 = load %vw[%i, %j] : tile<4 x 256 x f32>
{body}  store %vy, %result
}}
"
        )
    }

    /// How many prefetches the code of a kernel for a level has.
    fn prefetches_in(level: &str, source: &str) -> usize {
        let instance = Instance::parse(source, &[]).unwrap();
        assembly(&instance, level).matches("prefetcht1").count()
    }

    fn prefetches_at(level: &str, body: &str) -> usize {
        prefetches_in(level, &kernel(body))
    }

    fn prefetches(body: &str) -> usize {
        prefetches_at("x86-64-v3", body)
    }

    /// A turn of a loop handles a line, and asks for its share of one.
    #[test]
    fn loops_that_read_rows_again_ask_for_the_next_block() {
        let (largest, difference) = (
            "  %m = reduce max %x1 axis 1 : tile<4 x 1 x f32>
  %mb = broadcast %m : tile<4 x 256 x f32>
",
            "  %d = sub %x1, %mb : tile<4 x 256 x f32>
",
        );
        let cheap = format!("{largest}{difference}  %result = mul %d, %w1 : tile<4 x 256 x f32>\n");
        assert_eq!(prefetches(&cheap), 2 * 4, "both loops ask, four times for each line");
        let exponentials = format!("{largest}{difference}  %result = exp %d : tile<4 x 256 x f32>\n");
        assert_eq!(prefetches(&exponentials), 4, "the loop that computes functions asks");
    }

    /// Long rows have no room for the next one in the first cache while a loop goes over them: each loop asks for a part.
    #[test]
    fn the_last_loop_asks_for_all_where_rows_are_brought_near_unless_they_are_long() {
        let asking_loops = |columns: usize| {
            let body = "  %m = reduce max %x1 axis 1 : tile<4 x 1 x f32>
  %mb = broadcast %m : tile<4 x 256 x f32>
  %d = sub %x1, %mb : tile<4 x 256 x f32>
  %result = mul %d, %w1 : tile<4 x 256 x f32>
";
            let source = kernel(body).edit("256", &columns.to_string());
            let code = assembly(&Instance::parse(&source, &[]).unwrap(), "x86-64-v4-rows");
            assert!(!code.contains("prefetcht1"), "{code}");
            code.matches("prefetcht0").count()
        };
        assert_eq!([256, 4096, 8192].map(asking_loops), [1, 1, 2]);
    }

    /// The host of a store asks for its own rows, wherever these lie: also where that is computed behind a loop over others.
    #[test]
    fn a_host_asks_for_rows_whose_index_comes_behind_other_rows() {
        let index = "  %two = extent 2 : index\n  %half = div %i, %two : index\n";
        let source = |[before, behind]: [&str; 2]| {
            format!(
                "kernel @k(%g: tensor<m x 64 x f32>, %x: tensor<k x 256 x f32>, %y: mut tensor<m x 256 x f32>) {{
  %vg = partition %g [1, 64] : partition<m x 64 x f32, [1, 64]>
  %vx = partition %x [1, 256] : partition<k x 256 x f32, [1, 256]>
  %vy = partition %y [1, 256] : mut partition<m x 256 x f32, [1, 256]>
  %i, %j = block_index %vy : index, index
  %zero = constant 0.0 : f32
{before}  %g1 = load_masked %vg[%i, %j] pad %zero : tile<1 x 64 x f32>
  %scale = reduce sum %g1 axis 1 : tile<1 x 1 x f32>
{behind}  %x1 = load_masked %vx[%half, %j] pad %zero : tile<1 x 256 x f32>
  %sum = reduce sum %x1 axis 1 : tile<1 x 1 x f32>
  %both = add %scale, %sum : tile<1 x 1 x f32>
  %all = broadcast %both : tile<1 x 256 x f32>
  %result = mul %x1, %all : tile<1 x 256 x f32>
  store_masked %vy, %result
}}
"
            )
        };
        for level in ["x86-64-v4", "x86-64-v4-rows", "x86-64-v4-tiles"] {
            let asks = |order| {
                let code = assembly(&Instance::parse(&source(order), &[]).unwrap(), level);
                code.matches("prefetcht").count()
            };
            let (before, behind) = (asks([index, ""]), asks(["", index]));
            assert!(before > 0 && before == behind, "{level}: {before} and {behind}");
        }
    }

    #[test]
    fn a_block_that_goes_over_its_rows_once_asks_for_nothing() {
        let sum = "  %s = add %x1, %w1 : tile<4 x 256 x f32>\n";
        for op in ["gelu", "neg", "sqrt"] {
            assert_eq!(prefetches(&format!("{sum}  %result = {op} %s : tile<4 x 256 x f32>\n")), 0, "{op}");
        }
    }

    /// For each line that it stores past the caches one of both tensors, and of nothing that it stores into them.
    #[test]
    fn what_is_read_once_is_asked_for_where_that_pays() {
        let sum = "  %result = add %x1, %w1 : tile<4 x 256 x f32>\n";
        let large = |source: &str| source.edit("64 x 256", "65536 x 256");
        assert_eq!(prefetches_at("x86-64-v4-tiles", sum), 0, "an output that caches hold");
        assert_eq!(prefetches_in("x86-64-v4-tiles", &large(&kernel(sum))), 2);
        assert_eq!(prefetches_in("x86-64-v4-rows", &large(&kernel(sum))), 0);
    }

    /// The weights that all blocks read are in a cache.
    #[test]
    fn what_all_blocks_read_is_not_asked_for() {
        let product = "  %result = mul %x1, %w1 : tile<4 x 256 x f32>\n";
        let source = kernel(product).edit("64 x 256", "65536 x 256");
        let source =
            source.edit("%w1 = load %vw[%i, %j]", "%0 = constant 0 : index\n  %w1 = load %vw[%0, %0]");
        assert_eq!(prefetches_in("x86-64-v4-tiles", &source), 1);
    }
}
