//! The loops in which a thread may wait for another block: what such a loop carries from turn to turn is shown to the runtime.
//!
//! Where that is the same turn after turn, and what is read is, too, the next turn is like the one before. So the executor
//! knows that a loop never ends, and doesn't take one for it that counts its turns. Only innermost loops that read tensors
//! atomically are changed: others cost what they did.

use super::watch::watched_space;
use super::{Rewriter, blocks_of, instructions, instructions_of};
use crate::simt::instruction::Slot;
use crate::simt::memory::Space;
use crate::simt::runtime::CARRIED;
use inkwell::llvm_sys::LLVMAtomicOrdering as Order;
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::{LLVMBasicBlockRef, LLVMValueRef};
use inkwell::llvm_sys::{LLVMOpcode, LLVMTypeKind};
use std::collections::{HashMap, HashSet};

/// The basic blocks of a function, and where each goes.
struct Flow {
    blocks: Vec<LLVMBasicBlockRef>,
    next: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
}

// SAFETY of the blocks below: as in the parent module.
impl Flow {
    unsafe fn of(function: LLVMValueRef) -> Flow {
        let blocks = blocks_of(function);
        // SAFETY: as said above.
        let next: Vec<Vec<usize>> = unsafe {
            let numbers: HashMap<_, _> = blocks.iter().enumerate().map(|(i, &block)| (block, i)).collect();
            let next = |&block: &LLVMBasicBlockRef| {
                let end = LLVMGetBasicBlockTerminator(block);
                (0..LLVMGetNumSuccessors(end)).map(|i| numbers[&LLVMGetSuccessor(end, i)]).collect()
            };
            blocks.iter().map(next).collect()
        };
        let mut before = vec![Vec::new(); next.len()];
        for (from, next) in next.iter().enumerate() {
            next.iter().for_each(|&to| before[to].push(from));
        }
        Flow { blocks, next, before }
    }

    /// The blocks from which one comes back to themselves by these blocks alone, together with those on the way: the
    /// outermost loops (Kosaraju's algorithm).
    fn loops(&self, within: &HashSet<usize>) -> Vec<HashSet<usize>> {
        let mut ended = Vec::new();
        let mut seen = HashSet::new();
        let mut sorted: Vec<usize> = within.iter().copied().collect();
        sorted.sort_unstable();
        for &start in &sorted {
            walk(start, &self.next, within, &mut seen, &mut ended);
        }
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        for &start in ended.iter().rev() {
            let mut part = Vec::new();
            walk(start, &self.before, within, &mut seen, &mut part);
            if part.len() > 1 || part.iter().any(|block| self.next[*block].contains(block)) {
                found.push(part.into_iter().collect());
            }
        }
        found
    }

    /// The loops among these that hold no other.
    fn innermost(&self, within: &HashSet<usize>) -> Vec<HashSet<usize>> {
        let mut found = Vec::new();
        for outer in self.loops(within) {
            let is_entry = |block: &usize| self.before[*block].iter().any(|from| !outer.contains(from));
            let inside: HashSet<usize> = outer.iter().copied().filter(|block| !is_entry(block)).collect();
            let inner = if inside.len() < outer.len() { self.innermost(&inside) } else { Vec::new() };
            if inner.is_empty() {
                found.push(outer);
            } else {
                found.extend(inner);
            }
        }
        found
    }
}

/// Adds what can be reached from a block in the order in which it is left.
fn walk(
    start: usize,
    next: &[Vec<usize>],
    within: &HashSet<usize>,
    seen: &mut HashSet<usize>,
    left: &mut Vec<usize>,
) {
    if !seen.insert(start) {
        return;
    }
    let mut way = vec![(start, 0)];
    while let Some((block, at)) = way.last_mut() {
        let Some(&to) = next[*block].get(*at) else {
            left.push(*block);
            way.pop();
            continue;
        };
        *at += 1;
        if within.contains(&to) && seen.insert(to) {
            way.push((to, 0));
        }
    }
}

/// Whether an instruction reads what others may write at the same time.
unsafe fn reads_atomically(instruction: LLVMValueRef) -> bool {
    // SAFETY: the opcode is asked first.
    unsafe {
        match LLVMGetInstructionOpcode(instruction) {
            LLVMOpcode::LLVMAtomicRMW | LLVMOpcode::LLVMAtomicCmpXchg => true,
            LLVMOpcode::LLVMLoad => LLVMGetOrdering(instruction) != Order::LLVMAtomicOrderingNotAtomic,
            _ => false,
        }
    }
}

/// Whether what an instruction reads is a tensor's, as far as its code tells.
unsafe fn may_be_of_tensor(instruction: LLVMValueRef) -> bool {
    // SAFETY: the instruction reads memory, whose address is its first operand.
    let space = unsafe { watched_space(LLVMGetOperand(instruction, 0)) };
    matches!(space, Some(Space::Global | Space::Generic))
}

/// Whether what an instruction gives decides where code goes, or gets to where it may: nobody waits by an update of which
/// nothing is made, however often that leaves memory as it is.
unsafe fn matters(instruction: LLVMValueRef) -> bool {
    let (mut seen, mut open) = (HashSet::from([instruction]), vec![instruction]);
    while let Some(value) = open.pop() {
        // SAFETY: what uses the value of an instruction is an instruction.
        unsafe {
            let mut at = LLVMGetFirstUse(value);
            while !at.is_null() {
                let user = LLVMGetUser(at);
                if !only_computes(user) {
                    return true;
                }
                if seen.insert(user) {
                    open.push(user);
                }
                at = LLVMGetNextUse(at);
            }
        }
    }
    false
}

/// Whether an instruction does nothing but compute a value. What ends a block or writes gives none.
unsafe fn only_computes(instruction: LLVMValueRef) -> bool {
    // SAFETY: every instruction has an opcode and a type.
    let (opcode, kind) =
        unsafe { (LLVMGetInstructionOpcode(instruction), LLVMGetTypeKind(LLVMTypeOf(instruction))) };
    kind != LLVMTypeKind::LLVMVoidTypeKind
        && !matches!(
            opcode,
            LLVMOpcode::LLVMLoad
                | LLVMOpcode::LLVMAtomicRMW
                | LLVMOpcode::LLVMAtomicCmpXchg
                | LLVMOpcode::LLVMCall
        )
}

/// Whether an instruction changes a variable of the thread, which isn't among what is shown.
unsafe fn changes_variable(instruction: LLVMValueRef) -> bool {
    // SAFETY: the opcode is asked first.
    unsafe {
        LLVMGetInstructionOpcode(instruction) == LLVMOpcode::LLVMStore
            && watched_space(LLVMGetOperand(instruction, 1)).is_none()
    }
}

/// Instructions that keep nothing to themselves from one time to the next: beginnings or parts of their names.
const FORGETFUL: [&str; 20] = [
    ".bar.warp.",
    ".barrier.cta.",
    ".elect.",
    ".mbcnt.",
    ".membar.",
    ".nanosleep",
    ".permlane",
    ".read.ptx.",
    ".readfirstlane",
    ".readlane",
    ".redux.",
    ".s.barrier",
    ".s.sleep",
    ".shfl.",
    ".update.dpp",
    ".vote.",
    ".wave.barrier",
    ".workgroup.id",
    ".workitem.id",
    ".match.",
];

/// Whether an instruction does the same whenever its operands are the same.
pub(super) fn keeps_nothing(name: &str) -> bool {
    FORGETFUL.iter().any(|part| name.contains(part))
}

impl Rewriter<'_, '_> {
    /// Shows the runtime what the loops carry in which threads may wait. Comes before anything is changed.
    pub(super) fn show_waiting_loops(&mut self, function: LLVMValueRef) {
        // SAFETY: the function has a body of instructions.
        let flow = unsafe {
            let asks = |&it: &LLVMValueRef| reads_atomically(it) && matters(it);
            self.asking = instructions(function).into_iter().filter(asks).collect();
            Flow::of(function)
        };
        for part in flow.innermost(&(0..flow.blocks.len()).collect()) {
            let blocks: Vec<LLVMBasicBlockRef> = part.iter().map(|&block| flow.blocks[block]).collect();
            let all = || blocks.iter().flat_map(|&block| instructions_of(block));
            // SAFETY: these are instructions.
            let waits = unsafe {
                all().any(|instruction| self.asking.contains(&instruction) && may_be_of_tensor(instruction))
                    && !all().any(|instruction| changes_variable(instruction))
            };
            if waits {
                blocks.iter().for_each(|&block| self.show_carried(block));
                self.waiting.extend(blocks);
            }
        }
    }

    /// Shows what a block of a loop is given by those before it.
    fn show_carried(&mut self, block: LLVMBasicBlockRef) {
        // SAFETY: the opcode is asked first, and a block ends with what is no phi.
        unsafe {
            let is_phi = |it: &LLVMValueRef| LLVMGetInstructionOpcode(*it) == LLVMOpcode::LLVMPHI;
            let (phis, others): (Vec<_>, Vec<_>) = instructions_of(block).into_iter().partition(is_phi);
            for phi in phis {
                let slot = Slot { offset: 0, bytes: self.store_size(LLVMTypeOf(phi)) };
                self.needed[0] = self.needed[0].max(slot.bytes.next_multiple_of(8));
                let builder = self.before(others[0]);
                let place = self.part(0, slot);
                LLVMSetAlignment(LLVMBuildStore(builder, phi, place), 8);
                let [number, bytes] =
                    [self.program.carried as u64, slot.bytes as u64].map(|it| self.constant(it));
                self.call_runtime(CARRIED, &[number, place, bytes], None);
                self.program.carried += 1;
            }
        }
    }

    /// Whether an instruction is in a loop that is shown.
    pub(super) fn is_shown(&self, instruction: LLVMValueRef) -> bool {
        // SAFETY: the instruction is in a block.
        let block = unsafe { LLVMGetInstructionParent(instruction) };
        self.waiting.contains(&block)
    }
}
