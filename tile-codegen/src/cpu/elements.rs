//! Element-wise evaluation: the value of one element of a tile, and loops that fill a buffer with them.

use super::held::Arrays;
use super::memory::buffer::Buffer;
use super::memory::gathered::OpenRow;
use super::memory::views::Stream;
use super::region::Emitter;
use crate::emit::{Ir, LoopHint, LoopRange, Value};
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use std::collections::HashMap;
use std::ops::Range;
use tile_ir::kernel::OpData;
use tile_ir::{DType, Op, ValueId};

/// Indices that follow each other, of elements, vectors or blocks: from `start` to before `end`, both unsigned.
#[derive(Clone, Copy)]
pub(super) struct IndexRange<'c> {
    pub(super) start: IntValue<'c>,
    pub(super) end: IntValue<'c>,
}

impl<'c> IndexRange<'c> {
    /// The first indices.
    pub(super) fn up_to(ir: &Ir<'c>, end: IntValue<'c>) -> IndexRange<'c> {
        IndexRange { start: ir.i64(0), end }
    }

    /// Those that are in another range, too. Of ranges that have none in common that is where the later one begins, so that what
    /// lies before and what lies behind is apart.
    pub(super) fn both(self, ir: &Ir<'c>, other: IndexRange<'c>) -> IndexRange<'c> {
        let start = ir.greater(self.start, other.start);
        IndexRange { start, end: ir.greater(start, ir.lesser(self.end, other.end)) }
    }

    /// Whether all of them are in another range.
    pub(super) fn is_within(self, ir: &Ir<'c>, other: IndexRange<'c>) -> IntValue<'c> {
        let begins = ir.icmp(IntPredicate::ULE, other.start, self.start);
        ir.and(begins, ir.icmp(IntPredicate::UGE, other.end, self.end))
    }

    /// Every so many of them, for [`Ir::each`].
    pub(super) fn by(self, step: IntValue<'c>) -> LoopRange<'c> {
        (self.start, self.end, step)
    }
}

/// Where the loops that are emitted find elements of tiles, besides in buffers.
#[derive(Default)]
pub(super) struct Sources<'c> {
    /// The tiles that the loops around hold in registers.
    pub(super) held: Arrays<'c>,
    /// Of some tiles the element that the loop reads of them: the only one, or the one that it computed just now.
    pub(super) known: HashMap<ValueId, Value<'c>>,
    /// While elements are computed each once, those that have been, by tile and index.
    computed: Option<HashMap<(ValueId, Vec<IntValue<'c>>), Value<'c>>>,
    /// The tiles that the current loops read from their tensors.
    pub(super) streams: HashMap<ValueId, Stream<'c>>,
    /// The rows that the gathers of the current loops read, where they exist.
    pub(super) open_rows: HashMap<ValueId, OpenRow<'c>>,
    /// Of the gathers of the current loops that may read parts of rows, the places whose indices follow each other.
    pub(super) runs: Vec<(ValueId, IndexRange<'c>)>,
    /// The axis that the axes behind it are joined with in the rows that the current loops go over.
    pub(super) first_joined: Option<usize>,
    /// Indices along rows that are those of a vector's lanes.
    lanes: HashMap<IntValue<'c>, Lane<'c>>,
}

/// A lane of a vector whose first element has an index that is a multiple of the number of lanes.
#[derive(Clone, Copy)]
pub(super) struct Lane<'c> {
    pub(super) first: IntValue<'c>,
    pub(super) lane: IntValue<'c>,
    pub(super) lanes: i64,
}

/// Whether a loop over an axis has few turns.
pub(super) fn is_short(extent: i64) -> bool {
    extent < 16
}

/// The hint for a loop over an axis: short ones may become straight code.
pub(super) fn hint_for(extent: i64) -> LoopHint {
    if is_short(extent) { LoopHint::Free } else { LoopHint::Rolled }
}

/// Rows of so many elements and more are worth vectors of their own.
const FEWEST_OF_A_VECTOR: i64 = 8;

/// Parts of rows of so many elements and more are worth the instructions that a scatter of them takes.
const FEWEST_OF_A_PART: i64 = 4;

/// The hint for the innermost loop over a tile. One of a vector's lanes is that vector, also where nothing makes vectors of
/// straight code.
pub(super) fn hint_for_row(width: i64) -> LoopHint {
    if width == FEWEST_OF_A_VECTOR { LoopHint::Lanes(width as u32) } else { hint_for(width) }
}

/// The hint for the loop around rows. Where a short row has become straight code, LLVM would make vectors along this loop, and
/// gather and scatter elements that lie next to each other; of rows of a few elements it makes whole vectors and shuffles
/// them, which is faster than what such a row is by itself.
pub(super) fn hint_around(width: i64) -> LoopHint {
    if is_short(width) && width >= FEWEST_OF_A_VECTOR { LoopHint::AsItIs } else { LoopHint::Rolled }
}

/// The hint for the loop around parts of rows, which lie apart: scattered elements aren't worth a vector along this loop.
fn hint_around_part(width: i64) -> LoopHint {
    if is_short(width) && width >= FEWEST_OF_A_PART { LoopHint::AsItIs } else { hint_around(width) }
}

/// `for i in 0..end` along a row that has `extent` elements in the tile.
pub(super) fn each_index<'c>(ir: &Ir<'c>, end: IntValue<'c>, extent: i64, body: impl FnOnce(IntValue<'c>)) {
    let hint = if end.is_const() { hint_for_row(extent) } else { hint_for(extent) };
    ir.each((ir.i64(0), end, ir.i64(1)), hint, body);
}

/// The axes of two shapes with as many elements, in the smallest groups that have as many: what an index of the one group is
/// in the other depends on no other axis.
fn groups_of_axes(source: &[i64], result: &[i64]) -> Vec<(Range<usize>, Range<usize>)> {
    let (mut groups, mut begin, mut end, mut elements) = (Vec::new(), [0, 0], [0, 0], [1, 1]);
    while end != [source.len(), result.len()] {
        let takes_source = end[1] == result.len() || (end[0] < source.len() && elements[0] <= elements[1]);
        let (side, shape) = if takes_source { (0, source) } else { (1, result) };
        elements[side] *= shape[end[side]];
        end[side] += 1;
        let has_both = begin[0] < end[0] && begin[1] < end[1];
        if has_both && elements[0] == elements[1] {
            groups.push((begin[0]..end[0], begin[1]..end[1]));
            (begin, elements) = (end, [1, 1]);
        }
    }
    let rest = (begin[0]..end[0], begin[1]..end[1]);
    match groups.last_mut() {
        // Axes of one element at the end.
        Some((axes, own)) if begin != end => (axes.end, own.end) = (rest.0.end, rest.1.end),
        Some(_) => {}
        None => groups.push(rest),
    }
    groups
}

/// Whether an index of the second of two shapes with as many elements is one of the first by sums and products alone.
pub(super) fn splits_axes(source: &[i64], result: &[i64]) -> bool {
    let is_one = |axes: Range<usize>| source[axes].iter().filter(|&&extent| extent > 1).count() <= 1;
    groups_of_axes(source, result).into_iter().all(|(axes, _)| is_one(axes))
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// The row-major position of an index in a tile.
    pub(super) fn position(&self, index: &[IntValue<'c>], shape: &[i64]) -> IntValue<'c> {
        let ir = self.ir;
        index
            .iter()
            .zip(shape)
            .fold(ir.i64(0), |position, (&i, &extent)| ir.add(ir.mul(position, ir.i64(extent)), i))
    }

    /// Emits a loop nest over a shape, the last axis innermost.
    pub(super) fn nest(&mut self, shape: &[i64], body: &mut dyn FnMut(&mut Self, &[IntValue<'c>])) {
        self.nest_around(shape, hint_around, body);
    }

    /// Emits a loop nest over a part of a tile, whose rows may be parts of the tile's.
    pub(super) fn nest_of_part(
        &mut self,
        shape: &[i64],
        tile: &[i64],
        body: &mut dyn FnMut(&mut Self, &[IntValue<'c>]),
    ) {
        let is_part = shape.last() != tile.last();
        self.nest_around(shape, if is_part { hint_around_part } else { hint_around }, body);
    }

    fn nest_around(
        &mut self,
        shape: &[i64],
        around: fn(i64) -> LoopHint,
        body: &mut dyn FnMut(&mut Self, &[IntValue<'c>]),
    ) {
        let axis = shape.iter().rposition(|&extent| extent > 1);
        let hints = shape.iter().enumerate().map(|(at, &extent)| match axis {
            Some(axis) if at == axis => hint_for_row(extent),
            Some(axis) if shape[at + 1..].iter().product::<i64>() == shape[axis] => around(shape[axis]),
            _ => LoopHint::Rolled,
        });
        self.nest_from(shape, &hints.collect::<Vec<_>>(), &mut Vec::new(), body);
    }

    /// Emits a loop nest whose body has loops of its own: none of these becomes straight code.
    pub(super) fn each_row(&mut self, shape: &[i64], body: &mut dyn FnMut(&mut Self, &[IntValue<'c>])) {
        self.each_row_of(i64::MAX, shape, body);
    }

    /// Emits a loop nest over rows of so many elements, whose body has a loop along them.
    pub(super) fn each_row_of(
        &mut self,
        width: i64,
        shape: &[i64],
        body: &mut dyn FnMut(&mut Self, &[IntValue<'c>]),
    ) {
        let innermost = shape.iter().rposition(|&extent| extent > 1);
        let hint = |axis| if Some(axis) == innermost { hint_around(width) } else { LoopHint::Rolled };
        let hints: Vec<LoopHint> = (0..shape.len()).map(hint).collect();
        self.nest_from(shape, &hints, &mut Vec::new(), body);
    }

    /// The loops of a nest, from those that have an index on.
    fn nest_from(
        &mut self,
        shape: &[i64],
        hints: &[LoopHint],
        index: &mut Vec<IntValue<'c>>,
        body: &mut dyn FnMut(&mut Self, &[IntValue<'c>]),
    ) {
        let ir = self.ir;
        match shape.get(index.len()) {
            None => body(self, index),
            Some(1) => {
                index.push(ir.i64(0));
                self.nest_from(shape, hints, index, body);
                index.pop();
            }
            Some(&extent) => {
                ir.each((ir.i64(0), ir.i64(extent), ir.i64(1)), hints[index.len()], |i| {
                    index.push(i);
                    self.nest_from(shape, hints, index, body);
                    index.pop();
                });
            }
        }
    }

    /// Fills a buffer with computed elements.
    pub(super) fn fill(
        &mut self,
        buffer: &Buffer<'c>,
        shape: &[i64],
        mut value: impl FnMut(&mut Self, &[IntValue<'c>]) -> Value<'c>,
    ) {
        self.nest(shape, &mut |emitter, index| {
            let value = value(emitter, index);
            let position = emitter.position(index, shape);
            emitter.buffers.store(buffer, position, value);
        });
    }

    /// Element `index` of a scalar or tile: from its buffer, or computed.
    pub(super) fn element(&mut self, value: ValueId, index: &[IntValue<'c>]) -> Value<'c> {
        if !self.is_tile(value) {
            return self.scalar(value);
        }
        if let Some(&element) = self.sources.known.get(&value) {
            return element;
        }
        if let Some(&array) = self.sources.held.get(&value) {
            let (ty, position) =
                (self.buffers.element_type(self.dtype(value)), self.position(index, &self.shape(value)));
            return self.ir.load(ty, self.ir.element(ty, array, position));
        }
        if let Some(buffer) = self.buffer(value) {
            let position = self.position(index, &self.shape(value));
            return self.buffers.load(&buffer, position);
        }
        let data = self.definition(value).expect("a tile that isn't stored is an op's result");
        let Some(computed) = &self.sources.computed else { return self.compute(data, index) };
        let place = (value, index.to_vec());
        if let Some(&element) = computed.get(&place) {
            return element;
        }
        let element = self.compute(data, index);
        if let Some(computed) = &mut self.sources.computed {
            computed.insert(place, element);
        }
        element
    }

    /// Element `index` of tiles, of which what several need is computed once.
    pub(super) fn elements(&mut self, tiles: &[ValueId], index: &[IntValue<'c>]) -> Vec<Value<'c>> {
        self.computing_once(|emitter| tiles.iter().map(|&tile| emitter.element(tile, index)).collect())
    }

    /// Emits what computes some elements, each of them once at a place, however many ways lead to it.
    pub(super) fn computing_once<R>(&mut self, emit: impl FnOnce(&mut Self) -> R) -> R {
        let around = self.sources.computed.replace(HashMap::new());
        let result = emit(self);
        self.sources.computed = around;
        result
    }

    /// Reads the elements of stored tiles that have but one, and that elements of this one are computed from.
    pub(super) fn read_single_elements(&mut self, value: ValueId) {
        let computed = self.fusion.computed_from(&[value], |_| true);
        let operands = computed.iter().flat_map(|data| data.operands.iter().copied());
        let tiles: Vec<ValueId> =
            std::iter::once(value).chain(operands).filter(|&tile| self.is_tile(tile)).collect();
        for tile in tiles {
            let buffer = self.buffer(tile).filter(|_| self.shape(tile).iter().product::<i64>() == 1);
            if let Some(buffer) = buffer {
                let element = self.buffers.load(&buffer, self.ir.i64(0));
                self.sources.known.insert(tile, element);
            }
        }
    }

    /// Element `index` of the result of an op that isn't a loop, a stored load or an effect.
    pub(super) fn compute(&mut self, data: &'a OpData, index: &[IntValue<'c>]) -> Value<'c> {
        let ir = self.ir;
        let dtype = self.dtype(data.results[0]);
        let operands = &data.operands;
        match &data.op {
            Op::Constant { value, .. } => ir.literal(*value, dtype),
            Op::Extent(dim) => ir.dim(dim, &|name| self.entry.sizes[name]).into(),
            Op::BlockId { axis } => self.grid.block[*axis].into(),
            Op::BlockCount { axis } => {
                if let Some(shared) = &self.entry.shared {
                    return shared.blocks.into();
                }
                let space = self.instance.grid_space().expect("verified: a kernel has a grid");
                ir.dim(&space[*axis], &|name| self.entry.sizes[name]).into()
            }
            Op::Unary(op) => ir.unary(*op, dtype, self.element(operands[0], index)),
            Op::Binary(op) => {
                let (a, b) = (self.element(operands[0], index), self.element(operands[1], index));
                ir.binary(*op, dtype, a, b)
            }
            Op::Compare(predicate) => {
                let (a, b) = (self.element(operands[0], index), self.element(operands[1], index));
                ir.compare(*predicate, self.dtype(operands[0]), a, b)
            }
            Op::Classify(classification) => ir.classify(*classification, self.element(operands[0], index)),
            Op::Select => {
                let condition = self.element(operands[0], index).into_int_value();
                let (a, b) = (self.element(operands[1], index), self.element(operands[2], index));
                ir.select(condition, a, b)
            }
            Op::Cast(_) => ir.cast(self.dtype(operands[0]), dtype, self.element(operands[0], index)),
            Op::CastWith(_, rounding) => {
                let value = self.element(operands[0], index);
                ir.cast_with(self.dtype(operands[0]), dtype, *rounding, value)
            }
            Op::SaturatingCast(_) => {
                ir.saturating_cast(self.dtype(operands[0]), dtype, self.element(operands[0], index))
            }
            Op::Bitcast(_) => ir.bitcast(self.dtype(operands[0]), dtype, self.element(operands[0], index)),
            Op::Lookup { table, .. } => {
                ir.lookup(table, dtype, self.dtype(operands[0]), self.element(operands[0], index))
            }
            Op::MulAdd => {
                let values = [0, 1, 2].map(|i| self.element(operands[i], index));
                ir.fused_mul_add(dtype, values)
            }
            Op::Splat(_) => self.scalar(operands[0]),
            Op::Item => {
                let first = vec![ir.i64(0); self.shape(operands[0]).len()];
                self.element(operands[0], &first)
            }
            Op::Iota { axis, .. } => ir.cast(DType::Index, dtype, index[*axis].into()),
            Op::Broadcast(_) | Op::Permute(_) | Op::Movement(_) => self.moved_element(data, index),
            Op::Gather { axis } => self.gathered_element(data, *axis, index),
            Op::LoadMasked | Op::Load { .. } => self.stream_element(data.results[0], index),
            Op::GatherLoad => self.gather_loaded(data, index),
            Op::Reshape(_) | Op::ConvertLayout => self.reshaped(operands[0], data.results[0], index),
            _ => unreachable!("`{}` isn't computed by element", data.op.name()),
        }
    }

    fn reshaped(&mut self, source: ValueId, result: ValueId, index: &[IntValue<'c>]) -> Value<'c> {
        let ir = self.ir;
        let shape = self.shape(source);
        if let Some(buffer) = self.buffer(source) {
            let position = self.position(index, &self.shape(result));
            return self.buffers.load(&buffer, position);
        }
        let mut source_index = Vec::new();
        for (axes, own) in groups_of_axes(&shape, &self.shape(result)) {
            let extents = &shape[axes];
            let mut rest = match &index[own.clone()] {
                &[index] => index,
                indices => self.position(indices, &self.shape(result)[own]),
            };
            let mut places = vec![ir.i64(0); extents.len()];
            // The outermost axis takes what is left: one that is split needs no division.
            let outermost = extents.iter().position(|&extent| extent > 1).unwrap_or(0);
            for axis in (outermost + 1..extents.len()).rev().filter(|&axis| extents[axis] > 1) {
                (rest, places[axis]) = self.divided(rest, extents[axis]);
            }
            places[outermost] = rest;
            source_index.extend(places);
        }
        self.element(source, &source_index)
    }

    /// Quotient and remainder of an index and an extent. All lanes of a vector that doesn't reach beyond a multiple of the extent
    /// have one quotient.
    fn divided(&self, index: IntValue<'c>, extent: i64) -> (IntValue<'c>, IntValue<'c>) {
        let (ir, by) = (self.ir, self.ir.i64(extent));
        match self.sources.lanes.get(&index) {
            Some(&Lane { first, lane, lanes }) if extent % lanes == 0 => {
                (ir.udiv(first, by), ir.add(ir.urem(first, by), lane))
            }
            _ => (ir.udiv(index, by), ir.urem(index, by)),
        }
    }

    /// The index along a row of a vector's lane.
    pub(super) fn index_of_lane(&mut self, lane: Lane<'c>) -> IntValue<'c> {
        let index = self.ir.add(lane.first, lane.lane);
        self.sources.lanes.insert(index, lane);
        index
    }
}

#[cfg(test)]
mod tests {
    use super::{groups_of_axes, splits_axes};
    use crate::cpu::compiled::assembly;
    use tile_ir::Instance;
    use tile_test_edit::Edit;

    #[test]
    fn axes_are_grouped_where_products_of_extents_meet() {
        let groups = |source: &[i64], result: &[i64]| groups_of_axes(source, result);
        assert_eq!(groups(&[4, 8], &[32]), [(0..2, 0..1)]);
        assert_eq!(groups(&[32], &[4, 8]), [(0..1, 0..2)]);
        assert_eq!(groups(&[3, 4, 8], &[3, 2, 16]), [(0..1, 0..1), (1..3, 1..3)]);
        assert_eq!(groups(&[6, 4], &[4, 6]), [(0..2, 0..2)]);
        assert_eq!(groups(&[1, 5, 7], &[5, 1, 7, 1]), [(0..2, 0..1), (2..3, 1..4)]);
        assert_eq!(groups(&[1, 1], &[1]), [(0..2, 0..1)]);
    }

    #[test]
    fn axes_that_are_split_need_no_division() {
        assert!(splits_axes(&[4, 128], &[4, 64, 2]) && splits_axes(&[4, 64], &[1, 4, 64, 1]));
        assert!(!splits_axes(&[4, 64, 2], &[4, 128]) && !splits_axes(&[6, 4], &[4, 6]));
    }

    /// A kernel of 64 rows, what it computes of `%t`, and what of that it stores.
    fn of_rows(width: usize, dtype: &str, computed: &str) -> String {
        let tile = format!("tile<R x {width} x {dtype}>");
        let zero = if dtype == "f32" { "0.0" } else { "0" };
        let source = format!(
            "kernel @k<R>(%x: tensor<m x {width} x {dtype}>, %y: mut tensor<m x {width} x {dtype}>) {{
                %vx = partition %x [R, {width}] : partition<m x {width} x {dtype}, [R, {width}]>
                %vy = partition %y [R, {width}] : mut partition<m x {width} x {dtype}, [R, {width}]>
                %i, %j = block_index %vy : index, index
                %pad = constant {zero} : {dtype}
                %t = load_masked %vx[%i, %j] pad %pad : {tile}
                {}
                store_masked %vy, %r
            }}",
            computed.edit("TILE", &tile)
        );
        assembly(&Instance::parse(&source, &[("R", 64)]).unwrap(), "x86-64-v4")
    }

    /// Eight elements that lie next to each other are a vector, and what a scan keeps of a row is stored as a row.
    #[test]
    fn rows_of_half_a_vector_are_not_gathered() {
        for width in [8, 12] {
            let computed = "%s = scan sum %t axis 1 : TILE\n %r = add %s, %t : TILE";
            let code = of_rows(width, "u64", computed);
            assert!(!code.contains("gather") && !code.contains("scatter"), "{code}");
        }
    }

    /// The smaller of floats is one instruction, and one for each operand that may be a signalling NaN.
    #[test]
    fn floats_are_compared_by_one_instruction() {
        let computed =
            "%two = add %t, %t : TILE\n %four = mul %two, %two : TILE\n %r = min %two, %four : TILE";
        let code = of_rows(64, "f32", computed);
        assert!(code.contains("vrangeps") && !code.contains("vcmpunordps"), "{code}");
        let of_loaded = of_rows(64, "f32", "%two = add %t, %t : TILE\n %r = min %two, %t : TILE");
        let count = |code: &str| code.matches("vrangeps").count();
        assert_eq!(count(&of_loaded), 2 * count(&code), "{of_loaded}");
    }
}
