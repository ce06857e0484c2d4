//! Native code that accesses memory which isn't its own: the test that runs it fails with the place, and the process and its
//! other tests go on. The code runs as a coroutine, which the signal's handler has return.

use corosensei::stack::DefaultStack;
use corosensei::trap::CoroutineTrapHandler;
use corosensei::{Coroutine, CoroutineResult};
use std::cell::{Cell, UnsafeCell};

use std::sync::Once;

/// What ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// An access to this address, which is closed.
    Closed { address: u64 },
    /// An instruction that demands an alignment which its address doesn't have, or an address that none can be.
    General,
}

impl Fault {
    /// The fault, told from what the code was given.
    pub(crate) fn message(self, slots: &[u64]) -> String {
        let Fault::Closed { address } = self else {
            return "the code relies on an alignment that an argument doesn't have".to_owned();
        };
        let distance = |slot: &u64| i128::from(address) - i128::from(*slot);
        let nearest = slots.iter().enumerate().min_by_key(|(_, slot)| distance(slot).abs());
        let place = nearest
            .map(|(number, slot)| format!(", {} bytes from where slot {number} points", distance(slot)));
        format!("the code accesses memory that isn't its own{}", place.unwrap_or_default())
    }
}

/// Room for what kernels keep on their stack.
const STACK_BYTES: usize = 1 << 20;

thread_local! {
    static RUNNING: Cell<Option<CoroutineTrapHandler<Option<Fault>>>> = const { Cell::new(None) };
}

/// Runs native code to its end, or to its first fault.
///
/// # Safety
/// The code calls nothing that holds locks or has something to drop, and writes memory by raw addresses alone.
pub(crate) unsafe fn run(code: impl FnOnce() + 'static) -> Result<(), Fault> {
    handle();
    let stack = DefaultStack::new(STACK_BYTES).expect("there is memory for a stack");
    let mut coroutine = Coroutine::<(), (), Option<Fault>, _>::with_stack(stack, move |_, ()| {
        code();
        None
    });
    RUNNING.set(Some(coroutine.trap_handler()));
    let ended = coroutine.resume(());
    RUNNING.set(None);
    match ended {
        CoroutineResult::Return(None) => Ok(()),
        CoroutineResult::Return(Some(fault)) => Err(fault),
        CoroutineResult::Yield(()) => unreachable!("the code has nobody to yield to"),
    }
}

/// How the signal was handled before.
struct Before(UnsafeCell<Option<libc::sigaction>>);

// SAFETY: it is written once, before the handler that reads it is there.
unsafe impl Sync for Before {}

static BEFORE: Before = Before(UnsafeCell::new(None));

fn handle() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: structures of numbers and of pointers that may be null.
        let (mut action, mut before): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        action.sa_sigaction = on_fault as *const () as usize;
        // SAFETY: the handler has the signature that the flag asks for; nobody reads how it was before by now.
        unsafe {
            assert_eq!(libc::sigaction(libc::SIGSEGV, std::ptr::null(), &raw mut before), 0);
            *BEFORE.0.get() = Some(before);
            assert_eq!(libc::sigaction(libc::SIGSEGV, &raw const action, std::ptr::null_mut()), 0);
        }
    });
}

extern "C" fn on_fault(_: i32, information: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system hands the signal's facts and the interrupted thread's registers to a handler with `SA_SIGINFO`.
    let (information, registers) =
        unsafe { (&*information, &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs) };
    let stack = registers[libc::REG_RSP as usize] as usize;
    let Some(running) = RUNNING.get().filter(|running| running.stack_ptr_in_bounds(stack)) else {
        // Not of a kernel: the same access is made again, and handled as it was before.
        // SAFETY: what is there was written before this handler was installed.
        if let Some(before) = unsafe { &*BEFORE.0.get() } {
            // SAFETY: it is how the signal was handled before.
            unsafe { libc::sigaction(libc::SIGSEGV, before, std::ptr::null_mut()) };
        }
        return;
    };
    let fault = match information.si_code {
        SEGV_MAPERR | SEGV_ACCERR => {
            // SAFETY: this signal has an address.
            Fault::Closed { address: unsafe { information.si_addr() } as u64 }
        }
        _ => Fault::General,
    };
    // SAFETY: the coroutine was interrupted in native code, which has nothing to drop; its registers become those that
    // this says.
    let jump = unsafe { running.setup_trap_handler(move || Some(fault)) };
    for (register, value) in [
        (libc::REG_RIP, jump.rip),
        (libc::REG_RSP, jump.rsp),
        (libc::REG_RBP, jump.rbp),
        (libc::REG_RDI, jump.rdi),
        (libc::REG_RSI, jump.rsi),
    ] {
        registers[register as usize] = value as i64;
    }
}

/// What the system says of an address without a mapping, and of one that is closed.
const SEGV_MAPERR: i32 = 1;
const SEGV_ACCERR: i32 = 2;
