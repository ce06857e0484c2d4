//! What is said to be behind an event is behind it, however threads record on one stream.

use crate::model;
use crate::turns::Turns;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

#[test]
fn what_is_known_to_be_behind_is_behind() {
    model(3, || {
        let (turns, stream) = (Arc::new(Turns::new()), Arc::new(AtomicU64::new(0)));
        let record = |turns: &Turns, stream: &AtomicU64| {
            // The stream's own order, which its events don't know.
            turns.take(|| Ok::<_, ()>(stream.fetch_add(1, Ordering::Relaxed))).unwrap()
        };
        let threads = [0; 2].map(|_| {
            let (turns, stream) = (Arc::clone(&turns), Arc::clone(&stream));
            thread::spawn(move || [0; 2].map(|_| record(&turns, &stream)))
        });
        let events: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        let last = record(&turns, &stream);
        for (place, turn) in &events {
            assert!(last.1.is_behind(turn), "it was over");
            for (other_place, other) in &events {
                assert!(!turn.is_behind(other) || place > other_place);
            }
        }
        assert!(events[1].1.is_behind(&events[0].1) && events[3].1.is_behind(&events[2].1));
    });
}
