//! Numbers that launches compute of sizes, natively and on simulated threads, beside Rust's own arithmetic.

use crate::support::{instance, run_native, run_simt_as};
use tile_codegen::Options;
use tile_ir::array::Elements;
use tile_ir::{Array, DType, interp};

/// The kernel writes one extent of `m` and `n`.
fn kernel(extent: &str) -> String {
    format!(
        "kernel @extent(%x: tensor<m x u8>, %z: tensor<n x u8>, %y: mut tensor<1 x i64>) {{
  %vy = partition %y [1] : mut partition<1 x i64, [1]>
  %0 = extent {extent} : index
  %1 = cast %0 : i64
  %2 = splat %1 : tile<1 x i64>
  store_masked %vy, %2
}}
"
    )
}

fn integers(dtype: DType, values: Vec<i128>) -> Array {
    Array::new(dtype, vec![values.len()], Elements::Int(values))
}

/// Extents, and what Rust makes of them; `None` where a divisor isn't positive.
type Case = (&'static str, fn(i64, i64) -> Option<i64>);

const CASES: &[Case] = &[
    ("floor_div(m, n - 2)", |m, n| (n > 2).then(|| m.div_euclid(n - 2))),
    ("ceil_div(m, n - 2)", |m, n| (n > 2).then(|| m.div_euclid(n - 2) + i64::from(m % (n - 2) != 0))),
    ("rem(m, n - 2)", |m, n| (n > 2).then(|| m.rem_euclid(n - 2))),
    ("20 - floor_div(m - 9, n - 2)", |m, n| (n > 2).then(|| 20 - (m - 9).div_euclid(n - 2))),
    ("rem(m - 9, n) + 1", |m, n| (n > 0).then(|| (m - 9).rem_euclid(n) + 1)),
    ("7 - rem(m, n)", |m, n| (n > 0).then(|| 7 - m.rem_euclid(n))),
    ("floor_div(m - 9, 2) + 3", |m, _| Some((m - 9).div_euclid(2) + 3)),
    ("m - 9", |m, _| Some(m - 9)),
];

#[test]
fn an_extent_is_zero_where_it_has_no_value() {
    for (extent, of) in CASES {
        let instance = instance(&kernel(extent), &[]);
        for (m, n) in [(0, 0), (5, 0), (5, 1), (5, 2), (5, 3), (7, 5), (12, 7), (12, 1), (12, 2)] {
            let sizes = [m, n].map(|size| integers(DType::U8, vec![0; size as usize]));
            let arguments: Vec<Array> = sizes.into_iter().chain([integers(DType::I64, vec![-1])]).collect();
            let expected = of(m, n).unwrap_or(0).max(0);
            let mut evaluated = arguments.clone();
            interp::run(&instance, &mut evaluated).unwrap();
            let native = run_native(&instance, &arguments, &Options::default());
            let threads = ["sm_90a", "gfx942"].map(|gpu| run_simt_as(gpu, &instance, &arguments, Some(64)));
            let found = [evaluated, native].into_iter().chain(threads);
            for (way, found) in ["evaluated", "native", "sm_90a", "gfx942"].iter().zip(found) {
                assert_eq!(found[2].get_int(0), expected.into(), "{extent} of {m} and {n}, {way}");
            }
        }
    }
}
