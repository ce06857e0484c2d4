//! What is slower than it might be, once for everything that is said of a kernel: its instances and lines mostly have
//! the same reasons.

use std::collections::BTreeSet;
use tile_ir::Loc;

/// What is said of a kernel, and the lines that it is said of.
struct Remark {
    place: String,
    message: String,
    lines: BTreeSet<u32>,
}

/// Remarks in the order in which they were first made.
#[derive(Default)]
pub(super) struct Remarks {
    remarks: Vec<Remark>,
}

impl Remarks {
    pub(super) fn add(&mut self, place: &str, loc: Loc, message: &str) {
        let same = |remark: &Remark| remark.place == place && remark.message == message;
        let position = self.remarks.iter().position(same).unwrap_or_else(|| {
            let (place, message) = (place.to_owned(), message.to_owned());
            self.remarks.push(Remark { place, message, lines: BTreeSet::new() });
            self.remarks.len() - 1
        });
        if loc.is_known() {
            self.remarks[position].lines.insert(loc.line);
        }
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = String> {
        self.remarks.iter().map(|Remark { place, message, lines }| {
            let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
            match lines.as_slice() {
                [] => format!("{place}: {message}"),
                [line] => format!("{place}, line {line}: {message}"),
                [first @ .., last] => format!("{place}, lines {} and {last}: {message}", first.join(", ")),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_given_once_with_all_its_lines() {
        let at = |line| Loc::new(line, 5);
        let mut remarks = Remarks::default();
        for (place, line, message) in [
            ("a:1", 9, "slow"),
            ("a:1", 7, "slow"),
            ("a:1", 9, "slow"),
            ("b:2", 9, "slow"),
            ("a:1", 8, "other"),
        ] {
            remarks.add(place, at(line), message);
        }
        remarks.add("a:1", at(12), "slow");
        let texts: Vec<String> = remarks.texts().collect();
        assert_eq!(texts, ["a:1, lines 7, 9 and 12: slow", "b:2, line 9: slow", "a:1, line 8: other"]);
    }

    #[test]
    fn a_place_without_a_line_is_the_kernels() {
        let mut remarks = Remarks::default();
        remarks.add("a:1", Loc::UNKNOWN, "slow");
        assert_eq!(remarks.texts().collect::<Vec<_>>(), ["a:1: slow"]);
    }
}
