//! Schedules as a person reads them, and what holds of every one.

use super::*;
use crate::{Binding, specialize, text, verify};

fn scheduled(source: &str, bindings: &[(&str, usize)], target: &str) -> Scheduled {
    let kernel = text::parse(source).unwrap_or_else(|error| panic!("{error}"));
    let kernel = verify(kernel).unwrap_or_else(|errors| panic!("{errors:?}"));
    let bindings: Vec<_> =
        bindings.iter().map(|&(name, value)| (name.to_owned(), Binding::Const(value))).collect();
    let instance = specialize(&kernel, &bindings).unwrap_or_else(|error| panic!("{error}"));
    let instance = crate::passes::optimize(instance);
    schedule(instance, TargetDesc::named(target).unwrap(), None)
}

#[test]
fn a_softmax_keeps_its_rows_in_registers() {
    let source = "\
kernel @softmax<B>(%x: tensor<m x n x f32>, %y: mut tensor<m x n x f32>) where \"n % 4 == 0\": rem(n, 4) eq 0 {
  %vx = partition %x [4, B] : partition<m x n x f32, [4, B]>
  %vy = partition %y [4, B] : mut partition<m x n x f32, [4, B]>
  %i, %j = block_index %vy : index, index
  %pad = constant -inf : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<4 x B x f32>
  %m = reduce max %t axis 1 : tile<4 x 1 x f32>
  %mb = broadcast %m : tile<4 x B x f32>
  %d = sub %t, %mb : tile<4 x B x f32>
  %e = exp %d : tile<4 x B x f32>
  %s = reduce sum %e axis 1 : tile<4 x 1 x f32>
  %sb = broadcast %s : tile<4 x B x f32>
  %r = div %e, %sb : tile<4 x B x f32>
  store_masked %vy, %r
}
";
    insta::assert_snapshot!(print(&scheduled(source, &[("B", 1024)], "sm_90a")));
}

#[test]
fn a_transposed_tile_changes_threads_before_it_is_stored() {
    let source = "\
kernel @transpose(%x: tensor<64 x 64 x f32>, %y: mut tensor<64 x 64 x f32>) {
  %vx = partition %x [64, 64] : partition<64 x 64 x f32, [64, 64]>
  %vy = partition %y [64, 64] : mut partition<64 x 64 x f32, [64, 64]>
  %i, %j = block_index %vy : index, index
  %t = load %vx[%j, %i] : tile<64 x 64 x f32>
  %r = permute %t [1, 0] : tile<64 x 64 x f32>
  store %vy, %r
}
";
    insta::assert_snapshot!(print(&scheduled(source, &[], "sm_90a")));
}

#[test]
fn what_a_loop_carries_lies_as_its_body_wants_it() {
    let source = "\
kernel @matmul<B>(%a: tensor<m x k x f32>, %b: tensor<k x n x f32>, %c: mut tensor<m x n x f32>) {
  %va = partition %a [B, B] : partition<m x k x f32, [B, B]>
  %vb = partition %b [B, B] : partition<k x n x f32, [B, B]>
  %vc = partition %c [B, B] : mut partition<m x n x f32, [B, B]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : f32
  %zero = splat %pad : tile<B x B x f32>
  %1 = constant 0 : index
  %2 = extent ceil_div(k, B) : index
  %sum = for %p = %1 to %2 carry (%acc = %zero) : tile<B x B x f32> {
    %ta = load_masked %va[%i, %p] pad %pad : tile<B x B x f32>
    %tb = load_masked %vb[%p, %j] pad %pad : tile<B x B x f32>
    %next = mma %ta, %tb, %acc : tile<B x B x f32>
    yield %next
  }
  store_masked %vc, %sum
}
";
    insta::assert_snapshot!(print(&scheduled(source, &[("B", 64)], "gfx942")));
}
