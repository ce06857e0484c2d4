//! Which code the recorded numbers are of: a checksum for each kernel and target, beside this file. What hasn't changed since
//! needn't be assembled and taken apart again to know its numbers, as long as the page with the numbers, and what read them,
//! haven't either: they have a checksum, too.

use super::compiled::Compiled;
use crate::steps::root;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Checksums by kernel and target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Checksums {
    sums: BTreeMap<String, u64>,
}

/// What reads the numbers.
const READERS: [&str; 3] =
    [include_str!("amd.rs"), include_str!("nvidia.rs"), include_str!("instructions.rs")];

/// What stands for the page and its readers in the place of a kernel.
const PAGE: &str = "the page and its readers";

fn path() -> PathBuf {
    root().join("xtask/src/budgets/checksums.txt")
}

fn place(compiled: &Compiled) -> String {
    format!("{} on {}", compiled.instance, compiled.target)
}

impl Checksums {
    /// Those of what was compiled, measured by tools of these versions.
    pub(super) fn of(compiled: &[Compiled], versions: &str) -> Result<Checksums, String> {
        let sum = |compiled: &Compiled| {
            let code =
                fs::read(&compiled.file).map_err(|error| format!("{}: {error}", compiled.file.display()))?;
            let launch = format!("{versions} {} {} ", compiled.threads, compiled.dynamic_shared);
            Ok((place(compiled), checksum(launch.bytes().chain(code))))
        };
        let sums = compiled.iter().map(sum).collect::<Result<_, String>>()?;
        Ok(Checksums { sums })
    }

    /// Those that are recorded; none where there is no file.
    pub(super) fn recorded() -> Checksums {
        Checksums::read(&fs::read_to_string(path()).unwrap_or_default())
    }

    /// Records them, of the page that has the numbers.
    pub(super) fn write(mut self, page: &str) -> Result<(), String> {
        self.sums.insert(PAGE.to_owned(), checksum_of_page(page));
        fs::write(path(), self.text()).map_err(|error| format!("{}: {error}", path().display()))
    }

    fn read(text: &str) -> Checksums {
        let sum = |line: &str| {
            let (sum, place) = line.split_once(' ')?;
            Some((place.to_owned(), u64::from_str_radix(sum, 16).ok()?))
        };
        Checksums { sums: text.lines().filter_map(sum).collect() }
    }

    fn text(&self) -> String {
        self.sums.iter().map(|(place, sum)| format!("{sum:016x} {place}\n")).collect()
    }

    /// Whether a page is the one that was recorded with them, and its numbers are read as they were.
    pub(super) fn vouch_for(&self, page: &str) -> bool {
        self.sums.get(PAGE) == Some(&checksum_of_page(page))
    }

    /// Whether the code of a kernel is that of others.
    pub(super) fn agree(&self, others: &Checksums, compiled: &Compiled) -> bool {
        let place = place(compiled);
        self.sums.get(&place).is_some_and(|sum| others.sums.get(&place) == Some(sum))
    }
}

fn checksum_of_page(page: &str) -> u64 {
    checksum(READERS.into_iter().chain([page]).flat_map(str::bytes))
}

/// FNV-1a, 64 bits.
fn checksum(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_changed_is_found_by_its_checksum() {
        let folder = std::env::temp_dir().join(format!("tile-checksums-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for the test");
        let compiled = |name: &str, code: &str, threads| {
            let file = folder.join(name);
            fs::write(&file, code).expect("the folder is writable");
            Compiled {
                instance: format!("{name}(B=4)"),
                target: "sm_80".to_owned(),
                file,
                threads,
                dynamic_shared: 0,
            }
        };
        let kernels = [compiled("a", "add", 32), compiled("b", "sub", 32)];
        let before = Checksums::of(&kernels, "1").expect("the files are there");
        assert_eq!(Checksums::read(&before.text()), before);
        let agree = |kernels: &[Compiled; 2], versions: &str| {
            let now = Checksums::of(kernels, versions).expect("the files are there");
            [0, 1].map(|i| now.agree(&before, &kernels[i]))
        };
        assert_eq!(agree(&kernels, "1"), [true, true]);
        assert_eq!(agree(&kernels, "2"), [false, false]);
        assert_eq!(agree(&[compiled("a", "mul", 32), compiled("b", "sub", 64)], "1"), [false, false]);
        assert_eq!(agree(&[compiled("a", "add", 32), compiled("c", "sub", 32)], "1"), [true, false]);
        fs::remove_dir_all(&folder).expect("the folder is the test's");
    }

    #[test]
    fn a_page_that_somebody_has_changed_is_not_vouched_for() {
        let recorded =
            Checksums { sums: BTreeMap::from([(PAGE.to_owned(), checksum_of_page("40 registers"))]) };
        assert_eq!(["40 registers", "41 registers"].map(|page| recorded.vouch_for(page)), [true, false]);
        assert!(!Checksums::default().vouch_for(""));
    }
}
