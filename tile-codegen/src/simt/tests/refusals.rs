//! What the executor can't watch it refuses; what LLVM's own intrinsics do to memory it watches.

use super::harness::{Kernel, is_right, problem};
use crate::simt::Problem;

fn refusal(body: &str) -> String {
    Kernel::compile("sm_90a", 32, "ptr addrspace(1) %a", body).err().expect("a refusal")
}

#[test]
fn copies_of_memory_are_watched() {
    let copy = |bytes: u32| {
        format!(
            "  %to = getelementptr i8, ptr addrspace(1) %b, i32 0\n  \
             call void @llvm.memcpy.p1.p1.i64(ptr addrspace(1) %to, ptr addrspace(1) %a, i64 {bytes}, i1 false)\n"
        )
    };
    is_right("sm_90a", 1, &copy(4000));
    assert!(matches!(problem("sm_90a", 1, &copy(4001)), Problem::OutsideArguments { bytes: 4001, .. }));
    assert!(matches!(problem("sm_90a", 2, &copy(4)), Problem::Race { .. }));
    let fill = "  call void @llvm.memset.p3.i64(ptr addrspace(3) @shared, i8 0, i64 40000, i1 false)\n";
    assert!(matches!(problem("sm_90a", 1, fill), Problem::OutsideShared { bytes: 40000, .. }));
}

#[test]
fn what_cannot_be_watched_is_refused() {
    let masked = "  %v = call <4 x float> @llvm.masked.load.v4f32.p1(ptr addrspace(1) %a, \
                  <4 x i1> zeroinitializer, <4 x float> zeroinitializer)\n";
    assert!(refusal(masked).contains("llvm.masked.load"));
    assert!(refusal("  call void @somebody(i32 %tid)\n").contains("somebody"));
}

#[test]
fn functions_of_the_module_may_compute_alone() {
    let compile = |function: &str| {
        Kernel::compile_with(
            function,
            "sm_90a",
            32,
            "ptr addrspace(1) %a",
            "  %r = call i32 @f(ptr addrspace(1) %a)\n",
        )
    };
    let function =
        |code: &str| format!("define internal i32 @f(ptr addrspace(1) %p) {{\n{code}  ret i32 %v\n}}\n");
    assert!(compile(&function("  %v = add i32 1, 2\n")).is_ok());
    for code in [
        "  %v = load i32, ptr addrspace(1) %p\n",
        "  %v = add i32 1, 2\n  store i32 %v, ptr addrspace(1) %p\n",
        "  %v = add i32 1, 2\n  fence syncscope(\"device\") acquire\n",
        "  %v = atomicrmw add ptr addrspace(1) %p, i32 1 monotonic\n",
        "  %v = call i32 @f(ptr addrspace(1) %p)\n",
    ] {
        let error = compile(&function(code)).err().expect("a refusal");
        assert!(error.contains("what the function `f` does"), "{error}");
    }
}

#[test]
fn stacks_too_large_are_refused() {
    let large = format!("  %p = alloca [{} x i8]\n  store i8 0, ptr %p\n", 1 << 29);
    assert!(refusal(&large).contains("bytes of stack"));
    // More than the usual stack, which is given.
    let wide = format!(
        "  %p = alloca [{bytes} x i8]\n  %last = getelementptr i8, ptr %p, i32 {last}\n  store i8 0, ptr %last\n  \
         store i8 0, ptr %p\n",
        bytes = 4 << 20,
        last = (4 << 20) - 1
    );
    is_right("sm_90a", 2, &wide);
}

#[test]
fn generic_addresses_are_watched() {
    let body = "  %g = addrspacecast ptr addrspace(3) @shared to ptr\n  %at = getelementptr i32, ptr %g, i32 %tid\n  \
                store i32 1, ptr %at\n  %n = add i32 %tid, 1\n  %next = getelementptr i32, ptr %g, i32 %n\n  \
                %r = load i32, ptr %next\n";
    assert!(matches!(problem("sm_90a", 2, body), Problem::Uninitialized { .. } | Problem::Race { .. }));
}

#[test]
fn pointers_to_shared_memory_are_offsets_in_a_window() {
    let body = "  %n = ptrtoint ptr addrspace(3) @shared to i32\n  %m = add i32 %n, 16\n  \
                %p = inttoptr i32 %m to ptr addrspace(3)\n  store i32 9, ptr addrspace(3) %p\n  \
                %q = getelementptr i8, ptr addrspace(3) @shared, i32 16\n  %r = load i32, ptr addrspace(3) %q\n  \
                store i32 %r, ptr addrspace(1) %b\n  \
                %d = getelementptr i32, ptr addrspace(1) %b, i32 1\n  store i32 %n, ptr addrspace(1) %d\n";
    let [_, result] = super::harness::results("sm_90a", 1, body, [vec![0], vec![0, 0]]);
    assert_eq!(result[0], 9);
    assert!(result[1] % 1024 == 0 && result[1] < 1 << 18, "a descriptor can be made of {}", result[1]);
}
