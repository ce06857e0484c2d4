//! Atomic stores and additions of several neighbours along rows by one instruction, as the schedule says
//! ([`Scheduled::scattered`]): one place and one check are for all of them.
//!
//! The instruction is an atomic operation of each element, in no order among them (PTX ISA, "Vector Data-types" and "Packed
//! Data-types" in the memory consistency model; "red"). Words hold several elements that are shorter, so that two stores to
//! one place leave each element whole. LLVM has no such vectors, so they are declarations:
//!
//! * `tile.store.SCOPE.v{2|4}.b{32|64}`: (ptr, so many integers) (PTX ISA, "st").
//! * `tile.add.SCOPE.{|v2.|v4.}{f16x2|bf16x2}`: (ptr, so many i32), `tile.add.SCOPE.{v2|v4}.f32`: (ptr, so many f32)
//!   (PTX ISA, "red"). AMD's GPUs have those of one pair ([`crate::gpu::targets::packed`]).
//!
//! `SCOPE` is LLVM's name of it, or `system`.
//!
//! [`Scheduled::scattered`]: tile_ir::gpu::Scheduled::scattered

use crate::emit::Value;
use crate::emit::atomic::Site;
use crate::gpu::region::Emitter;
use crate::gpu::targets::declared::{Assembly, Effect, call_without_result};
use inkwell::AddressSpace;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::DType;
use tile_ir::ops::AtomicKind;

/// What the names of declarations begin with.
pub(in crate::gpu) const ADD: &str = "tile.add.";
const STORE: &str = "tile.store.";

/// Scopes in PTX, by LLVM's name.
const SCOPES: [(&str, &str); 3] = [("block", "cta"), ("device", "gpu"), ("system", "sys")];

impl<'c> Emitter<'_, 'c> {
    /// Stores or adds neighbours, from an address on that is a multiple of their size.
    pub(in crate::gpu) fn scatter_row(
        &self,
        site: Site,
        dtype: DType,
        address: PointerValue<'c>,
        values: &[Value<'c>],
    ) {
        let scope = if site.scope.is_empty() { "system" } else { site.scope };
        match site.kind {
            AtomicKind::Store => self.store_words(site, scope, address, &self.scattered_words(dtype, values)),
            AtomicKind::Add if dtype == DType::F32 => {
                self.declared_scatter(&format!("{ADD}{scope}.v{}.f32", values.len()), address, values);
            }
            AtomicKind::Add => {
                let words = self.ir.words(values, dtype);
                let vector = if words.len() > 1 { format!("v{}.", words.len()) } else { String::new() };
                self.declared_scatter(&format!("{ADD}{scope}.{vector}{dtype}x2"), address, &words);
            }
            kind => unreachable!("scheduled: no instruction does {kind:?} of several elements"),
        }
    }

    /// Elements as integers, short ones several in a word.
    fn scattered_words(&self, dtype: DType, values: &[Value<'c>]) -> Vec<IntValue<'c>> {
        if dtype.bytes() < 4 {
            return self.ir.words(values, dtype).into_iter().map(Value::into_int_value).collect();
        }
        values.iter().map(|&value| self.ir.word(value, dtype)).collect()
    }

    fn store_words(&self, site: Site, scope: &str, address: PointerValue<'c>, words: &[IntValue<'c>]) {
        let ir = self.ir;
        match *words {
            [word] => ir.atomic_store(site, address, word),
            [first, ..] if self.dialect.vector_stores => {
                let (count, bits) = (words.len(), first.get_type().get_bit_width());
                let words: Vec<Value<'c>> = words.iter().map(|&word| word.into()).collect();
                self.declared_scatter(&format!("{STORE}{scope}.v{count}.b{bits}"), address, &words);
            }
            [low, high] => {
                let [low, high] = [low, high].map(|word| ir.resize(word, 64, false));
                ir.atomic_store(site, address, ir.or(low, ir.shl(high, ir.i64(32))));
            }
            _ => unreachable!("scheduled: an atomic store of as many bytes as the target has"),
        }
    }

    fn declared_scatter(&self, name: &str, address: PointerValue<'c>, values: &[Value<'c>]) {
        let operands: Vec<Value<'c>> =
            std::iter::once(address.into()).chain(values.iter().copied()).collect();
        debug_assert_eq!(address.get_type().get_address_space(), AddressSpace::from(1));
        call_without_result(self.ir, name, &operands, &[("nounwind", 0)]);
    }
}

/// The instruction of a declaration's name; `None` where PTX has none.
pub(in crate::gpu) fn assembly(name: &str) -> Option<Assembly> {
    let (instruction, form) = match (name.strip_prefix(STORE), name.strip_prefix(ADD)) {
        (Some(form), _) => ("st", form),
        (_, Some(form)) => ("red", form),
        _ => return None,
    };
    let (scope, form) = form.split_once('.')?;
    let &(_, scope) = SCOPES.iter().find(|(name, _)| *name == scope)?;
    let (count, format) = match form.split_once('.') {
        Some((vector, format)) => (vector.strip_prefix('v')?.parse().ok()?, format),
        None => (1, form),
    };
    let (operation, register) = match (instruction, format, count) {
        ("st", "b32", 2 | 4) => ("", "r"),
        ("st", "b64", 2) => ("", "l"),
        ("red", "f32", 2 | 4) => (".add", "f"),
        ("red", "f16x2" | "bf16x2", 1 | 2 | 4) => (".add.noftz", "r"),
        _ => return None,
    };
    let registers: Vec<String> = (1..=count).map(|i| format!("${i}")).collect();
    let values = registers.join(", ");
    let values = if count > 1 { format!("{{{values}}}") } else { values };
    Some(Assembly {
        text: format!("{instruction}.relaxed.{scope}.global{operation}.{form} [$0], {values};"),
        constraints: format!("l{}", format!(",{register}").repeat(count)),
        effect: Effect::Writes,
    })
}
