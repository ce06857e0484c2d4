//! How fast processors are, as data: what the cost model divides work by. One row per GPU target, of the fastest
//! processor that it names; a launch puts its own device's numbers in place of those that it knows.
//!
//! Sources. NVIDIA: A100, H100 and H200 datasheets (dense tensor rates, memory), their architecture white papers (SMs,
//! clocks, L2 read bandwidth per clock), the GA102, Ada and RTX Blackwell architecture white papers (RTX 3090, 4090 and 5090:
//! dense rates of f16 summed in f32), CUDA C++ Programming Guide, tables "Throughput of Native Arithmetic
//! Instructions" (lanes, special functions: 16 per clock) and "Technical Specifications per Compute Capability"
//! (threads, registers, shared memory). AMD: CDNA 2, 3 and 4 and RDNA 3 white papers and the datasheets of MI250X (one
//! of its two dies), MI300X, MI355X, RX 7900 XTX and RX 9070 XT. A rate per clock is the datasheet's figure divided by
//! units and boost clock. The share of `mma.sync` on Hopper: arXiv 2402.13499, table of `mma` against `wgmma` (491 of
//! 756 TFLOP/s). Latencies of memory, and L2 rates of GeForce processors, are rounded from published microbenchmarks.

use super::{Fragments, MatrixInstruction, Passing};
use crate::dtype::DType;
use tile_layout::linear::Operand;

/// How fast a GPU is. Rates are those of one multiprocessor (compute unit) per clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// The target.
    pub target: &'static str,
    /// The processor that the numbers are of.
    pub processor: &'static str,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Clocks per second.
    pub clock: f64,
    /// Bytes of memory per second, of the whole processor.
    pub memory: f64,
    /// Bytes of the L2 cache.
    pub l2_bytes: f64,
    /// Bytes of shared memory.
    pub shared_bytes: f64,
    /// Products of matrix instructions that are added to sums, by the factors' format.
    pub matrix: &'static [(Factor, f64)],
    /// The share of these that instructions of one warp reach.
    pub warp_share: f64,
    /// Multiply-adds of f32, and other instructions on 32 bits.
    pub lanes: f64,
    /// The share of these for f64.
    pub f64_share: f64,
    /// Special functions of f32.
    pub special: f64,
    /// Clocks from asking memory to having its answer.
    pub latency: f64,
    /// The most threads at once.
    pub threads: u32,
    /// Registers of 32 bits.
    pub registers: u32,
    /// Shared memory for all blocks, in bytes.
    pub shared_memory: u32,
    /// What each block takes of that besides its own.
    pub shared_reserve: u32,
}

/// The format of a matrix instruction's factors, as rates tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factor {
    /// f16 and bf16.
    Half,
    /// Floats of 8 bits, and integers of 8 bits.
    Byte,
    /// f32 of which 19 bits are read.
    Tf32,
    /// f32.
    Single,
    /// f64.
    Double,
}

impl Factor {
    /// What an instruction multiplies. Two kinds of factors have one width. Warps of NVIDIA's convert 8-bit floats to f16, unless
    /// the instruction scales them.
    pub fn of(instruction: &MatrixInstruction) -> Factor {
        let is_converted = instruction.fragments == Fragments::MmaSync && instruction.scales.is_none();
        match (instruction.passing, instruction.factor(Operand::A)) {
            (Passing::Tf32Words, _) => Factor::Tf32,
            (_, dtype) if dtype.is_float8() && is_converted => Factor::Half,
            (_, DType::F32) => Factor::Single,
            (_, DType::F64) => Factor::Double,
            (_, dtype) if dtype.bits() == 8 => Factor::Byte,
            _ => Factor::Half,
        }
    }
}

const KIB: u32 = 1024;

/// NVIDIA's multiprocessors without fast f64: of so many, their clock, bytes of memory per second and of the L2 cache, and
/// clocks of memory's answers.
const fn without_fast_f64(
    [target, processor]: [&'static str; 2],
    multiprocessors: u32,
    [clock, memory, l2_bytes, latency]: [f64; 4],
) -> Rates {
    Rates {
        target,
        processor,
        multiprocessors,
        clock,
        memory,
        l2_bytes,
        shared_bytes: 128.0,
        matrix: &[(Factor::Half, 256.0), (Factor::Byte, 1024.0), (Factor::Tf32, 128.0)],
        warp_share: 1.0,
        lanes: 128.0,
        f64_share: 1.0 / 64.0,
        special: 16.0,
        latency,
        threads: 1536,
        registers: 65536,
        shared_memory: 100 * KIB,
        shared_reserve: KIB,
    }
}

/// Every GPU target's rates.
const RATES: &[Rates] = &[
    Rates {
        target: "sm_80",
        processor: "A100 SXM 80 GB",
        multiprocessors: 108,
        clock: 1.41e9,
        memory: 2.039e12,
        l2_bytes: 47.0,
        shared_bytes: 128.0,
        matrix: &[
            (Factor::Half, 1024.0),
            (Factor::Byte, 2048.0),
            (Factor::Tf32, 512.0),
            (Factor::Double, 64.0),
        ],
        warp_share: 1.0,
        lanes: 64.0,
        f64_share: 0.5,
        special: 16.0,
        latency: 800.0,
        threads: 2048,
        registers: 65536,
        shared_memory: 164 * KIB,
        shared_reserve: KIB,
    },
    without_fast_f64(["sm_86", "RTX 3090"], 82, [1.695e9, 0.936e12, 20.0, 500.0]),
    without_fast_f64(["sm_89", "RTX 4090"], 128, [2.52e9, 1.008e12, 16.0, 650.0]),
    Rates {
        target: "sm_90a",
        processor: "H200 SXM",
        multiprocessors: 132,
        clock: 1.83e9,
        memory: 4.8e12,
        l2_bytes: 64.0,
        shared_bytes: 128.0,
        matrix: &[
            (Factor::Half, 2048.0),
            (Factor::Byte, 4096.0),
            (Factor::Tf32, 1024.0),
            (Factor::Double, 128.0),
        ],
        warp_share: 0.65,
        lanes: 128.0,
        f64_share: 0.5,
        special: 16.0,
        latency: 1000.0,
        threads: 2048,
        registers: 65536,
        shared_memory: 228 * KIB,
        shared_reserve: KIB,
    },
    // Of `mma.sync` no figure is published; its rate is taken to be Hopper's.
    Rates {
        target: "sm_100a",
        processor: "B200 SXM",
        multiprocessors: 148,
        clock: 1.85e9,
        memory: 8.0e12,
        l2_bytes: 64.0,
        shared_bytes: 128.0,
        matrix: &[
            (Factor::Half, 4096.0),
            (Factor::Byte, 8192.0),
            (Factor::Tf32, 2048.0),
            (Factor::Double, 64.0),
        ],
        warp_share: 0.325,
        lanes: 128.0,
        f64_share: 0.5,
        special: 16.0,
        latency: 1000.0,
        threads: 2048,
        registers: 65536,
        shared_memory: 228 * KIB,
        shared_reserve: KIB,
    },
    without_fast_f64(["sm_120f", "RTX 5090"], 170, [2.407e9, 1.792e12, 20.0, 700.0]),
    Rates {
        target: "gfx90a",
        processor: "MI250X, one die",
        multiprocessors: 110,
        clock: 1.7e9,
        memory: 1.638e12,
        l2_bytes: 37.0,
        shared_bytes: 128.0,
        matrix: &[
            (Factor::Half, 512.0),
            (Factor::Byte, 512.0),
            (Factor::Single, 128.0),
            (Factor::Double, 128.0),
        ],
        warp_share: 1.0,
        lanes: 64.0,
        f64_share: 1.0,
        special: 16.0,
        latency: 800.0,
        threads: 2048,
        registers: 131_072,
        shared_memory: 64 * KIB,
        shared_reserve: 0,
    },
    Rates {
        target: "gfx942",
        processor: "MI300X",
        multiprocessors: 304,
        clock: 2.1e9,
        memory: 5.3e12,
        l2_bytes: 54.0,
        shared_bytes: 128.0,
        matrix: &[
            (Factor::Half, 1024.0),
            (Factor::Byte, 2048.0),
            (Factor::Single, 128.0),
            (Factor::Double, 128.0),
        ],
        warp_share: 1.0,
        lanes: 128.0,
        f64_share: 0.5,
        special: 16.0,
        latency: 1500.0,
        threads: 2048,
        registers: 131_072,
        shared_memory: 64 * KIB,
        shared_reserve: 0,
    },
    Rates {
        target: "gfx950",
        processor: "MI355X",
        multiprocessors: 256,
        clock: 2.4e9,
        memory: 8.0e12,
        l2_bytes: 64.0,
        shared_bytes: 128.0,
        matrix: &[
            (Factor::Half, 2048.0),
            (Factor::Byte, 4096.0),
            (Factor::Single, 128.0),
            (Factor::Double, 64.0),
        ],
        warp_share: 1.0,
        lanes: 128.0,
        f64_share: 0.5,
        special: 16.0,
        latency: 1500.0,
        threads: 2048,
        registers: 131_072,
        shared_memory: 160 * KIB,
        shared_reserve: 0,
    },
    Rates {
        target: "gfx1100",
        processor: "RX 7900 XTX",
        multiprocessors: 96,
        clock: 2.5e9,
        memory: 0.96e12,
        l2_bytes: 64.0,
        shared_bytes: 128.0,
        matrix: &[(Factor::Half, 256.0), (Factor::Byte, 256.0)],
        warp_share: 1.0,
        lanes: 64.0,
        f64_share: 1.0 / 32.0,
        special: 16.0,
        latency: 1000.0,
        threads: 1024,
        registers: 98_304,
        shared_memory: 64 * KIB,
        shared_reserve: 0,
    },
    Rates {
        target: "gfx1201",
        processor: "RX 9070 XT",
        multiprocessors: 64,
        clock: 2.97e9,
        memory: 0.64e12,
        l2_bytes: 64.0,
        shared_bytes: 128.0,
        matrix: &[(Factor::Half, 512.0), (Factor::Byte, 1024.0)],
        warp_share: 1.0,
        lanes: 64.0,
        f64_share: 1.0 / 32.0,
        special: 16.0,
        latency: 1000.0,
        threads: 1024,
        registers: 98_304,
        shared_memory: 64 * KIB,
        shared_reserve: 0,
    },
];

impl Rates {
    /// A GPU target's rates; `None` for the CPU, which says itself what it has.
    ///
    /// ```
    /// use tile_ir::target::Rates;
    /// let rates = Rates::of("sm_90a").expect("a GPU");
    /// // The datasheet's 989 TFLOP/s of dense bf16.
    /// let peak = 2.0 * rates.matrix[0].1 * f64::from(rates.multiprocessors) * rates.clock;
    /// assert!((peak / 989.5e12 - 1.0).abs() < 0.01);
    /// ```
    pub fn of(target: &str) -> Option<&'static Rates> {
        RATES.iter().find(|rates| rates.target == target)
    }

    /// Products per clock of matrix instructions with these factors.
    pub fn matrix_rate(&self, factor: Factor) -> Option<f64> {
        self.matrix.iter().find(|(known, _)| *known == factor).map(|&(_, rate)| rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Family, TARGETS};

    #[test]
    fn every_gpu_has_a_rate_for_each_of_its_instructions() {
        for target in TARGETS {
            let Some(rates) = Rates::of(target.name) else {
                assert_eq!(target.family, Family::Cpu, "{target} has no rates");
                continue;
            };
            for instruction in
                target.matrix.iter().chain(target.scaling_matrix).chain(target.warpgroup_matrix)
            {
                let rate = rates.matrix_rate(Factor::of(instruction));
                assert!(rate.is_some_and(|rate| rate >= rates.lanes), "{target}: {}", instruction.intrinsic);
            }
            assert!(rates.shared_memory >= target.shared_bytes, "{target}");
        }
    }

    /// TFLOP/s and TB/s of the datasheets.
    #[test]
    fn rates_are_those_of_datasheets() {
        for (target, half, byte) in [
            ("sm_80", 312.0, 624.0),
            ("sm_86", 71.0, 284.0),
            ("sm_89", 165.2, 660.6),
            ("sm_120f", 209.5, 838.0),
            ("sm_90a", 989.5, 1979.0),
            ("gfx90a", 191.5, 191.5),
            ("gfx942", 1307.4, 2614.9),
            ("gfx950", 2516.6, 5033.2),
            ("gfx1100", 122.8, 122.8),
            ("gfx1201", 194.6, 389.3),
        ] {
            let rates = Rates::of(target).unwrap();
            for (factor, expected) in [(Factor::Half, half), (Factor::Byte, byte)] {
                let rate = rates.matrix_rate(factor).unwrap();
                let found = 2.0 * rate * f64::from(rates.multiprocessors) * rates.clock / 1e12;
                assert!((found / expected - 1.0).abs() < 0.01, "{target}: {found} of {expected}");
            }
        }
    }
}
