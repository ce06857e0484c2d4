//! Accesses and fences: before each of them the runtime is told.

use super::{CLUSTER_SPACE, GENERIC, GLOBAL, Rewriter, SHARED_SPACE, TENSOR_SPACE, place};
use crate::simt::generation::Generation;
use crate::simt::memory::{AccessKind, Space};
use crate::simt::order::{Of, Ordering, Scope};
use crate::simt::runtime::{ACCESS, FENCE, pack_access, pack_order};
use inkwell::llvm_sys::LLVMAtomicOrdering as Order;
use inkwell::llvm_sys::LLVMOpcode;
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::{LLVMTypeRef, LLVMValueRef};

/// The names of scopes on both vendors' targets (NVPTX and AMDGPU usage guides of LLVM, "Memory Scopes"), and the
/// scope of what has no name.
const SCOPES: [(&str, Scope); 15] = [
    ("", Scope::System),
    ("device", Scope::Device),
    ("agent", Scope::Device),
    ("cluster", Scope::Cluster),
    ("block", Scope::Block),
    ("workgroup", Scope::Block),
    ("wavefront", Scope::Warp),
    ("singlethread", Scope::Thread),
    ("one-as", Scope::System),
    ("agent-one-as", Scope::Device),
    ("cluster-one-as", Scope::Cluster),
    ("workgroup-one-as", Scope::Block),
    ("wavefront-one-as", Scope::Warp),
    ("singlethread-one-as", Scope::Thread),
    ("system", Scope::System),
];

// SAFETY of the blocks below: as in the parent module.
impl Rewriter<'_, '_> {
    /// Puts the call that judges an access before it.
    ///
    /// # Errors
    /// If a device has no such access.
    pub(super) unsafe fn watch(
        &mut self,
        instruction: LLVMValueRef,
        operand: u32,
        ty: LLVMTypeRef,
        [reads, writes]: [bool; 2],
    ) -> Result<(), String> {
        // SAFETY: the caller names the operand that is the address.
        unsafe {
            let address = LLVMGetOperand(instruction, operand);
            let space = LLVMGetPointerAddressSpace(LLVMTypeOf(address));
            let has_tensor_memory = match self.gpu.generation {
                Generation::Nvidia => true,
                // The number is that of another address space there.
                Generation::Cdna2 | Generation::Cdna3 | Generation::Cdna4 => false,
                Generation::Rdna3 | Generation::Rdna4 => false,
            };
            if space == TENSOR_SPACE && has_tensor_memory {
                return Err("no load or store reaches tensor memory".to_owned());
            }
            let Some(space) = watched_space(address) else { return Ok(()) };
            let order = match LLVMGetInstructionOpcode(instruction) {
                LLVMOpcode::LLVMAtomicCmpXchg => LLVMGetCmpXchgSuccessOrdering(instruction),
                _ => LLVMGetOrdering(instruction),
            };
            let atomic = order != Order::LLVMAtomicOrderingNotAtomic;
            let kind = AccessKind {
                bytes: self.store_size(ty) as u64,
                alignment: u64::from(LLVMGetAlignment(instruction)).max(1),
                space,
                reads,
                writes,
                atomic: atomic.then(|| self.ordering(instruction, order)),
            };
            self.before(instruction);
            let name = match [reads, writes] {
                [true, true] => "update",
                [_, true] => "store",
                _ => "load",
            };
            self.judge(instruction, address, self.constant(pack_access(kind)), name);
        }
        Ok(())
    }

    /// Calls the judge of an access where the builder is.
    pub(super) unsafe fn judge(
        &mut self,
        instruction: LLVMValueRef,
        address: LLVMValueRef,
        kind: LLVMValueRef,
        name: &str,
    ) {
        let builder = self.ir.builder.as_mut_ptr();
        let access = self.constant(self.program.accesses.len() as u64);
        self.program.accesses.push((name.to_owned(), place(instruction)));
        self.program.asking.push(self.asking.contains(&instruction));
        let is_shown = self.is_shown(instruction);
        self.program.shown.push(is_shown);
        self.program.places += u32::from(is_shown);
        // SAFETY: the address is a pointer, the kind a word.
        unsafe {
            let number = LLVMBuildPtrToInt(builder, address, self.word(), c"".as_ptr());
            self.call_runtime(ACCESS, &[number, kind, access], None);
        }
    }

    pub(super) unsafe fn fence(&self, fence: LLVMValueRef) -> Result<(), String> {
        // SAFETY: as said above.
        unsafe {
            let order = self.ordering(fence, LLVMGetOrdering(fence));
            let order = Ordering { of: self.ordered_by(fence)?, ..order };
            self.before(fence);
            self.call_runtime(FENCE, &[self.constant(pack_order(order))], None);
        }
        Ok(())
    }

    /// Which accesses a fence orders, which metadata may say: an address space, or a list of them (LLVM's AMDGPU usage guide,
    /// "Memory Model Relaxation Annotations").
    unsafe fn ordered_by(&self, fence: LLVMValueRef) -> Result<Of, String> {
        // SAFETY: the context is alive, the name is given with its length, and the node is asked before it is read.
        let tags = unsafe {
            let kind = LLVMGetMDKindIDInContext(self.ir.context.raw(), c"mmra".as_ptr(), 4);
            let node = LLVMGetMetadata(fence, kind);
            if node.is_null() { return Ok(Of::All) } else { tags(node) }
        };
        let spaces: Option<Vec<&str>> = tags
            .iter()
            .map(|[prefix, suffix]| (prefix == "amdgpu-synchronize-as").then_some(suffix.as_str()))
            .collect();
        match spaces.as_deref() {
            Some(["local"]) => Ok(Of::Shared),
            Some(["local", "global"] | ["global", "local"]) => Ok(Of::All),
            _ => Err(format!("the executor of GPU code has no fences that order {tags:?}")),
        }
    }

    fn ordering(&self, instruction: LLVMValueRef, order: Order) -> Ordering {
        let (acquires, releases) = acquires_and_releases(order);
        // SAFETY: the context is alive, the names are given with their lengths, and the instruction is atomic.
        let scope = unsafe {
            let id = LLVMGetAtomicSyncScopeID(instruction);
            let named = SCOPES.iter().find(|(name, _)| {
                LLVMGetSyncScopeID(self.ir.context.raw(), name.as_ptr().cast(), name.len()) == id
            });
            named.map_or(Scope::Thread, |&(_, scope)| scope)
        };
        Ordering { acquires, releases, scope, of: Of::All }
    }
}

/// The pairs of words of a node that is one or has several.
unsafe fn tags(node: LLVMValueRef) -> Vec<[String; 2]> {
    // SAFETY: the caller gives a node, and its operands are asked before they are read as words or nodes.
    unsafe {
        let mut operands = vec![std::ptr::null_mut(); LLVMGetMDNodeNumOperands(node) as usize];
        LLVMGetMDNodeOperands(node, operands.as_mut_ptr());
        let words: Option<Vec<String>> = operands.iter().map(|&operand| word(operand)).collect();
        match words.map(<[String; 2]>::try_from) {
            Some(Ok(pair)) => vec![pair],
            _ => operands
                .into_iter()
                .filter(|&operand| word(operand).is_none())
                .flat_map(|node| tags(node))
                .collect(),
        }
    }
}

/// The word that metadata is.
unsafe fn word(metadata: LLVMValueRef) -> Option<String> {
    let mut length = 0;
    // SAFETY: the value is metadata; what it gives is as long as it says.
    unsafe {
        let word = LLVMGetMDString(metadata, &raw mut length);
        let bytes = (!word.is_null()).then(|| std::slice::from_raw_parts(word.cast::<u8>(), length as usize));
        bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}

/// The space of an address that is watched.
pub(super) unsafe fn watched_space(address: LLVMValueRef) -> Option<Space> {
    // SAFETY: the address is a pointer.
    unsafe {
        match LLVMGetPointerAddressSpace(LLVMTypeOf(address)) {
            GLOBAL if !is_table(address) => Some(Space::Global),
            SHARED_SPACE => Some(Space::Shared),
            CLUSTER_SPACE => Some(Space::Cluster),
            GENERIC if !is_own_memory(address) => Some(Space::Generic),
            _ => None,
        }
    }
}

/// Whether an address is in what a kernel brings along to be read.
unsafe fn is_table(address: LLVMValueRef) -> bool {
    // SAFETY: the kind of each value is asked first.
    unsafe {
        let base = origin(address);
        !LLVMIsAGlobalVariable(base).is_null() && LLVMIsGlobalConstant(base) != 0
    }
}

/// Whether an address is that of the thread's own variable.
unsafe fn is_own_memory(address: LLVMValueRef) -> bool {
    // SAFETY: what an address is made of is a value.
    unsafe { !LLVMIsAAllocaInst(origin(address)).is_null() }
}

/// What an address was made of by adding to it.
unsafe fn origin(mut address: LLVMValueRef) -> LLVMValueRef {
    // SAFETY: the kind of each value is asked first.
    unsafe {
        while !LLVMIsAGetElementPtrInst(address).is_null()
            || !LLVMIsAAddrSpaceCastInst(address).is_null()
            || !LLVMIsAConstantExpr(address).is_null()
        {
            address = LLVMGetOperand(address, 0);
        }
        address
    }
}

fn acquires_and_releases(order: Order) -> (bool, bool) {
    match order {
        Order::LLVMAtomicOrderingAcquire => (true, false),
        Order::LLVMAtomicOrderingRelease => (false, true),
        Order::LLVMAtomicOrderingAcquireRelease | Order::LLVMAtomicOrderingSequentiallyConsistent => {
            (true, true)
        }
        _ => (false, false),
    }
}
