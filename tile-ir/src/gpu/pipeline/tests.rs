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
