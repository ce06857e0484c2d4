//! Ops whose code depends on extents, on random shapes (ones, primes, more than a block has threads), natively and on
//! simulated threads, bit by bit: what is summed is so small that no order rounds. Cases end early where there is no time.

use crate::deadline;
use crate::lines::{check, kernel, mode_words, product};
use crate::support::sample;
use proptest::prelude::*;
use tile_ir::array::Elements;
use tile_ir::ops::infer::mma_accumulators;
use tile_ir::ops::{Domain, ReduceOp, ScanMode};
use tile_ir::{Array, DType};

/// Formats that an op accepts.
fn accepted(domain: Domain) -> Vec<DType> {
    DType::ALL.iter().copied().filter(|dtype| dtype.is_element() && domain.accepts(*dtype)).collect()
}

fn extent() -> impl Strategy<Value = usize> {
    prop_oneof![1 => Just(1usize), 3 => 2usize..=9, 2 => prop::sample::select(vec![11usize, 13, 17, 31, 37, 64, 127])]
}

/// A shape of up to three axes and at most 4096 elements, and one of its axes.
fn shapes() -> impl Strategy<Value = (Vec<usize>, usize)> {
    let shapes = prop::collection::vec(extent(), 1..=3);
    let small = shapes.prop_filter("too large", |shape| shape.iter().product::<usize>() <= 4096);
    (small, 0usize..3).prop_map(|(shape, axis)| {
        let axis = axis % shape.len();
        (shape, axis)
    })
}

/// An op of these, and a format that it accepts.
fn reductions(ops: Vec<ReduceOp>) -> impl Strategy<Value = (ReduceOp, DType)> {
    prop::sample::select(ops).prop_flat_map(|op| (Just(op), prop::sample::select(accepted(op.domain()))))
}

/// Small numbers; 1 and −1 for products of floats, which would round.
fn input(op: ReduceOp, dtype: DType, shape: &[usize]) -> Array {
    let plain = sample(dtype, shape, 1);
    match plain.elements() {
        Elements::Float(values) if op == ReduceOp::Prod => {
            let signs = values.iter().map(|&value| 1f64.copysign(value)).collect();
            Array::new(dtype, shape.to_vec(), Elements::Float(signs))
        }
        _ => plain,
    }
}

/// As many as a change waits for; `cargo xtask fuzz` goes through these again and again, from other numbers.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, max_shrink_iters: 60, ..ProptestConfig::with_cases(24) }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn reductions_of_any_shape((shape, axis) in shapes(), (op, dtype) in reductions(ReduceOp::ALL.to_vec())) {
        if deadline::is_past() {
            return Ok(());
        }
        let mut result = shape.clone();
        result[axis] = 1;
        let body = format!("  %r0 = reduce {} %a axis {axis} : tile<{}{dtype}>", op.name(), product(&result));
        let source = kernel(dtype, &shape, &[(dtype, &result)], &body);
        check(&source, &[input(op, dtype, &shape), sample(dtype, &result, 2)], &[]);
    }

    #[test]
    fn scans_of_any_shape(
        (shape, axis) in shapes(),
        (op, dtype) in reductions(ReduceOp::ALL.iter().copied().filter(|op| op.scan_method().is_some()).collect()),
        mode in prop::sample::select(ScanMode::ALL),
    ) {
        if deadline::is_past() {
            return Ok(());
        }
        let words = mode_words(mode);
        let body = format!("  %r0 = scan {} %a axis {axis}{words} : tile<{}{dtype}>", op.name(), product(&shape));
        let source = kernel(dtype, &shape, &[(dtype, &shape)], &body);
        check(&source, &[input(op, dtype, &shape), sample(dtype, &shape, 2)], &[]);
    }

    #[test]
    fn sorts_of_any_shape(
        (shape, axis) in shapes(),
        dtype in prop::sample::select(accepted(Domain::Number)),
        descending in any::<bool>(),
        kept in 1usize..=127,
    ) {
        if deadline::is_past() {
            return Ok(());
        }
        let mut result = shape.clone();
        result[axis] = kept.min(shape[axis]);
        let words = if descending { " descending" } else { "" };
        let extents = product(&result);
        let body =
            format!("  %r0, %r1 = sort %a axis {axis}{words} : tile<{extents}{dtype}>, tile<{extents}i32>");
        let source = kernel(dtype, &shape, &[(dtype, &result), (DType::I32, &result)], &body);
        let outputs = [sample(dtype, &result, 2), sample(DType::I32, &result, 3)];
        let [values, places] = outputs;
        check(&source, &[sample(dtype, &shape, 1), values, places], &[]);
    }

    /// The indices are the numbers themselves: some negative, some beyond the axis.
    #[test]
    fn gathers_of_any_shape(
        (shape, axis) in shapes(),
        dtype in prop::sample::select(accepted(Domain::Number)),
        count in 1usize..=127,
    ) {
        if deadline::is_past() {
            return Ok(());
        }
        let mut result = shape.clone();
        result[axis] = count.min(shape[axis]);
        let zero = if dtype.is_float() { "0.0" } else { "0" };
        let (whole, found) = (product(&shape), product(&result));
        let starts = vec![0; shape.len()];
        let body = format!(
            "  %fill = constant {zero} : {dtype}\n  %all = cast %a : tile<{whole}i32>
  %some = extract %all {starts:?} : tile<{found}i32>\n  %r0 = gather %a, %some, %fill axis {axis} : tile<{found}{dtype}>"
        );
        let source = kernel(dtype, &shape, &[(dtype, &result)], &body);
        check(&source, &[sample(dtype, &shape, 1), sample(dtype, &result, 2)], &[]);
    }

    #[test]
    fn products_of_any_shape(
        (left, right, total) in prop::sample::select(products()),
        batch in 1usize..=3,
        [m, n, k] in [extent(), extent(), extent()],
    ) {
        if deadline::is_past() {
            return Ok(());
        }
        prop_assume!(m * n * k <= 40_000);
        // Factors of one product lie in shared memory together, of which AMD's blocks have 64 KiB.
        prop_assume!(batch * k * (m * left.bytes() + n * right.bytes()) <= 62 * 1024);
        crate::contract::check(left, right, total, [batch, m, n, k], 0.0);
    }
}

/// The formats that `mma` multiplies exactly: sums in f16 round.
fn products() -> Vec<(DType, DType, DType)> {
    let pairs = DType::ALL.iter().flat_map(|&left| DType::ALL.iter().map(move |&right| (left, right)));
    let all = pairs.flat_map(|(left, right)| {
        mma_accumulators(left, right).iter().map(move |&total| (left, right, total))
    });
    all.filter(|(.., total)| *total != DType::F16).collect()
}
