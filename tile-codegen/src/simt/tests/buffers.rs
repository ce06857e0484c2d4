//! Buffers of AMD's GPUs and loads to shared memory.

use super::harness::{Kernel, problem, store_result, words};
use crate::simt::Problem;

/// A buffer of so many bytes of `%a`, as `%buffer`, whose last word is that of CDNA: 32 bits, a float.
fn buffer(bytes: u32, rest: &str) -> String {
    buffer_of(bytes, 0x0002_7000, rest)
}

fn buffer_of(bytes: u32, word: u32, rest: &str) -> String {
    format!(
        "  %buffer = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %a, i16 0, i64 {bytes}, i32 {word})\n  \
         %offset = shl i32 %tid, 2\n{rest}"
    )
}

#[test]
fn loads_and_stores_stop_at_the_bound() {
    let load = buffer(
        40 * 4,
        &format!(
            "  %r = call i32 @llvm.amdgcn.raw.ptr.buffer.load.i32(ptr addrspace(8) %buffer, i32 %offset, i32 0, i32 0)\n{}",
            store_result("%r")
        ),
    );
    let input = words(64, 1);
    let mut arrays = [input.clone(), vec![7; 64]];
    Kernel::new("gfx942", 64, &load).run(&mut arrays).unwrap_or_else(|fault| panic!("{fault}"));
    let expected: Vec<u32> = input[..40].iter().copied().chain(std::iter::repeat_n(0, 24)).collect();
    assert_eq!(arrays[1], expected);
    let store = buffer(
        40 * 4,
        "  call void @llvm.amdgcn.raw.ptr.buffer.store.i32(i32 %tid, ptr addrspace(8) %buffer, i32 %offset, i32 4, i32 0)\n",
    );
    let mut arrays = [vec![9; 64], vec![]];
    Kernel::new("gfx942", 64, &store).run(&mut arrays).unwrap_or_else(|fault| panic!("{fault}"));
    // The scalar offset moves what is stored, not the bound.
    let expected = (0..64).map(|i| if (1..41).contains(&i) { i - 1 } else { 9 });
    assert_eq!(arrays[0], expected.collect::<Vec<_>>());
}

#[test]
fn accesses_partly_outside_are_told() {
    let wide = buffer(
        10,
        "  %r = call <4 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v4i32(ptr addrspace(8) %buffer, i32 0, i32 0, i32 0)\n",
    );
    assert!(matches!(problem("gfx942", 64, &wide), Problem::Misuse(_)));
    let beyond = buffer(
        8000,
        "  %far = add i32 %offset, 3900\n  \
         %r = call i32 @llvm.amdgcn.raw.ptr.buffer.load.i32(ptr addrspace(8) %buffer, i32 %far, i32 0, i32 0)\n",
    );
    assert!(matches!(problem("gfx942", 64, &beyond), Problem::OutsideArguments { .. }));
}

/// The words of Composable Kernel's `CK_BUFFER_RESOURCE_3RD_DWORD`, and what each family makes of others'.
#[test]
fn a_resource_says_what_it_checks() {
    let load = "  %r = call i32 @llvm.amdgcn.raw.ptr.buffer.load.i32(ptr addrspace(8) %buffer, i32 %offset, i32 0, i32 0)\n";
    let takes = |target: &str, word: u32| {
        let mut arrays = [words(64, 1), vec![0; 64]];
        let kernel = Kernel::new(target, 64, &buffer_of(160, word, &format!("{load}{}", store_result("%r"))));
        kernel.run(&mut arrays).is_ok()
    };
    assert!(takes("gfx942", 0x0002_0000) && takes("gfx90a", 0x0002_7000) && takes("gfx950", 0x0002_7000));
    assert!(takes("gfx1100", 0x3100_4000) && takes("gfx1201", 0x3100_4000));
    assert!(!takes("gfx942", 0) && !takes("gfx942", 0x0000_7000), "without a format a resource is void");
    assert!(!takes("gfx1100", 0x3000_0000) && !takes("gfx1201", 0x3000_0000));
    assert!(!takes("gfx1100", 0x0002_7000), "a word of CDNA's checks an index");
    assert!(!takes("gfx1201", 0x2100_4000), "nothing is checked");
}

#[test]
fn loads_go_to_shared_memory_lane_by_lane() {
    // Lane i loads word 63 - i; the words lie in shared memory by lanes.
    let body = |fence: &str| {
        format!(
            "  %back = sub i32 63, %lane\n  %from = getelementptr i32, ptr addrspace(1) %a, i32 %back\n  \
             call void @llvm.amdgcn.global.load.lds(ptr addrspace(1) %from, ptr addrspace(3) @shared, i32 4, i32 0, i32 0)\n  \
             fence syncscope(\"workgroup\") release\n  call void @llvm.amdgcn.s.waitcnt(i32 0)\n  \
             call void @llvm.amdgcn.s.barrier()\n{fence}  %next = xor i32 %lane, 1\n  \
             %at = getelementptr i32, ptr addrspace(3) @shared, i32 %next\n  %r = load i32, ptr addrspace(3) %at\n{}",
            store_result("%r")
        )
    };
    let input = words(64, 2);
    let mut arrays = [input.clone(), vec![0; 64]];
    let right = Kernel::new("gfx950", 64, &body("  fence syncscope(\"workgroup\") acquire\n"));
    right.run(&mut arrays).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(arrays[1], (0..64).map(|lane| input[63 - (lane ^ 1)]).collect::<Vec<_>>());
    assert!(matches!(problem("gfx950", 64, &body("")), Problem::Race { .. }));
}
