//! Who writes memory finds everybody who uses it, whatever readers have looked at meanwhile, and whoever writes other parts.

use crate::marks::{Access, Mark, Marks};
use crate::model;
use loom::sync::Arc;
use loom::thread;

/// Events are numbers; that of the write before is done, and none is known to be behind another.
impl Mark for u32 {
    fn is_over(&self) -> bool {
        *self == 0
    }

    fn is_behind(&self, _: &u32) -> bool {
        false
    }
}

#[test]
fn a_reader_that_looks_hides_no_other_reader() {
    model(3, || {
        let marks = Arc::new(Marks::default());
        marks.note(&0, Access::Write, &[]);
        let others = [1, 2].map(|event| {
            let marks = Arc::clone(&marks);
            thread::spawn(move || {
                assert!(marks.before(Access::Read).is_empty(), "the write is done");
                // The host reads, which leaves no event, and a launch does.
                if event == 1 {
                    marks.note(&event, Access::Read, &[]);
                }
            })
        });
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(marks.before(Access::Write).as_slice(), [1]);
    });
}

#[test]
fn readers_at_once_are_all_waited_for() {
    model(2, || {
        let marks = Arc::new(Marks::default());
        let others = [1, 2].map(|event| {
            let marks = Arc::clone(&marks);
            thread::spawn(move || marks.note(&event, Access::Read, &[]))
        });
        others.into_iter().for_each(|other| other.join().unwrap());
        let mut found = marks.before(Access::Write);
        found.sort_unstable();
        assert_eq!(found.as_slice(), [1, 2]);
    });
}

#[test]
fn writers_of_parts_at_once_are_all_waited_for() {
    model(3, || {
        let marks = Arc::new(Marks::default());
        marks.note(&3, Access::Read, &[]);
        let writers = [1, 2].map(|event| {
            let marks = Arc::clone(&marks);
            thread::spawn(move || {
                let before = marks.before(Access::Write);
                marks.note(&event, Access::Write, &before);
                before
            })
        });
        let [first, second] = writers.map(|writer| writer.join().unwrap());
        // The reader was waited for by each, or by the other one that was.
        assert!(first.contains(&3) || first.contains(&2), "{first:?}");
        assert!(second.contains(&3) || second.contains(&1), "{second:?}");
        let found = marks.before(Access::Write);
        // A writer that isn't found was waited for by the other one.
        assert!(found.contains(&1) || second.contains(&1), "{found:?}");
        assert!(found.contains(&2) || first.contains(&2), "{found:?}");
        assert!(!found.contains(&3), "the reader was waited for");
    });
}
