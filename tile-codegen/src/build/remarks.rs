//! What is slower than it might be, once for everything that is said of a kernel: its instances, lines and targets mostly
//! have the same reasons.

use std::collections::BTreeSet;
use tile_ir::gpu::Remark;

/// What is said of a kernel, the lines that it is said of, and the targets.
struct Told {
    place: String,
    /// Of the first line; what is multiplied is what all these targets multiply.
    remark: Remark,
    lines: BTreeSet<u32>,
    targets: Vec<&'static str>,
}

/// Remarks in the order in which they were first made.
#[derive(Default)]
pub(super) struct Remarks {
    remarks: Vec<Told>,
}

impl Remarks {
    pub(super) fn add(&mut self, place: &str, target: &'static str, remark: &Remark) {
        let same = |told: &&mut Told| told.place == place && told.remark.message == remark.message;
        let told = match self.remarks.iter_mut().find(same) {
            Some(told) => told,
            None => {
                let (place, remark) = (place.to_owned(), remark.clone());
                self.remarks.push(Told { place, remark, lines: BTreeSet::new(), targets: Vec::new() });
                self.remarks.last_mut().expect("one was added")
            }
        };
        told.remark.multiplied.retain(|multiplied| remark.multiplied.contains(multiplied));
        if !told.targets.contains(&target) {
            told.targets.push(target);
        }
        if remark.loc.is_known() {
            told.lines.insert(remark.loc.line);
        }
    }

    /// As `src/kernels.rs:7, line 18, on sm_80 and gfx1100: a product …`.
    pub(super) fn texts(&self) -> impl Iterator<Item = String> {
        self.remarks.iter().map(|Told { place, remark, lines, targets }| {
            let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
            let of_lines = match lines.as_slice() {
                [] => String::new(),
                [line] => format!(", line {line}"),
                lines => format!(", lines {}", listed(lines)),
            };
            format!("{place}{of_lines}, on {}: {}", listed(targets), remark.told())
        })
    }
}

/// `a, b and c`.
fn listed<S: AsRef<str>>(names: &[S]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tile_ir::gpu::{Multiplied, RemarkKind};
    use tile_ir::{DType, Loc};

    fn remark(line: Option<u32>, message: &str, factors: &[&str]) -> Remark {
        let loc = line.map_or(Loc::UNKNOWN, |line| Loc::new(line, 5));
        let multiplied = |factors: &&str| Multiplied { factors: (*factors).to_owned(), sum: DType::F32 };
        Remark {
            kind: RemarkKind::SlowProduct,
            loc,
            message: message.to_owned(),
            multiplied: factors.iter().map(multiplied).collect(),
        }
    }

    #[test]
    fn a_reason_is_given_once_with_all_its_lines_and_targets() {
        let mut remarks = Remarks::default();
        for (place, target, line, message) in [
            ("a:1", "sm_80", 9, "slow"),
            ("a:1", "sm_80", 7, "slow"),
            ("a:1", "sm_90a", 9, "slow"),
            ("b:2", "sm_80", 9, "slow"),
            ("a:1", "sm_80", 8, "other"),
            ("a:1", "gfx942", 12, "slow"),
        ] {
            remarks.add(place, target, &remark(Some(line), message, &[]));
        }
        let texts: Vec<String> = remarks.texts().collect();
        let expected = [
            "a:1, lines 7, 9 and 12, on sm_80, sm_90a and gfx942: slow",
            "b:2, line 9, on sm_80: slow",
            "a:1, line 8, on sm_80: other",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn a_place_without_a_line_is_the_kernels() {
        let mut remarks = Remarks::default();
        remarks.add("a:1", "sm_80", &remark(None, "slow", &[]));
        assert_eq!(remarks.texts().collect::<Vec<_>>(), ["a:1, on sm_80: slow"]);
    }

    #[test]
    fn what_is_multiplied_is_what_all_targets_multiply() {
        let mut remarks = Remarks::default();
        remarks.add("a:1", "sm_80", &remark(Some(9), "none", &["f16", "bf16", "f32 of `mma_tf32`"]));
        remarks.add("a:1", "gfx1100", &remark(Some(9), "none", &["bf16", "f16"]));
        let expected = "a:1, line 9, on sm_80 and gfx1100: none; there are for f16, bf16 summed in f32";
        assert_eq!(remarks.texts().collect::<Vec<_>>(), [expected]);
    }
}
