//! The instructions of a kernel that the executor itself carries out: what they are, where their operands lie, and
//! the running thread's call of one.
//!
//! Every operand and every element of a result has a slot in a buffer of the thread's stack, in its form in memory.
//! Vectors of registers and vectors of LLVM are alike so: bytes, the first element first.

use super::block::Block;
use super::fault::Problem;
use tile_ir::Loc;

/// A part of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) offset: usize,
    pub(super) bytes: usize,
}

/// What the thread does after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// The next one.
    GoOn,
    /// Somebody else's turn comes, and the instruction is over when it is this thread's again.
    Wait,
    /// Somebody else's turn comes, and then the instruction is carried out again.
    Retry,
}

type Alone = Box<dyn Fn(&mut Block<'_>, &Call<'_>) -> Result<Then, Problem>>;
type Together = Box<dyn Fn(&mut Block<'_>, &[Call<'_>]) -> Result<(), LaneProblem>>;

/// What is wrong with what a thread asked for in common with others.
pub(super) type LaneProblem = (u32, Problem);

/// Who carries out an instruction together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Party {
    /// Every lane of the warp.
    Warp,
    /// The lanes of a mask that is this operand.
    Mask(usize),
    /// Four warps that follow each other.
    Warpgroup,
}

/// What an instruction does.
pub(super) enum Operation {
    Alone(Alone),
    Together { party: Party, run: Together },
}

impl Operation {
    pub(super) fn alone(
        run: impl Fn(&mut Block<'_>, &Call<'_>) -> Result<Then, Problem> + 'static,
    ) -> Option<Operation> {
        Some(Operation::Alone(Box::new(run)))
    }

    pub(super) fn together(
        party: Party,
        run: impl Fn(&mut Block<'_>, &[Call<'_>]) -> Result<(), LaneProblem> + 'static,
    ) -> Option<Operation> {
        Some(Operation::Together { party, run: Box::new(run) })
    }

    /// An instruction that matters to no result.
    pub(super) fn nothing() -> Option<Operation> {
        Operation::alone(|_, _| Ok(Then::GoOn))
    }
}

/// What a kernel's code refers to by number.
#[derive(Default)]
pub(super) struct Program {
    /// What the executor carries out itself.
    pub(super) instructions: Vec<Instruction>,
    /// The accesses of the code: what they are, and their op.
    pub(super) accesses: Vec<(String, Loc)>,
    /// Of each access whether it reads atomically what may decide where the code goes.
    pub(super) asking: Vec<bool>,
    /// Of each access whether it is in a loop that shows what it carries.
    pub(super) shown: Vec<bool>,
    /// How many accesses and instructions are in such loops.
    pub(super) places: u32,
    /// How many values such loops carry.
    pub(super) carried: u32,
}

/// An instruction of a kernel.
pub(super) struct Instruction {
    /// Its name in LLVM.
    pub(super) name: String,
    /// Whether it is in a loop that shows what it carries, and does the same whenever its operands are the same.
    pub(super) repeats: bool,
    pub(super) place: Loc,
    pub(super) operation: Operation,
    pub(super) operands: Vec<Slot>,
    pub(super) results: Vec<Slot>,
}

/// A thread's call of an instruction.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) thread: u32,
    /// The instruction's number.
    pub(super) number: u32,
    pub(super) instruction: &'a Instruction,
    operands: *const u8,
    results: *mut u8,
}

impl<'a> Call<'a> {
    /// # Safety
    /// The buffers have the instruction's slots, and outlive the call.
    pub(super) unsafe fn new(
        thread: u32,
        number: u32,
        instruction: &'a Instruction,
        [operands, results]: [*mut u8; 2],
    ) -> Call<'a> {
        Call { thread, number, instruction, operands, results }
    }

    pub(super) fn place(&self) -> Loc {
        self.instruction.place
    }

    /// The bytes of an operand.
    pub(super) fn bytes(&self, operand: usize) -> &'a [u8] {
        let slot = self.instruction.operands[operand];
        // SAFETY: `new` demands it.
        unsafe { std::slice::from_raw_parts(self.operands.add(slot.offset), slot.bytes) }
    }

    /// The bytes of several operands.
    pub(super) fn all_bytes(&self, operands: std::ops::Range<usize>) -> Vec<u8> {
        operands.flat_map(|operand| self.bytes(operand)).copied().collect()
    }

    pub(super) fn operands(&self) -> usize {
        self.instruction.operands.len()
    }

    /// An operand as a number, its upper bits zero.
    pub(super) fn word(&self, operand: usize) -> u64 {
        let bytes = self.bytes(operand);
        let mut word = [0; 8];
        let length = bytes.len().min(8);
        word[..length].copy_from_slice(&bytes[..length]);
        u64::from_le_bytes(word)
    }

    pub(super) fn number(&self, operand: usize) -> u32 {
        self.word(operand) as u32
    }

    pub(super) fn integer(&self, operand: usize) -> i32 {
        self.number(operand).cast_signed()
    }

    pub(super) fn flag(&self, operand: usize) -> bool {
        self.word(operand) & 1 == 1
    }

    /// Gives an element of the result, cut to its length.
    pub(super) fn give(&self, result: usize, bytes: &[u8]) {
        let slot = self.instruction.results[result];
        assert_eq!(bytes.len(), slot.bytes, "{} gives {} bytes", self.instruction.name, slot.bytes);
        // SAFETY: `new` demands it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.results.add(slot.offset), slot.bytes) };
    }

    /// Gives a number in as many bytes as the element has.
    pub(super) fn give_word(&self, result: usize, word: u64) {
        let bytes = self.instruction.results[result].bytes;
        self.give(result, &word.to_le_bytes()[..bytes]);
    }

    /// Gives all elements of the result, one after the other.
    pub(super) fn give_all(&self, mut bytes: &[u8]) {
        for (i, slot) in self.instruction.results.iter().enumerate() {
            let (element, rest) = bytes.split_at(slot.bytes);
            self.give(i, element);
            bytes = rest;
        }
        assert!(bytes.is_empty(), "{} gives {} bytes less", self.instruction.name, bytes.len());
    }
}
