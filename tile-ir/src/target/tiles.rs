//! Registers of tiles, which a processor may have and yet refuse: the system grants them to a process that asks.
//!
//! AMX's tiles make a thread's registers 8 KiB larger, so that Linux keeps room for them only where a process has asked for
//! it; the first instruction of one that hasn't ends it. Compiler and runtime both ask here before any code has them.

use std::sync::OnceLock;

/// What a process that may use tiles has, as [`super::CpuLevel`] names it.
pub const TILE_FEATURES: [&str; 3] = ["amx-tile", "amx-bf16", "amx-int8"];

/// Whether code in this process may use tiles of bf16 and of bytes: the processor has them, and the system grants them to
/// threads of this process, those to come among them, from now on. It is asked once.
///
/// ```
/// // Asking again gives the same answer.
/// assert_eq!(tile_ir::target::grants_tiles(), tile_ir::target::grants_tiles());
/// ```
pub fn grants_tiles() -> bool {
    static GRANTED: OnceLock<bool> = OnceLock::new();
    *GRANTED.get_or_init(|| system::has_tiles() && system::grants_tiles())
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
mod system {
    use std::arch::asm;
    use std::arch::x86_64::{__cpuid, __cpuid_count};

    /// Leaf 7's `AMX-BF16`, `AMX-TILE` and `AMX-INT8`, in EDX ("Intel 64 and IA-32 Architectures Software Developer's
    /// Manual", volume 2, `CPUID`).
    const INSTRUCTIONS: u32 = 1 << 22 | 1 << 24 | 1 << 25;

    /// `arch_prctl`, what it is asked for here (`ARCH_REQ_XCOMP_PERM`), and of which registers
    /// (`XFEATURE_XTILEDATA`; Linux, "Using XSTATE features in user space applications"): it refuses what the processor or the
    /// system lacks.
    const CALL: u64 = 158;
    const REQUEST: u64 = 0x1023;
    const TILES: u64 = 18;

    pub(super) fn has_tiles() -> bool {
        // Later versions of Rust have these as safe functions.
        #[allow(unused_unsafe)]
        // SAFETY: every processor of this architecture has the instruction, and its leaf 7 is read if it has that.
        unsafe {
            __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & INSTRUCTIONS == INSTRUCTIONS
        }
    }

    pub(super) fn grants_tiles() -> bool {
        let refused: i64;
        // SAFETY: the call takes two numbers, and reads and writes no memory of this process; the instruction changes the
        // registers that are named.
        unsafe {
            asm!(
                "syscall",
                inlateout("rax") CALL => refused,
                in("rdi") REQUEST,
                in("rsi") TILES,
                out("rcx") _,
                out("r11") _,
                options(nostack)
            );
        }
        refused == 0
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
mod system {
    pub(super) fn has_tiles() -> bool {
        false
    }

    pub(super) fn grants_tiles() -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux lists what a processor has whether a process has asked for it or not.
    #[test]
    #[cfg(target_os = "linux")]
    fn tiles_are_granted_where_linux_lists_them() {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let lists = |feature: &str| info.split_whitespace().any(|flag| flag == feature.replace('-', "_"));
        if grants_tiles() {
            assert!(TILE_FEATURES.into_iter().all(lists));
        }
    }

    #[test]
    fn one_level_has_them() {
        let with = super::super::CPU_LEVELS.iter().filter(|level| level.features == TILE_FEATURES);
        assert_eq!(with.count(), 1);
    }
}
