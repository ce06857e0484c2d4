//! Where a tile lies in its tensor: the address of every slot's element, and whether it exists.

use crate::emit::prefetch::Rows;
use crate::emit::{Ir, Place};
use crate::gpu::coordinates::{Coordinate, Mapping, i32_const};
use crate::gpu::region::Emitter;
use crate::gpu::targets::dialect::Spread;
use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use std::collections::HashMap;
use tile_ir::kernel::OpData;
use tile_ir::{DType, Dim, ValueId};

/// Where a tile lies in its tensor.
pub(in crate::gpu) struct Window<'c> {
    /// The address of the tile's first element, which may not exist.
    pub(in crate::gpu) first: PointerValue<'c>,
    pub(in crate::gpu) dtype: DType,
    /// Whether the block writes it, so that a thread may read the elements that it owns and no others.
    pub(in crate::gpu) mutable: bool,
    /// Strides of the tensor, i64.
    pub(in crate::gpu) strides: Vec<IntValue<'c>>,
    /// Whether the tensor's rows follow each other as those of an argument do.
    pub(in crate::gpu) dense: bool,
    /// What a mask hides; `None` where every element is known to exist.
    pub(in crate::gpu) mask: Option<Mask<'c>>,
    pub(in crate::gpu) tile: Vec<u64>,
}

/// The elements of a tile that exist.
pub(in crate::gpu) struct Mask<'c> {
    /// The places along each axis, i32: from the first, where some are missing before it, to the last.
    pub(in crate::gpu) begin: Vec<Option<IntValue<'c>>>,
    pub(in crate::gpu) end: Vec<IntValue<'c>>,
    /// The address of an element that exists, if [`Self::any`].
    pub(in crate::gpu) safe: PointerValue<'c>,
    /// Whether any element exists.
    pub(in crate::gpu) any: IntValue<'c>,
    /// Whether all do.
    pub(in crate::gpu) whole: IntValue<'c>,
}

/// A view from which tiles are read or written: what is the same for all of its tiles.
pub(in crate::gpu) struct Sheet<'c> {
    /// The address of the tensor's first element.
    base: PointerValue<'c>,
    dtype: DType,
    mutable: bool,
    extents: Vec<IntValue<'c>>,
    strides: Vec<IntValue<'c>>,
    /// Where the tensor is one that was moved.
    place: Option<Place<'c>>,
    tile: Vec<u64>,
    /// Elements from one tile to the next along each axis.
    steps: Vec<i64>,
}

impl<'c> Window<'c> {
    /// The window so many elements further in memory, without a mask.
    pub(in crate::gpu) fn moved(&self, ir: &Ir<'c>, elements: IntValue<'c>) -> Window<'c> {
        let first = ir.offset(ir.storage_type(self.dtype), self.first, elements);
        let (strides, tile) = (self.strides.clone(), self.tile.clone());
        Window { first, strides, tile, mask: None, ..*self }
    }

    /// Elements in memory from one tile to the next along an axis.
    pub(in crate::gpu) fn tile_step(&self, ir: &Ir<'c>, sheet: &Sheet<'c>, axis: usize) -> IntValue<'c> {
        self.scaled(ir, axis, ir.i64(sheet.steps[axis]))
    }

    /// A number of elements along an axis as a number of elements in memory.
    fn scaled(&self, ir: &Ir<'c>, axis: usize, count: IntValue<'c>) -> IntValue<'c> {
        let stride = self.strides[axis];
        if stride == ir.i64(1) { count } else { ir.mul(count, stride) }
    }
}

/// Where the previous slot's element is, on one straight piece of code. Going from slot to slot keeps the
/// address arithmetic short.
#[derive(Default)]
pub(in crate::gpu) struct Cursor<'c> {
    last: Option<(Vec<Coordinate<'c>>, PointerValue<'c>)>,
    /// Steps along the axes → elements in memory.
    steps: HashMap<Vec<i64>, IntValue<'c>>,
    /// Axes and what differs between threads of a place along them → what the rest of the place must not be less than, and
    /// must be less than, to exist.
    limits: HashMap<(usize, IntValue<'c>), Limits<'c>>,
    /// Axes and places along them → whether they exist.
    inside: HashMap<(usize, Coordinate<'c>), IntValue<'c>>,
}

/// From where, where some places are missing before, and to where places exist, i32.
type Limits<'c> = (Option<IntValue<'c>>, IntValue<'c>);

impl<'c> Cursor<'c> {
    /// A cursor at an element whose address is known.
    pub(in crate::gpu) fn at(places: Vec<Coordinate<'c>>, pointer: PointerValue<'c>) -> Self {
        Cursor { last: Some((places, pointer)), ..Cursor::default() }
    }

    /// Whether a place along an axis exists. What threads differ by is taken from the mask's bounds once, so that each place
    /// is compared as a constant: neither is far from zero.
    fn is_inside_along(
        &mut self,
        ir: &Ir<'c>,
        mask: &Mask<'c>,
        axis: usize,
        place: Coordinate<'c>,
    ) -> IntValue<'c> {
        let (begin, end) = (mask.begin[axis], mask.end[axis]);
        let (begin, end) = match place.varying {
            None => (begin, end),
            Some(varying) => *self
                .limits
                .entry((axis, varying))
                .or_insert_with(|| (begin.map(|begin| ir.sub(begin, varying)), ir.sub(end, varying))),
        };
        *self.inside.entry((axis, place)).or_insert_with(|| {
            let fixed = i32_const(ir, place.fixed);
            let here = ir.icmp(IntPredicate::SGT, end, fixed);
            let begins = begin.map(|begin| ir.icmp(IntPredicate::SLE, begin, fixed));
            begins.map_or(here, |begins| ir.and(here, begins))
        })
    }
}

impl<'c> Emitter<'_, 'c> {
    /// The window of a view's tile at an index.
    pub(in crate::gpu) fn window(&self, view: ValueId, index: &[IntValue<'c>], masked: bool) -> Window<'c> {
        let sheet = self.sheet(view);
        let mut window = self.window_of(&sheet, index);
        window.mask = masked.then(|| self.mask(&window, &sheet, index));
        window
    }

    /// What is the same for all tiles of a view.
    pub(in crate::gpu) fn sheet(&self, view: ValueId) -> Sheet<'c> {
        let ty = self.instance.ty(view).as_partition().expect("verified: a view");
        let number = |dim: &Dim| dim.as_const().expect("an instance's tile extents are numbers");
        let extents: Vec<IntValue<'c>> = ty.tensor.extents.iter().map(|dim| self.dim(dim)).collect();
        let source = self.source_of(view);
        let moved = ty.tensor.layout.is_some() || !source.selections.is_empty();
        let place = moved.then(|| self.place(&ty.tensor, &source));
        let strides = match &place {
            Some(place) => place.strides.iter().map(|&stride| self.loop_stride(stride)).collect(),
            None => self.dense_strides(&extents),
        };
        Sheet {
            base: self.scalar(source.argument).into_pointer_value(),
            dtype: ty.tensor.elem.known().expect("an instance has no dtype parameters"),
            mutable: ty.tensor.mutable,
            extents,
            strides,
            place,
            tile: ty.tile.iter().map(|dim| number(dim) as u64).collect(),
            steps: ty.steps.iter().map(number).collect(),
        }
    }

    /// The window of a tile at an index, without a mask.
    pub(in crate::gpu) fn window_of(&self, sheet: &Sheet<'c>, index: &[IntValue<'c>]) -> Window<'c> {
        let ir = self.ir;
        let mut first = sheet.place.as_ref().map_or_else(|| ir.i64(0), |place| place.offset);
        for (start, &stride) in self.starts(sheet, index).into_iter().zip(&sheet.strides) {
            first = ir.add(first, ir.mul(start, stride));
        }
        // Not an in-bounds address where no element lies inside, so it mustn't be emitted as one.
        let first = ir.offset(ir.storage_type(sheet.dtype), sheet.base, first);
        let Sheet { dtype, mutable, .. } = *sheet;
        let (strides, tile) = (sheet.strides.clone(), sheet.tile.clone());
        Window { first, dtype, mutable, strides, dense: sheet.place.is_none(), mask: None, tile }
    }

    /// The position of a tile's first element along every axis.
    fn starts(&self, sheet: &Sheet<'c>, index: &[IntValue<'c>]) -> Vec<IntValue<'c>> {
        let ir = self.ir;
        index.iter().zip(&sheet.steps).map(|(&index, &step)| ir.mul(index, ir.i64(step))).collect()
    }

    /// The mask of the tile at an index whose window this is.
    pub(in crate::gpu) fn mask(
        &self,
        window: &Window<'c>,
        sheet: &Sheet<'c>,
        index: &[IntValue<'c>],
    ) -> Mask<'c> {
        let (place, start) = (sheet.place.as_ref(), self.starts(sheet, index));
        let ir = self.ir;
        let (mut any, mut whole) = (ir.bool(true), ir.bool(true));
        let (mut begin, mut end, mut safe) = (Vec::new(), Vec::new(), None);
        for axis in 0..window.tile.len() {
            let size = ir.i64(window.tile[axis] as i64);
            let step = ir.i64(sheet.steps[axis]);
            let inside = self.inside(sheet.extents[axis], index[axis], start[axis], size, step);
            let windows = place.map_or(&[][..], |place| &place.windows[axis]);
            let (from, to) = if windows.is_empty() {
                any = ir.and(any, ir.icmp(IntPredicate::NE, inside, ir.i64(0)));
                (None, inside)
            } else {
                let (from, to) = ir.trim(start[axis], inside, windows);
                any = ir.and(any, ir.icmp(IntPredicate::SLT, from, to));
                whole = ir.and(whole, ir.icmp(IntPredicate::EQ, from, ir.i64(0)));
                let skipped = window.scaled(ir, axis, from);
                safe = Some(safe.map_or(skipped, |before| ir.add(before, skipped)));
                (Some(from), to)
            };
            whole = ir.and(whole, ir.icmp(IntPredicate::EQ, to, size));
            begin.push(from.map(|from| ir.resize(from, 32, false)));
            end.push(ir.resize(to, 32, false));
        }
        if let Some(exists) = place.and_then(|place| place.exists) {
            (any, whole) = (ir.and(any, exists), ir.and(whole, exists));
        }
        let storage = ir.storage_type(window.dtype);
        let safe = safe.map_or(window.first, |skipped| ir.offset(storage, window.first, skipped));
        Mask { begin, end, safe, any, whole }
    }

    fn dense_strides(&self, extents: &[IntValue<'c>]) -> Vec<IntValue<'c>> {
        let ir = self.ir;
        let mut strides = vec![ir.i64(1); extents.len()];
        for axis in (1..extents.len()).rev() {
            let inner = strides[axis];
            let stride = if axis + 1 == extents.len() { extents[axis] } else { ir.mul(inner, extents[axis]) };
            strides[axis - 1] = self.loop_stride(stride);
        }
        strides
    }

    fn loop_stride(&self, stride: IntValue<'c>) -> IntValue<'c> {
        if stride.is_const() { stride } else { self.in_loop(stride, Spread::Uniform, |stride| stride) }
    }

    /// How many elements of tile `index` lie inside along an axis: none, if the index is beyond the space.
    fn inside(
        &self,
        extent: IntValue<'c>,
        index: IntValue<'c>,
        start: IntValue<'c>,
        size: IntValue<'c>,
        step: IntValue<'c>,
    ) -> IntValue<'c> {
        let ir = self.ir;
        let one = ir.i64(1);
        let last = ir.udiv(ir.sub(extent, one), step);
        let nonempty = ir.icmp(IntPredicate::NE, extent, ir.i64(0));
        let exists = ir.and(nonempty, ir.icmp(IntPredicate::ULE, index, last));
        let rest = ir.sub(extent, start);
        let inside = ir.lesser(rest, size);
        ir.select_int(exists, inside, ir.i64(0))
    }

    /// The address of the slot's element; and whether it is one and lies inside, which is `None` where it always does.
    pub(in crate::gpu) fn locate(
        &self,
        window: &Window<'c>,
        mapping: &Mapping<'c>,
        cursor: &mut Cursor<'c>,
        slot: u64,
        mask: Option<&Mask<'c>>,
    ) -> (PointerValue<'c>, Option<IntValue<'c>>) {
        let places = mapping.coordinates(self.ir, slot);
        // A mask ends where the tile does.
        let inside = match mask {
            None => mapping.is_element(self.ir, slot),
            Some(mask) => self.is_inside(window, cursor, &places, mask),
        };
        let pointer = self.advance(window, cursor, &places);
        cursor.last = Some((places, pointer));
        (pointer, inside)
    }

    /// Whether an element that a mask may hide exists; `None` where it does.
    fn is_inside(
        &self,
        window: &Window<'c>,
        cursor: &mut Cursor<'c>,
        places: &[Coordinate<'c>],
        mask: &Mask<'c>,
    ) -> Option<IntValue<'c>> {
        let axes = (0..places.len()).filter(|&axis| window.tile[axis] > 1);
        let inside = axes.map(|axis| cursor.is_inside_along(self.ir, mask, axis, places[axis]));
        inside.reduce(|a, b| self.ir.and(a, b))
    }

    /// The address of a place: one addition to the last one's, where threads differ alike.
    fn advance(
        &self,
        window: &Window<'c>,
        cursor: &mut Cursor<'c>,
        places: &[Coordinate<'c>],
    ) -> PointerValue<'c> {
        let ir = self.ir;
        let (start, from): (_, Vec<u64>) = match &cursor.last {
            Some((last, pointer)) if last.iter().zip(places).all(|(a, b)| a.varying == b.varying) => {
                (*pointer, last.iter().map(|place| place.fixed).collect())
            }
            _ => (self.varying_address(window, places), vec![0; places.len()]),
        };
        let step: Vec<i64> =
            places.iter().zip(&from).map(|(to, &from)| to.fixed as i64 - from as i64).collect();
        if step.iter().all(|&step| step == 0) {
            return start;
        }
        let offset = *cursor.steps.entry(step).or_insert_with_key(|step| {
            let axes = step.iter().enumerate().filter(|&(_, &step)| step != 0);
            axes.fold(ir.i64(0), |sum, (axis, &step)| ir.add(sum, window.scaled(ir, axis, ir.i64(step))))
        });
        ir.offset(ir.storage_type(window.dtype), start, offset)
    }

    fn varying_address(&self, window: &Window<'c>, places: &[Coordinate<'c>]) -> PointerValue<'c> {
        let ir = self.ir;
        let mut position = ir.i64(0);
        for (axis, place) in places.iter().enumerate() {
            if let Some(varying) = place.varying {
                position = ir.add(position, window.scaled(ir, axis, ir.resize(varying, 64, false)));
            }
        }
        ir.offset(ir.storage_type(window.dtype), window.first, position)
    }

    /// The index of the tile that a load, store or prefetch names.
    pub(in crate::gpu) fn tile_at(&self, data: &OpData) -> Vec<IntValue<'c>> {
        let ty = self.instance.ty(data.operands[0]).as_partition().expect("verified: a view");
        let given: Vec<IntValue<'c>> = data.tile_index().iter().map(|&index| self.index(index)).collect();
        ty.tile_index(&self.grid.tile_index, &given)
    }

    /// The rows of the tile that an op asks for.
    pub(in crate::gpu) fn rows(&self, data: &OpData) -> Rows<'c> {
        let ir = self.ir;
        let index = self.tile_at(data);
        let window = self.window(data.operands[0], &index, true);
        let mask = window.mask.expect("a mask was asked for");
        let wide = |place| ir.resize(place, 64, false);
        let mut end: Vec<IntValue<'c>> = mask.end.into_iter().map(wide).collect();
        end[0] = ir.select_int(mask.any, end[0], ir.i64(0));
        Rows {
            first: window.first,
            dtype: window.dtype,
            tile: window.tile,
            strides: window.strides,
            begin: mask.begin.into_iter().map(|begin| begin.map(wide)).collect(),
            end,
        }
    }
}
