//! Atomic operations on one element.
//!
//! LLVM has no builder for most of what is needed here with a scope, so this file speaks to its C interface. What
//! has no instruction on some target is a loop that compares and exchanges.

use super::{Ir, Value};
use inkwell::IntPredicate;
use inkwell::llvm_sys::core::{
    LLVMBuildAtomicCmpXchgSyncScope, LLVMBuildAtomicRMWSyncScope, LLVMBuildFenceSyncScope,
    LLVMGetSyncScopeID, LLVMSetAlignment, LLVMSetAtomicSyncScopeID, LLVMSetOrdering,
};
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::llvm_sys::{LLVMAtomicOrdering, LLVMAtomicRMWBinOp};
use inkwell::types::IntType;
use inkwell::values::{AsValueRef, BasicValueEnum, IntValue, PointerValue};
use tile_ir::DType;
use tile_ir::ops::{AtomicKind, Order};

/// How a target runs an atomic operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    pub(crate) kind: AtomicKind,
    /// The order that the instruction itself has.
    pub(crate) order: Order,
    /// LLVM's name of the scope.
    pub(crate) scope: &'static str,
    /// Whether an update in one instruction reaches that scope.
    pub(crate) direct: bool,
}

fn ordering(order: Order) -> LLVMAtomicOrdering {
    match order {
        Order::Relaxed => LLVMAtomicOrdering::LLVMAtomicOrderingMonotonic,
        Order::Acquire => LLVMAtomicOrdering::LLVMAtomicOrderingAcquire,
        Order::Release => LLVMAtomicOrdering::LLVMAtomicOrderingRelease,
        Order::AcqRel => LLVMAtomicOrdering::LLVMAtomicOrderingAcquireRelease,
    }
}

/// Says that an access is aligned to its size. A type's own alignment may be less where the module has no layout
/// yet, and then the access would be a call of a library.
fn align(access: LLVMValueRef, bytes: u32) {
    // SAFETY: the value is a load, store, update or exchange that was just built; elements are aligned to their size.
    unsafe { LLVMSetAlignment(access, bytes) };
}

impl<'c> Ir<'c> {
    /// LLVM's number of the scope of this name.
    pub(crate) fn scope(&self, name: &str) -> u32 {
        // SAFETY: the context is alive and the name is given with its length.
        unsafe { LLVMGetSyncScopeID(self.context.raw(), name.as_ptr().cast(), name.len()) }
    }

    /// Orders memory accesses before it and after it.
    pub(crate) fn fence(&self, order: Order, scope: &str) {
        let scope = self.scope(scope);
        // SAFETY: the builder is alive and positioned in a block.
        unsafe {
            LLVMBuildFenceSyncScope(self.builder.as_mut_ptr(), ordering(order), scope, c"".as_ptr());
        }
    }

    /// Does it to the element at an address; gives what was there, but for a store.
    pub(crate) fn atomic(
        &self,
        site: Site,
        dtype: DType,
        address: PointerValue<'c>,
        values: &[Value<'c>],
    ) -> Option<Value<'c>> {
        match site.kind {
            AtomicKind::Load => Some(self.number(self.atomic_load(site, dtype, address), dtype)),
            AtomicKind::Store => {
                self.atomic_store(site, address, self.word(values[0], dtype));
                None
            }
            AtomicKind::CompareExchange => {
                let (expected, desired) = (self.word(values[0], dtype), self.word(values[1], dtype));
                let (old, _) = self.exchange(site, address, expected, desired);
                Some(self.number(old, dtype))
            }
            kind => Some(match self.instruction(kind, dtype).filter(|_| site.direct) {
                Some(op) => self.update(site, op, dtype, address, values[0]),
                None => self.exchange_loop(site, dtype, address, values[0]),
            }),
        }
    }

    /// Does to an element what [`Ir::atomic`] does, as a load and a store: where nobody else comes to it meanwhile.
    pub(crate) fn update_alone(
        &self,
        kind: AtomicKind,
        dtype: DType,
        address: PointerValue<'c>,
        values: &[Value<'c>],
    ) -> Value<'c> {
        let there = self.load(self.int_type(8 * dtype.bytes() as u32).into(), address).into_int_value();
        let old = self.number(there, dtype);
        if kind == AtomicKind::CompareExchange {
            let is_equal = self.icmp(IntPredicate::EQ, there, self.word(values[0], dtype));
            self.if_then(is_equal, || self.store(address, self.word(values[1], dtype).into()));
        } else {
            self.store(address, self.left_by(kind, dtype, old, values[0]).into());
        }
        old
    }

    /// Compares and exchanges after a look at the element: where it differs, nothing but that look has been done. Gives what was
    /// there.
    pub(crate) fn look_and_exchange(
        &self,
        site: Site,
        dtype: DType,
        address: PointerValue<'c>,
        values: &[Value<'c>],
    ) -> Value<'c> {
        let (expected, desired) = (self.word(values[0], dtype), self.word(values[1], dtype));
        let order = if site.order.acquires() { Order::Acquire } else { Order::Relaxed };
        let there = self.atomic_load(Site { order, ..site }, dtype, address);
        let is_equal = self.icmp(IntPredicate::EQ, there, expected);
        let exchange = || vec![self.exchange(site, address, expected, desired).0.into()];
        let old = self.if_else(is_equal, exchange, || vec![there.into()])[0];
        self.number(old.into_int_value(), dtype)
    }

    /// A number's bits in memory.
    pub(crate) fn word(&self, value: Value<'c>, dtype: DType) -> IntValue<'c> {
        match self.value_to_storage(value, dtype) {
            Value::FloatValue(value) => self.bits(value),
            value => value.into_int_value(),
        }
    }

    /// The number that has these bits in memory.
    pub(crate) fn number(&self, word: IntValue<'c>, dtype: DType) -> Value<'c> {
        let stored = match self.storage_type(dtype) {
            inkwell::types::BasicTypeEnum::FloatType(ty) => self.float_of_bits(word, ty).into(),
            _ => word.into(),
        };
        self.value_from_storage(stored, dtype)
    }

    /// The instruction for an update, where all targets have one that means the same.
    fn instruction(&self, kind: AtomicKind, dtype: DType) -> Option<LLVMAtomicRMWBinOp> {
        use LLVMAtomicRMWBinOp::*;
        // LLVM adds narrow floats in their own format, where a processor may need a library for it.
        if dtype.is_narrow_float() {
            return None;
        }
        Some(match (kind, dtype.is_float(), dtype.is_signed()) {
            (AtomicKind::Add, true, _) => LLVMAtomicRMWBinOpFAdd,
            (AtomicKind::Swap, ..) => LLVMAtomicRMWBinOpXchg,
            (_, true, _) => return None,
            (AtomicKind::Add | AtomicKind::Sub, ..) => LLVMAtomicRMWBinOpAdd,
            (AtomicKind::Min, _, true) => LLVMAtomicRMWBinOpMin,
            (AtomicKind::Max, _, true) => LLVMAtomicRMWBinOpMax,
            (AtomicKind::Min, _, false) => LLVMAtomicRMWBinOpUMin,
            (AtomicKind::Max, _, false) => LLVMAtomicRMWBinOpUMax,
            (AtomicKind::And, ..) => LLVMAtomicRMWBinOpAnd,
            (AtomicKind::Or, ..) => LLVMAtomicRMWBinOpOr,
            (AtomicKind::Xor, ..) => LLVMAtomicRMWBinOpXor,
            _ => return None,
        })
    }

    fn update(
        &self,
        site: Site,
        op: LLVMAtomicRMWBinOp,
        dtype: DType,
        address: PointerValue<'c>,
        value: Value<'c>,
    ) -> Value<'c> {
        let value = match site.kind {
            AtomicKind::Swap => self.word(value, dtype).into(),
            AtomicKind::Sub => {
                let value = value.into_int_value();
                self.sub(value.get_type().const_zero(), value).into()
            }
            _ => value,
        };
        let scope = self.scope(site.scope);
        // SAFETY: the builder is positioned, the address points to an element of the value's type, which is
        // aligned; the result has that type.
        let old = unsafe {
            Value::new(LLVMBuildAtomicRMWSyncScope(
                self.builder.as_mut_ptr(),
                op,
                address.as_value_ref(),
                value.as_value_ref(),
                ordering(site.order),
                scope,
            ))
        };
        align(old.as_value_ref(), dtype.bytes() as u32);
        if site.kind == AtomicKind::Swap { self.number(old.into_int_value(), dtype) } else { old }
    }

    /// Adds both halves of a word to those at an address, each by an atomic addition, relaxed, within LLVM's scope of this
    /// name; on targets that have an instruction for it.
    pub(crate) fn add_pair(&self, address: PointerValue<'c>, pair: Value<'c>, scope: &str) {
        let scope = self.scope(scope);
        // SAFETY: the builder is positioned, and the address points to two elements of the pair's, aligned to both.
        let old = unsafe {
            LLVMBuildAtomicRMWSyncScope(
                self.builder.as_mut_ptr(),
                LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpFAdd,
                address.as_value_ref(),
                pair.as_value_ref(),
                ordering(Order::Relaxed),
                scope,
            )
        };
        align(old, 4);
    }

    /// Gives what was there, and whether it was exchanged.
    fn exchange(
        &self,
        site: Site,
        address: PointerValue<'c>,
        expected: IntValue<'c>,
        desired: IntValue<'c>,
    ) -> (IntValue<'c>, IntValue<'c>) {
        let failed = if site.order.acquires() { Order::Acquire } else { Order::Relaxed };
        let scope = self.scope(site.scope);
        // SAFETY: as for `update`; the result is a struct of the word and a bit.
        let pair = unsafe {
            BasicValueEnum::new(LLVMBuildAtomicCmpXchgSyncScope(
                self.builder.as_mut_ptr(),
                address.as_value_ref(),
                expected.as_value_ref(),
                desired.as_value_ref(),
                ordering(site.order),
                ordering(failed),
                scope,
            ))
        };
        align(pair.as_value_ref(), expected.get_type().get_bit_width() / 8);
        let part = |i| {
            let part = self.builder.build_extract_value(pair.into_struct_value(), i, "");
            part.expect("the builder is positioned").into_int_value()
        };
        (part(0), part(1))
    }

    /// The bits that an update, or a swap, leaves of an element.
    fn left_by(&self, kind: AtomicKind, dtype: DType, old: Value<'c>, value: Value<'c>) -> IntValue<'c> {
        self.word(kind.binary().map_or(value, |op| self.binary(op, dtype, old, value)), dtype)
    }

    /// An update as a loop: until nobody came between reading the element and replacing it.
    fn exchange_loop(
        &self,
        site: Site,
        dtype: DType,
        address: PointerValue<'c>,
        value: Value<'c>,
    ) -> Value<'c> {
        let relaxed = Site { order: Order::Relaxed, ..site };
        let first = self.atomic_load(relaxed, dtype, address);
        let again = self.bool(true);
        let old = self.while_loop(again, &[first.into()], |carried| {
            let old = carried[0].into_int_value();
            let new = self.left_by(site.kind, dtype, self.number(old, dtype), value);
            let (found, done) = self.exchange(site, address, old, new);
            (self.xor(done, self.bool(true)), vec![found.into()])
        });
        self.number(old[0].into_int_value(), dtype)
    }

    /// Changes neighbours as [`Ir::atomic`] changes each, without giving what was there: by exchanging the word that they lie
    /// in, whose address is a multiple of its size.
    pub(crate) fn exchange_together(
        &self,
        site: Site,
        dtype: DType,
        address: PointerValue<'c>,
        values: &[Value<'c>],
    ) {
        let op = site.kind.binary().expect("what is exchanged is computed from what was there");
        let (count, element) = (values.len() as u32, self.int_type(8 * dtype.bytes() as u32));
        let word = self.int_type(count * element.get_bit_width());
        let again = self.bool(true);
        self.while_loop(again, &[self.word_in_parts(site, address, word).into()], |carried| {
            let old = carried[0].into_int_value();
            let elements = self.parts(self.reinterpret(old.into(), element.vec_type(count).into()), count);
            let new = elements.iter().zip(values).map(|(old, &value)| {
                let old = self.number(old.into_int_value(), dtype);
                self.word(self.binary(op, dtype, old, value), dtype).into()
            });
            let new = self.vector(&new.collect::<Vec<_>>(), element.into());
            let new = self.reinterpret(new.into(), word.into()).into_int_value();
            let (found, done) = self.exchange(site, address, old, new);
            (self.xor(done, self.bool(true)), vec![found.into()])
        });
    }

    /// What may be in a word, read 64 bits at a time: processors needn't read more at once, and who exchanges it learns whether
    /// it was there.
    fn word_in_parts(&self, site: Site, address: PointerValue<'c>, word: IntType<'c>) -> IntValue<'c> {
        let relaxed = Site { order: Order::Relaxed, ..site };
        let parts = (0..word.get_bit_width() / 64).map(|i| {
            let address = self.offset(self.int_type(64).into(), address, self.i64(i.into()));
            let part =
                self.zext_or_trunc(self.atomic_load(relaxed, DType::U64, address), word.get_bit_width());
            self.shl(part, word.const_int((64 * i).into(), false))
        });
        parts.reduce(|low, high| self.or(low, high)).expect("a word has 64 bits at least")
    }

    fn atomic_load(&self, site: Site, dtype: DType, address: PointerValue<'c>) -> IntValue<'c> {
        let value = self.load(self.int_type(8 * dtype.bytes() as u32).into(), address);
        align(value.as_value_ref(), dtype.bytes() as u32);
        self.make_atomic(value.as_value_ref(), site);
        value.into_int_value()
    }

    pub(crate) fn atomic_store(&self, site: Site, address: PointerValue<'c>, value: IntValue<'c>) {
        let store = self.builder.build_store(address, value).expect("the builder is positioned");
        align(store.as_value_ref(), value.get_type().get_bit_width() / 8);
        self.make_atomic(store.as_value_ref(), site);
    }

    fn make_atomic(&self, access: LLVMValueRef, site: Site) {
        let scope = self.scope(site.scope);
        // SAFETY: the value is a load or store that was just built, whose alignment is its type's own.
        unsafe {
            LLVMSetOrdering(access, ordering(site.order));
            LLVMSetAtomicSyncScopeID(access, scope);
        }
    }
}
