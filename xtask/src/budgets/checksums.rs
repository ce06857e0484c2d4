//! Which code the recorded numbers are of: a checksum for each kernel and target, beside this file. What hasn't changed since
//! needn't be assembled and taken apart again to know its numbers.

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

    /// Records them.
    pub(super) fn write(&self) -> Result<(), String> {
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

    /// Whether the code of a kernel is that of others.
    pub(super) fn agree(&self, others: &Checksums, compiled: &Compiled) -> bool {
        let place = place(compiled);
        self.sums.get(&place).is_some_and(|sum| others.sums.get(&place) == Some(sum))
    }
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
}
