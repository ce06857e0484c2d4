//! Tiles in scratch memory: addresses, loads and stores, and the alias scopes that tell LLVM that buffers
//! are disjoint.

use super::plan::Plan;
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
    scratch: PointerValue<'c>,
    /// Per buffer: the scope list of its own accesses, and of those it never overlaps with.
    scopes: HashMap<u64, [MetadataValue<'c>; 2]>,
    /// For accesses of tensors: disjoint from every buffer.
    all: Option<MetadataValue<'c>>,
    kinds: [u32; 2],
}

/// One stored tile.
#[derive(Clone, Copy)]
pub(super) struct Buffer<'c> {
    pub(super) address: PointerValue<'c>,
    pub(super) dtype: DType,
    offset: u64,
}

impl<'a, 'c> Buffers<'a, 'c> {
    pub(super) fn new(ir: &'a Ir<'c>, scratch: PointerValue<'c>, plan: &Plan) -> Self {
        let domain = ir.context.metadata_node(&[ir.context.metadata_string("tile").into()]);
        let mut offsets: Vec<u64> = plan.buffers().into_iter().collect();
        offsets.sort_unstable();
        let scope = |offset: &u64| {
            let name = ir.context.metadata_string(&format!("buffer at {offset}"));
            ir.context.metadata_node(&[name.into(), domain.into()])
        };
        let each: Vec<MetadataValue<'c>> = offsets.iter().map(scope).collect();
        let list = |skip: Option<usize>| {
            let others = each.iter().enumerate().filter(|&(i, _)| Some(i) != skip);
            ir.context.metadata_node(&others.map(|(_, &scope)| scope.into()).collect::<Vec<_>>())
        };
        let scopes = offsets
            .iter()
            .enumerate()
            .map(|(i, &offset)| (offset, [ir.context.metadata_node(&[each[i].into()]), list(Some(i))]))
            .collect();
        let all = (!each.is_empty()).then(|| list(None));
        let kinds = [ir.context.get_kind_id("alias.scope"), ir.context.get_kind_id("noalias")];
        Buffers { ir, scratch, scopes, all, kinds }
    }

    /// The buffer of a tile that the plan stores.
    pub(super) fn of(&self, plan: &Plan, value: ValueId, dtype: DType) -> Option<Buffer<'c>> {
        let offset = plan.offset(value)?;
        let byte = self.ir.context.i8_type().into();
        let address = self.ir.element(byte, self.scratch, self.ir.i64(offset as i64));
        Some(Buffer { address, dtype, offset })
    }

    fn mark(&self, instruction: Option<InstructionValue<'c>>, offset: u64) {
        let Some(instruction) = instruction else { return };
        for (list, kind) in self.scopes[&offset].iter().zip(self.kinds) {
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
        self.mark(value.as_instruction_value(), buffer.offset);
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
        self.mark(Some(store), buffer.offset);
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
        self.mark(load, buffer.offset);
        value
    }

    /// Writes a vector or scalar of the buffer's element type at element `index`.
    pub(super) fn store_as(&self, buffer: &Buffer<'c>, index: IntValue<'c>, value: Value<'c>) {
        let address = self.ir.element(self.element_type(buffer.dtype), buffer.address, index);
        let store = self.ir.builder.build_store(address, value).expect("the builder is positioned");
        store
            .set_alignment(element_alignment(buffer.dtype))
            .expect("an element's alignment is a power of two");
        self.mark(Some(store), buffer.offset);
    }

    /// Whether two tiles share a buffer.
    pub(super) fn same(a: &Buffer<'c>, b: &Buffer<'c>) -> bool {
        a.offset == b.offset
    }
}

fn element_alignment(dtype: DType) -> u32 {
    super::plan::scratch_bytes_of(dtype) as u32
}
