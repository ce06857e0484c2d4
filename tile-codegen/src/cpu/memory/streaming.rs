//! Stores of rows to tensors, a cache line at a time, and of large outputs past the caches.
//!
//! A store to a line that no cache holds first reads the line from memory, and then evicts another one. If all of a line is
//! written neither is needed: a **streaming** store goes to memory directly. It pays off for outputs that are larger than
//! the caches, in which nobody would find them later anyway; [`STREAMED_BYTES`] is the limit, applied when the kernel is
//! entered. Tensors that the kernel also reads aren't streamed, because their lines have been read into the caches. Lines
//! of which a row has only a part are stored as usual.
//!
//! If other threads may see streaming stores in any order (`vectors/processor.rs`), a range of blocks ends with a fence. A
//! kernel with atomics has no streaming stores, because it may signal to other blocks before that fence.

use super::ahead::RowTurn;
use super::parts::Row;
use super::views::Window;
use crate::cpu::LINE_BYTES;
use crate::cpu::elements::IndexRange;
use crate::cpu::region::Emitter;
use crate::cpu::vectors::vector_type;
use crate::emit::{Ir, LoopHint, Value};
use inkwell::IntPredicate;
use inkwell::types::VectorType;
use inkwell::values::{IntValue, PointerValue, VectorValue};
use std::collections::{HashMap, HashSet};
use tile_ir::ops::Effect;
use tile_ir::view::Source;
use tile_ir::{DType, Instance, Type, ValueId};

/// Outputs of so many bytes are streamed: as large as the last caches of most processors, of which a launch has a part.
const STREAMED_BYTES: i64 = 32 << 20;

/// The outputs that may be streamed, each with whether it is, in this launch.
pub(in crate::cpu) type Streamed<'c> = HashMap<ValueId, IntValue<'c>>;

/// Tensors that a kernel writes and doesn't read; none of a kernel with atomics.
pub(in crate::cpu) fn written(instance: &Instance) -> Vec<ValueId> {
    let (mut written, mut read) = (HashSet::new(), HashSet::new());
    for data in instance.walk().into_iter().map(|op| instance.op(op)) {
        let tensors = match data.op.effect() {
            Effect::ReadsAndWrites => return Vec::new(),
            Effect::Writes => &mut written,
            Effect::Reads => &mut read,
            Effect::None | Effect::Says | Effect::Hints | Effect::EndsRegion => continue,
        };
        tensors.extend(Source::reached_by(instance, data).map(|source| source.argument));
    }
    let mut written: Vec<ValueId> = written.difference(&read).copied().collect();
    written.sort_unstable();
    written
}

/// Decides which outputs are streamed, where the kernel is entered.
pub(in crate::cpu) fn decide<'c>(
    ir: &Ir<'c>,
    instance: &Instance,
    sizes: &HashMap<String, IntValue<'c>>,
) -> Streamed<'c> {
    let decide = |tensor: ValueId| {
        let Type::Tensor(ty) = instance.ty(tensor) else { unreachable!("verified: a tensor") };
        let dtype = ty.elem.known().expect("an instance has no dtype parameters");
        let element = ir.i64(dtype.bytes() as i64);
        let extents = ty.extents.iter().map(|dim| ir.dim(dim, &|name| sizes[name]));
        let bytes = extents.fold(element, |bytes, extent| ir.mul(bytes, extent));
        (tensor, ir.icmp(IntPredicate::UGE, bytes, ir.i64(STREAMED_BYTES)))
    };
    written(instance).into_iter().map(decide).collect()
}

/// Ends a range of blocks: what was streamed comes before what the thread does next, by this intrinsic.
pub(in crate::cpu) fn fence<'c>(ir: &Ir<'c>, streamed: &Streamed<'c>, fence: &str) {
    let mut flags: Vec<_> = streamed.iter().collect();
    flags.sort_unstable_by_key(|(tensor, _)| **tensor);
    if let Some(any) = flags.into_iter().map(|(_, &flag)| flag).reduce(|a, b| ir.or(a, b)) {
        ir.if_then(any, || {
            ir.intrinsic(fence, &[], &[]);
        });
    }
}

/// How many elements a cache line holds, where rows of so many that lie side by side are stored in cache lines.
pub(in crate::cpu) fn elements_of_line(width: i64, dtype: DType) -> Option<i64> {
    let elements = i64::from(LINE_BYTES) / dtype.bytes() as i64;
    (width >= 2 * elements).then_some(elements)
}

/// A row of a tile in its tensor, and how its elements that exist are stored: those between `first` and `rest` some at a
/// time, a line of memory or a part of one, and those before and behind one by one.
#[derive(Clone)]
pub(in crate::cpu) struct Lines<'c> {
    pub(in crate::cpu) window: Window<'c>,
    /// Of the row's first place.
    address: PointerValue<'c>,
    /// How many at a time, and where on the stack they come together.
    elements: i64,
    lanes: PointerValue<'c>,
    /// The elements that exist.
    range: IndexRange<'c>,
    pub(in crate::cpu) first: IntValue<'c>,
    pub(in crate::cpu) rest: IntValue<'c>,
    /// Whether there may be some before and behind.
    has_ends: bool,
    /// Whether those between are streamed, if the output may be.
    pub(in crate::cpu) streams: Option<IntValue<'c>>,
}

/// Where in a row a line begins: `further` elements behind place `base`. A loop over lines counts in `further`, so that the
/// address of `base` is the same in all of its turns.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct LineStart<'c> {
    pub(in crate::cpu) base: IntValue<'c>,
    pub(in crate::cpu) further: IntValue<'c>,
}

/// A row, and the tile whose elements are stored there.
#[derive(Clone)]
pub(in crate::cpu) struct RowLines<'c> {
    pub(in crate::cpu) lines: Lines<'c>,
    pub(in crate::cpu) value: ValueId,
}

impl<'c> RowLines<'c> {
    /// Those of these places alone, among which all that is stored some at a time is.
    pub(in crate::cpu) fn only(&self, places: IndexRange<'c>) -> RowLines<'c> {
        RowLines { lines: Lines { range: places, ..self.lines.clone() }, value: self.value }
    }
}

impl<'c> Lines<'c> {
    /// The type of what is stored at a time.
    pub(in crate::cpu) fn vector(&self, ir: &Ir<'c>) -> VectorType<'c> {
        vector_type(ir.storage_type(self.window.dtype()), self.elements as u32)
    }

    /// Whether some elements are stored in lines.
    pub(in crate::cpu) fn has_lines(&self, ir: &Ir<'c>) -> IntValue<'c> {
        ir.icmp(IntPredicate::ULT, self.first, self.rest)
    }

    /// Whether these places of the row are stored in lines and no others.
    pub(in crate::cpu) fn are_all_of(&self, ir: &Ir<'c>, places: IndexRange<'c>) -> IntValue<'c> {
        let begin = ir.icmp(IntPredicate::EQ, self.first, places.start);
        ir.and(begin, ir.icmp(IntPredicate::EQ, self.rest, places.end))
    }

    /// The same lines as another row has, which begins at the same place and isn't streamed where its lines don't.
    pub(in crate::cpu) fn beside(self, ir: &Ir<'c>, other: &Lines<'c>) -> Lines<'c> {
        let begins = ir.icmp(IntPredicate::EQ, self.first, other.first);
        let streams = self.streams.map(|streams| ir.and(streams, begins));
        Lines { first: other.first, rest: other.rest, has_ends: other.has_ends, streams, ..self }
    }

    /// The same, with those lines alone that lie among these places of the row.
    pub(in crate::cpu) fn within(&self, ir: &Ir<'c>, places: IndexRange<'c>) -> Lines<'c> {
        let elements = ir.i64(self.elements);
        let lines_before = |end: IntValue<'c>| ir.udiv(ir.up_to(self.first, end), elements);
        let place = |lines| ir.add(self.first, ir.mul(lines, elements));
        let first = place(lines_before(ir.add(places.start, ir.i64(self.elements - 1))));
        let rest = place(lines_before(ir.lesser(places.end, self.rest)));
        Lines { first, rest: ir.greater(first, rest), has_ends: true, ..self.clone() }
    }
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// How many elements of a window's tensor a cache line holds, where its rows are stored in cache lines.
    pub(in crate::cpu) fn elements_of_line(&self, window: &Window<'c>) -> Option<i64> {
        elements_of_line(window.width(), window.dtype()).filter(|_| window.is_dense())
    }

    /// How a row is stored, so many elements at a time.
    pub(in crate::cpu) fn lines_of_row(
        &self,
        window: &Window<'c>,
        row: Row<'_, 'c>,
        elements: i64,
    ) -> Lines<'c> {
        let (ir, width) = (self.ir, window.width());
        let whole = row.whole || window.is_known_whole();
        let address = self.row_address(window, row.index);
        let flag = self.entry.streamed.get(&window.tensor()).copied();
        let range = match whole {
            true => IndexRange::up_to(ir, ir.i64(width)),
            false => self.existing(window, row.index).range(ir),
        };
        let IndexRange { start: begin, end } = range;
        let has_ends = !whole || width % elements != 0;
        let (mut first, mut streams) = (begin, flag);
        if let Some(flag) = flag {
            let at = self.row_element_anywhere(window, row.index, begin);
            let skipped = ir.line_offset(at, LINE_BYTES.into());
            if has_ends {
                // What comes before the first line that is streamed; without streaming any place begins one.
                let bytes = ir.and(ir.sub(ir.i64(0), skipped), ir.i64(i64::from(LINE_BYTES) - 1));
                let line = ir.add(begin, ir.udiv(bytes, ir.i64(window.dtype().bytes() as i64)));
                first = ir.select_int(flag, ir.lesser(line, end), begin);
            } else {
                streams = Some(ir.and(flag, ir.icmp(IntPredicate::EQ, skipped, ir.i64(0))));
            }
        }
        let rest = ir.sub(end, ir.urem(ir.sub(end, first), ir.i64(elements)));
        let lanes = self.lane_array(ir.storage_type(window.dtype()), elements);
        let window = window.clone();
        Lines { window, address, elements, lanes, range, first, rest, has_ends, streams }
    }

    /// Stores the lines of rows, one of each tile, unless they are left to the next block.
    pub(in crate::cpu) fn store_lines(
        &mut self,
        rows: &[RowLines<'c>],
        index: &[IntValue<'c>],
        leaves: Option<IntValue<'c>>,
    ) {
        let (ir, lines) = (self.ir, &rows[0].lines);
        let start = leaves.map_or(lines.first, |leaves| ir.select_int(leaves, lines.rest, lines.first));
        let range = (start, lines.rest, ir.i64(lines.elements));
        ir.each(range, LoopHint::Rolled, |first| {
            let turn = RowTurn { shape: lines.window.shape(), row: index, first, count: lines.elements };
            self.prefetch_ahead(turn, lines.streams);
            let at = LineStart { base: ir.i64(0), further: first };
            let elements = self.line_elements(rows, index, at);
            rows.iter().zip(elements).for_each(|(row, elements)| self.put_line(&row.lines, elements, at));
        });
    }

    /// Stores the elements of rows before their lines and behind them.
    pub(in crate::cpu) fn store_ends(&mut self, rows: &[RowLines<'c>], index: &[IntValue<'c>]) {
        let (ir, lines) = (self.ir, &rows[0].lines);
        if !lines.has_ends {
            return;
        }
        let IndexRange { start: begin, end } = lines.range;
        let is_second = |turn| ir.icmp(IntPredicate::NE, turn, ir.i64(0));
        ir.each((ir.i64(0), ir.i64(2), ir.i64(1)), LoopHint::Rolled, |turn| {
            let from = ir.select_int(is_second(turn), lines.rest, begin);
            let to = ir.select_int(is_second(turn), end, lines.first);
            ir.each((from, to, ir.i64(lines.elements)), LoopHint::Rolled, |at| {
                let left = ir.lesser(ir.sub(to, at), ir.i64(lines.elements));
                self.each_lane_below(lines.elements, left, |emitter, lane| {
                    let i = ir.add(at, lane);
                    let elements = emitter.elements_of(rows, &[index, &[i]].concat());
                    for (RowLines { lines, .. }, element) in rows.iter().zip(elements) {
                        emitter.write(&lines.window, lines.address, i, element);
                    }
                });
            });
        });
    }

    /// What is stored at a time: the elements of a line of each row.
    pub(in crate::cpu) fn line_elements(
        &mut self,
        rows: &[RowLines<'c>],
        index: &[IntValue<'c>],
        start: LineStart<'c>,
    ) -> Vec<VectorValue<'c>> {
        let ir = self.ir;
        let first = ir.add(start.base, start.further);
        let (tiles, lanes): (Vec<ValueId>, _) =
            (rows.iter().map(|row| row.value).collect(), rows[0].lines.elements);
        let picked = self.pick(&tiles, index, first, lanes);
        self.each_lane(lanes, |emitter, lane| {
            emitter.know_picked(&picked, lane);
            let elements = emitter.elements_of(rows, &[index, &[ir.add(first, lane)]].concat());
            for (RowLines { lines, .. }, element) in rows.iter().zip(elements) {
                let dtype = lines.window.dtype();
                let place = ir.element(ir.storage_type(dtype), lines.lanes, lane);
                ir.store(place, ir.value_to_storage(element, dtype));
            }
        });
        self.let_go_of_picked(&picked);
        let loaded = |lines: &Lines<'c>| ir.load_at(lines.vector(ir).into(), lines.lanes, Some(LINE_BYTES));
        rows.iter().map(|row| loaded(&row.lines).into_vector_value()).collect()
    }

    /// The elements of each row's tile at an index.
    fn elements_of(&mut self, rows: &[RowLines<'c>], index: &[IntValue<'c>]) -> Vec<Value<'c>> {
        self.elements(&rows.iter().map(|row| row.value).collect::<Vec<_>>(), index)
    }

    /// Stores these elements.
    pub(in crate::cpu) fn put_line(&self, line: &Lines<'c>, elements: VectorValue<'c>, start: LineStart<'c>) {
        let (ir, dtype) = (self.ir, line.window.dtype());
        let address = self.row_element(&line.window, line.address, start.base);
        let address = self.row_element(&line.window, address, start.further);
        let store_aligned = |alignment| {
            let store = ir.builder.build_store(address, elements).expect("the builder is positioned");
            store.set_alignment(alignment).expect("a power of two");
            self.buffers.mark_tensor_access(Some(store), line.window.tensor());
            store
        };
        let element_bytes = dtype.bytes() as u32;
        let store = |streaming: bool| {
            if streaming {
                let bytes = line.elements as u32 * element_bytes;
                ir.mark_streaming(store_aligned(bytes.min(LINE_BYTES)));
            } else {
                store_aligned(element_bytes);
            }
        };
        match line.streams {
            Some(streams) => ir.on_each_side(streams, store),
            None => store(false),
        }
    }
}
