//! Which loops become pipelines, and what of them.

use super::super::{print, schedule};
use crate::{Binding, TargetDesc, specialize, text, verify};

const MATMUL: &str = "\
kernel @matmul<M, N, K>(%a: tensor<m x k x bf16>, %b: tensor<k x n x bf16>, %c: mut tensor<m x n x f32>) where \"k % 64 == 0\": rem(k, 64) eq 0, \"n % 8 == 0\": rem(n, 8) eq 0 {
  %va = partition %a [M, K] : partition<m x k x bf16, [M, K]>
  %vb = partition %b [K, N] : partition<k x n x bf16, [K, N]>
  %vc = partition %c [M, N] : mut partition<m x n x f32, [M, N]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : bf16
  %none = constant 0.0 : f32
  %zero = splat %none : tile<M x N x f32>
  %1 = constant 0 : index
  %2 = extent ceil_div(k, K) : index
  %sum = for %p = %1 to %2 carry (%acc = %zero) : tile<M x N x f32> {
    %ta = load_masked %va[%i, %p] pad %pad : tile<M x K x bf16>
    %tb = load_masked %vb[%p, %j] pad %pad : tile<K x N x bf16>
    %next = mma %ta, %tb, %acc : tile<M x N x f32>
    yield %next
  }
  store_masked %vc, %sum
}
";

fn scheduled(source: &str, bindings: &[(&str, usize)]) -> String {
    let kernel = verify(text::parse(source).unwrap_or_else(|error| panic!("{error}"))).unwrap();
    let bindings: Vec<_> =
        bindings.iter().map(|&(name, value)| (name.to_owned(), Binding::Const(value))).collect();
    let instance = crate::passes::optimize(specialize(&kernel, &bindings).unwrap());
    print(&schedule(instance, TargetDesc::named("sm_90a").unwrap(), None))
}

#[test]
fn tiles_of_a_product_are_copied_ahead() {
    insta::assert_snapshot!(scheduled(MATMUL, &[("M", 128), ("N", 256), ("K", 64)]));
}

/// The product of a and of what `factor` makes b, summed in `sum`.
fn matmul_of(dtype: &str, sum: &str, b: [&str; 3]) -> super::super::Scheduled {
    let [ty, loaded, index] = b;
    let turned = if ty == "n x k" { "    %tt = permute %tb [1, 0] : tile<K x N x bf16>\n" } else { "" };
    let source = MATMUL
        .replace("k x n x bf16", &format!("{ty} x bf16"))
        .replace("[K, N] : partition", &format!("[{loaded}] : partition"))
        .replace("bf16, [K, N]>", &format!("bf16, [{loaded}]>"))
        .replace("load_masked %vb[%p, %j] pad %pad : tile<K x N x bf16>\n", &{
            let loaded = loaded.replace(", ", " x ");
            format!("load_masked %vb[{index}] pad %pad : tile<{loaded} x bf16>\n{turned}")
        })
        .replace("mma %ta, %tb,", if turned.is_empty() { "mma %ta, %tb," } else { "mma %ta, %tt," })
        .replace("x f32", &format!("x {sum}"))
        .replace("0.0 : f32", &format!("{} : {sum}", if sum == "i32" { "0" } else { "0.0" }))
        .replace("0.0 : bf16", &format!("{} : bf16", if sum == "i32" { "0" } else { "0.0" }))
        .replace("n % 8 == 0\": rem(n, 8)", "n % 16 == 0\": rem(n, 16)")
        .replace("bf16", dtype);
    let kernel = verify(text::parse(&source).unwrap_or_else(|error| panic!("{error}"))).unwrap();
    let bindings = ["M", "N", "K"].map(|name| (name.to_owned(), Binding::Const(64)));
    let instance = crate::passes::optimize(specialize(&kernel, &bindings).unwrap());
    schedule(instance, TargetDesc::named("sm_90a").unwrap(), None)
}

const ACROSS: [&str; 3] = ["k x n", "K, N", "%p, %j"];
const ALONG: [&str; 3] = ["n x k", "N, K", "%j, %p"];

#[test]
fn factors_of_8_bits_that_lie_across_are_remarked_upon() {
    let scheduled = matmul_of("i8", "i32", ACROSS);
    assert!(
        scheduled.pipelines().is_empty()
            && scheduled.walk().into_iter().any(|op| scheduled.product(op).is_some())
    );
    let messages: Vec<&str> = scheduled.remarks().iter().map(|remark| remark.message.as_str()).collect();
    let message = "a product isn't done by warpgroups, which take factors of i8 along the depth of the product, and \
                   `b` has them across it; pass that transposed";
    assert_eq!(messages, [message]);
    let along = matmul_of("i8", "i32", ALONG);
    assert!(!along.pipelines().is_empty() && along.remarks().is_empty());
}

#[test]
fn sums_of_a_turn_of_8_bit_floats_begin_at_zero() {
    insta::assert_snapshot!(print(&matmul_of("f8e4m3fn", "f32", ALONG)));
}

#[test]
fn narrow_sums_are_no_warpgroups() {
    assert!(matmul_of("f16", "f16", ACROSS).pipelines().is_empty());
    assert!(!matmul_of("f16", "f32", ACROSS).pipelines().is_empty());
}

/// Of a product in tiles of 128 by 128 whose sums are stored in a format.
fn matrices_of_store(dtype: &str) -> Option<(u64, bool)> {
    let source = MATMUL.replace("mut tensor<m x n x f32>", &format!("mut tensor<m x n x {dtype}>"));
    let source = source.replace("mut partition<m x n x f32", &format!("mut partition<m x n x {dtype}"));
    let source = source.replace(
        "  store_masked %vc, %sum\n",
        &format!("  %stored = cast %sum : tile<M x N x {dtype}>\n  store_masked %vc, %stored\n"),
    );
    let kernel = verify(text::parse(&source).unwrap_or_else(|error| panic!("{error}"))).unwrap();
    let bindings = [("M", 128), ("N", 128), ("K", 64)];
    let bindings = bindings.map(|(name, value)| (name.to_owned(), Binding::Const(value)));
    let instance = crate::passes::optimize(specialize(&kernel, &bindings).unwrap());
    let scheduled = schedule(instance, TargetDesc::named("sm_90a").unwrap(), None);
    let store = scheduled.walk().into_iter().find_map(|op| scheduled.pipelines().store(op));
    let matrices = &store.expect("a copy stores the sums").matrices;
    matrices.as_ref().map(|matrices| (matrices.matrices, matrices.transposed))
}

#[test]
fn sums_of_16_bits_are_stored_by_matrices() {
    assert_eq!(matrices_of_store("bf16"), Some((4, false)));
    assert_eq!(matrices_of_store("f16"), Some((4, false)));
    assert_eq!(matrices_of_store("f32"), None);
}

const ATTENTION: &str = "\
kernel @attention(%q: tensor<h x s x 128 x bf16>, %k: tensor<h x t x 128 x bf16>, %v: tensor<h x t x 128 x bf16>, %o: mut tensor<h x s x 128 x f32>) {
  %vq = partition %q [1, 128, 128] : partition<h x s x 128 x bf16, [1, 128, 128]>
  %vk = partition %k [1, 64, 128] : partition<h x t x 128 x bf16, [1, 64, 128]>
  %vv = partition %v [1, 64, 128] : partition<h x t x 128 x bf16, [1, 64, 128]>
  %vo = partition %o [1, 128, 128] : mut partition<h x s x 128 x f32, [1, 128, 128]>
  %h, %i, %j = block_index %vo : index, index, index
  %pad = constant 0.0 : bf16
  %zero = constant 0.0 : f32
  %0 = constant 0 : index
  %tq = load_masked %vq[%h, %i, %0] pad %pad : tile<1 x 128 x 128 x bf16>
  %query = reshape %tq : tile<128 x 128 x bf16>
  %none = splat %zero : tile<128 x 128 x f32>
  %end = extent ceil_div(t, 64) : index
  %sum = for %p = %0 to %end carry (%acc = %none) : tile<128 x 128 x f32> {
    %tk = load_masked %vk[%h, %p, %0] pad %pad : tile<1 x 64 x 128 x bf16>
    %tv = load_masked %vv[%h, %p, %0] pad %pad : tile<1 x 64 x 128 x bf16>
    %key = reshape %tk : tile<64 x 128 x bf16>
    %value = reshape %tv : tile<64 x 128 x bf16>
    %turned = permute %key [1, 0] : tile<128 x 64 x bf16>
    %start = splat %zero : tile<128 x 64 x f32>
    %scores = mma %query, %turned, %start : tile<128 x 64 x f32>
    %most = reduce max %scores axis 1 : tile<128 x 1 x f32>
    %all = broadcast %most : tile<128 x 64 x f32>
    %less = sub %scores, %all : tile<128 x 64 x f32>
    %weights = exp2 %less : tile<128 x 64 x f32>
    %narrow = cast %weights : tile<128 x 64 x bf16>
    %next = mma %narrow, %value, %acc : tile<128 x 128 x f32>
    yield %next
  }
  %out = reshape %sum : tile<1 x 128 x 128 x f32>
  store_masked %vo, %out
}
";

#[test]
fn keys_and_values_are_copied_ahead() {
    insta::assert_snapshot!(scheduled(ATTENTION, &[]));
}
