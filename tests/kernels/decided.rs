//! Numbers whose types are decided by what stands elsewhere.

use super::check_exact;
use tile::prelude::*;

/// Numbers whose type something decides that stands elsewhere: another part's arm, another call of a closure, the other
/// tiles of an array. `b` is 1.
#[tile_kernel]
fn decided_elsewhere<const B: usize>(x: &Tensor<u8, 2>, y: &mut Tensor<i32, 7>) {
    const MODE: usize = 0;
    let t = x.partition_view([B]).load([0]);
    let b = t.take(0, 0).item();
    let (by_arm, [_, in_array]) = match MODE {
        0 => (200, [1, 200]),
        _ => (b, [b, b]),
    };
    let tile_of_arm = match MODE {
        0 => Tile::full([B], 200),
        _ => t,
    };
    let same = |v| v;
    let by_call = same(200);
    let of_call = same(b);
    let always = |_: u8| 200;
    let result = always(b);
    let of_result: u8 = always(b);
    let [in_row, _] = [Tile::full([B], 200), t];
    let from = 200;
    let folded = [b].iter().fold(from, |sum, &b| sum + b);
    let sums = [
        (by_arm + 200) as i32,
        (in_array + 200) as i32,
        (tile_of_arm + 200).take(0, 0).item() as i32,
        (by_call + 200) as i32 + (of_call * 0) as i32,
        (result + 200) as i32 + (of_result * 0) as i32,
        (in_row + 200).take(0, 0).item() as i32,
        (from + 200) as i32 + (folded * 0) as i32,
    ];
    let parts = sums.map(|sum| Tile::full([1], sum));
    y.partition_view_mut([7]).store(cat(parts, 0));
}

#[test]
fn types_of_numbers_are_decided_by_parts_of_arms_and_by_all_calls_of_a_closure() {
    check_exact!(decided_elsewhere<B = 2>(x: [1u8, 1], [2]) -> i32, [7] => [144; 7]);
}

/// A number that has a name before it stands beside a size.
#[tile_kernel]
fn beside_sizes(x: &Tensor<f32, n>, y: &mut Tensor<f32, 2>) {
    let k = 100_000;
    let ends = [k, n];
    let _ = x.partition_view([4]);
    let numbers = [(k * k) as f32, ends[1] as f32];
    y.partition_view_mut([2]).store(cat(numbers.map(|number| Tile::full([1], number)), 0));
}

#[test]
fn sizes_beside_it_decide_the_type_of_a_number() {
    check_exact!(beside_sizes<>(x: [1f32; 3], [3]) -> f32, [2] => [1e10f32, 3.0]);
}
