//! Where tiles lie in their tensors, and loads through partition views.
//!
//! A tile that lies inside its tensor takes a path without any masks, chosen once per tile. At an edge, loads
//! copy the part of each row that is inside, and a load that is computed in its consumer's loop (a
//! **stream**) asks for each element. A load without a mask has the first path alone.

use super::parts::{Bounds, Existing};
use crate::cpu::elements::each_index;
use crate::cpu::region::{Emitter, extents};
use crate::emit::prefetch::Rows;
use crate::emit::{Ir, LoopHint, Names, Place, Value};
use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::kernel::OpData;
use tile_ir::types::{PartitionType, TensorType};
use tile_ir::view::Source;
use tile_ir::{DType, Op, Type, ValueId};

/// Where a tile lies in its tensor.
#[derive(Clone)]
pub(in crate::cpu) struct Window<'c> {
    tensor: ValueId,
    base: PointerValue<'c>,
    dtype: DType,
    tile: Vec<i64>,
    /// Extents of the tensor.
    extents: Vec<IntValue<'c>>,
    /// Strides and offset; `None` where the tensor is dense.
    place: Option<Moved<'c>>,
    /// The tensor index of the tile's first element.
    start: Vec<IntValue<'c>>,
    /// The places along each axis that exist: from the first, where some are missing before it, to the last.
    first: Vec<Option<IntValue<'c>>>,
    valid: Vec<IntValue<'c>>,
    /// Whether every element is known to exist.
    whole: bool,
}

/// Where the elements of a moved tensor lie.
#[derive(Clone)]
struct Moved<'c> {
    strides: Vec<IntValue<'c>>,
    offset: IntValue<'c>,
}

/// One of the matrices of a tile, in its tensor.
pub(in crate::cpu) struct Matrix<'c> {
    /// The first element, which may not exist.
    pub(in crate::cpu) first: PointerValue<'c>,
    /// Elements of the tensor from one to the next along each axis.
    pub(in crate::cpu) strides: [IntValue<'c>; 2],
    /// Places along each axis that exist; `None` where all do.
    pub(in crate::cpu) valid: Option<[IntValue<'c>; 2]>,
    pub(in crate::cpu) tensor: ValueId,
}

impl<'c> Window<'c> {
    /// The argument that the tile lies in.
    pub(in crate::cpu) fn tensor(&self) -> ValueId {
        self.tensor
    }

    pub(in crate::cpu) fn dtype(&self) -> DType {
        self.dtype
    }

    /// Elements of a row of the tile.
    pub(in crate::cpu) fn width(&self) -> i64 {
        *self.tile.last().expect("verified: a tensor has rank 1 or more")
    }

    /// Bytes of such a row.
    pub(in crate::cpu) fn row_bytes(&self) -> i64 {
        self.width() * self.dtype().bytes() as i64
    }

    /// Extents of the tile.
    pub(in crate::cpu) fn shape(&self) -> &[i64] {
        &self.tile
    }

    /// How many places of each axis exist; `None` where some before them don't.
    pub(in crate::cpu) fn valid(&self) -> Option<&[IntValue<'c>]> {
        self.first.iter().all(Option::is_none).then_some(&self.valid)
    }

    /// Where the places that exist end, per axis.
    pub(in crate::cpu) fn ends(&self) -> &[IntValue<'c>] {
        &self.valid
    }

    /// Whether every element is known to exist.
    pub(in crate::cpu) fn is_known_whole(&self) -> bool {
        self.whole
    }

    /// Elements of a tensor that isn't dense from one of a row to the next.
    pub(in crate::cpu) fn element_stride(&self) -> Option<IntValue<'c>> {
        self.place.as_ref()?.strides.last().copied()
    }

    /// The same with one row in place of all that lie along the last axes of a dense tensor, which they have all of: see
    /// [`super::joined`].
    fn joined(mut self, ir: &Ir<'c>, first: usize) -> Self {
        let (last, inner) = (self.tile.len() - 1, self.tile[first + 1..].iter().product::<i64>());
        let behind = first + 1..last + 1;
        let are_there =
            behind.clone().map(|axis| ir.icmp(IntPredicate::EQ, self.valid[axis], ir.i64(self.tile[axis])));
        let are_there = ir.all(are_there);
        let times = |extent| ir.mul(extent, ir.i64(inner));
        let valid = if self.whole {
            ir.i64(self.tile[first] * inner)
        } else {
            ir.select_int(are_there, times(self.valid[first]), ir.i64(0))
        };
        let joined = (self.tile[first] * inner, times(self.extents[first]), times(self.start[first]), valid);
        for axis in first..=last {
            (self.tile[axis], self.extents[axis]) = (1, ir.i64(1));
            (self.start[axis], self.valid[axis]) = (ir.i64(0), ir.i64(1));
        }
        (self.tile[last], self.extents[last], self.start[last], self.valid[last]) = joined;
        self
    }

    /// Whether the elements of a row follow each other in memory.
    pub(in crate::cpu) fn is_dense(&self) -> bool {
        self.place.is_none()
    }
}

/// A tile that loops read from its tensor.
#[derive(Clone)]
pub(in crate::cpu) struct Stream<'c> {
    window: Window<'c>,
    /// `None` where the load has no mask.
    pad: Option<Value<'c>>,
    /// Whether the loops that read it run where every element exists.
    whole: bool,
}

impl<'c> Stream<'c> {
    /// Where the tile lies, if all its elements that the loops read exist.
    pub(in crate::cpu) fn whole_window(&self) -> Option<&Window<'c>> {
        (self.whole || self.pad.is_none()).then_some(&self.window)
    }
}

impl<'a, 'c> Emitter<'a, 'c> {
    pub(in crate::cpu) fn tensor_type(&self, tensor: ValueId) -> &'a TensorType {
        match self.instance.ty(tensor) {
            Type::Tensor(ty) => ty,
            _ => unreachable!("verified: a tensor"),
        }
    }

    pub(in crate::cpu) fn place(&self, ty: &TensorType, source: &Source) -> Place<'c> {
        let names = Names { size: &|name| self.entry.sizes[name], index: &|value| self.index(value) };
        self.ir.place(ty, source, &names)
    }

    /// Where the tile lies that a load, store or prefetch names.
    pub(in crate::cpu) fn window_of(&self, data: &OpData) -> Window<'c> {
        let bounds = match data.op {
            Op::LoadMasked | Op::StoreMasked | Op::Prefetch => Bounds::Checked,
            _ => Bounds::Unchecked,
        };
        let window = self.own_window(data, bounds);
        match self.sources.first_joined {
            Some(first) => window.joined(self.ir, first),
            None => window,
        }
    }

    /// The same of an access by the tile that this block owns.
    fn own_window(&self, data: &OpData, bounds: Bounds) -> Window<'c> {
        let given: Vec<IntValue<'c>> = data.tile_index().iter().map(|&index| self.index(index)).collect();
        self.window_at(data.operands[0], &self.grid.tile, &given, bounds)
    }

    /// The same for an op that comes later, unless its index does too, or that of a matrix which its view selects.
    pub(in crate::cpu) fn window_if_known(&self, data: &OpData) -> Option<Window<'c>> {
        let selections = Source::reached_by(self.instance, data)?.selections;
        let selected = selections.iter().map(|selection| selection.index);
        let mut indices = data.tile_index().iter().copied().chain(selected);
        indices.all(|index| self.scalar_if_known(index).is_some()).then(|| self.window_of(data))
    }

    /// Where the tile of a view lies that an access names by the index of the tile which its block owns, and by what it is
    /// given.
    pub(in crate::cpu) fn window_at(
        &self,
        view: ValueId,
        own: &[IntValue<'c>],
        given: &[IntValue<'c>],
        bounds: Bounds,
    ) -> Window<'c> {
        let ty = self.instance.ty(view).as_partition().expect("verified: a view");
        self.window(view, &ty.tile_index(own, given), bounds)
    }

    fn window(&self, view: ValueId, index: &[IntValue<'c>], bounds: Bounds) -> Window<'c> {
        let ir = self.ir;
        let tensor = self.definition(view).expect("verified: a view is made by `partition`").operands[0];
        let source = Source::of(self.instance, tensor);
        let argument = source.argument;
        let moved = self.tensor_type(tensor).layout.is_some() || !source.selections.is_empty();
        let place = moved.then(|| self.place(self.tensor_type(tensor), &source));
        let ty: &PartitionType = self.instance.ty(view).as_partition().expect("verified: a view");
        let (tile, steps) = (extents(&ty.tile), extents(&ty.steps));
        let dim = |dim| ir.dim(dim, &|name| self.entry.sizes[name]);
        let extents: Vec<IntValue<'c>> = ty.tensor.extents.iter().map(dim).collect();
        let start: Vec<_> = index.iter().zip(&steps).map(|(&i, &step)| ir.mul(i, ir.i64(step))).collect();
        let mut window = Window {
            tensor: argument,
            base: self.entry.arguments[&argument].into_pointer_value(),
            dtype: ty.tensor.elem.known().expect("an instance has no dtype parameters"),
            first: vec![None; tile.len()],
            valid: tile.iter().map(|&size| ir.i64(size)).collect(),
            tile,
            extents,
            start,
            place: None,
            whole: bounds == Bounds::Unchecked,
        };
        if bounds == Bounds::Checked {
            let space: Vec<IntValue<'c>> = ty.index_space().iter().map(dim).collect();
            self.mask(&mut window, index, &space, place.as_ref());
        }
        window.place = place.map(|place| Moved { strides: place.strides, offset: place.offset });
        window
    }

    /// Finds which places of a tile exist.
    fn mask(
        &self,
        window: &mut Window<'c>,
        index: &[IntValue<'c>],
        space: &[IntValue<'c>],
        place: Option<&Place<'c>>,
    ) {
        let ir = self.ir;
        for axis in 0..window.tile.len() {
            let rest = ir.sub(window.extents[axis], window.start[axis]);
            let size = window.valid[axis];
            let inside = ir.lesser(rest, size);
            // An index beyond the space, however large, has no element inside.
            let mut end =
                ir.select_int(ir.icmp(IntPredicate::ULT, index[axis], space[axis]), inside, ir.i64(0));
            if let Some(exists) = place.and_then(|place| place.exists).filter(|_| axis == 0) {
                end = ir.select_int(exists, end, ir.i64(0));
            }
            let windows = place.map_or(&[][..], |place| &place.windows[axis]);
            if !windows.is_empty() {
                let (first, last) = ir.trim(window.start[axis], end, windows);
                (window.first[axis], end) = (Some(first), last);
            }
            window.valid[axis] = end;
        }
    }

    /// Which of the last two axes of the tile that an op loads has its elements side by side in the tensor, if one is known
    /// to; `None` also where places before the first element may be missing.
    pub(in crate::cpu) fn contiguous_axis(&self, data: &OpData) -> Option<usize> {
        let load = data.load().expect("a load");
        let tensor = self.definition(load.view).expect("verified: a view is made by `partition`").operands[0];
        let place = self.tensor_type(tensor).strided();
        let rank = place.strides.len();
        let is_contiguous = |axis: &usize| place.strides[rank - 2 + axis].as_const() == Some(1);
        place.windows.iter().all(Vec::is_empty).then(|| [1, 0].into_iter().find(is_contiguous)).flatten()
    }

    /// The matrix of this number, counted along the axes but the last two, of the tile that an op loads.
    pub(in crate::cpu) fn matrix(&self, data: &OpData, number: IntValue<'c>) -> Matrix<'c> {
        self.matrix_of(&self.window_of(data), number)
    }

    /// The same, with the places that exist, for who reads a tile where its op may never be reached.
    pub(in crate::cpu) fn checked_matrix(&self, data: &OpData, number: IntValue<'c>) -> Matrix<'c> {
        self.matrix_of(&self.own_window(data, Bounds::Checked), number)
    }

    fn matrix_of(&self, window: &Window<'c>, number: IntValue<'c>) -> Matrix<'c> {
        let ir = self.ir;
        let rank = window.tile.len();
        let batch: Vec<_> = window.tile[..rank - 2].iter().map(|&extent| ir.i64(extent)).collect();
        let matrix = if batch.is_empty() { Vec::new() } else { ir.delinearize(number, &batch) };
        let exists = matrix.iter().zip(&window.valid).map(|(&i, &end)| ir.icmp(IntPredicate::ULT, i, end));
        let exists = exists.reduce(|a, b| ir.and(a, b));
        let rows = exists.map_or(window.valid[rank - 2], |exists| {
            ir.select_int(exists, window.valid[rank - 2], ir.i64(0))
        });
        let strides = match &window.place {
            Some(place) => [place.strides[rank - 2], place.strides[rank - 1]],
            None => [window.extents[rank - 1], ir.i64(1)],
        };
        Matrix {
            first: self.row_address(window, &matrix),
            strides,
            valid: (!window.whole).then(|| [rows, window.valid[rank - 1]]),
            tensor: window.tensor,
        }
    }

    /// The rows of the tile that an op asks for.
    pub(in crate::cpu) fn rows(&self, data: &OpData) -> Rows<'c> {
        let ir = self.ir;
        let window = self.window_of(data);
        let dense = || {
            let mut strides = vec![ir.i64(1); window.tile.len()];
            for axis in (1..strides.len()).rev() {
                strides[axis - 1] = ir.mul(strides[axis], window.extents[axis]);
            }
            Moved { strides, offset: ir.i64(0) }
        };
        let Moved { strides, offset } = window.place.clone().unwrap_or_else(dense);
        let axes = window.start.iter().zip(&strides);
        let position =
            axes.fold(offset, |position, (&start, &stride)| ir.add(position, ir.mul(start, stride)));
        Rows {
            first: ir.offset(ir.storage_type(window.dtype), window.base, position),
            dtype: window.dtype,
            tile: window.tile.iter().map(|&extent| extent as u64).collect(),
            strides,
            begin: window.first,
            end: window.valid,
        }
    }

    /// Whether all of a tile lies inside its tensor.
    pub(in crate::cpu) fn is_whole(&self, window: &Window<'c>) -> IntValue<'c> {
        let ir = self.ir;
        let axes = window.valid.iter().zip(&window.tile);
        let ends = axes.map(|(&valid, &size)| ir.icmp(IntPredicate::EQ, valid, ir.i64(size)));
        let begins = window.first.iter().flatten().map(|&first| ir.icmp(IntPredicate::EQ, first, ir.i64(0)));
        ends.chain(begins).reduce(|a, b| ir.and(a, b)).unwrap_or_else(|| ir.bool(true))
    }

    /// The position in its tensor of the first element of a row of the tile, which may not exist.
    fn row_position(&self, window: &Window<'c>, row: &[IntValue<'c>]) -> IntValue<'c> {
        let ir = self.ir;
        let index = |axis: usize| {
            let start = window.start[axis];
            row.get(axis).map_or(start, |&offset| ir.add(start, offset))
        };
        if let Some(Moved { strides, offset }) = &window.place {
            let axes = strides.iter().enumerate();
            return axes
                .fold(*offset, |position, (axis, &stride)| ir.add(position, ir.mul(index(axis), stride)));
        }
        let axes = (0..window.tile.len()).map(index).zip(&window.extents);
        let position = axes.fold(None, |position: Option<IntValue<'c>>, (i, &extent)| {
            Some(position.map_or(i, |outer| ir.add(ir.mul(outer, extent), i)))
        });
        position.unwrap_or_else(|| ir.i64(0))
    }

    /// The address of the first element of a row of the tile, which may not exist.
    pub(in crate::cpu) fn row_address(&self, window: &Window<'c>, row: &[IntValue<'c>]) -> PointerValue<'c> {
        let (ir, ty) = (self.ir, self.ir.storage_type(window.dtype));
        let position = self.row_position(window, row);
        if window.is_dense() {
            ir.element(ty, window.base, position)
        } else {
            ir.offset(ty, window.base, position)
        }
    }

    /// The address of a tile's first element, which may not exist.
    pub(in crate::cpu) fn first_address(&self, window: &Window<'c>) -> PointerValue<'c> {
        self.row_address(window, &[])
    }

    /// Elements of the tensor from one to the next along an axis.
    pub(in crate::cpu) fn stride(&self, window: &Window<'c>, axis: usize) -> IntValue<'c> {
        if let Some(place) = &window.place {
            return place.strides[axis];
        }
        let inner = window.extents[axis + 1..].iter();
        inner.fold(self.ir.i64(1), |stride, &extent| self.ir.mul(stride, extent))
    }

    /// The address of place `i` of a row of any tile, also one that the tensor hasn't.
    pub(in crate::cpu) fn row_element_anywhere(
        &self,
        window: &Window<'c>,
        row: &[IntValue<'c>],
        i: IntValue<'c>,
    ) -> PointerValue<'c> {
        let (ir, ty) = (self.ir, self.ir.storage_type(window.dtype));
        let last = window.place.as_ref().and_then(|place| place.strides.last());
        let further = last.map_or(i, |&stride| ir.mul(i, stride));
        ir.offset(ty, window.base, ir.add(self.row_position(window, row), further))
    }

    /// The address of place `i` of a row.
    pub(in crate::cpu) fn row_element(
        &self,
        window: &Window<'c>,
        row: PointerValue<'c>,
        i: IntValue<'c>,
    ) -> PointerValue<'c> {
        let (ir, ty) = (self.ir, self.ir.storage_type(window.dtype));
        match window.place.as_ref().and_then(|place| place.strides.last()) {
            Some(&stride) => ir.offset(ty, row, ir.mul(i, stride)),
            None => ir.element(ty, row, i),
        }
    }

    /// The places of a row that exist.
    pub(in crate::cpu) fn existing(&self, window: &Window<'c>, row: &[IntValue<'c>]) -> Existing<'c> {
        let ir = self.ir;
        let end = self.row_length(window, row);
        let first = window.first[window.tile.len() - 1];
        // In a row that isn't there both ends are 0.
        Existing { begin: first.map(|first| ir.lesser(first, end)), end }
    }

    /// Where the elements of a row that exist end.
    fn row_length(&self, window: &Window<'c>, row: &[IntValue<'c>]) -> IntValue<'c> {
        let ir = self.ir;
        let last = window.tile.len() - 1;
        let axes = row.iter().zip(&window.valid).zip(&window.first);
        axes.fold(window.valid[last], |length, ((&i, &valid), &first)| {
            let mut there = ir.icmp(IntPredicate::ULT, i, valid);
            if let Some(first) = first {
                there = ir.and(there, ir.icmp(IntPredicate::UGE, i, first));
            }
            ir.select_int(there, length, ir.i64(0))
        })
    }

    /// Emits loops that read these loads' elements from their tensors twice: for the case that all their tiles, and
    /// `others`, lie inside their tensors, and for the case that one doesn't. `emit` is told which. Once, if nothing depends
    /// on it.
    pub(in crate::cpu) fn with_streams(
        &mut self,
        loads: &[&'a OpData],
        others: &[Window<'c>],
        emit: &mut dyn FnMut(&mut Self, bool),
    ) {
        let ir = self.ir;
        let windows: Vec<Window<'c>> = loads.iter().map(|load| self.window_of(load)).collect();
        let masked = windows.iter().chain(others).filter(|window| !window.whole);
        let all_whole = masked.map(|window| self.is_whole(window)).reduce(|a, b| ir.and(a, b));
        let mut emit_for = |whole: bool| {
            for (load, window) in loads.iter().zip(&windows) {
                self.open_stream(load, window, Bounds::where_whole(whole));
            }
            emit(self, whole);
        };
        match all_whole {
            Some(all_whole) => ir.on_each_side(all_whole, emit_for),
            None => emit_for(true),
        }
    }

    /// Opens a stream for loops whose elements are checked, or all exist.
    pub(in crate::cpu) fn open_stream(&mut self, load: &OpData, window: &Window<'c>, bounds: Bounds) {
        let pad = load.load().and_then(|load| load.pad).map(|pad| self.scalar(pad));
        let whole = bounds == Bounds::Unchecked || window.whole;
        let stream = Stream { window: window.clone(), pad, whole };
        self.sources.streams.insert(load.results[0], stream);
    }

    /// Element `index` of a streamed tile.
    pub(in crate::cpu) fn stream_element(&self, tile: ValueId, index: &[IntValue<'c>]) -> Value<'c> {
        let ir = self.ir;
        let stream = self.sources.streams.get(&tile).expect("the op that reads a stream opened it");
        let window = &stream.window;
        let (&last, row) = index.split_last().expect("verified: a tensor has rank 1 or more");
        let read = || self.read(window, self.row_address(window, row), last);
        let Some(pad) = stream.pad.filter(|_| !stream.whole) else { return read() };
        let axes = index.iter().zip(&window.valid);
        let ends = axes.map(|(&i, &valid)| ir.icmp(IntPredicate::ULT, i, valid));
        let firsts = index.iter().zip(&window.first);
        let begins = firsts.filter_map(|(&i, &first)| Some(ir.icmp(IntPredicate::UGE, i, first?)));
        let inside = ends.chain(begins).reduce(|a, b| ir.and(a, b));
        let inside = inside.expect("verified: a tensor has rank 1 or more");
        ir.if_else(inside, || vec![read()], || vec![pad])[0]
    }

    pub(in crate::cpu) fn load(&mut self, data: &OpData) {
        self.with_joined(self.first_joined_of(data), |emitter| emitter.load_rows(data));
    }

    fn load_rows(&mut self, data: &OpData) {
        let window = self.window_of(data);
        let pad = data.load().and_then(|load| load.pad).map(|pad| self.scalar(pad));
        let buffer = self.stored(data.results[0]);
        let (&width, rows) = window.tile.split_last().expect("verified: a tensor has rank 1 or more");
        let loads = self.fusion.streams_of(data);
        self.with_streams(&loads, std::slice::from_ref(&window), &mut |emitter, whole| {
            emitter.each_row_of(width, rows, &mut |emitter, row| {
                let ir = emitter.ir;
                let address = emitter.row_address(&window, row);
                let first = ir.mul(emitter.position(row, rows), ir.i64(width));
                let copy = |i: IntValue<'c>| {
                    let value = emitter.read(&window, address, i);
                    emitter.buffers.store(&buffer, ir.add(first, i), value);
                };
                let Some(pad) = pad.filter(|_| !whole) else {
                    return each_index(ir, ir.i64(width), width, copy);
                };
                let Existing { begin, end } = emitter.existing(&window, row);
                let fill = |from: IntValue<'c>, to: IntValue<'c>| {
                    ir.each((from, to, ir.i64(1)), LoopHint::Rolled, |i| {
                        emitter.buffers.store(&buffer, ir.add(first, i), pad);
                    });
                };
                match begin {
                    None => each_index(ir, end, i64::MAX, copy),
                    Some(begin) => {
                        fill(ir.i64(0), begin);
                        each_index(ir, ir.sub(end, begin), i64::MAX, |i| copy(ir.add(begin, i)));
                    }
                }
                fill(end, ir.i64(width));
            });
        });
    }

    fn read(&self, window: &Window<'c>, row: PointerValue<'c>, i: IntValue<'c>) -> Value<'c> {
        self.buffers.read_tensor(window.tensor, window.dtype, self.row_element(window, row, i))
    }

    pub(in crate::cpu) fn write(
        &self,
        window: &Window<'c>,
        row: PointerValue<'c>,
        i: IntValue<'c>,
        value: Value<'c>,
    ) {
        self.buffers.write_tensor(window.tensor, window.dtype, self.row_element(window, row, i), value);
    }
}
