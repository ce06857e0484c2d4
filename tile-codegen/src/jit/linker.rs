//! LLVM's linker of objects in memory: one for the process, with a library for each object, so that no two share names.
//!
//! A linker (ORC's `LLJIT`) takes some 150 KB of memory, a library in it a few KiB beside the pages of its code. Its
//! interface in C looks names up in the main library alone, or gives what it finds to a function, as here.

use crate::llvm;
use inkwell::llvm_sys::core::LLVMCreateMemoryBufferWithMemoryRangeCopy;
use inkwell::llvm_sys::error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage};
use inkwell::llvm_sys::orc2::lljit::{
    LLVMOrcCreateLLJIT, LLVMOrcLLJITAddObjectFile, LLVMOrcLLJITGetExecutionSession,
    LLVMOrcLLJITGetGlobalPrefix, LLVMOrcLLJITMangleAndIntern, LLVMOrcLLJITRef,
};
use inkwell::llvm_sys::orc2::{
    LLVMOrcCJITDylibSearchOrderElement, LLVMOrcCLookupSetElement, LLVMOrcCSymbolMapPairs,
    LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess, LLVMOrcExecutionSessionCreateBareJITDylib,
    LLVMOrcExecutionSessionLookup, LLVMOrcExecutionSessionSetErrorReporter, LLVMOrcJITDylibAddGenerator,
    LLVMOrcJITDylibClear, LLVMOrcJITDylibLookupFlags, LLVMOrcJITDylibRef, LLVMOrcLookupKind,
    LLVMOrcSymbolLookupFlags,
};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

/// The linker. It stays as long as the process, and so does the code.
pub(super) struct Linker(LLVMOrcLLJITRef);

// SAFETY: LLVM's sessions are locked inside, and used by many threads at once.
unsafe impl Send for Linker {}
// SAFETY: likewise.
unsafe impl Sync for Linker {}

/// What is found under a name: its address, or why there is none.
type Found = Result<u64, String>;

impl Linker {
    /// The one of this process.
    pub(super) fn shared() -> Result<&'static Linker, String> {
        static SHARED: OnceLock<Result<Linker, String>> = OnceLock::new();
        SHARED.get_or_init(Linker::new).as_ref().map_err(Clone::clone)
    }

    fn new() -> Result<Linker, String> {
        llvm::initialize();
        let mut linker = ptr::null_mut();
        // SAFETY: the target is initialised; without a builder the linker is one for this process. It is written where it
        // is said, or there is an error.
        outcome(unsafe { LLVMOrcCreateLLJIT(&raw mut linker, ptr::null_mut()) })?;
        // SAFETY: the session is the linker's, and the function needs no data.
        unsafe {
            let session = LLVMOrcLLJITGetExecutionSession(linker);
            LLVMOrcExecutionSessionSetErrorReporter(session, report, ptr::null_mut());
        }
        Ok(Linker(linker))
    }

    /// Links an object in a library of its own, and gives the address of what it defines under a name.
    pub(super) fn link(&self, object: &[u8], symbol: &CStr) -> Result<usize, String> {
        let library = self.library()?;
        let linked = self.add(library, object, symbol).and_then(|()| self.find(library, symbol));
        let reasons = REASONS.take();
        linked.and_then(|address| usize::try_from(address).map_err(|error| error.to_string())).map_err(
            |error| {
                // SAFETY: the library was made above, and nobody has an address in it. An empty one takes little.
                let _ = outcome(unsafe { LLVMOrcJITDylibClear(library) });
                std::iter::once(error).chain(reasons).collect::<Vec<_>>().join(": ")
            },
        )
    }

    /// A library without anything, whose objects may call what the process has: `memcpy` and `memset`, which LLVM makes of
    /// loops.
    fn library(&self) -> Result<LLVMOrcJITDylibRef, String> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("kernel-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let name = CString::new(name).map_err(|error| error.to_string())?;
        let mut process = ptr::null_mut();
        // SAFETY: the session is the linker's; no other library has the name, which ends with a NUL and is copied. What
        // looks in the process is written where it is said, or there is an error; the library becomes its owner.
        unsafe {
            let prefix = LLVMOrcLLJITGetGlobalPrefix(self.0);
            outcome(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
                &raw mut process,
                prefix,
                None,
                ptr::null_mut(),
            ))?;
            let session = LLVMOrcLLJITGetExecutionSession(self.0);
            let library = LLVMOrcExecutionSessionCreateBareJITDylib(session, name.as_ptr());
            LLVMOrcJITDylibAddGenerator(library, process);
            Ok(library)
        }
    }

    fn add(&self, library: LLVMOrcJITDylibRef, object: &[u8], name: &CStr) -> Result<(), String> {
        let (first, bytes) = (object.as_ptr().cast(), object.len());
        // SAFETY: the buffer is a copy of the object's bytes, of which the linker becomes the owner; the library is the
        // linker's, and the name ends with a NUL.
        outcome(unsafe {
            let buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(first, bytes, name.as_ptr());
            LLVMOrcLLJITAddObjectFile(self.0, library, buffer)
        })
    }

    /// The address of what a library defines under a name, for which it is linked.
    fn find(&self, library: LLVMOrcJITDylibRef, symbol: &CStr) -> Found {
        let (sender, found) = channel::<Found>();
        let all = LLVMOrcJITDylibLookupFlags::LLVMOrcJITDylibLookupFlagsMatchExportedSymbolsOnly;
        let mut order = LLVMOrcCJITDylibSearchOrderElement { JD: library, JDLookupFlags: all };
        // SAFETY: the session is the linker's. The lists are copied, with the name, which becomes the session's; the
        // function is called once, with the sender's box.
        unsafe {
            let mut name = LLVMOrcCLookupSetElement {
                Name: LLVMOrcLLJITMangleAndIntern(self.0, symbol.as_ptr()),
                LookupFlags: LLVMOrcSymbolLookupFlags::LLVMOrcSymbolLookupFlagsRequiredSymbol,
            };
            LLVMOrcExecutionSessionLookup(
                LLVMOrcLLJITGetExecutionSession(self.0),
                LLVMOrcLookupKind::LLVMOrcLookupKindStatic,
                &raw mut order,
                1,
                &raw mut name,
                1,
                take,
                Box::into_raw(Box::new(sender)).cast(),
            );
        }
        found.recv().map_err(|error| error.to_string())?
    }
}

/// Takes the result of a lookup.
extern "C" fn take(error: LLVMErrorRef, found: LLVMOrcCSymbolMapPairs, count: usize, sender: *mut c_void) {
    // SAFETY: the pointer is that of a box, made for one call of this function.
    let sender = unsafe { Box::from_raw(sender.cast::<Sender<Found>>()) };
    let found = outcome(error).and_then(|()| match count {
        // SAFETY: there is one pair.
        1 => Ok(unsafe { (*found).Sym.Address }),
        count => Err(format!("{count} things of one name")),
    });
    // Who asked waits for it.
    let _ = sender.send(found);
}

thread_local! {
    /// What the session has said of the object that this thread links: why a lookup finds nothing.
    static REASONS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Keeps what the session would write to standard error.
extern "C" fn report(_: *mut c_void, error: LLVMErrorRef) {
    REASONS.with_borrow_mut(|reasons| reasons.extend(outcome(error).err()));
}

/// What an error of LLVM says, which is used up.
fn outcome(error: LLVMErrorRef) -> Result<(), String> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the error is there and used once; its message is text that ends with a NUL, freed after it was copied.
    unsafe {
        let message = LLVMGetErrorMessage(error);
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(message);
        Err(text)
    }
}
