//! One thread makes a value, and the others get what it gives. A file of its own, so that `tests/loom` has the code without
//! them.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

use crate::flight::Flight;
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
