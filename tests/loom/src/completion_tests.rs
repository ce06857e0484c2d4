//! Whoever waits for the end of a piece of work comes to know of it.

use crate::completion::Completion;
use crate::model;
use loom::sync::Arc;
use loom::thread;

#[test]
fn threads_that_wait_go_on() {
    model(3, || {
        let completion = Arc::new(Completion::default());
        let waits = [0; 2].map(|_| {
            let completion = Arc::clone(&completion);
            thread::spawn(move || completion.wait().1)
        });
        assert!(completion.end(Err("no".to_owned())).is_empty());
        assert!(waits.into_iter().all(|wait| wait.join().unwrap() == Err("no".to_owned())));
        assert!(completion.ended().is_some());
    });
}

/// A task that has found the work not done is told to who wakes it.
#[test]
fn a_task_that_goes_to_sleep_is_woken() {
    model(3, || {
        let completion = Arc::new(Completion::default());
        let ends = {
            let completion = Arc::clone(&completion);
            thread::spawn(move || completion.end(Ok(())))
        };
        let found = completion.poll(7);
        let woken = ends.join().unwrap();
        assert!(found == Some(Ok(())) || woken == [7], "nobody wakes it");
    });
}

/// Of those who may tell of a failure, one at least does.
#[test]
fn a_failure_is_told() {
    model(3, || {
        let completion = Arc::new(Completion::default());
        let guard = {
            let completion = Arc::clone(&completion);
            thread::spawn(move || completion.tell())
        };
        assert!(completion.end(Err("no".to_owned())).is_empty());
        let by_stream = completion.tell_failure();
        assert!(completion.is_told());
        let again = completion.tell_failure();
        assert_eq!((guard.join().unwrap(), again), (Err("no".to_owned()), Ok(())));
        assert!(by_stream.is_ok() || by_stream == Err("no".to_owned()));
    });
}
