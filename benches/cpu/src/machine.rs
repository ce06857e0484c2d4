//! What is measured on: the processor, and the versions of what was built with.

use std::process::Command;
use tile::Device;

/// Instructions that matter to the rows, as the standard library names them, those of x86 and those of Arm.
const FEATURES: [&str; 16] = [
    "avx2",
    "fma",
    "avx512f",
    "avx512bw",
    "avx512dq",
    "avx512vl",
    "avx512vnni",
    "avx512bf16",
    "avx512fp16",
    "avxvnni",
    "amx-bf16",
    "amx-int8",
    "sve",
    "sve2",
    "bf16",
    "i8mm",
];

/// Whether the processor has an instruction set, by Linux's list where it has one: the standard library can't tell all of
/// them.
pub(crate) fn has(feature: &str) -> bool {
    lists(&cpuinfo(), feature)
}

/// Whether a text in the form of `/proc/cpuinfo` lists a feature; it spells some with a line or without.
fn lists(info: &str, feature: &str) -> bool {
    let spelled = |name: &str| name.replace(['_', '-'], "");
    let flags = info.lines().find(|line| line.starts_with("flags") || line.starts_with("Features"));
    let flags = flags.and_then(|line| line.split_once(':')).map_or("", |(_, flags)| flags);
    flags.split_whitespace().any(|flag| spelled(flag) == spelled(feature))
}

/// Whether AMD has made it.
pub(crate) fn is_amd() -> bool {
    cpuinfo().contains("AuthenticAMD")
}

fn cpuinfo() -> String {
    std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()
}

/// The clock that Linux tells, in whole MHz; of a virtual machine its host's nominal one.
fn clock(info: &str) -> Option<&str> {
    let (_, clock) = info.lines().find(|line| line.starts_with("cpu MHz"))?.split_once(": ")?;
    clock.split('.').next()
}

/// How busy the machine was in the last minute, by Linux.
fn load() -> Option<String> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next().map(str::to_owned)
}

/// The first line that a program prints with `--version`.
fn version(program: &str) -> String {
    let output = Command::new(program).arg("--version").output().ok();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("an unknown version").to_owned()
}

/// The lines that stand above the table.
pub(crate) fn description() -> Vec<String> {
    let features: Vec<&str> = FEATURES.into_iter().filter(|feature| has(feature)).collect();
    let info = cpuinfo();
    let clock = clock(&info).map_or(String::new(), |clock| format!(", {clock} MHz"));
    let load = load().map_or(String::new(), |load| format!(", load {load}"));
    vec![
        format!("{}{clock}{load}", Device::cpu()),
        features.join(" "),
        format!("{}, {}", version("rustc"), tile_codegen::compiler_version()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "processor\t: 0\nmodel name\t: X\ncpu MHz\t\t: 2596.098\nflags\t\t: fpu avx512_bf16 avx512f avx_vnni\n";

    #[test]
    fn features_are_whole_words_however_they_are_spelled() {
        assert!(lists(INFO, "avx512bf16") && lists(INFO, "avxvnni") && lists(INFO, "avx512f"));
        assert!(!lists(INFO, "avx512") && !lists(INFO, "bf16") && !lists(INFO, "X"));
        assert!(!lists("", "avx2"));
        assert!(lists("Features\t: asimd i8mm\n", "i8mm"));
    }

    #[test]
    fn the_clock_is_linuxs() {
        assert_eq!(clock(INFO), Some("2596"));
        assert_eq!(clock("model name: X"), None);
    }
}
