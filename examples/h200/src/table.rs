//! The rows: what is measured, at which sizes.

use crate::problem::Problem;
use crate::problems::{
    Attention, Decode, DecodeInParts, GeluFused, Gemm, Gemv, Kind, Linear, RmsNorm, Skinny, Softmax,
    SoftmaxInPieces, Sum, Transpose,
};
use serde_json::{Value, json};
use tile::ir::DType;

/// Something that is measured.
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// Its number in the benchmark's protocol; a number has several rows.
    pub number: u32,
    /// What is measured.
    pub problem: &'static dyn Problem,
    /// The same kernels at sizes that plain loops can check: with tiles that are whole and tiles that aren't, with rows
    /// that are aligned and, where the kernel takes them, rows that aren't.
    pub small: &'static [&'static dyn Problem],
}

/// What the protocol has and this benchmark doesn't.
pub struct LeftOut {
    /// What it is.
    pub what: &'static str,
    /// Why it is left out.
    pub reason: &'static str,
}

/// Everything that isn't measured.
pub const LEFT_OUT: &[LeftOut] = &[LeftOut {
    what: "grouped GEMM bf16, 64 groups of unlike size",
    reason: "a group's first row is data, and a tile that is written lies at a place known when the kernel is launched",
}];

const fn gemm(kind: Kind, m: usize, n: usize, k: usize) -> Gemm {
    Gemm { kind, m, n, k }
}

const SMALL_NN: &[&dyn Problem] = &[&gemm(Kind::Nn, 130, 272, 144), &gemm(Kind::Nn, 70, 261, 70)];
const SMALL_NT: &[&dyn Problem] = &[&gemm(Kind::Nt, 130, 272, 144), &gemm(Kind::Nt, 70, 261, 70)];

const fn attention(heads: usize, shared: usize, length: usize, width: usize, causal: bool) -> Attention {
    Attention { heads, shared, queries: length, keys: length, width, causal }
}

const fn transpose(dtype: DType, rows: usize, columns: usize) -> Transpose {
    Transpose { dtype, rows, columns }
}

/// The rows, in the order of the protocol.
pub const ROWS: &[Row] = &[
    Row { name: "gemm-nn-4096", number: 1, problem: &gemm(Kind::Nn, 4096, 4096, 4096), small: SMALL_NN },
    Row { name: "gemm-nt-4096", number: 1, problem: &gemm(Kind::Nt, 4096, 4096, 4096), small: SMALL_NT },
    Row { name: "gemm-nt-8192", number: 2, problem: &gemm(Kind::Nt, 8192, 8192, 8192), small: SMALL_NT },
    Row {
        name: "gemm-nn-1024",
        number: 3,
        problem: &gemm(Kind::NnSmall, 1024, 1024, 1024),
        small: &[&gemm(Kind::NnSmall, 130, 144, 144), &gemm(Kind::NnSmall, 70, 133, 70)],
    },
    Row { name: "gemm-nn-2048", number: 3, problem: &gemm(Kind::Nn, 2048, 2048, 2048), small: SMALL_NN },
    Row { name: "gemm-nn-llm", number: 4, problem: &gemm(Kind::Nn, 4096, 14336, 4096), small: SMALL_NN },
    Row { name: "gemm-nn-ragged", number: 4, problem: &gemm(Kind::Nn, 4000, 4104, 4090), small: SMALL_NN },
    Row {
        name: "linear-gelu-residual",
        number: 5,
        problem: &Linear { m: 8192, n: 8192, k: 4096 },
        small: &[&Linear { m: 130, n: 144, k: 144 }, &Linear { m: 70, n: 133, k: 70 }],
    },
    Row {
        name: "gemm-f8-8192",
        number: 6,
        problem: &gemm(Kind::NtF8, 8192, 8192, 8192),
        small: &[&gemm(Kind::NtF8, 130, 272, 272), &gemm(Kind::NtF8, 70, 261, 70)],
    },
    Row {
        name: "gemm-f8-8192-fast",
        number: 6,
        problem: &gemm(Kind::NtF8Fast, 8192, 8192, 8192),
        small: &[&gemm(Kind::NtF8Fast, 130, 272, 272), &gemm(Kind::NtF8Fast, 70, 261, 70)],
    },
    Row {
        name: "gemv-57344",
        number: 7,
        problem: &Gemv { n: 57344, k: 7168 },
        small: &[&Gemv { n: 20, k: 1040 }, &Gemv { n: 20, k: 1031 }],
    },
    Row {
        name: "gemv-8192",
        number: 7,
        problem: &Gemv { n: 8192, k: 8192 },
        small: &[&Gemv { n: 16, k: 2048 }],
    },
    Row {
        name: "skinny-57344",
        number: 7,
        problem: &Skinny { m: 16, n: 57344, k: 7168 },
        small: &[&Skinny { m: 16, n: 144, k: 272 }, &Skinny { m: 9, n: 70, k: 133 }],
    },
    Row {
        name: "skinny-8192",
        number: 7,
        problem: &Skinny { m: 16, n: 8192, k: 8192 },
        small: &[&Skinny { m: 16, n: 128, k: 256 }],
    },
    Row {
        name: "attention-128",
        number: 8,
        problem: &attention(32, 32, 8192, 128, false),
        small: &[
            &attention(2, 2, 256, 128, false),
            &Attention { heads: 4, shared: 2, queries: 130, keys: 150, width: 128, causal: false },
        ],
    },
    Row {
        name: "attention-128-causal",
        number: 9,
        problem: &attention(16, 16, 16384, 128, true),
        small: &[&attention(1, 1, 256, 128, true), &attention(2, 2, 150, 128, true)],
    },
    Row {
        name: "attention-128-causal-gqa",
        number: 9,
        problem: &attention(32, 8, 4096, 128, true),
        small: &[&attention(4, 2, 150, 128, true)],
    },
    Row {
        name: "attention-64-causal",
        number: 10,
        problem: &attention(64, 64, 8192, 64, true),
        small: &[&attention(1, 1, 256, 64, true), &attention(2, 1, 150, 64, true)],
    },
    Row {
        name: "decode",
        number: 11,
        problem: &Decode { heads: 256, group: 4, keys: 8192 },
        small: &[&Decode { heads: 2, group: 4, keys: 1100 }, &Decode { heads: 1, group: 3, keys: 64 }],
    },
    Row {
        name: "decode-long",
        number: 11,
        problem: &DecodeInParts(Decode { heads: 32, group: 4, keys: 65536 }),
        small: &[
            &DecodeInParts(Decode { heads: 2, group: 4, keys: 4500 }),
            &DecodeInParts(Decode { heads: 1, group: 3, keys: 64 }),
        ],
    },
    Row {
        name: "softmax-8192",
        number: 12,
        problem: &Softmax { rows: 16384, width: 8192 },
        small: &[&Softmax { rows: 3, width: 8192 }],
    },
    Row {
        name: "rmsnorm-8192",
        number: 12,
        problem: &RmsNorm { rows: 16384 },
        small: &[&RmsNorm { rows: 3 }],
    },
    Row {
        name: "softmax-131072",
        number: 12,
        problem: &Softmax { rows: 4096, width: 131_072 },
        small: &[&Softmax { rows: 3, width: 131_072 }],
    },
    Row {
        name: "softmax-131072-pieces",
        number: 12,
        problem: &SoftmaxInPieces { rows: 4096, width: 131_072 },
        small: &[&SoftmaxInPieces { rows: 3, width: 16384 }],
    },
    Row {
        name: "gelu-fused",
        number: 13,
        problem: &GeluFused { elements: 1 << 28 },
        small: &[&GeluFused { elements: 8192 }, &GeluFused { elements: 4321 }],
    },
    Row {
        name: "sum",
        number: 13,
        problem: &Sum { rows: 4096, width: 262_144 },
        small: &[&Sum { rows: 64, width: 8192 }, &Sum { rows: 5, width: 4321 }],
    },
    Row {
        name: "transpose-f32",
        number: 14,
        problem: &transpose(DType::F32, 16384, 16384),
        small: &[&transpose(DType::F32, 144, 80), &transpose(DType::F32, 70, 131)],
    },
    Row {
        name: "transpose-bf16",
        number: 14,
        problem: &transpose(DType::BF16, 16384, 16384),
        small: &[&transpose(DType::BF16, 144, 80), &transpose(DType::BF16, 70, 131)],
    },
];

impl Row {
    /// The sizes of the row: the measured one, then those that are checked.
    pub fn sizes(&self) -> impl Iterator<Item = &'static dyn Problem> {
        std::iter::once(self.problem).chain(self.small.iter().copied())
    }
}

/// The rows for other programs: of each its name and number, and of each of its sizes the tensors (name, format, shape,
/// and whether they are input, scratch or output), floating-point operations and bytes moved.
pub fn description() -> Value {
    let size = |problem: &dyn Problem| {
        let tensors: Vec<Value> = problem
            .tensors()
            .iter()
            .map(|spec| {
                json!({"name": spec.name, "dtype": spec.dtype.name(), "shape": spec.shape, "role": spec.role.name()})
            })
            .collect();
        json!({"tensors": tensors, "operations": problem.operations(), "bytes": problem.bytes()})
    };
    let row = |row: &Row| {
        let sizes: Vec<Value> = row.sizes().map(size).collect();
        json!({"name": row.name, "number": row.number, "sizes": sizes})
    };
    let left_out = |left: &LeftOut| json!({"what": left.what, "reason": left.reason});
    json!({
        "rows": ROWS.iter().map(row).collect::<Vec<_>>(),
        "left_out": LEFT_OUT.iter().map(left_out).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_number_of_the_protocol_has_rows_that_are_told_apart() {
        let numbers: BTreeSet<u32> = ROWS.iter().map(|row| row.number).collect();
        assert_eq!(numbers, (1..=14).collect());
        let names: BTreeSet<&str> = ROWS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), ROWS.len());
        assert!(ROWS.iter().all(|row| !row.small.is_empty()));
    }

    /// By hand: what has to be computed and moved.
    #[test]
    fn work_is_counted() {
        let row = |name: &str| ROWS.iter().find(|row| row.name == name).unwrap().problem;
        assert_eq!(row("gemm-nn-4096").operations(), Some(137_438_953_472.0));
        // 4·2·16·8192²·128.
        assert_eq!(row("attention-128").operations(), Some(1_099_511_627_776.0));
        // Half of 4·32·4096²·128.
        assert_eq!(row("attention-128-causal-gqa").operations(), Some(137_438_953_472.0));
        assert_eq!(row("softmax-8192").bytes(), 2.0 * 2.0 * 16384.0 * 8192.0);
        assert_eq!(row("sum").bytes(), 4.0 * 1_073_741_824.0 + 4.0);
        // Keys and values of 32 sequences, 8 heads of them, and the queries and results of 32 heads.
        assert_eq!(row("decode").bytes(), 2.0 * 2.0 * (32.0 * 8.0 * 8192.0 * 128.0 + 32.0 * 32.0 * 128.0));
    }
}
