//! How many events of the users of some memory are kept. `marks.rs` itself is also part of `tests/loom`, which has the orders.

use super::marks::{Access, Few, Mark, Marks};
use std::cell::Cell;
use std::rc::Rc;

/// An event of one of a few streams, which counts how often it is looked at, and is never done.
#[derive(Clone)]
struct Place {
    stream: usize,
    number: usize,
    looks: Rc<Cell<usize>>,
}

impl PartialEq for Place {
    fn eq(&self, other: &Place) -> bool {
        (self.stream, self.number) == (other.stream, other.number)
    }
}

impl Mark for Place {
    fn is_over(&self) -> bool {
        self.looks.set(self.looks.get() + 1);
        false
    }

    fn is_behind(&self, other: &Place) -> bool {
        self.stream == other.stream && self.number > other.number
    }
}

#[test]
fn of_many_reads_the_last_of_each_stream_is_kept() {
    const READS: usize = 100;
    let (marks, looks) = (Marks::default(), Rc::default());
    let place = |stream, number| Place { stream, number, looks: Rc::clone(&looks) };
    let write = place(2, 0);
    marks.note(&write, Access::Write, &[]);
    for number in 0..READS {
        for stream in [0, 1] {
            assert!(marks.before(Access::Read) == Few::from_elem(write.clone(), 1));
            marks.note(&place(stream, number), Access::Read, std::slice::from_ref(&write));
        }
    }
    // The write before each, and one event of the other stream behind it.
    assert!(looks.get() <= 2 * 2 * READS, "{}", looks.get());
    let last = [write.clone(), place(0, READS - 1), place(1, READS - 1)];
    assert!(marks.before(Access::Write).as_slice() == last);
    // What two threads record on a stream may be noted the other way round.
    marks.note(&place(0, READS - 2), Access::Read, &[write]);
    assert!(marks.before(Access::Write).contains(&last[1]));
}
