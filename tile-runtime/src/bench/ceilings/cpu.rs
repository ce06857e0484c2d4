//! The CPU's ceilings: `memcpy`, and multiply-adds in registers.

use super::{Ceiling, TRIES};
use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;
use tile_ir::DType;

/// What a thread copies, in bytes: more than its part of any cache.
const COPIED: usize = 64 << 20;

/// Turns of the loop over chains of multiply-adds: some milliseconds.
const TURNS: u64 = 1 << 20;

/// The rates of all tries.
pub(super) fn measure(ceiling: Ceiling, threads: usize) -> Option<Vec<f64>> {
    match ceiling {
        Ceiling::Copy => Some(copy(threads)),
        Ceiling::MultiplyAdd(dtype) | Ceiling::Product(dtype) => {
            let is_double = match dtype {
                DType::F32 => false,
                DType::F64 => true,
                _ => return None,
            };
            multiply_adds(is_double)?;
            Some(at_once(threads, || (), |()| multiply_adds(is_double).unwrap_or(0)))
        }
    }
}

/// Bytes per second that copies on all threads read and write.
fn copy(threads: usize) -> Vec<f64> {
    // Written, so that there is memory behind them.
    let own = || (vec![1u8; COPIED], vec![2u8; COPIED]);
    at_once(threads, own, |(source, target)| {
        target.copy_from_slice(black_box(source));
        black_box(target);
        2 * COPIED as u64
    })
}

/// So many a second, try by try, of work that all threads do at once, each with something of its own, and that says how
/// much it was.
fn at_once<T>(threads: usize, own: impl Fn() -> T + Sync, work: impl Fn(&mut T) -> u64 + Sync) -> Vec<f64> {
    let barrier = Barrier::new(threads);
    let measure = || {
        let mut own = own();
        let tries = (0..TRIES).map(|_| {
            barrier.wait();
            let start = Instant::now();
            let done = work(&mut own);
            done as f64 / start.elapsed().as_secs_f64()
        });
        tries.collect::<Vec<f64>>()
    };
    let rates = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(measure)).collect();
        let mut all = vec![measure()];
        all.extend(others.into_iter().filter_map(|other| other.join().ok()));
        all
    });
    (0..TRIES).map(|number| rates.iter().map(|rates| rates[number]).sum()).collect()
}

/// An instruction on each of these registers, given by what stands before and behind their numbers: on as many as
/// instructions take to finish that begin twice a clock.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! on_each {
    ($before:literal, $behind:literal, $($register:literal)*) => {
        concat!($($before, $register, $behind, "\n"),*)
    };
}

/// Multiply-adds of twelve registers: how many operations were done. `None` without an instruction for them. In assembly,
/// because programs that aren't optimised are profiled, too.
#[cfg(target_arch = "x86_64")]
fn multiply_adds(is_double: bool) -> Option<u64> {
    macro_rules! turns {
        ($instruction:literal, $factors:literal) => {
            std::arch::asm!(
                "vzeroall",
                "2:",
                on_each!($instruction, $factors, 0 1 2 3 4 5 6 7 8 9 10 11),
                "dec rcx",
                "jnz 2b",
                inout("rcx") TURNS => _, clobber_abi("C"), options(nomem, nostack)
            )
        };
    }
    let lanes = crate::cpu::levels::best()?.lanes;
    // SAFETY: this machine has the instructions of the level, and what they change is named.
    unsafe {
        match (lanes, is_double) {
            (16, false) => turns!("vfmadd231ps zmm", ", zmm12, zmm13"),
            (16, true) => turns!("vfmadd231pd zmm", ", zmm12, zmm13"),
            (8, false) => turns!("vfmadd231ps ymm", ", ymm12, ymm13"),
            (8, true) => turns!("vfmadd231pd ymm", ", ymm12, ymm13"),
            _ => return None,
        }
    }
    Some(operations(4 * lanes, is_double))
}

/// Multiply-adds of twelve registers: how many operations were done. In assembly, because programs that aren't optimised
/// are profiled, too.
#[cfg(target_arch = "aarch64")]
fn multiply_adds(is_double: bool) -> Option<u64> {
    macro_rules! turns {
        ($factors:literal) => {
            std::arch::asm!(
                "movi v28.16b, #0",
                "2:",
                on_each!("fmla v", $factors, 16 17 18 19 20 21 22 23 24 25 26 27),
                "subs x9, x9, #1",
                "b.ne 2b",
                inout("x9") TURNS => _, clobber_abi("C"), options(nomem, nostack)
            )
        };
    }
    // SAFETY: every such machine has the instructions, and what they change is named.
    unsafe {
        match is_double {
            false => turns!(".4s, v28.4s, v28.4s"),
            true => turns!(".2d, v28.2d, v28.2d"),
        }
    }
    Some(operations(16, is_double))
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn multiply_adds(_: bool) -> Option<u64> {
    None
}

/// Two for each element of twelve registers of so many bytes, each turn.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn operations(bytes: u64, is_double: bool) -> u64 {
    2 * 12 * TURNS * bytes / if is_double { 8 } else { 4 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_of_registers_have_ceilings() {
        let rates = |dtype| measure(Ceiling::MultiplyAdd(dtype), 2);
        for dtype in [DType::F32, DType::F64] {
            // A 64-bit processor of any kind does more.
            let is_fast = |rates: Vec<f64>| rates.len() == TRIES && rates.iter().all(|&rate| rate > 1e7);
            assert!(rates(dtype).is_none_or(is_fast));
        }
        assert_eq!((rates(DType::I8), rates(DType::BF16)), (None, None));
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        assert_eq!(operations(32, false), 2 * operations(32, true));
    }
}
