//! A value that is made when it is first asked for, once, however many threads ask: the others wait for the one that
//! makes it. Where that fails, who waited gets the same error, and who asks later tries again.
//!
//! Reading a value that is there takes no lock. Values of different flights have nothing to do with each other: one that
//! takes long keeps nobody from another.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// A value that is there, is being made, or isn't there.
pub(crate) struct Flight<T, E> {
    landed: OnceLock<T>,
    state: Mutex<State<E>>,
    changed: Condvar,
}

struct State<E> {
    /// How many times it was begun to make the value.
    attempt: u64,
    is_running: bool,
    /// What the latest attempt failed with, where it did.
    failure: Option<E>,
}

impl<T, E: Clone> Flight<T, E> {
    pub(crate) const fn new() -> Flight<T, E> {
        Flight {
            landed: OnceLock::new(),
            state: Mutex::new(State { attempt: 0, is_running: false, failure: None }),
            changed: Condvar::new(),
        }
    }

    /// The value, if it is there.
    pub(crate) fn get(&self) -> Option<&T> {
        self.landed.get()
    }

    /// The value, which is made now if nobody has made it.
    ///
    /// # Errors
    /// What making it failed with, here or in the thread that this one waited for.
    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        let mut state = self.lock();
        while state.is_running {
            let attempt = state.attempt;
            while state.is_running && state.attempt == attempt {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            match &state.failure {
                Some(failure) if state.attempt == attempt => return Err(failure.clone()),
                // Made, begun anew, or given up by a panic.
                _ => {}
            }
        }
        if let Some(value) = self.get() {
            return Ok(value);
        }
        (state.attempt, state.is_running, state.failure) = (state.attempt + 1, true, None);
        drop(state);
        let mut running = Running { flight: self, failure: None };
        match make() {
            Ok(value) => Ok(self.landed.get_or_init(|| value)),
            Err(error) => {
                running.failure = Some(error.clone());
                Err(error)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt, which ends when this is dropped, be it by a panic.
struct Running<'f, T, E: Clone> {
    flight: &'f Flight<T, E>,
    failure: Option<E>,
}

impl<T, E: Clone> Drop for Running<'_, T, E> {
    fn drop(&mut self) {
        let mut state = self.flight.lock();
        (state.is_running, state.failure) = (false, self.failure.take());
        self.flight.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::sync::{Arc, Barrier};
    use std::time::Duration;

    /// Long enough for other threads to begin waiting.
    fn a_while() {
        std::thread::sleep(Duration::from_millis(if cfg!(miri) { 1 } else { 60 }));
    }

    /// What each of several threads gets that ask at once, of a flight that takes a while; and how often it was made.
    fn ask(flight: &Flight<u32, String>, outcome: Result<u32, String>) -> (Vec<Result<u32, String>>, usize) {
        let (made, begin) = (AtomicUsize::new(0), Barrier::new(8));
        let ask = || {
            begin.wait();
            let make = || {
                made.fetch_add(1, Relaxed);
                a_while();
                outcome.clone()
            };
            flight.get_or_make(make).copied()
        };
        let got = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        (got, made.load(Relaxed))
    }

    #[test]
    fn all_get_what_one_makes() {
        let flight = Flight::new();
        assert!(flight.get().is_none());
        let failure = || Err("no".to_owned());
        assert_eq!(ask(&flight, failure()), (vec![failure(); 8], 1));
        // A failure isn't kept.
        assert_eq!(ask(&flight, Ok(3)), (vec![Ok(3); 8], 1));
        assert_eq!(ask(&flight, failure()), (vec![Ok(3); 8], 0));
    }

    #[test]
    fn a_panic_leaves_it_to_the_next() {
        let flight = Arc::new(Flight::<u32, String>::new());
        let (other, begin) = (Arc::clone(&flight), Arc::new(Barrier::new(2)));
        let begun = Arc::clone(&begin);
        let panics = std::thread::spawn(move || {
            other
                .get_or_make(|| {
                    begun.wait();
                    a_while();
                    panic!("on purpose")
                })
                .copied()
        });
        begin.wait();
        assert_eq!(flight.get_or_make(|| Ok(5)), Ok(&5));
        assert!(panics.join().is_err());
    }

    #[test]
    fn one_that_takes_long_keeps_nobody_from_another() {
        let (slow, quick) = (Flight::<u32, String>::new(), Flight::<u32, String>::new());
        let begin = Barrier::new(2);
        let done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                slow.get_or_make(|| {
                    begin.wait();
                    // Waits for the other flight: were that behind this one, neither would end.
                    while done.load(Relaxed) == 0 {
                        std::thread::yield_now();
                    }
                    Ok(1)
                })
                .copied()
            });
            begin.wait();
            assert_eq!(quick.get_or_make(|| Ok(2)), Ok(&2));
            done.store(1, Relaxed);
        });
        assert_eq!(slow.get(), Some(&1));
    }
}
