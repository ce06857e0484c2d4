//! Memory that is handed out in turn, round and round.

use std::ops::RangeInclusive;

/// Memory of which pieces are in use while ops at some positions run.
pub(super) struct Ring {
    bytes: u64,
    next: u64,
    live: Vec<Live>,
}

/// A piece until the last op that reads it, by its position.
struct Live {
    start: u64,
    end: u64,
    until: usize,
}

impl Ring {
    pub(super) fn of(bytes: u64) -> Ring {
        Ring { bytes, next: 0, live: Vec::new() }
    }

    /// Hands out memory that ops at these positions use: what comes next, or from the beginning, or where there is none
    /// left beyond the ring's end. What one op asks for is one piece, so that it doesn't split what is free.
    pub(super) fn place(&mut self, bytes: u64, used: RangeInclusive<usize>) -> u64 {
        self.live.retain(|live| live.until >= *used.start());
        let starts = || [self.next, 0].into_iter().chain(self.live.iter().map(|live| live.end));
        let is_free =
            |&start: &u64| self.live.iter().all(|live| start + bytes <= live.start || live.end <= start);
        let within = starts().filter(is_free).find(|start| start + bytes <= self.bytes);
        let start = within.or_else(|| starts().filter(is_free).min()).unwrap_or(0);
        self.bytes = self.bytes.max(start + bytes);
        self.next = start + bytes;
        self.live.push(Live { start, end: start + bytes, until: *used.end() });
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_op_that_fills_the_ring_begins_where_it_does() {
        let mut ring = Ring::of(1024);
        assert_eq!(ring.place(256, 0..=0), 0);
        assert_eq!((ring.place(1024, 1..=1), ring.bytes), (0, 1024));
    }

    #[test]
    fn neighbours_lie_apart_and_what_lives_on_is_kept() {
        let mut ring = Ring::of(1024);
        assert_eq!(ring.place(512, 0..=3), 0);
        assert_eq!(ring.place(256, 1..=1), 512);
        assert_eq!(ring.place(256, 2..=2), 768);
        // The first piece is in use until position 3, so what comes next begins behind it.
        assert_eq!(ring.place(256, 3..=3), 512);
        assert_eq!(ring.place(512, 4..=4), 0);
        assert_eq!(ring.bytes, 1024);
    }
}
