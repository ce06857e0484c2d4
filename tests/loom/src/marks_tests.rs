//! Who writes memory finds everybody who uses it, whatever readers have looked at meanwhile, and whoever writes other parts.

use crate::marks::{Access, Marks};
use crate::model;
use loom::sync::Arc;
use loom::thread;

/// Events are numbers; that of the write before is done.
fn is_done(event: &u32) -> bool {
    *event == 0
}

#[test]
fn a_reader_that_looks_hides_no_other_reader() {
    model(3, || {
        let marks = Arc::new(Marks::default());
        marks.note(&0, Access::Write, &[], is_done);
        let others = [1, 2].map(|event| {
            let marks = Arc::clone(&marks);
            thread::spawn(move || {
                assert!(marks.before(Access::Read, is_done).is_empty(), "the write is done");
                // The host reads, which leaves no event, and a launch does.
                if event == 1 {
                    marks.note(&event, Access::Read, &[], is_done);
                }
            })
        });
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(marks.before(Access::Write, is_done).as_slice(), [1]);
    });
}

#[test]
fn readers_at_once_are_all_waited_for() {
    model(2, || {
        let marks = Arc::new(Marks::default());
        let others = [1, 2].map(|event| {
            let marks = Arc::clone(&marks);
            thread::spawn(move || marks.note(&event, Access::Read, &[], is_done))
        });
        others.into_iter().for_each(|other| other.join().unwrap());
        let mut found = marks.before(Access::Write, is_done);
        found.sort_unstable();
        assert_eq!(found.as_slice(), [1, 2]);
    });
}

#[test]
fn writers_of_parts_at_once_are_all_waited_for() {
    model(3, || {
        let marks = Arc::new(Marks::default());
        marks.note(&3, Access::Read, &[], is_done);
        let writers = [1, 2].map(|event| {
            let marks = Arc::clone(&marks);
            thread::spawn(move || {
                let before = marks.before(Access::Write, is_done);
                marks.note(&event, Access::Write, &before, is_done);
                before
            })
        });
        let [first, second] = writers.map(|writer| writer.join().unwrap());
        // The reader was waited for by each, or by the other one that was.
        assert!(first.contains(&3) || first.contains(&2), "{first:?}");
        assert!(second.contains(&3) || second.contains(&1), "{second:?}");
        let found = marks.before(Access::Write, is_done);
        // A writer that isn't found was waited for by the other one.
        assert!(found.contains(&1) || second.contains(&1), "{found:?}");
        assert!(found.contains(&2) || first.contains(&2), "{found:?}");
        assert!(!found.contains(&3), "the reader was waited for");
    });
}
