//! The standard library's `OnceLock`, which loom doesn't have, of loom's parts: who finds the value sees what its maker
//! wrote before.

use loom::cell::UnsafeCell;
use loom::sync::Mutex;
use loom::sync::atomic::{AtomicBool, Ordering};

pub(crate) struct OnceLock<T> {
    is_there: AtomicBool,
    making: Mutex<()>,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is written once, under the lock, before it is said to be there, and is only read from then on.
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}

impl<T> OnceLock<T> {
    pub(crate) fn new() -> OnceLock<T> {
        OnceLock { is_there: AtomicBool::new(false), making: Mutex::new(()), value: UnsafeCell::new(None) }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: what is there isn't written any more.
        let value = |place: *const Option<T>| unsafe { (*place).as_ref() };
        if self.is_there.load(Ordering::Acquire) { self.value.with(value) } else { None }
    }

    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        let making = self.making.lock().expect("nobody panics");
        if self.get().is_none() {
            let value = make();
            // SAFETY: nobody reads it before it is said to be there, and the lock is held.
            self.value.with_mut(|place| unsafe { *place = Some(value) });
            self.is_there.store(true, Ordering::Release);
        }
        drop(making);
        self.get().expect("it is there")
    }
}
