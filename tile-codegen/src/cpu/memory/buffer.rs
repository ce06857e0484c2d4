//! Tiles in scratch memory: addresses, loads and stores, and the alias scopes that tell LLVM what is disjoint.

use super::scratch::{Place, Scratch, element_bytes};
use crate::cpu::vectors::vector_type;
use crate::emit::{Ir, Value};
use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::BasicValue;
use inkwell::values::{InstructionValue, IntValue, MetadataValue, PointerValue, VectorValue};
use std::collections::HashMap;
use tile_ir::{DType, Instance, ValueId};

/// A place of scratch memory that lies elsewhere than a block's others.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Elsewhere<'c> {
    pub(in crate::cpu) place: Place,
    /// Where the memory begins in which it lies.
    pub(in crate::cpu) base: PointerValue<'c>,
}

/// The scratch memory of a block.
pub(in crate::cpu) struct Buffers<'a, 'c> {
    ir: &'a Ir<'c>,
    scratch: &'a Scratch,
    base: PointerValue<'c>,
    elsewhere: Option<Elsewhere<'c>>,
    /// Per place: its own scope, and the scopes of the places that it never overlaps with.
    scopes: HashMap<usize, [MetadataValue<'c>; 2]>,
    /// Per tensor argument: its own scope, and those of every place and of the tensors that it can't overlap
    /// with, because one of the two is borrowed mutably.
    tensors: HashMap<ValueId, [MetadataValue<'c>; 2]>,
    kinds: [u32; 2],
}

/// One stored tile.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Buffer<'c> {
    pub(in crate::cpu) address: PointerValue<'c>,
    pub(in crate::cpu) dtype: DType,
    place: Place,
}

impl<'c> Buffer<'c> {
    /// The same buffer from another address on.
    pub(in crate::cpu) fn from(&self, address: PointerValue<'c>) -> Buffer<'c> {
        Buffer { address, ..*self }
    }
}

impl<'a, 'c> Buffers<'a, 'c> {
    pub(in crate::cpu) fn new(
        ir: &'a Ir<'c>,
        instance: &Instance,
        scratch: &'a Scratch,
        base: PointerValue<'c>,
        elsewhere: Option<Elsewhere<'c>>,
    ) -> Self {
        let domain = ir.context.metadata_node(&[ir.context.metadata_string("memory").into()]);
        let scope =
            |name: &str| ir.context.metadata_node(&[ir.context.metadata_string(name).into(), domain.into()]);
        let places: Vec<(Place, MetadataValue<'c>)> =
            scratch.places().into_iter().map(|place| (place, scope(&format!("tile {}", place.id)))).collect();
        let tensors: Vec<(ValueId, bool, MetadataValue<'c>)> = instance
            .tensors()
            .map(|(value, ty)| (value, ty.mutable, scope(&format!("tensor {}", value.index()))))
            .collect();
        let lists = |own: MetadataValue<'c>, apart: Vec<MetadataValue<'c>>| {
            let apart: Vec<_> = apart.into_iter().map(Into::into).collect();
            [ir.context.metadata_node(&[own.into()]), ir.context.metadata_node(&apart)]
        };
        let of_place = |&(place, own): &(Place, MetadataValue<'c>)| {
            let other_places =
                places.iter().filter(|(other, _)| !place.overlaps(other)).map(|&(_, scope)| scope);
            let apart = other_places.chain(tensors.iter().map(|&(.., scope)| scope));
            (place.id, lists(own, apart.collect()))
        };
        let of_tensor = |&(value, mutable, own): &(ValueId, bool, MetadataValue<'c>)| {
            let others =
                tensors.iter().filter(|(other, written, _)| *other != value && (mutable || *written));
            let apart = others.map(|&(.., scope)| scope).chain(places.iter().map(|&(_, scope)| scope));
            (value, lists(own, apart.collect()))
        };
        let kinds = [ir.context.get_kind_id("alias.scope"), ir.context.get_kind_id("noalias")];
        let scopes = places.iter().map(of_place).collect();
        let tensors = tensors.iter().map(of_tensor).collect();
        Buffers { ir, scratch, base, elsewhere, scopes, tensors, kinds }
    }

    /// The builder.
    pub(in crate::cpu) fn ir(&self) -> &'a Ir<'c> {
        self.ir
    }

    /// The buffer of a stored tile.
    pub(in crate::cpu) fn of(&self, value: ValueId, dtype: DType) -> Option<Buffer<'c>> {
        Some(self.at(self.scratch.place(value)?, dtype))
    }

    /// The memory for a packed factor of the `mma` that gives a tile: of `a` or `b`, unless that is read where it is.
    pub(in crate::cpu) fn packed(&self, product: ValueId, factor: usize, dtype: DType) -> Option<Buffer<'c>> {
        Some(self.at(self.scratch.packed(product)[factor]?, dtype))
    }

    /// The memory for the keys of a line that an op sorts, if it sorts by keys.
    pub(in crate::cpu) fn keys(&self, sorted: ValueId) -> Option<Buffer<'c>> {
        Some(self.at(self.scratch.keys(sorted)?, DType::I64))
    }

    fn at(&self, place: Place, dtype: DType) -> Buffer<'c> {
        let byte = self.ir.context.i8_type().into();
        let elsewhere = self.elsewhere.filter(|elsewhere| elsewhere.place == place);
        let base = elsewhere.map_or(self.base, |elsewhere| elsewhere.base);
        let address = self.ir.element(byte, base, self.ir.i64(place.offset as i64));
        Buffer { address, dtype, place }
    }

    /// Tells which tile an instruction accesses.
    pub(in crate::cpu) fn mark_access(&self, instruction: Option<InstructionValue<'c>>, buffer: &Buffer<'c>) {
        self.mark_with(instruction, &self.scopes[&buffer.place.id]);
    }

    /// Tells which tensor argument an instruction accesses.
    pub(in crate::cpu) fn mark_tensor_access(
        &self,
        instruction: Option<InstructionValue<'c>>,
        tensor: ValueId,
    ) {
        self.mark_with(instruction, &self.tensors[&tensor]);
    }

    /// Reads an element of a tensor argument at its address, in the compute type.
    pub(in crate::cpu) fn read_tensor(
        &self,
        tensor: ValueId,
        dtype: DType,
        address: PointerValue<'c>,
    ) -> Value<'c> {
        let stored = self.ir.load(self.ir.storage_type(dtype), address);
        self.mark_tensor_access(stored.as_instruction_value(), tensor);
        self.ir.value_from_storage(stored, dtype)
    }

    /// Writes an element of a tensor argument at its address.
    pub(in crate::cpu) fn write_tensor(
        &self,
        tensor: ValueId,
        dtype: DType,
        address: PointerValue<'c>,
        value: Value<'c>,
    ) {
        let stored = self.ir.value_to_storage(value, dtype);
        let store = self.ir.builder.build_store(address, stored).expect("the builder is positioned");
        self.mark_tensor_access(Some(store), tensor);
    }

    fn mark_with(&self, instruction: Option<InstructionValue<'c>>, lists: &[MetadataValue<'c>; 2]) {
        let Some(instruction) = instruction else { return };
        for (list, kind) in lists.iter().zip(self.kinds) {
            instruction.set_metadata(*list, kind).expect("loads and stores take alias metadata");
        }
    }

    /// The type of an element in scratch memory.
    pub(in crate::cpu) fn element_type(&self, dtype: DType) -> BasicTypeEnum<'c> {
        match dtype {
            DType::Bool => self.ir.context.i8_type().into(),
            _ => self.ir.compute_type(dtype),
        }
    }

    /// What comes so many elements later in the same place.
    pub(in crate::cpu) fn further(&self, buffer: &Buffer<'c>, elements: IntValue<'c>) -> Buffer<'c> {
        let address = self.ir.element(self.element_type(buffer.dtype), buffer.address, elements);
        buffer.from(address)
    }

    /// Reads element `index`.
    pub(in crate::cpu) fn load(&self, buffer: &Buffer<'c>, index: IntValue<'c>) -> Value<'c> {
        let ty = self.element_type(buffer.dtype);
        let value = self.ir.load(ty, self.ir.element(ty, buffer.address, index));
        self.mark_access(value.as_instruction_value(), buffer);
        if buffer.dtype == DType::Bool {
            let byte = value.into_int_value();
            return self.ir.icmp(IntPredicate::NE, byte, byte.get_type().const_zero()).into();
        }
        value
    }

    /// Writes element `index`.
    pub(in crate::cpu) fn store(&self, buffer: &Buffer<'c>, index: IntValue<'c>, value: Value<'c>) {
        let ty = self.element_type(buffer.dtype);
        let value = match value {
            Value::IntValue(bit) if buffer.dtype == DType::Bool => self.ir.zext_or_trunc(bit, 8).into(),
            value => value,
        };
        let address = self.ir.element(ty, buffer.address, index);
        let store = self.ir.builder.build_store(address, value).expect("the builder is positioned");
        self.mark_access(Some(store), buffer);
    }

    /// Reads `ty`, a vector or scalar of the buffer's element type, at element `index`.
    pub(in crate::cpu) fn load_as(
        &self,
        buffer: &Buffer<'c>,
        ty: BasicTypeEnum<'c>,
        index: IntValue<'c>,
    ) -> Value<'c> {
        let address = self.ir.element(self.element_type(buffer.dtype), buffer.address, index);
        let value = self.ir.load(ty, address);
        let load = value.as_instruction_value();
        if let Some(load) = load {
            load.set_alignment(element_alignment(buffer.dtype))
                .expect("an element's alignment is a power of two");
        }
        self.mark_access(load, buffer);
        value
    }

    /// Writes a vector or scalar of the buffer's element type at element `index`.
    pub(in crate::cpu) fn store_as(&self, buffer: &Buffer<'c>, index: IntValue<'c>, value: Value<'c>) {
        let address = self.ir.element(self.element_type(buffer.dtype), buffer.address, index);
        let store = self.ir.builder.build_store(address, value).expect("the builder is positioned");
        store
            .set_alignment(element_alignment(buffer.dtype))
            .expect("an element's alignment is a power of two");
        self.mark_access(Some(store), buffer);
    }

    /// Reads a vector from element `index` on: the lanes that a mask has, zeros elsewhere; all without one.
    pub(in crate::cpu) fn load_lanes(
        &self,
        buffer: &Buffer<'c>,
        index: IntValue<'c>,
        mask: Option<VectorValue<'c>>,
        lanes: u32,
    ) -> VectorValue<'c> {
        let element = self.element_type(buffer.dtype);
        let ty = vector_type(element, lanes);
        let Some(mask) = mask else { return self.load_as(buffer, ty.into(), index).into_vector_value() };
        let address = self.ir.element(element, buffer.address, index);
        let (vector, load) =
            self.ir.load_lanes(address, mask, ty.const_zero(), element_alignment(buffer.dtype));
        self.mark_access(Some(load), buffer);
        vector
    }

    /// Writes a vector from element `index` on: the lanes that a mask has, all without one.
    pub(in crate::cpu) fn store_lanes(
        &self,
        buffer: &Buffer<'c>,
        index: IntValue<'c>,
        mask: Option<VectorValue<'c>>,
        vector: VectorValue<'c>,
    ) {
        let Some(mask) = mask else { return self.store_as(buffer, index, vector.into()) };
        let address = self.ir.element(self.element_type(buffer.dtype), buffer.address, index);
        let store = self.ir.store_lanes(address, mask, vector, element_alignment(buffer.dtype));
        self.mark_access(Some(store), buffer);
    }

    /// Whether two tiles share a place.
    pub(in crate::cpu) fn same(a: &Buffer<'c>, b: &Buffer<'c>) -> bool {
        a.place == b.place
    }
}

fn element_alignment(dtype: DType) -> u32 {
    element_bytes(dtype) as u32
}
