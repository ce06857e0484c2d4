//! Where the elements of a product's factors come from: from memory, as vectors, or computed one by one.

use super::super::fuse::{Fusion, swaps_last_two};
use super::super::region::Emitter;
use super::plan::{OrderOfA, Plan};
use crate::cpu::memory::buffer::Buffer;
use crate::cpu::memory::views::Matrix;
use crate::emit::Value;
use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValue, InstructionValue, IntValue, PointerValue, VectorValue};
use tile_ir::kernel::OpData;
use tile_ir::ops::Literal;
use tile_ir::{DType, Instance, Op, ValueId};

/// A matrix in memory, one axis of which is contiguous.
#[derive(Clone)]
pub(super) struct Strided<'c> {
    /// The first element.
    pub(super) first: PointerValue<'c>,
    /// Elements from one to the next along each axis.
    strides: [IntValue<'c>; 2],
    /// The axis along which elements are neighbours.
    pub(super) contiguous: usize,
    /// Elements along each axis that exist; the others are `pad`. `None` where all do.
    pub(super) valid: Option<[IntValue<'c>; 2]>,
    pad: Option<Value<'c>>,
    /// Whether `pad` is known to be zero.
    pub(super) is_padded_with_zero: bool,
    dtype: DType,
    origin: Origin,
}

/// Whose memory it is.
#[derive(Clone, Copy)]
enum Origin {
    /// A tensor's, in the storage type.
    Tensor(ValueId),
    /// A stored tile's, in the compute type.
    Tile(ValueId),
}

impl Strided<'_> {
    /// The same, transposed if it is, with neighbours along this axis.
    fn into_factor(mut self, contiguous: usize, is_transposed: bool) -> Self {
        if is_transposed {
            self.strides.reverse();
            self.valid.iter_mut().for_each(|valid| valid.reverse());
        }
        Strided { contiguous, ..self }
    }
}

impl<'c> Strided<'c> {
    /// The same from this address on, of which all is there that is read.
    pub(super) fn from(&self, first: PointerValue<'c>) -> Strided<'c> {
        Strided { first, valid: None, ..self.clone() }
    }
}

/// Where a tensor has a matrix.
pub(super) struct TensorMatrix<'c> {
    pub(super) address: PointerValue<'c>,
    /// Elements from a line of neighbours to the next.
    pub(super) stride: IntValue<'c>,
    /// The axis along which elements are neighbours.
    pub(super) contiguous: usize,
    pub(super) element_bytes: i64,
}

/// A matrix that a tensor has row by row and in the packed format.
pub(super) struct InTensor<'c> {
    pub(super) first: PointerValue<'c>,
    /// Elements from a row to the next.
    pub(super) row: IntValue<'c>,
    pub(super) element_bytes: i64,
    /// Whether all of it exists.
    pub(super) is_whole: IntValue<'c>,
}

/// One factor of one matrix product.
pub(super) enum Factor<'c> {
    /// In memory.
    Strided(Strided<'c>),
    /// Computed element by element.
    Computed(ValueId),
}

/// The tile behind the transposition of matrices, and whether there is one; of a load whose only matrix is a factor, the
/// load's.
pub(super) fn behind_transposition(fusion: &Fusion<'_>, factor: ValueId) -> (ValueId, bool) {
    let computed = |tile| fusion.definition(tile).filter(|_| !fusion.is_stored(tile));
    let behind = |tile, axes: fn(&Op) -> bool| match computed(tile) {
        Some(data) if axes(&data.op) => Some(data.operands[0]),
        _ => None,
    };
    let transposed = behind(factor, |op| matches!(op, Op::Permute(axes) if swaps_last_two(axes)));
    let tile = transposed.unwrap_or(factor);
    let load = behind(tile, |op| matches!(op, Op::Reshape(_)))
        .filter(|&tile| computed(tile).is_some_and(|data| data.op.is_load()));
    (load.unwrap_or(tile), transposed.is_some())
}

/// The load whose elements are packed right out of a tensor.
pub(super) fn streamed_load<'a>(fusion: &Fusion<'a>, tile: ValueId) -> Option<&'a OpData> {
    fusion.definition(tile).filter(|data| data.op.is_load() && !fusion.is_stored(tile))
}

/// Whether `a` is read in scratch memory, where it is stored: element by element.
pub(super) fn is_read_in_place(instance: &Instance, fusion: &Fusion<'_>, plan: &Plan, a: ValueId) -> bool {
    let (tile, _) = behind_transposition(fusion, a);
    let dtype = instance.ty(tile).elem().known().expect("an instance has no dtype parameters");
    let is_packed = dtype == plan.packed || (dtype.is_narrow_float() && plan.packed == DType::F32);
    plan.turns == 1 && plan.contraction.group() == 1 && fusion.is_stored(tile) && is_packed
}

/// Whether elements of tensors are packed as they are.
fn is_packed(storage: DType, plan: &Plan) -> bool {
    match storage {
        DType::BF16 => plan.contraction.keeps_bf16(),
        DType::Bool => false,
        dtype => dtype == plan.packed || (!dtype.is_float() && dtype.bits() == plan.packed.bits()),
    }
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// The axis along which a factor's elements are neighbours in memory; `None` for a factor that is computed element by
    /// element.
    pub(super) fn contiguous_axis_of(&self, factor: ValueId, plan: &Plan) -> Option<usize> {
        let (tile, is_transposed) = behind_transposition(self.fusion, factor);
        let is_stored = self.buffer(tile).is_some();
        let axis = match self.definition(tile) {
            _ if is_stored => Some(1),
            Some(data) if data.op.is_load() => self.contiguous_axis(data),
            _ => None,
        };
        let axis = axis.filter(|_| self.converts(self.dtype(tile), is_stored, plan));
        axis.map(|axis| if is_transposed { 1 - axis } else { axis })
    }

    /// A factor's matrix of this number.
    pub(super) fn factor(&self, factor: ValueId, matrix: IntValue<'c>, plan: &Plan) -> Factor<'c> {
        let Some(contiguous) = self.contiguous_axis_of(factor, plan) else { return Factor::Computed(factor) };
        let (tile, is_transposed) = behind_transposition(self.fusion, factor);
        let strided = match self.definition(tile) {
            Some(data) if self.buffer(tile).is_none() => {
                self.streamed_factor(data, self.matrix(data, matrix))
            }
            _ => self.stored_factor(tile, matrix),
        };
        Factor::Strided(strided.into_factor(contiguous, is_transposed))
    }

    /// A factor that is loaded and whose lines lie in memory as they are, with the places that exist whether the load has a
    /// mask or not: for who reads it before its time.
    pub(super) fn checked_factor(&self, factor: ValueId, plan: &Plan) -> Option<Strided<'c>> {
        let contiguous = self.contiguous_axis_of(factor, plan)?;
        let (tile, is_transposed) = behind_transposition(self.fusion, factor);
        let load = streamed_load(self.fusion, tile)?;
        let loaded = self.streamed_factor(load, self.checked_matrix(load, self.ir.i64(0)));
        Some(loaded.into_factor(contiguous, is_transposed))
    }

    /// In which order `a` is packed: as it lies, and for tiles by rows in any case.
    pub(super) fn order_of_a(&self, a: ValueId, plan: &Plan) -> OrderOfA {
        if plan.contraction.tiles().is_some() {
            return OrderOfA::ByRows;
        }
        match self.contiguous_axis_of(a, plan) {
            Some(0) => OrderOfA::ByColumns,
            _ => OrderOfA::ByRows,
        }
    }

    /// `a` where it is stored: its buffer, its first element, and the distance to the next along each axis.
    pub(super) fn in_place(
        &self,
        a: ValueId,
        matrix: IntValue<'c>,
        plan: &Plan,
    ) -> (Buffer<'c>, IntValue<'c>, [i64; 2]) {
        let (tile, is_transposed) = behind_transposition(self.fusion, a);
        let first = self.ir.mul(matrix, self.ir.i64(plan.m * plan.k));
        let strides = if is_transposed { [1, plan.m] } else { [plan.k, 1] };
        (self.stored(tile), first, strides)
    }

    /// Where a tensor has a matrix; `None` for a stored tile.
    pub(super) fn memory_of(&self, matrix: &Strided<'c>) -> Option<TensorMatrix<'c>> {
        let Origin::Tensor(_) = matrix.origin else { return None };
        Some(TensorMatrix {
            address: matrix.first,
            stride: matrix.strides[1 - matrix.contiguous],
            contiguous: matrix.contiguous,
            element_bytes: matrix.dtype.bytes() as i64,
        })
    }

    /// A matrix in its tensor, where its rows needn't be converted to be packed.
    pub(super) fn in_tensor(&self, matrix: &Strided<'c>, plan: &Plan) -> Option<InTensor<'c>> {
        let is_packed = matches!(matrix.origin, Origin::Tensor(_)) && is_packed(matrix.dtype, plan);
        if !is_packed || matrix.contiguous != 1 {
            return None;
        }
        Some(InTensor {
            first: matrix.first,
            row: matrix.strides[0],
            element_bytes: matrix.dtype.bytes() as i64,
            is_whole: self.is_all_there(matrix, [plan.m, plan.k]),
        })
    }

    /// Whether all elements of a matrix with these extents exist.
    pub(super) fn is_all_there(&self, matrix: &Strided<'c>, extents: [i64; 2]) -> IntValue<'c> {
        let ir = self.ir;
        let ends = matrix.valid.into_iter().flatten().zip(extents);
        ir.all(ends.map(|(end, extent)| ir.icmp(IntPredicate::EQ, end, ir.i64(extent))))
    }

    fn stored_factor(&self, tile: ValueId, matrix: IntValue<'c>) -> Strided<'c> {
        let (ir, shape, buffer) = (self.ir, self.shape(tile), self.stored(tile));
        let [.., rows, columns] = shape[..] else { unreachable!("verified: `mma` multiplies matrices") };
        let ty = self.buffers.element_type(buffer.dtype);
        Strided {
            first: ir.element(ty, buffer.address, ir.mul(matrix, ir.i64(rows * columns))),
            strides: [ir.i64(columns), ir.i64(1)],
            contiguous: 1,
            valid: None,
            pad: None,
            is_padded_with_zero: false,
            dtype: buffer.dtype,
            origin: Origin::Tile(tile),
        }
    }

    fn streamed_factor(&self, data: &OpData, matrix: Matrix<'c>) -> Strided<'c> {
        let Matrix { first, strides, valid, tensor } = matrix;
        let pad = data.load().and_then(|load| load.pad);
        let is_zero = |pad: ValueId| {
            let constant = self.definition(pad).and_then(OpData::constant);
            constant.is_some_and(|constant| {
                [Literal::Int(0), Literal::Float(0.0), Literal::Float(-0.0)].contains(&constant)
            })
        };
        Strided {
            first,
            strides,
            contiguous: 1,
            valid,
            pad: pad.map(|pad| self.scalar(pad)),
            is_padded_with_zero: pad.is_some_and(is_zero),
            dtype: self.dtype(data.results[0]),
            origin: Origin::Tensor(tensor),
        }
    }

    /// Whether vectors of a tensor or a stored tile can be made packed ones.
    fn converts(&self, from: DType, is_stored: bool, plan: &Plan) -> bool {
        match from {
            dtype if dtype == plan.packed => true,
            DType::BF16 => true,
            DType::F16 => is_stored || self.ir.features.half_conversion,
            dtype if dtype.is_narrow_float() => is_stored,
            dtype => dtype != DType::Bool && !dtype.is_float(),
        }
    }

    /// The address of an element.
    pub(super) fn address_in(
        &self,
        from: &Strided<'c>,
        [row, column]: [IntValue<'c>; 2],
    ) -> PointerValue<'c> {
        let ir = self.ir;
        let along = |index, axis: usize| {
            if axis == from.contiguous { index } else { ir.mul(index, from.strides[axis]) }
        };
        ir.offset(self.memory_type(from), from.first, ir.add(along(row, 0), along(column, 1)))
    }

    fn memory_type(&self, from: &Strided<'c>) -> BasicTypeEnum<'c> {
        match from.origin {
            Origin::Tensor(_) => self.ir.storage_type(from.dtype),
            Origin::Tile(_) => self.buffers.element_type(from.dtype),
        }
    }

    /// Consecutive elements along the contiguous axis from an address on, packed: those that a mask has, all without one.
    pub(super) fn packed_vector(
        &self,
        from: &Strided<'c>,
        address: PointerValue<'c>,
        mask: Option<VectorValue<'c>>,
        lanes: u32,
        plan: &Plan,
    ) -> VectorValue<'c> {
        let (ir, element) = (self.ir, self.memory_type(from));
        let ty = crate::cpu::vectors::vector_type(element, lanes);
        let alignment = from.dtype.bytes().max(1) as u32;
        let (vector, load) = match mask {
            Some(mask) => {
                let pad = from.pad.map_or(element.const_zero(), |pad| match from.origin {
                    Origin::Tensor(_) => ir.value_to_storage(pad, from.dtype),
                    Origin::Tile(_) => pad,
                });
                ir.load_lanes(address, mask, ir.in_every_lane(pad, lanes), alignment)
            }
            None => {
                let vector = ir.load_at(ty.into(), address, Some(alignment)).into_vector_value();
                (vector, vector.as_instruction_value().expect("a load is an instruction"))
            }
        };
        self.mark_access(from, load);
        self.converted(vector, from, lanes, plan)
    }

    fn mark_access(&self, from: &Strided<'c>, load: InstructionValue<'c>) {
        match from.origin {
            Origin::Tensor(tensor) => self.buffers.mark_tensor_access(Some(load), tensor),
            Origin::Tile(tile) => self.buffers.mark_access(Some(load), &self.stored(tile)),
        }
    }

    fn converted(
        &self,
        vector: VectorValue<'c>,
        from: &Strided<'c>,
        lanes: u32,
        plan: &Plan,
    ) -> VectorValue<'c> {
        let (builder, context) = (&self.ir.builder, self.ir.context);
        let positioned = "the builder is positioned";
        let in_storage = matches!(from.origin, Origin::Tensor(_));
        let words = context.i32_type().vec_type(lanes);
        match from.dtype {
            DType::BF16 if plan.contraction.keeps_bf16() && in_storage => vector,
            DType::BF16 if plan.contraction.keeps_bf16() => {
                let bits = builder.build_bit_cast(vector, words, "").expect(positioned).into_vector_value();
                let sixteen = self.ir.in_every_lane(context.i32_type().const_int(16, false).into(), lanes);
                let high = builder.build_right_shift(bits, sixteen, false, "").expect(positioned);
                builder.build_int_truncate(high, context.i16_type().vec_type(lanes), "").expect(positioned)
            }
            dtype if dtype == plan.packed || (dtype.is_narrow_float() && !in_storage) => vector,
            DType::BF16 => {
                let wide = builder.build_int_z_extend(vector, words, "").expect(positioned);
                let sixteen = self.ir.in_every_lane(context.i32_type().const_int(16, false).into(), lanes);
                let bits = builder.build_left_shift(wide, sixteen, "").expect(positioned);
                let floats = builder.build_bit_cast(bits, context.f32_type().vec_type(lanes), "");
                floats.expect(positioned).into_vector_value()
            }
            DType::F16 => {
                let halves = builder.build_bit_cast(vector, context.f16_type().vec_type(lanes), "");
                let halves = halves.expect(positioned).into_vector_value();
                builder.build_float_ext(halves, context.f32_type().vec_type(lanes), "").expect(positioned)
            }
            dtype if dtype.bits() == plan.packed.bits() => vector,
            dtype => {
                let ty = self.ir.int_type(plan.packed.bits()).vec_type(lanes);
                let wide = if dtype.is_signed() {
                    builder.build_int_s_extend(vector, ty, "")
                } else {
                    builder.build_int_z_extend(vector, ty, "")
                };
                wide.expect(positioned)
            }
        }
    }

    /// An element of a computed factor, packed.
    pub(super) fn packed_element(
        &mut self,
        factor: ValueId,
        index: &[IntValue<'c>],
        plan: &Plan,
    ) -> Value<'c> {
        if let Some(float) = self.rounded_by_packing(factor, plan) {
            let float = self.element(float, index).into_float_value();
            return self.ir.rounded_to_bf16(float).into();
        }
        let dtype = self.dtype(factor);
        match self.element(factor, index) {
            Value::FloatValue(float) if plan.contraction.keeps_bf16() => {
                let high = self.ir.lshr(self.ir.bits(float), self.ir.int_type(32).const_int(16, false));
                self.ir.zext_or_trunc(high, 16).into()
            }
            Value::IntValue(int) => self.ir.resize(int, plan.packed.bits(), dtype.is_signed()).into(),
            float => float,
        }
    }

    /// The tile of f32 that a factor is of which packing makes bf16 by an instruction: it makes 0 of subnormal numbers, as
    /// products of packed ones do.
    fn rounded_by_packing(&self, factor: ValueId, plan: &Plan) -> Option<ValueId> {
        let data = self.definition(factor).filter(|_| self.buffer(factor).is_none())?;
        let is_rounding = matches!(&data.op, Op::Cast(elem) if elem.known() == Some(DType::BF16));
        let is_packed = plan.contraction.keeps_bf16() && self.ir.rounds_to_bf16();
        let float = data.operands.first().copied()?;
        (is_rounding && is_packed && self.dtype(float) == DType::F32).then_some(float)
    }
}
