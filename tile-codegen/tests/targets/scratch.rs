//! Kernels whose tiles share scratch memory, are carried around, or are never stored.

use crate::support::{agree, instance, run_native, sample};
use tile_codegen::{Options, jit};
use tile_ir::{Array, DType};

/// A kernel on one block of `x` and `y`, both `r × c`, whose body defines `%out` from `%a`, a tile of `x`.
fn kernel(r: usize, c: usize, dtype: DType, body: &str) -> String {
    let zero = if dtype.is_float() { "0.0" } else { "0" };
    format!(
        "kernel @k(%x: tensor<{r} x {c} x {dtype}>, %y: mut tensor<{r} x {c} x {dtype}>) {{
  %vx = partition %x [{r}, {c}] : partition<{r} x {c} x {dtype}, [{r}, {c}]>
  %vy = partition %y [{r}, {c}] : mut partition<{r} x {c} x {dtype}, [{r}, {c}]>
  %i, %j = block_index %vy : index, index
  %zero = constant {zero} : {dtype}
  %0 = constant 0 : index
  %3 = constant 3 : index
  %a = load_masked %vx[%i, %j] pad %zero : tile<{r} x {c} x {dtype}>
{body}
  store_masked %vy, %out
}}
"
    )
}

fn check(r: usize, c: usize, dtype: DType, body: &str, tolerance: f64) {
    let source = kernel(r, c, dtype, body);
    agree(&source, &[], &[sample(dtype, &[r, c], 1), sample(dtype, &[r, c], 2)], tolerance);
}

#[test]
fn products_of_tiles_that_are_not_stored() {
    for body in [
        "  %s = splat %zero : tile<4 x 4 x f32>\n  %out = mma %a, %s, %a : tile<4 x 4 x f32>",
        "  %n = iota 1 : tile<4 x 4 x f32>\n  %out = mma %n, %a, %n : tile<4 x 4 x f32>",
        "  %r = reduce sum %a axis 0 : tile<1 x 4 x f32>\n  %b = broadcast %r : tile<4 x 4 x f32>
  %out = mma %b, %b, %b : tile<4 x 4 x f32>",
        "  %t = permute %a [1, 0] : tile<4 x 4 x f32>\n  %out = mma %t, %a, %t : tile<4 x 4 x f32>",
        "  %out = mma %a, %a, %a : tile<4 x 4 x f32>",
    ] {
        check(4, 4, DType::F32, body, 0.0);
    }
}

/// Of tiles that aren't the same along an axis, so that a loop over the joined one would need the place on each.
#[test]
fn rows_that_are_joined_and_split() {
    for body in [
        "  %n = iota 1 : tile<6 x 20 x f32>\n  %d = mul %a, %n : tile<6 x 20 x f32>
  %r = reshape %d : tile<1 x 120 x f32>\n  %s = reduce sum %r axis 1 : tile<1 x 1 x f32>
  %b = broadcast %s : tile<6 x 20 x f32>\n  %out = add %a, %b : tile<6 x 20 x f32>",
        "  %r = reshape %a : tile<2 x 60 x f32>\n  %n = iota 1 : tile<2 x 60 x f32>
  %d = mul %r, %n : tile<2 x 60 x f32>\n  %s = reshape %d : tile<3 x 2 x 1 x 4 x 5 x f32>
  %m = iota 4 : tile<3 x 2 x 1 x 4 x 5 x f32>\n  %e = add %s, %m : tile<3 x 2 x 1 x 4 x 5 x f32>
  %out = reshape %e : tile<6 x 20 x f32>",
    ] {
        check(6, 20, DType::F32, body, 1e-5);
    }
}

#[test]
fn factors_that_are_turned_once_they_are_computed() {
    let body = "  %n = iota 1 : tile<20 x 20 x f32>\n  %d = sub %n, %a : tile<20 x 20 x f32>
  %t = permute %d [1, 0] : tile<20 x 20 x f32>\n  %e = add %a, %n : tile<20 x 20 x f32>
  %u = permute %e [1, 0] : tile<20 x 20 x f32>\n  %z = splat %zero : tile<20 x 20 x f32>
  %out = mma %u, %t, %z : tile<20 x 20 x f32>";
    check(20, 20, DType::F32, body, 1e-5);
}

#[test]
fn carried_tiles_change_places() {
    // Two cycles of different shapes, and one of three with a tile computed on the way.
    let two = "\
  %r = reduce sum %a axis 0 : tile<1 x 5 x f32>
  %s = neg %r : tile<1 x 5 x f32>
  %b = neg %a : tile<3 x 5 x f32>
  %a2, %b2, %r2, %s2 = for %k = %0 to %3 carry (%pa = %a, %pb = %b, %pr = %r, %ps = %s) : tile<3 x 5 x f32>, tile<3 x 5 x f32>, tile<1 x 5 x f32>, tile<1 x 5 x f32> {
    yield %pb, %pa, %ps, %pr
  }
  %rb = broadcast %r2 : tile<3 x 5 x f32>
  %sum = add %a2, %rb : tile<3 x 5 x f32>
  %out = mul %sum, %b2 : tile<3 x 5 x f32>";
    let three = "\
  %b = neg %a : tile<3 x 5 x f32>
  %p, %q, %r = for %k = %0 to %3 carry (%pa = %a, %pb = %b, %pc = %a) : tile<3 x 5 x f32>, tile<3 x 5 x f32>, tile<3 x 5 x f32> {
    %d = add %pa, %pb : tile<3 x 5 x f32>
    yield %pb, %d, %pb
  }
  %s = sub %p, %q : tile<3 x 5 x f32>
  %out = add %s, %r : tile<3 x 5 x f32>";
    let identity_broadcasts = "\
  %b = neg %a : tile<3 x 5 x f32>
  %p, %q = for %k = %0 to %3 carry (%pa = %a, %pb = %b) : tile<3 x 5 x f32>, tile<3 x 5 x f32> {
    %c = broadcast %pa : tile<3 x 5 x f32>
    %d = broadcast %pb : tile<3 x 5 x f32>
    yield %d, %c
  }
  %twice = add %p, %p : tile<3 x 5 x f32>
  %out = add %twice, %q : tile<3 x 5 x f32>";
    let one_value_twice = "\
  %p, %q = for %k = %0 to %3 carry (%pa = %a, %pb = %a) : tile<3 x 5 x f32>, tile<3 x 5 x f32> {
    %c = add %pa, %pb : tile<3 x 5 x f32>
    yield %c, %c
  }
  %o = sub %p, %a : tile<3 x 5 x f32>
  %out = add %o, %q : tile<3 x 5 x f32>";
    for body in [two, three, identity_broadcasts, one_value_twice] {
        check(3, 5, DType::F32, body, 0.0);
    }
}

#[test]
fn updates_in_place_read_before_they_write() {
    // Each reads its own operand at another place than it writes, or needs it again later.
    for body in [
        "  %t = permute %a [1, 0] : tile<6 x 6 x i32>\n  %out = sub %a, %t : tile<6 x 6 x i32>",
        "  %b = not %a : tile<6 x 6 x i32>\n  %c = permute %b [1, 0] : tile<6 x 6 x i32>\n  %d = xor %b, %c : tile<6 x 6 x i32>
  %out = add %d, %a : tile<6 x 6 x i32>",
        "  %f = reshape %a : tile<4 x 9 x i32>\n  %g = not %f : tile<4 x 9 x i32>\n  %h = reshape %g : tile<6 x 6 x i32>
  %out = mul %h, %a : tile<6 x 6 x i32>",
        "  %r = reduce max %a axis 0 : tile<1 x 6 x i32>\n  %b = broadcast %r : tile<6 x 6 x i32>\n  %out = sub %a, %b : tile<6 x 6 x i32>",
        "  %s = for %k = %0 to %3 carry (%p = %a) : tile<6 x 6 x i32> {
    %t = permute %p [1, 0] : tile<6 x 6 x i32>\n    %u = add %p, %t : tile<6 x 6 x i32>\n    yield %u\n  }
  %out = sub %s, %a : tile<6 x 6 x i32>",
    ] {
        check(6, 6, DType::I32, body, 0.0);
    }
}

#[test]
fn sums_of_short_floats_round_once() {
    // 600 ones: a running bf16 sum would stop at 256, an f16 sum of 3000 at 2048.
    for (dtype, count) in [(DType::BF16, 600), (DType::F16, 3000)] {
        for axis in [0, 1] {
            let (r, c) = if axis == 0 { (count, 3) } else { (3, count) };
            let one = if axis == 0 { [1, c] } else { [r, 1] };
            let body = format!(
                "  %l = constant 1.0 : {dtype}\n  %o = splat %l : tile<{r} x {c} x {dtype}>
  %s = reduce sum %o axis {axis} : tile<{} x {} x {dtype}>\n  %out = broadcast %s : tile<{r} x {c} x {dtype}>",
                one[0], one[1]
            );
            check(r, c, dtype, &body, 0.0);
        }
    }
}

#[test]
fn reductions_of_nothing_but_nan_and_of_signed_zeros() {
    let body = "\
  %n = constant nan : f32
  %t = splat %n : tile<2 x 40 x f32>
  %m = reduce max %t axis 1 : tile<2 x 1 x f32>
  %z = constant -0.0 : f32
  %u = splat %z : tile<2 x 40 x f32>
  %s = reduce sum %u axis 1 : tile<2 x 1 x f32>
  %one = constant 1.0 : f32
  %ones = splat %one : tile<2 x 1 x f32>
  %q = div %ones, %s : tile<2 x 1 x f32>
  %r = max %m, %q : tile<2 x 1 x f32>
  %rb = broadcast %r : tile<2 x 40 x f32>
  %out = add %rb, %a : tile<2 x 40 x f32>";
    let source = kernel(2, 40, DType::F32, body);
    let arguments = [sample(DType::F32, &[2, 40], 1), sample(DType::F32, &[2, 40], 2)];
    let result = run_native(&instance(&source, &[]), &arguments, &Options::default());
    assert_eq!(result[1].get_f64(7), f64::NEG_INFINITY, "1 / -0, because -0 + -0 is -0");
}

/// Bytes of scratch memory of a body on 32 × 32 tiles of f32, in tiles.
fn tiles_of_scratch(body: &str) -> u64 {
    let instance = instance(&kernel(32, 32, DType::F32, body), &[]);
    jit::compile_cpu(&instance, &Options::default()).unwrap().launch().scratch_bytes.div_ceil(32 * 32 * 4)
}

#[test]
fn scratch_memory_is_reused() {
    let unary = |count: usize| -> String {
        let mut body = String::new();
        for i in 0..count {
            let from = if i == 0 { "%a".to_owned() } else { format!("%p{}", i - 1) };
            body += &format!(
                "  %n{i} = neg {from} : tile<32 x 32 x f32>\n  %p{i} = permute %n{i} [1, 0] : tile<32 x 32 x f32>\n  %q{i} = add %p{i}, %p{i} : tile<32 x 32 x f32>\n"
            );
        }
        body + &format!("  %out = neg %p{} : tile<32 x 32 x f32>", count - 1)
    };
    assert!(tiles_of_scratch(&unary(8)) <= 3, "{}", tiles_of_scratch(&unary(8)));
    // The accumulator is the initial value, the parameter, the product and the result. The other two are the tile that is
    // both factors, and as the product's second factor is packed.
    let accumulator = "\
  %out = for %k = %0 to %3 carry (%acc = %a) : tile<32 x 32 x f32> {
    %b = load_masked %vx[%k, %k] pad %zero : tile<32 x 32 x f32>
    %half = constant 0.5 : f32
    %h = splat %half : tile<32 x 32 x f32>
    %scaled = mul %acc, %h : tile<32 x 32 x f32>
    %next = mma %b, %b, %scaled : tile<32 x 32 x f32>
    yield %next
  }";
    assert_eq!(tiles_of_scratch(accumulator), 3);
}

#[test]
fn extents_below_zero_read_as_zero() {
    let source = "\
kernel @k(%y: mut tensor<n x i64>) {
  %v = partition %y [4] : mut partition<n x i64, [4]>
  %e = extent n - 5 : index
  %c = extent ceil_div(n - 5, 2) : index
  %s = add %e, %c : index
  %t = cast %s : i64
  %out = splat %t : tile<4 x i64>
  store_masked %v, %out
}
";
    for n in [1, 4, 5, 6, 8, 9] {
        agree(source, &[], &[Array::iota(DType::I64, &[n], 0)], 0.0);
    }
}
