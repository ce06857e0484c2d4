//! Derivatives of attention by keys and values: of four products in a turn one goes on beside the next, and one a turn
//! later.

use crate::pipelines::check;
use crate::support::{instance, sample};
use tile_ir::gpu::{print, schedule};
use tile_ir::{DType, TargetDesc, passes};

/// For tiles of so many keys and queries.
fn by_keys_and_values(keys: usize, queries: usize) -> String {
    format!(
        "kernel @derivatives(%q: tensor<s x 64 x bf16>, %d: tensor<s x 64 x bf16>, %k: tensor<t x 64 x bf16>, \
         %v: tensor<t x 64 x bf16>, %dk: mut tensor<t x 64 x f32>, %dv: mut tensor<t x 64 x f32>) {{
  %vq = partition %q [{queries}, 64] : partition<s x 64 x bf16, [{queries}, 64]>
  %vd = partition %d [{queries}, 64] : partition<s x 64 x bf16, [{queries}, 64]>
  %vk = partition %k [{keys}, 64] : partition<t x 64 x bf16, [{keys}, 64]>
  %vv = partition %v [{keys}, 64] : partition<t x 64 x bf16, [{keys}, 64]>
  %vdk = partition %dk [{keys}, 64] : mut partition<t x 64 x f32, [{keys}, 64]>
  %vdv = partition %dv [{keys}, 64] : mut partition<t x 64 x f32, [{keys}, 64]>
  %i, %j = block_index %vdk : index, index
  %pad = constant 0.0 : bf16
  %zero = constant 0.0 : f32
  %part = constant 0.0625 : f32
  %0 = constant 0 : index
  %key = load_masked %vk[%i, %0] pad %pad : tile<{keys} x 64 x bf16>
  %value = load_masked %vv[%i, %0] pad %pad : tile<{keys} x 64 x bf16>
  %none = splat %zero : tile<{keys} x 64 x f32>
  %start = splat %zero : tile<{keys} x {queries} x f32>
  %parts = splat %part : tile<{keys} x {queries} x f32>
  %end = extent ceil_div(s, {queries}) : index
  %keys, %values = for %p = %0 to %end carry (%by_key = %none, %by_value = %none) : tile<{keys} x 64 x f32>, tile<{keys} x 64 x f32> {{
    %query = load_masked %vq[%p, %0] pad %pad : tile<{queries} x 64 x bf16>
    %dout = load_masked %vd[%p, %0] pad %pad : tile<{queries} x 64 x bf16>
    %tq = permute %query [1, 0] : tile<64 x {queries} x bf16>
    %scores = mma %key, %tq, %start : tile<{keys} x {queries} x f32>
    %less = mul %scores, %parts : tile<{keys} x {queries} x f32>
    %weights = exp2 %less : tile<{keys} x {queries} x f32>
    %narrow = cast %weights : tile<{keys} x {queries} x bf16>
    %more_values = mma %narrow, %dout, %by_value : tile<{keys} x 64 x f32>
    %td = permute %dout [1, 0] : tile<64 x {queries} x bf16>
    %slopes = mma %value, %td, %start : tile<{keys} x {queries} x f32>
    %both = mul %weights, %slopes : tile<{keys} x {queries} x f32>
    %steep = cast %both : tile<{keys} x {queries} x bf16>
    %more_keys = mma %steep, %query, %by_key : tile<{keys} x 64 x f32>
    yield %more_keys, %more_values
  }}
  store_masked %vdk, %keys
  store_masked %vdv, %values
}}
"
    )
}

/// Of no turn, of one, of two, and of more than the ring has stages; blocks have several places of the grid each.
#[test]
fn sums_of_values_are_added_beside_slopes() {
    for (keys, threads) in [(64, 256), (128, 384)] {
        let source = by_keys_and_values(keys, 32);
        let scheduled =
            schedule(passes::optimize(instance(&source, &[])), TargetDesc::named("sm_90a").unwrap(), None);
        let text = print(&scheduled);
        for (product, when) in
            [("%more_values", ", after the next product\n"), ("%more_keys", ", a turn later\n")]
        {
            assert!(
                text.lines()
                    .any(|line| line.contains(&format!("{product} = mma"))
                        && format!("{line}\n").ends_with(when)),
                "{text}"
            );
        }
        for queries in [0, 32, 40, 328] {
            let arguments = [
                sample(DType::BF16, &[queries, 64], 1),
                sample(DType::BF16, &[queries, 64], 2),
                sample(DType::BF16, &[392, 64], 3),
                sample(DType::BF16, &[392, 64], 4),
                sample(DType::F32, &[392, 64], 5),
                sample(DType::F32, &[392, 64], 6),
            ];
            check(&source, &[], &arguments, threads, 2e-2);
        }
    }
}
