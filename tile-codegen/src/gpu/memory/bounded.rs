//! Loads and stores of masked tiles whose bounds the hardware checks: AMD's buffer instructions.
//!
//! A resource in scalar registers says where the tile begins and how many bytes there are; every lane gives an offset of
//! 32 bits. What lies beyond reads as zero, and isn't stored (CDNA 3 and RDNA 3 ISA manuals, "Buffer Addressing" and "Range
//! checking"), so there are no branches, no addresses of elements that stand in for others, and half the registers.
//!
//! Of a dense tensor, the first axis along which the tile has several positions needs no comparison either: the resource
//! ends where that axis does, in front of which every other axis of an existing element stays. Where a lane is outside
//! along another axis, its offset begins at [`FAR`], and what is added to it for its further slots leaves it there: the
//! schedule found that tiles reach over less ([`tile_ir::gpu::Access::near`]).

use super::window::{Mask, Window};
use crate::emit::{Ir, Value};
use crate::gpu::coordinates::{Coordinate, Mapping, both};
use crate::gpu::region::Emitter;
use inkwell::AddressSpace;
use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::OpId;
use tile_ir::gpu::NEAR_BYTES;

/// An offset that no resource reaches.
const FAR: u64 = NEAR_BYTES;

/// The address space of buffer resources.
const RESOURCE: u16 = 8;

/// A tile's part of memory.
pub(in crate::gpu) struct Bounded<'w, 'c> {
    window: &'w Window<'c>,
    mask: &'w Mask<'c>,
    resource: PointerValue<'c>,
    /// Bytes from one position to the next along every axis, i32.
    strides: Vec<IntValue<'c>>,
    /// The axis whose end is the resource's.
    ends_with: Option<usize>,
    /// Whether there are elements along the axes with one position; `None` where it is certain.
    any: Option<IntValue<'c>>,
}

/// Where the previous slot's element is, on one straight piece of code.
#[derive(Default)]
pub(in crate::gpu) struct Offsets<'c> {
    last: Option<(Vec<Coordinate<'c>>, IntValue<'c>)>,
}

impl<'w, 'c> Bounded<'w, 'c> {
    /// The tile of an op whose window has a mask, if the target has such accesses and the tile is near.
    pub(in crate::gpu) fn of(emitter: &Emitter<'_, 'c>, op: OpId, window: &'w Window<'c>) -> Option<Self> {
        let (ir, mask) = (emitter.ir, window.mask.as_ref()?);
        let word = emitter.dialect.buffers.filter(|_| emitter.scheduled.access(op).near)?;
        let bytes = window.dtype.bytes() as i64;
        let in_bytes = |&stride: &IntValue<'c>| ir.mul(stride, ir.i64(bytes));
        let strides: Vec<IntValue<'c>> = window.strides.iter().map(in_bytes).collect();
        let ends_with = window.tile.iter().position(|&extent| extent > 1);
        let ends_with = ends_with.filter(|&axis| window.dense && mask.begin[axis].is_none());
        let reach = match ends_with {
            Some(axis) => ir.mul(ir.resize(mask.end[axis], 64, false), strides[axis]),
            None => ir.i64(FAR as i64),
        };
        let any = nonempty(ir, window, mask);
        let records = any.map_or(reach, |any| ir.select_int(any, reach, ir.i64(0)));
        let no_stride = ir.int_type(16).const_zero();
        let word = ir.context.i32_type().const_int(word.into(), false);
        let operands = [window.first.into(), no_stride.into(), records.into(), word.into()];
        let types =
            [ir.context.ptr_type(AddressSpace::from(RESOURCE)).into(), window.first.get_type().into()];
        let resource = ir.intrinsic("llvm.amdgcn.make.buffer.rsrc", &types, &operands);
        let resource = resource.expect("it gives a resource").into_pointer_value();
        let strides = strides.into_iter().map(|stride| ir.resize(stride, 32, false)).collect();
        Some(Bounded { window, mask, resource, strides, ends_with, any })
    }

    /// Whether a place exists, as far as some of the axes decide; `None` where they don't.
    fn inside(
        &self,
        ir: &Ir<'c>,
        places: &[Coordinate<'c>],
        decides: impl Fn(usize) -> bool,
    ) -> Option<IntValue<'c>> {
        let axes = (0..places.len()).filter(|&axis| self.window.tile[axis] > 1 && decides(axis));
        axes.fold(None, |inside, axis| {
            let place = places[axis].value(ir);
            let ends = ir.icmp(IntPredicate::ULT, place, self.mask.end[axis]);
            let begins = self.mask.begin[axis].map(|begin| ir.icmp(IntPredicate::UGE, place, begin));
            both(ir, inside, both(ir, Some(ends), begins))
        })
    }

    /// The offset of a slot's element; [`FAR`] or more where it doesn't exist, or where `also` doesn't hold.
    fn offset(
        &self,
        ir: &Ir<'c>,
        offsets: &mut Offsets<'c>,
        places: Vec<Coordinate<'c>>,
        also: Option<IntValue<'c>>,
    ) -> IntValue<'c> {
        let fixed = |axis: usize, from: u64| {
            let count = places[axis].fixed - from;
            ir.mul(self.strides[axis], ir.context.i32_type().const_int(count, false))
        };
        let follows = |axis: usize, last: &Coordinate<'c>| {
            let place = places[axis];
            let further = self.ends_with == Some(axis) && place.fixed >= last.fixed;
            place.varying == last.varying && (place.fixed == last.fixed || further)
        };
        let last = offsets.last.take();
        let last = last.filter(|(last, _)| last.iter().enumerate().all(|(axis, last)| follows(axis, last)));
        let offset = match (last, self.ends_with) {
            (Some((last, offset)), Some(axis)) => ir.add(offset, fixed(axis, last[axis].fixed)),
            (Some((_, offset)), None) => offset,
            (None, _) => {
                let varying = (0..places.len())
                    .filter_map(|axis| Some(ir.mul(places[axis].varying?, self.strides[axis])));
                let zero = ir.context.i32_type().const_zero();
                let varying = varying.fold(zero, |sum, term| ir.add(sum, term));
                let exists = both(ir, self.inside(ir, &places, |axis| self.ends_with != Some(axis)), also);
                let far = ir.context.i32_type().const_int(FAR, false);
                let start = exists.map_or(varying, |exists| ir.select_int(exists, varying, far));
                (0..places.len()).fold(start, |sum, axis| ir.add(sum, fixed(axis, 0)))
            }
        };
        offsets.last = Some((places, offset));
        offset
    }

    /// So many elements from a slot on, and the pad where they don't exist.
    pub(in crate::gpu) fn load(
        &self,
        ir: &Ir<'c>,
        mapping: &Mapping<'c>,
        offsets: &mut Offsets<'c>,
        slot: u64,
        width: u64,
        pad: Value<'c>,
    ) -> Vec<Value<'c>> {
        let (dtype, places) = (self.window.dtype, mapping.coordinates(ir, slot));
        let exists = (!is_zero(pad)).then(|| both(ir, self.inside(ir, &places, |_| true), self.any));
        let offset = self.offset(ir, offsets, places, None);
        let ty = ir.words_type(width as u32 * dtype.bytes() as u32);
        let operands = [self.resource.into(), offset.into()].into_iter().chain(no_more(ir));
        let words = ir.intrinsic("llvm.amdgcn.raw.ptr.buffer.load", &[ty], &operands.collect::<Vec<_>>());
        let values = ir.group_of_words(words.expect("a load has a result"), dtype, width as u32);
        let Some(Some(exists)) = exists else { return values };
        ir.select_group(exists, &values, &vec![pad; width as usize], dtype)
    }

    /// Stores elements from a slot on where they exist, and the running thread answers for them.
    pub(in crate::gpu) fn store(
        &self,
        ir: &Ir<'c>,
        mapping: &Mapping<'c>,
        offsets: &mut Offsets<'c>,
        slot: u64,
        values: &[Value<'c>],
    ) {
        let offset = self.offset(ir, offsets, mapping.coordinates(ir, slot), mapping.is_owner());
        let words = ir.group_in_words(values, self.window.dtype);
        let operands = [words, self.resource.into(), offset.into()].into_iter().chain(no_more(ir));
        let ty: BasicTypeEnum<'c> = words.get_type();
        ir.intrinsic("llvm.amdgcn.raw.ptr.buffer.store", &[ty], &operands.collect::<Vec<_>>());
    }
}

/// Whether a tile has elements along the axes that offsets don't tell apart.
fn nonempty<'c>(ir: &Ir<'c>, window: &Window<'c>, mask: &Mask<'c>) -> Option<IntValue<'c>> {
    if !window.dense {
        return Some(mask.any);
    }
    let units = (0..window.tile.len()).filter(|&axis| window.tile[axis] == 1);
    let zero = ir.context.i32_type().const_zero();
    let ends = units.map(|axis| ir.icmp(IntPredicate::NE, mask.end[axis], zero));
    ends.reduce(|a, b| ir.and(a, b))
}

/// The operands of an access that say nothing: an offset that is alike in all lanes, and how caches are used.
fn no_more<'c>(ir: &Ir<'c>) -> [Value<'c>; 2] {
    [ir.context.i32_type().const_zero().into(); 2]
}

/// Whether a value is what the hardware gives in place of elements that don't exist.
fn is_zero(pad: Value<'_>) -> bool {
    match pad {
        Value::IntValue(pad) => pad.is_null(),
        Value::FloatValue(pad) => pad.is_null(),
        _ => false,
    }
}
