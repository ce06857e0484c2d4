//! Exchange within a warp of NVIDIA's.

use super::harness::{Kernel, LOAD, problem, results, store_result, words};
use crate::simt::Problem;

fn body(call: &str) -> String {
    format!("{LOAD}  %r = {call}\n{}", store_result("%r"))
}

/// What lanes get of lanes with these words.
fn warp(call: &str, input: &[u32]) -> Vec<u32> {
    let threads = input.len() as u32;
    let [_, result] = results("sm_90a", threads, &body(call), [input.to_vec(), vec![0; input.len()]]);
    result
}

#[test]
fn shuffles_of_every_mode() {
    let x = words(64, 1);
    let at = |lane: usize, from: usize| x[lane / 32 * 32 + from % 32];
    let expect = |call: &str, from: &dyn Fn(usize) -> usize| {
        let expected: Vec<u32> = (0..64).map(|lane| at(lane, from(lane % 32))).collect();
        assert_eq!(warp(call, &x), expected, "{call}");
    };
    let call = |mode: &str, operand: &str, clamp: u32| {
        format!("call i32 @llvm.nvvm.shfl.sync.{mode}.i32(i32 -1, i32 %x, i32 {operand}, i32 {clamp})")
    };
    expect(&call("bfly", "5", 31), &|lane| lane ^ 5);
    expect(&call("up", "3", 0), &|lane| if lane < 3 { lane } else { lane - 3 });
    expect(&call("down", "3", 31), &|lane| if lane > 28 { lane } else { lane + 3 });
    expect(&call("idx", "7", 31), &|_| 7);
    // Segments of eight lanes.
    expect(&call("idx", "2", 31 | 24 << 8), &|lane| lane / 8 * 8 + 2);
    expect(&call("down", "1", 31 | 24 << 8), &|lane| if lane % 8 == 7 { lane } else { lane + 1 });
}

#[test]
fn a_shuffle_of_a_float_keeps_its_bits() {
    let x = words(32, 2);
    let body = format!(
        "{LOAD}  %f = bitcast i32 %x to float\n  \
         %g = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %f, i32 1, i32 31)\n  \
         %r = bitcast float %g to i32\n{}",
        store_result("%r")
    );
    let [_, result] = results("sm_90a", 32, &body, [x.clone(), vec![0; 32]]);
    assert_eq!(result, (0..32).map(|lane| x[lane ^ 1]).collect::<Vec<_>>());
}

#[test]
fn votes_and_matches() {
    let x: Vec<u32> = (0..32).map(|lane| lane % 3).collect();
    let ballot = (0..32).filter(|lane| lane % 3 == 1).fold(0u32, |all, lane| all | 1 << lane);
    let body = format!(
        "{LOAD}  %p = icmp eq i32 %x, 1\n  \
         %r = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %p)\n{}",
        store_result("%r")
    );
    let [_, result] = results("sm_90a", 32, &body, [x.clone(), vec![0; 32]]);
    assert_eq!(result, vec![ballot; 32]);
    let found = warp("call i32 @llvm.nvvm.match.any.sync.i32(i32 -1, i32 %x)", &x);
    assert_eq!(found[1], ballot);
    assert_eq!(found[0] | found[1] | found[2], u32::MAX);
}

#[test]
fn reductions_and_elections() {
    let x = words(32, 3);
    let all = |name: &str| warp(&format!("call i32 @llvm.nvvm.redux.sync.{name}(i32 %x, i32 -1)"), &x);
    assert_eq!(all("add"), vec![x.iter().fold(0u32, |a, &b| a.wrapping_add(b)); 32]);
    assert_eq!(all("umax"), vec![*x.iter().max().unwrap(); 32]);
    assert_eq!(all("min"), vec![x.iter().map(|&x| x as i32).min().unwrap() as u32; 32]);
    assert_eq!(all("xor"), vec![x.iter().fold(0, |a, b| a ^ b); 32]);
    let body = format!(
        "  %e = call {{ i32, i1 }} @llvm.nvvm.elect.sync(i32 -1)\n  \
         %p = extractvalue {{ i32, i1 }} %e, 1\n  %r = zext i1 %p to i32\n{}",
        store_result("%r")
    );
    let [_, result] = results("sm_90a", 64, &body, [vec![0; 64], vec![0; 64]]);
    assert_eq!(result, (0..64).map(|thread| u32::from(thread % 32 == 0)).collect::<Vec<_>>());
}

const HALF: &str = "\
  %early = icmp ult i32 %lane, 16
  br i1 %early, label %then, label %end
then:
";

#[test]
fn a_mask_of_half_a_warp() {
    let x = words(32, 4);
    let body = format!(
        "{LOAD}{HALF}  %r = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 65535, i32 %x, i32 1, i32 31)\n{}  \
         br label %end\nend:",
        store_result("%r")
    );
    let [_, result] = results("sm_90a", 32, &body, [x.clone(), vec![0; 32]]);
    let expected = (0..32).map(|lane| if lane < 16 { x[lane ^ 1] } else { 0 });
    assert_eq!(result, expected.collect::<Vec<_>>());
}

#[test]
fn lanes_that_stay_away_are_named() {
    let body = format!(
        "{LOAD}{HALF}  %r = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %x, i32 1, i32 31)\n{}  \
         br label %end\nend:",
        store_result("%r")
    );
    let Problem::Stuck(what) = problem("sm_90a", 32, &body) else { panic!("stuck") };
    assert!(what.contains("waits for lanes 16 to 31"), "{what}");
}

#[test]
fn misuses_of_masks() {
    let misuse = |threads, body: &str| match problem("sm_90a", threads, body) {
        Problem::Misuse(what) => what,
        other => panic!("{other}"),
    };
    // Lane 15 reads lane 31.
    let outside = format!(
        "{LOAD}{HALF}  %r = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 65535, i32 %x, i32 16, i32 31)\n  \
         br label %end\nend:"
    );
    assert!(misuse(32, &outside).contains("reads lane 16, which isn't in the mask"));
    let own = format!("{LOAD}  %r = {}\n", "call i32 @llvm.nvvm.redux.sync.add(i32 %x, i32 1)");
    assert!(misuse(32, &own).contains("lane 1 isn't in its own mask"));
    let differing = format!(
        "{LOAD}  %six = icmp eq i32 %lane, 6\n  %mask = select i1 %six, i32 2147483647, i32 -1\n  \
         %r = call i32 @llvm.nvvm.redux.sync.add(i32 %x, i32 %mask)\n"
    );
    assert!(misuse(32, &differing).contains("has the mask 0x7fffffff"));
    let whole = format!("{LOAD}  %r = {}\n", "call i32 @llvm.nvvm.redux.sync.add(i32 %x, i32 -1)");
    assert!(misuse(16, &whole).contains("has lane 31, but the block ends before it"));
}

#[test]
fn lanes_at_another_instruction_do_not_meet() {
    let body = format!(
        "{LOAD}  %early = icmp ult i32 %lane, 16\n  br i1 %early, label %one, label %two\n\
         one:\n  %p = call i32 @llvm.nvvm.redux.sync.add(i32 %x, i32 -1)\n  br label %end\n\
         two:\n  %q = call i32 @llvm.nvvm.redux.sync.add(i32 %x, i32 -1)\n  br label %end\nend:"
    );
    assert!(matches!(problem("sm_90a", 32, &body), Problem::Stuck(_)));
}

#[test]
fn what_is_unknown_is_refused() {
    let body = "  %r = call i32 @llvm.nvvm.read.ptx.sreg.smid()\n";
    let error = Kernel::compile("sm_90a", 32, "ptr addrspace(1) %a", body).err().expect("a refusal");
    assert!(error.contains("smid"), "{error}");
}
