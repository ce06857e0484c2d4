//! A value is made once by whoever comes first; the others get it, or what making it failed with.

use crate::flight::Flight;
use crate::model;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

/// What two threads get that ask for a value at once, whose first attempt ends so, and how often it was attempted.
fn ask(first: Result<u32, &'static str>) -> ([Result<u32, &'static str>; 2], usize) {
    let (flight, attempts) = (Arc::new(Flight::new()), Arc::new(AtomicUsize::new(0)));
    let ask = {
        let (flight, attempts) = (Arc::clone(&flight), Arc::clone(&attempts));
        move || {
            let make = || if attempts.fetch_add(1, Relaxed) == 0 { first } else { Ok(5) };
            flight.get_or_make(make).copied()
        }
    };
    let other = thread::spawn(ask.clone());
    let mine = ask();
    ([mine, other.join().unwrap()], attempts.load(Relaxed))
}

#[test]
fn a_value_is_made_once_and_all_get_it() {
    model(3, || assert_eq!(ask(Ok(3)), ([Ok(3); 2], 1)));
}

/// Who waited gets the failure, who asks later makes the value.
#[test]
fn a_failure_is_told_to_who_waited_and_nobody_waits_for_ever() {
    model(3, || {
        let (got, attempts) = ask(Err("no"));
        let failed = got.iter().filter(|got| got.is_err()).count();
        assert!((failed, attempts) == (2, 1) || (failed, attempts) == (1, 2), "{got:?} after {attempts}");
    });
}
