//! The machine code of small functions with and without each pass.

use super::*;
use crate::gpu::targets::features;
use crate::llvm::Machine;
use crate::options::Cpu;
use crate::system::System;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::targets::FileType;
use tile_ir::target::CpuLevel;

/// The machine code of a function, with and without a pass.
fn codes(machine: &Machine, text: &str, pass: fn(&Ir<'_>)) -> [String; 2] {
    [true, false].map(|applied| {
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "kernel");
        let module = context.create_module_from_ir(buffer).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let ir = Ir::in_module(&context, module, features::NVPTX);
        machine.prepare(&ir.module);
        if applied {
            pass(&ir);
        }
        ir.module.verify().unwrap_or_else(|error| panic!("{error}\n{}", ir.module.to_string()));
        String::from_utf8(machine.emit("k", &ir.module, FileType::Assembly).unwrap()).unwrap()
    })
}

/// Whether a code has none of these instructions with a pass, and has some without.
fn keeps_from(machine: &Machine, text: &str, pass: fn(&Ir<'_>), wrong: &[&str]) {
    let has = |code: &String| wrong.iter().any(|instruction| code.contains(instruction));
    let [with, without] = codes(machine, text, pass);
    assert!(has(&without), "nothing to mend in {text}\n{without}");
    assert!(!has(&with), "{text}\n{with}");
}

fn arm() -> Machine {
    Machine::cpu(Cpu::Level(CpuLevel::named("armv8-a").unwrap()), System::Elf).unwrap()
}

fn amd() -> Vec<Machine> {
    ["gfx90a", "gfx942", "gfx1100"].map(|gpu| Machine::amdgpu(gpu, "").unwrap()).into()
}

/// `x` by a comparison and a zero, or the other way round.
fn selection(ty: &str, compare: &str, sides: &str) -> String {
    format!(
        "define {ty} @k({ty} %x) {{\n  %c = fcmp {compare}\n  %r = select i1 %c, {sides}\n  ret {ty} %r\n}}\n"
    )
}

const MINIMA: [&str; 5] = ["min.f", "v_min", "v_max", "max.f", "nm"];

#[test]
fn selections_beside_a_zero_stay_selections() {
    for ty in ["float", "double"] {
        for (compare, sides) in [
            (format!("olt {ty} %x, 0.0"), format!("{ty} %x, {ty} 0.0")),
            (format!("ult {ty} %x, -0.0"), format!("{ty} %x, {ty} 0.0")),
            (format!("uge {ty} %x, 0.0"), format!("{ty} 0.0, {ty} %x")),
            (format!("ogt {ty} 0.0, %x"), format!("{ty} %x, {ty} 0.0")),
            (format!("ogt {ty} %x, 0.0"), format!("{ty} %x, {ty} -0.0")),
        ] {
            let text = selection(ty, &compare, &sides);
            let nvidia = Machine::nvptx("sm_90a", "").unwrap();
            for machine in [nvidia, arm()].into_iter().chain(amd()) {
                let [with, _] = codes(&machine, &text, keep_signs_of_zeros);
                assert!(!MINIMA.iter().any(|it| with.contains(it)), "{text}\n{with}");
            }
        }
        let text = selection(ty, &format!("olt {ty} %x, 0.0"), &format!("{ty} %x, {ty} 0.0"));
        keeps_from(&Machine::nvptx("sm_90a", "").unwrap(), &text, keep_signs_of_zeros, &MINIMA);
        amd().iter().for_each(|machine| keeps_from(machine, &text, keep_signs_of_zeros, &MINIMA));
        keeps_from(&arm(), &text, keep_signs_of_zeros, &MINIMA);
    }
}

/// `max(x, 0)` as a selection is what a maximum gives, of either zero.
#[test]
fn selections_that_maxima_give_are_left() {
    let text = selection("float", "ogt float %x, 0.0", "float %x, float 0.0");
    let [with, without] = codes(&Machine::nvptx("sm_90a", "").unwrap(), &text, keep_signs_of_zeros);
    assert_eq!(with, without);
}

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
