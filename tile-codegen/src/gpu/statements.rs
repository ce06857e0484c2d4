//! Arithmetic that leads to one value as one statement of PTX.
//!
//! What an element's value is computed from is a chain of instructions that nobody else looks at: 54 of them for `gelu`,
//! and that for each of 64 elements. LLVM's code generator makes nodes of each, combines, selects, orders and names them,
//! to print them as they were: instructions of floats have PTX's names already, and `ptxas` orders and colours them again.
//! So such a chain becomes a statement of inline PTX, behind LLVM's passes and before its code generator, for which it is
//! one node.
//!
//! Invariants: an instruction of a statement has its uses in that statement, but for the last; a statement moves past
//! nothing but loads and other arithmetic.

mod spelling;

use super::declared::{Assembly, Effects, replace_uses};
use crate::emit::{Ir, Value};
use inkwell::basic_block::BasicBlock;
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::types::BasicType;
use inkwell::values::{AsValueRef, InstructionOpcode, InstructionValue};
use spelling::{Kind, Spelling};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// What a kernel calls that deals out its registers itself.
const DEALS_OUT: &str = "llvm.nvvm.setmaxnreg.inc.sync.aligned.u32";

/// The most instructions of a statement.
const MOST: usize = 128;

/// Writes the arithmetic of an optimised module as statements, if its kernel deals out registers. `ptxas` chooses how many
/// others get, and by the order of what it is given: random normal numbers would get 55 instead of 40, statistics of rows
/// 124 instead of 107.
pub(super) fn write_where_registers_are_dealt_out(ir: &Ir<'_>) {
    if ir.module.get_function(DEALS_OUT).is_some() {
        write(ir);
    }
}

/// Writes arithmetic as statements.
fn write(ir: &Ir<'_>) {
    for function in ir.module.get_functions() {
        for block in function.get_basic_blocks() {
            for chain in chains(block) {
                chain.replace(ir);
            }
        }
    }
}

/// Instructions that lead to the last of them, in their order.
struct Chain<'c> {
    links: Vec<(InstructionValue<'c>, Spelling)>,
}

/// The chains of a block of code, of at least two instructions.
fn chains(block: BasicBlock<'_>) -> Vec<Chain<'_>> {
    let mut stretch = 0;
    let mut places = HashMap::new();
    let mut spelled = Vec::new();
    for instruction in block.get_instructions() {
        match Spelling::of(instruction) {
            Some(spelling) => {
                places.insert(instruction.as_value_ref(), spelled.len());
                spelled.push((instruction, spelling, stretch));
            }
            None => stretch += u32::from(acts(instruction)),
        }
    }
    // The number of the instruction to which each leads.
    let mut ends: Vec<Option<usize>> = vec![None; spelled.len()];
    let mut lengths = vec![0; spelled.len()];
    for (i, (instruction, spelling, stretch)) in spelled.iter().enumerate().rev() {
        let end = users(*instruction).map(|user| places.get(&user).and_then(|&user| ends[user]));
        let end = common(end).flatten().filter(|&end| spelled[end].2 == *stretch && lengths[end] < MOST);
        ends[i] = end.or_else(|| spelling.may_be_last().then_some(i));
        if let Some(end) = ends[i] {
            lengths[end] += 1;
        }
    }
    let mut chains: BTreeMap<usize, Vec<_>> = BTreeMap::new();
    for ((instruction, spelling, _), end) in spelled.into_iter().zip(ends) {
        if let Some(end) = end.filter(|&end| lengths[end] > 1) {
            chains.entry(end).or_default().push((instruction, spelling));
        }
    }
    chains.into_values().map(|links| Chain { links }).collect()
}

/// Whether an instruction may do something besides giving a value, or takes part in what others do.
fn acts(instruction: InstructionValue<'_>) -> bool {
    use InstructionOpcode as Opcode;
    matches!(
        instruction.get_opcode(),
        Opcode::Call | Opcode::Store | Opcode::Fence | Opcode::AtomicRMW | Opcode::AtomicCmpXchg
    )
}

fn users(instruction: InstructionValue<'_>) -> impl Iterator<Item = LLVMValueRef> {
    let uses = std::iter::successors(instruction.get_first_use(), |it| it.get_next_use());
    uses.map(|it| it.get_user().as_value_ref())
}

/// What all are, if there are any and all are the same.
fn common<T: PartialEq>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

impl<'c> Chain<'c> {
    /// Puts the statement in place of the instructions.
    fn replace(&self, ir: &Ir<'c>) {
        let Some((last, spelling)) = self.links.last() else { return };
        ir.builder.position_before(last);
        let (assembly, operands) = self.statement();
        let types: Vec<_> = operands.iter().map(|operand| operand.get_type().into()).collect();
        let given = spelling.given.given(ir).fn_type(&types, false);
        let value = assembly.call(ir, given, &operands).expect("a statement gives its last value");
        let value = match spelling.given {
            Kind::Pair => {
                let pair = last.get_type().into_vector_type();
                ir.builder.build_bit_cast(value, pair, "").expect("the builder is positioned")
            }
            _ => value,
        };
        replace_uses(*last, value);
        self.links.iter().rev().for_each(|(link, _)| link.erase_from_basic_block());
    }

    /// The statement, and what it takes.
    fn statement(&self) -> (Assembly, Vec<Value<'c>>) {
        let (mut registers, mut operands) = (HashMap::new(), Vec::new());
        let mut constraints = String::new();
        let (mut text, mut counts) = (String::new(), [0; Kind::ALL.len()]);
        for (i, (link, spelling)) in self.links.iter().enumerate() {
            let names: Vec<String> = spelling
                .operands(*link)
                .into_iter()
                .map(|operand| {
                    if let Some(number) = spelling::number(operand) {
                        return number;
                    }
                    let name = registers.entry(operand.as_value_ref()).or_insert_with(|| {
                        operands.push(operand);
                        write!(
                            constraints,
                            ",{}",
                            Kind::of(operand.get_type()).expect("it is spelled").constraint()
                        )
                        .expect("text can be written");
                        format!("${}", operands.len())
                    });
                    name.clone()
                })
                .collect();
            let result = if i + 1 == self.links.len() {
                "$0".to_owned()
            } else {
                let count = &mut counts[spelling.given as usize];
                *count += 1;
                format!("{}{}", spelling.given.letter(), *count - 1)
            };
            write!(text, "\n\t{} {result}, {};", spelling.name, names.join(", "))
                .expect("text can be written");
            registers.insert(link.as_value_ref(), result);
        }
        let last = self.links.last().expect("a chain has links").1.given;
        let mut declared = String::from("{");
        for (kind, count) in Kind::ALL.into_iter().zip(counts).filter(|&(_, count)| count > 0) {
            write!(declared, " .reg .{} {}<{count}>;", kind.ptx(), kind.letter())
                .expect("text can be written");
        }
        let text = declared + &text + "\n\t}";
        let constraints = format!("={}{constraints}", last.constraint());
        (Assembly { text, constraints, effects: Effects::None }, operands)
    }
}

#[cfg(test)]
mod tests;
