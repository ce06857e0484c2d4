//! The machine code of small functions with and without each pass.

use super::*;
use crate::emit::fences::keep_signs_of_zeros;
use crate::emit::fences::tests::{amd, codes, keeps_from};

/// A quotient or remainder of two integers of which 23 bits are left.
fn division(op: &str, ty: &str, cut: &str) -> String {
    format!(
        "define {ty} @k({ty} %a, {ty} %b) {{\n  %x = {cut} {ty} %a, {}\n  %y = {cut} {ty} %b, {0}\n  \
         %r = {op} {ty} %x, %y\n  ret {ty} %r\n}}\n",
        match (cut, ty) {
            ("and", _) => "8388607",
            (_, "i32") => "9",
            _ => "41",
        }
    )
}

/// A division of 32 bits multiplies for the upper half of a product; one of 24 rounds a quotient of floats.
#[test]
fn short_dividends_are_divided_as_long_ones() {
    for machine in amd() {
        for op in ["udiv", "urem", "sdiv", "srem"] {
            for (ty, cut) in [("i32", "and"), ("i32", "lshr"), ("i64", "and"), ("i64", "lshr")] {
                let text = division(op, ty, cut);
                let [with, without] = codes(&machine, &text, hide_short_dividends);
                let short = |code: &str| code.contains("v_trunc_f32") && !code.contains("mul_hi_u32");
                assert!(short(&without), "nothing to mend in {text}\n{without}");
                assert!(!short(&with) && with.contains("mul_hi_u32"), "{text}\n{with}");
                // Of 64 bits no more than 32 are divided.
                assert!(!with.contains("s_cbranch"), "{text}\n{with}");
            }
        }
    }
}

/// Indices that are divided by numbers of tiles.
#[test]
fn dividends_of_which_nothing_is_known_stay() {
    for dividend in ["%a", "%block", "%tile", "%read"] {
        let text = format!(
            "declare i32 @llvm.amdgcn.workgroup.id.x()\ndefine amdgpu_kernel void @k(i32 %a, i32 %b, ptr addrspace(1) %to) {{\n  \
             %block = call i32 @llvm.amdgcn.workgroup.id.x()\n  %tile = add i32 %block, 7\n  \
             %read = load i32, ptr addrspace(1) %to\n  %r = udiv i32 {dividend}, %b\n  \
             store i32 %r, ptr addrspace(1) %to\n  ret void\n}}\n"
        );
        for machine in amd() {
            let [with, without] = codes(&machine, &text, hide_short_dividends);
            assert_eq!(with, without);
        }
    }
}

#[test]
fn dividends_of_16_bits_stay() {
    let text = "define i32 @k(i16 %a, i16 %b) {\n  %x = zext i16 %a to i32\n  %y = zext i16 %b to i32\n  \
                %r = udiv i32 %x, %y\n  ret i32 %r\n}\n";
    for machine in amd() {
        let [with, without] = codes(&machine, text, hide_short_dividends);
        assert_eq!(with, without);
    }
}

#[test]
fn products_are_rounded_by_an_instruction_of_its_own() {
    let text = "define half @k(float %x, float %s) {\n  %p = fmul float %x, %s\n  %r = fptrunc float %p to half\n  \
                ret half %r\n}\n";
    amd().iter().for_each(|machine| keeps_from(machine, text, keep_rounded_products_apart, &["mixlo"]));
}

/// What all threads of a block have alike is in scalar registers, or is read from shared memory to vector registers by all.
#[test]
fn numbers_that_threads_have_alike_are_fenced() {
    let kernel = |ty: &str, body: &str| {
        format!(
            "@s = external addrspace(3) global [64 x i8], align 64\n\
             define amdgpu_kernel void @k({ty} %a, {ty} %b, ptr addrspace(1) %to) {{\n  \
             %x = load {ty}, ptr addrspace(3) @s\n{body}  ret void\n}}\n"
        )
    };
    let number = |lanes: u32, element: &str| match lanes {
        1 => element.to_owned(),
        lanes => format!("<{lanes} x {element}>"),
    };
    for machine in amd() {
        for lanes in [1, 2, 4, 8] {
            let [float, half] = ["float", "half"].map(|element| number(lanes, element));
            for (x, y) in [("%a", "%b"), ("%x", "%b")] {
                let body = format!(
                    "  %p = fmul {float} {x}, {y}\n  %r = fptrunc {float} %p to {half}\n  \
                     store {half} %r, ptr addrspace(1) %to\n"
                );
                codes(&machine, &kernel(&float, &body), keep_rounded_products_apart);
            }
        }
        for element in ["half", "bfloat", "float", "double"] {
            for lanes in [1, 2, 4] {
                let (ty, condition) = (number(lanes, element), number(lanes, "i1"));
                let zero = if lanes == 1 { "0.0" } else { "zeroinitializer" };
                for x in ["%a", "%x"] {
                    let body = format!(
                        "  %c = fcmp olt {ty} {x}, {zero}\n  %r = select {condition} %c, {ty} {x}, {ty} {zero}\n  \
                         store {ty} %r, ptr addrspace(1) %to\n"
                    );
                    codes(&machine, &kernel(&ty, &body), |ir| keep_signs_of_zeros(ir, FENCE));
                }
            }
        }
        for (ty, lanes) in [("i32", 1), ("i64", 1), ("i32", 2), ("i64", 4)] {
            let ty = number(lanes, ty);
            let body = format!("  %r = udiv {ty} %x, %b\n  store {ty} %r, ptr addrspace(1) %to\n");
            codes(&machine, &kernel(&ty, &body), hide_short_dividends);
            let statement =
                "%s = call i64 asm \"\", \"=s,0\"(i64 %r)\n  store i64 %s, ptr addrspace(1) %to\n";
            let body = format!("  %r = udiv i64 %a, %b\n  {statement}");
            codes(&machine, &kernel("i64", &body), hide_short_dividends);
        }
    }
}
