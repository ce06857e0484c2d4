//! Tiles in scratch memory: addresses, loads and stores, and the alias scopes that tell LLVM that buffers
//! are disjoint.

use super::scratch::{Place, Scratch, element_bytes};
use crate::emit::{Ir, Value};
use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::BasicValue;
use inkwell::values::{InstructionValue, IntValue, MetadataValue, PointerValue};
use std::collections::HashMap;
use tile_ir::{DType, ValueId};

/// The scratch memory of a block.
pub(super) struct Buffers<'a, 'c> {
    ir: &'a Ir<'c>,
    scratch: &'a Scratch,
    base: PointerValue<'c>,
    /// Per place: its own scope, and the scopes of the places that it never overlaps with.
    scopes: HashMap<usize, [MetadataValue<'c>; 2]>,
    /// For accesses of tensors: disjoint from every buffer.
    all: Option<MetadataValue<'c>>,
    kinds: [u32; 2],
}

/// One stored tile.
#[derive(Clone, Copy)]
pub(super) struct Buffer<'c> {
    pub(super) address: PointerValue<'c>,
    pub(super) dtype: DType,
    place: Place,
}

impl<'a, 'c> Buffers<'a, 'c> {
    pub(super) fn new(ir: &'a Ir<'c>, scratch: &'a Scratch, base: PointerValue<'c>) -> Self {
        let domain = ir.context.metadata_node(&[ir.context.metadata_string("tile").into()]);
        let places = scratch.places();
        let scope = |place: &Place| {
            let name = ir.context.metadata_string(&format!("tile {} at {}", place.id, place.offset));
            ir.context.metadata_node(&[name.into(), domain.into()])
        };
        let each: Vec<MetadataValue<'c>> = places.iter().map(scope).collect();
        let list = |accept: &dyn Fn(&Place) -> bool| {
            let accepted = places.iter().zip(&each).filter(|(place, _)| accept(place));
            ir.context.metadata_node(&accepted.map(|(_, &scope)| scope.into()).collect::<Vec<_>>())
        };
        let scopes = places.iter().zip(&each).map(|(place, &own)| {
            let apart = list(&|other| !place.overlaps(other));
            (place.id, [ir.context.metadata_node(&[own.into()]), apart])
        });
        let scopes = scopes.collect();
        let all = (!each.is_empty()).then(|| list(&|_| true));
        let kinds = [ir.context.get_kind_id("alias.scope"), ir.context.get_kind_id("noalias")];
        Buffers { ir, scratch, base, scopes, all, kinds }
    }

    /// The builder.
    pub(super) fn ir(&self) -> &'a Ir<'c> {
        self.ir
    }

    /// The buffer of a stored tile.
    pub(super) fn of(&self, value: ValueId, dtype: DType) -> Option<Buffer<'c>> {
        let place = self.scratch.place(value)?;
        let byte = self.ir.context.i8_type().into();
        let address = self.ir.element(byte, self.base, self.ir.i64(place.offset as i64));
        Some(Buffer { address, dtype, place })
    }

    fn mark(&self, instruction: Option<InstructionValue<'c>>, place: Place) {
        let Some(instruction) = instruction else { return };
        for (list, kind) in self.scopes[&place.id].iter().zip(self.kinds) {
            instruction.set_metadata(*list, kind).expect("loads and stores take alias metadata");
        }
    }

    /// Tells that an access of a tensor overlaps no buffer.
    pub(super) fn mark_tensor_access(&self, instruction: Option<InstructionValue<'c>>) {
        if let (Some(instruction), Some(all)) = (instruction, self.all) {
            instruction.set_metadata(all, self.kinds[1]).expect("loads and stores take alias metadata");
        }
    }

    /// The element type in scratch memory, of `lanes` elements if more than one.
    pub(super) fn element_type(&self, dtype: DType) -> BasicTypeEnum<'c> {
        match dtype {
            DType::Bool => self.ir.context.i8_type().into(),
            _ => self.ir.compute_type(dtype),
        }
    }

    /// Reads element `index`.
    pub(super) fn load(&self, buffer: &Buffer<'c>, index: IntValue<'c>) -> Value<'c> {
        let ty = self.element_type(buffer.dtype);
        let value = self.ir.load(ty, self.ir.element(ty, buffer.address, index));
        self.mark(value.as_instruction_value(), buffer.place);
        if buffer.dtype == DType::Bool {
            let byte = value.into_int_value();
            return self.ir.icmp(IntPredicate::NE, byte, byte.get_type().const_zero()).into();
        }
        value
    }

    /// Writes element `index`.
    pub(super) fn store(&self, buffer: &Buffer<'c>, index: IntValue<'c>, value: Value<'c>) {
        let ty = self.element_type(buffer.dtype);
        let value = match value {
            Value::IntValue(bit) if buffer.dtype == DType::Bool => self.ir.resize(bit, 8, false).into(),
            value => value,
        };
        let address = self.ir.element(ty, buffer.address, index);
        let store = self.ir.builder.build_store(address, value).expect("the builder is positioned");
        self.mark(Some(store), buffer.place);
    }

    /// Reads `ty`, a vector or scalar of the buffer's element type, at element `index`.
    pub(super) fn load_as(
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
        self.mark(load, buffer.place);
        value
    }

    /// Writes a vector or scalar of the buffer's element type at element `index`.
    pub(super) fn store_as(&self, buffer: &Buffer<'c>, index: IntValue<'c>, value: Value<'c>) {
        let address = self.ir.element(self.element_type(buffer.dtype), buffer.address, index);
        let store = self.ir.builder.build_store(address, value).expect("the builder is positioned");
        store
            .set_alignment(element_alignment(buffer.dtype))
            .expect("an element's alignment is a power of two");
        self.mark(Some(store), buffer.place);
    }

    /// Whether two tiles share a place.
    pub(super) fn same(a: &Buffer<'c>, b: &Buffer<'c>) -> bool {
        a.place == b.place
    }
}

fn element_alignment(dtype: DType) -> u32 {
    element_bytes(dtype) as u32
}
