//! Atomic operations on several neighbours in global memory: what they do, and what is wrong with them.

use super::harness::{is_right, problem, results};
use crate::simt::Problem;

/// All threads add, or store, at one place of `%b`, so many bytes behind its first.
fn at_one_place(bytes: u32, call: &str) -> String {
    format!("  %at = getelementptr i8, ptr addrspace(1) %b, i32 {bytes}\n  call void {call}\n")
}

#[test]
fn every_element_is_added_to_as_often_as_there_are_threads() {
    let add = "@tile.add.device.v4.f32(ptr addrspace(1) %at, float 1.0, float 2.0, float -1.0, float 0.5)";
    let before = [1.0f32, 2.0, 3.0, 4.0].map(f32::to_bits).to_vec();
    let [_, sums] = results("sm_90a", 32, &at_one_place(0, add), [vec![0; 4], before]);
    assert_eq!(sums, [33.0f32, 66.0, -29.0, 20.0].map(f32::to_bits));

    // Halves of a word are elements of their own: 1 and 2 of f16, 1 and 2 of bf16.
    for (gpu, format, one_and_two, sums) in [
        ("sm_90a", "f16x2", 0x4000_3c00_u32, 0x5400_5000_u32),
        ("gfx942", "f16x2", 0x4000_3c00, 0x5400_5000),
        ("gfx942", "bf16x2", 0x4000_3f80, 0x4280_4200),
    ] {
        let scope = if gpu == "gfx942" { "agent" } else { "device" };
        let add = format!("@tile.add.{scope}.{format}(ptr addrspace(1) %at, i32 {one_and_two})");
        let [_, found] = results(gpu, 32, &at_one_place(4, &add), [vec![0; 4], vec![0; 4]]);
        assert_eq!(found, [0, sums, 0, 0], "{format} on {gpu}");
    }
}

/// Additions of f32 take subnormals for zeros (PTX ISA, "red").
#[test]
fn subnormals_are_zeros_in_sums_of_f32() {
    let add = "@tile.add.device.v2.f32(ptr addrspace(1) %at, float 0.0, float 0.0)";
    let [_, sums] = results("sm_90a", 1, &at_one_place(0, add), [vec![0; 2], vec![1, 0x8000_0001]]);
    assert_eq!(sums, [0, 0]);
}

const STORE: &str = "@tile.store.device.v4.b32(ptr addrspace(1) %at, i32 1, i32 2, i32 3, i32 4)";

#[test]
fn stores_of_several_threads_to_one_place_are_no_race() {
    is_right("sm_90a", 32, &at_one_place(16, STORE));
    let [_, found] = results("sm_90a", 2, &at_one_place(16, STORE), [vec![0; 4], vec![0; 8]]);
    assert_eq!(found, [0, 0, 0, 0, 1, 2, 3, 4]);
}

#[test]
fn what_is_wrong_is_found() {
    let problem =
        |bytes: u32, before: &str| problem("sm_90a", 32, &format!("{before}{}", at_one_place(bytes, STORE)));
    assert!(matches!(problem(8, ""), Problem::Misaligned { alignment: 16, excess: 8 }));
    // The arrays have a thousand words.
    assert!(matches!(problem(4000, ""), Problem::OutsideArguments { .. }), "{:?}", problem(4000, ""));
    let plain = "  %plain = getelementptr i32, ptr addrspace(1) %b, i32 5\n  store i32 %tid, ptr addrspace(1) %plain\n";
    assert!(matches!(problem(16, plain), Problem::Race { .. }), "{:?}", problem(16, plain));
}
