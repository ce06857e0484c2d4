//! Exchange within a wave of AMD's, of 32 and of 64 lanes.

use super::harness::{LOAD, problem, results, store_result, words};
use crate::simt::Problem;

fn wave(gpu: &str, call: &str, input: &[u32]) -> Vec<u32> {
    let body = format!("{LOAD}  %r = {call}\n{}", store_result("%r"));
    let [_, result] = results(gpu, input.len() as u32, &body, [input.to_vec(), vec![0; input.len()]]);
    result
}

fn dpp(gpu: &str, old: &str, control: u32, bound: bool) -> Vec<u32> {
    let lanes = if gpu.starts_with("gfx9") { 64 } else { 32 };
    let call = format!(
        "call i32 @llvm.amdgcn.update.dpp.i32(i32 {old}, i32 %x, i32 {control}, i32 15, i32 15, i1 {bound})"
    );
    wave(gpu, &call, &words(lanes, 9))
}

#[test]
fn data_parallel_primitives() {
    for gpu in ["gfx942", "gfx1100"] {
        let lanes = if gpu == "gfx942" { 64 } else { 32 };
        let x = words(lanes, 9);
        let expect = |control: u32, from: &dyn Fn(usize) -> Option<usize>| {
            let moved = |lane| from(lane).map_or(77, |from| x[from]);
            assert_eq!(
                dpp(gpu, "77", control, false),
                (0..lanes).map(moved).collect::<Vec<_>>(),
                "{gpu} {control:#x}"
            );
            let zeroed = |lane| from(lane).map_or(0, |from| x[from]);
            assert_eq!(dpp(gpu, "77", control, true), (0..lanes).map(zeroed).collect::<Vec<_>>());
        };
        // quad_perm [1, 0, 3, 2] and [2, 3, 0, 1].
        expect(0b10_11_00_01, &|lane| Some(lane ^ 1));
        expect(0b01_00_11_10, &|lane| Some(lane ^ 2));
        expect(0x141, &|lane| Some(lane ^ 7));
        expect(0x140, &|lane| Some(lane ^ 15));
        expect(0x101, &|lane| (lane % 16 < 15).then_some(lane + 1));
        expect(0x112, &|lane| (lane % 16 >= 2).then(|| lane - 2));
        expect(0x124, &|lane| Some(lane / 16 * 16 + (lane % 16 + 12) % 16));
    }
    let x = words(64, 9);
    // The last lane of a row, and of the first half, for all lanes after it.
    let last = |row: usize| move |lane: usize| (lane / row * row).checked_sub(1);
    for (control, row) in [(0x142, 16), (0x143, 32)] {
        let expected = (0..64).map(|lane| last(row)(lane).map_or(0, |from| x[from]));
        assert_eq!(dpp("gfx942", "0", control, false), expected.collect::<Vec<_>>());
    }
    let x = words(32, 9);
    assert_eq!(dpp("gfx1100", "0", 0x168, false), (0..32).map(|lane| x[lane ^ 8]).collect::<Vec<_>>());
    let body = format!(
        "{LOAD}  %r = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %x, i32 360, i32 15, i32 15, i1 false)\n"
    );
    assert!(matches!(problem("gfx942", 64, &body), Problem::Misuse(_)), "row_xmask is RDNA's");
}

#[test]
fn rows_and_banks_that_are_off_keep_the_old_value() {
    let x = words(64, 9);
    let call = "call i32 @llvm.amdgcn.update.dpp.i32(i32 5, i32 %x, i32 320, i32 6, i32 9, i1 false)";
    let expected = (0..64usize).map(|lane| {
        let on = [1, 2].contains(&(lane / 16)) && [0, 3].contains(&(lane % 16 / 4));
        if on { x[lane ^ 15] } else { 5 }
    });
    assert_eq!(wave("gfx942", call, &x), expected.collect::<Vec<_>>());
}

#[test]
fn permutes_through_shared_memorys_network() {
    let x = words(64, 10);
    let body = |name: &str| {
        format!(
            "{LOAD}  %rotated = add i32 %lane, 3\n  %wrapped = and i32 %rotated, 63\n  %at = shl i32 %wrapped, 2\n  \
             %r = call i32 @llvm.amdgcn.{name}(i32 %at, i32 %x)\n{}",
            store_result("%r")
        )
    };
    let run = |name: &str| {
        let [_, result] = results("gfx942", 64, &body(name), [x.clone(), vec![0; 64]]);
        result
    };
    assert_eq!(run("ds.bpermute"), (0..64).map(|lane| x[(lane + 3) % 64]).collect::<Vec<_>>());
    assert_eq!(run("ds.permute"), (0..64).map(|lane| x[(lane + 61) % 64]).collect::<Vec<_>>());
}

/// The manual's examples: neighbours that change places, the first lane of every eight, a mirror, and a quad's order.
#[test]
fn swizzles_of_32_lanes() {
    let x = words(64, 14);
    let run = |pattern: u32| {
        wave("gfx942", &format!("call i32 @llvm.amdgcn.ds.swizzle(i32 %x, i32 {pattern})"), &x)
    };
    let expected = |from: fn(usize) -> usize| (0..64).map(|lane| x[from(lane)]).collect::<Vec<_>>();
    assert_eq!(run(0x041f), expected(|lane| lane ^ 1));
    assert_eq!(run(0x401f), expected(|lane| lane ^ 16));
    assert_eq!(run(0x0018), expected(|lane| lane / 8 * 8));
    assert_eq!(run(0x7c1f), expected(|lane| lane / 32 * 32 + 31 - lane % 32));
    assert_eq!(run(0x80b1), expected(|lane| lane ^ 1));
}

#[test]
fn lanes_that_are_named() {
    let x = words(64, 11);
    assert_eq!(wave("gfx942", "call i32 @llvm.amdgcn.readlane.i32(i32 %x, i32 41)", &x), vec![x[41]; 64]);
    let body = format!("{LOAD}  %r = call i32 @llvm.amdgcn.readlane.i32(i32 %x, i32 64)\n");
    assert!(matches!(problem("gfx942", 64, &body), Problem::Misuse(_)));
    let body = "  %r = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %tid)\n";
    assert_eq!(problem("gfx942", 64, body), Problem::NotUniform { first: 0, other: 1 });
}

#[test]
fn rows_that_change_places() {
    let x = words(32, 12);
    // Lane i of a row reads lane 15 - i, of the same row or of the other one.
    let selects = "i32 1985229328, i32 -19088744";
    assert_eq!((0x7654_3210u32, 0xfedc_ba98u32), (1_985_229_328, (-19_088_744i32).cast_unsigned()));
    let call = |name: &str| {
        format!("call i32 @llvm.amdgcn.{name}.i32(i32 0, i32 %x, {selects}, i1 false, i1 false)")
    };
    assert_eq!(wave("gfx1100", &call("permlane16"), &x), x);
    assert_eq!(
        wave("gfx1100", &call("permlanex16"), &x),
        (0..32).map(|lane| x[lane ^ 16]).collect::<Vec<_>>()
    );
    let x = words(64, 13);
    let halves = wave("gfx942", "call i32 @llvm.amdgcn.permlane64.i32(i32 %x)", &x);
    assert_eq!(halves, (0..64).map(|lane| x[lane ^ 32]).collect::<Vec<_>>());
    let body = |row: u32, which: u32| {
        format!(
            "{LOAD}  %y = xor i32 %x, -1\n  \
             %p = call {{ i32, i32 }} @llvm.amdgcn.permlane{row}.swap(i32 %x, i32 %y, i1 false, i1 false)\n  \
             %r = extractvalue {{ i32, i32 }} %p, {which}\n{}",
            store_result("%r")
        )
    };
    for row in [16, 32] {
        let run = |which| {
            let [_, result] = results("gfx950", 64, &body(row, which), [x.clone(), vec![0; 64]]);
            result
        };
        let odd = |lane: usize| lane / row as usize % 2 == 1;
        let row = row as usize;
        let first = (0..64).map(|lane| if odd(lane) { !x[lane - row] } else { x[lane] });
        let second = (0..64).map(|lane| if odd(lane) { !x[lane] } else { x[lane + row] });
        assert_eq!(run(0), first.collect::<Vec<_>>());
        assert_eq!(run(1), second.collect::<Vec<_>>());
    }
}

#[test]
fn bits_before_a_lane() {
    for (gpu, lanes) in [("gfx942", 64), ("gfx1100", 32)] {
        let body = format!(
            "  %lo = call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 0)\n  \
             %r = call i32 @llvm.amdgcn.mbcnt.hi(i32 -1, i32 %lo)\n{}",
            store_result("%r")
        );
        let [_, result] = results(gpu, 2 * lanes, &body, [vec![0; 128], vec![0; 2 * lanes as usize]]);
        assert_eq!(result, (0..2 * lanes).map(|thread| thread % lanes).collect::<Vec<_>>());
    }
}
