//! Atomic stores and additions of several elements in global memory, which are declarations ([`crate::gpu`], "scattered").
//!
//! Each element is an operation of its own, relaxed (PTX ISA, "st", "red", and "Vector Data-types" and "Packed Data-types"
//! in the memory consistency model; CDNA 3 ISA, `GLOBAL_ATOMIC_PK_ADD_F16`, `GLOBAL_ATOMIC_PK_ADD_BF16`). The address is a
//! multiple of what all of them take. Sums are rounded to nearest, and of f32 subnormals are zeros of their sign.

use super::floats::{flushed, to_bf16, to_f16};
use crate::simt::fault::Problem;
use crate::simt::format::Format;
use crate::simt::instruction::{Operation, Then};
use crate::simt::memory::AtomicGroup;
use crate::simt::order::Scope;

/// What an element becomes, of what it was and what is added.
type Add = fn(&[u8], &[u8]) -> Vec<u8>;

pub(super) fn declared(name: &str) -> Option<Operation> {
    if let Some(form) = name.strip_prefix("tile.store.") {
        let (scope, form) = scoped(form)?;
        let bytes = match form {
            "v2.b32" | "v4.b32" => 4,
            "v2.b64" => 8,
            _ => return None,
        };
        return operation(scope, bytes, None);
    }
    let (scope, form) = scoped(name.strip_prefix("tile.add.")?)?;
    match form {
        "v2.f32" | "v4.f32" => operation(scope, 4, Some(add_f32)),
        "f16x2" | "v2.f16x2" | "v4.f16x2" => operation(scope, 2, Some(add_f16)),
        "bf16x2" | "v2.bf16x2" | "v4.bf16x2" => operation(scope, 2, Some(add_bf16)),
        _ => None,
    }
}

fn scoped(form: &str) -> Option<(Scope, &str)> {
    let (scope, form) = form.split_once('.')?;
    let scope = match scope {
        "block" | "workgroup" => Scope::Block,
        "device" | "agent" => Scope::Device,
        "system" => Scope::System,
        _ => return None,
    };
    Some((scope, form))
}

/// Does it to elements of so many bytes from the first operand on.
fn operation(scope: Scope, bytes: usize, add: Option<Add>) -> Option<Operation> {
    Operation::alone(move |block, call| {
        let (address, operands) = (call.word(0), call.all_bytes(1..call.operands()));
        if block.is_shared(address) {
            return Err(Problem::Misuse("changes what isn't global memory".to_owned()));
        }
        let group = AtomicGroup { address, bytes: operands.len(), element: bytes, scope };
        let old = block.begin_atomics(call, group, add.is_some())?;
        let elements = old.chunks(bytes).zip(operands.chunks(bytes));
        let new = elements.flat_map(|(old, operand)| add.map_or(operand.to_vec(), |add| add(old, operand)));
        block.end_atomics(group, &new.collect::<Vec<u8>>());
        Ok(Then::GoOn)
    })
}

fn numbers(format: Format, old: &[u8], operand: &[u8]) -> [f32; 2] {
    [old, operand].map(|bytes| format.decode(bytes) as f32)
}

fn add_f32(old: &[u8], operand: &[u8]) -> Vec<u8> {
    let [old, operand] = numbers(Format::F32, old, operand).map(flushed);
    flushed(old + operand).to_le_bytes().to_vec()
}

/// A sum of f32 has more than twice the digits, so that to round it again is to round the sum itself.
fn add_f16(old: &[u8], operand: &[u8]) -> Vec<u8> {
    let [old, operand] = numbers(Format::F16, old, operand);
    to_f16(old + operand).to_le_bytes().to_vec()
}

fn add_bf16(old: &[u8], operand: &[u8]) -> Vec<u8> {
    let [old, operand] = numbers(Format::Bf16, old, operand);
    to_bf16(old + operand).to_le_bytes().to_vec()
}
