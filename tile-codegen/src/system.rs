//! Operating systems, as far as native code differs by them: the format of objects, the calling convention, the registers that
//! are the system's own, and how a static library is written.
//!
//! Knows nothing of processors, nor of what is in an object.

use ar_archive_writer::ArchiveKind;
use tile_ir::target::Architecture;

/// A family of systems for which native code is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum System {
    /// Linux and other systems with ELF objects and the processor's own calling convention.
    Elf,
    /// Android: ELF objects, where a register of AArch64 is the system's.
    Android,
    /// macOS: Mach-O objects.
    MacOs,
    /// Windows with the GNU tools: COFF objects, and functions of compilers that have their names from there.
    WindowsGnu,
    /// Windows with Microsoft's tools.
    WindowsMsvc,
}

impl Default for System {
    /// That of this program.
    fn default() -> System {
        System::host()
    }
}

impl System {
    /// The system that this program is built for. One for which no CPU code is made counts as one with ELF objects.
    pub fn host() -> System {
        let env = if cfg!(target_env = "msvc") { "msvc" } else { "" };
        System::named(std::env::consts::OS, env).unwrap_or(System::Elf)
    }

    /// The system by what Rust calls it in `target_os` and `target_env`; `None` where no CPU code is made for it.
    ///
    /// ```
    /// use tile_codegen::System;
    /// assert_eq!(System::named("linux", "musl"), Some(System::Elf));
    /// assert_eq!(System::named("windows", "msvc"), Some(System::WindowsMsvc));
    /// assert_eq!(System::named("ios", ""), None);
    /// ```
    pub fn named(os: &str, env: &str) -> Option<System> {
        match (os, env) {
            ("macos", _) => Some(System::MacOs),
            ("windows", "msvc") => Some(System::WindowsMsvc),
            ("windows", _) => Some(System::WindowsGnu),
            ("android", _) => Some(System::Android),
            ("linux" | "freebsd" | "netbsd" | "dragonfly", _) => Some(System::Elf),
            _ => None,
        }
    }

    /// What LLVM calls a machine of this system. That of macOS names the oldest version that runs the code, which is also the
    /// oldest that rustc links for: linkers warn of objects for later ones.
    pub(crate) fn triple(self, architecture: Architecture) -> String {
        let rest = match (self, architecture) {
            (System::Elf, _) => "unknown-linux-gnu",
            (System::Android, _) => "linux-android",
            (System::MacOs, Architecture::X86_64) => "apple-macosx10.12.0",
            (System::MacOs, Architecture::Aarch64) => "apple-macosx11.0.0",
            (System::WindowsGnu, _) => "pc-windows-gnu",
            (System::WindowsMsvc, _) => "pc-windows-msvc",
        };
        format!("{}-{rest}", architecture.name())
    }

    /// The format of a static library.
    pub(crate) fn archive(self) -> ArchiveKind {
        match self {
            System::Elf | System::Android | System::WindowsGnu => ArchiveKind::Gnu,
            System::MacOs => ArchiveKind::Darwin,
            System::WindowsMsvc => ArchiveKind::Coff,
        }
    }

    /// The file of a static library of this name, as rustc looks for it.
    pub(crate) fn library_file(self, name: &str) -> String {
        match self {
            System::WindowsMsvc => format!("{name}.lib"),
            System::Elf | System::Android | System::MacOs | System::WindowsGnu => format!("lib{name}.a"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The host is what Rust's names for it say, as a build script for it would be told.
    #[test]
    fn the_host_is_the_system_of_its_names() {
        let env = if cfg!(target_env = "msvc") { "msvc" } else { "" };
        assert_eq!(System::named(std::env::consts::OS, env), Some(System::host()));
    }
}
