//! The machine code of small functions with and without each pass.

use super::*;
use crate::gpu::targets::{amd_numbers, features};
use crate::llvm::Machine;
use crate::options::Cpu;
use crate::system::System;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::targets::FileType;
use tile_ir::target::CpuLevel;

pub(crate) fn read<'c>(context: &'c Context, text: &str) -> Ir<'c> {
    let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "kernel");
    let module = context.create_module_from_ir(buffer).unwrap_or_else(|error| panic!("{error}\n{text}"));
    Ir::in_module(context, module, features::NVPTX)
}

/// The machine code of a function, with and without a pass.
pub(crate) fn codes(machine: &Machine, text: &str, pass: impl Fn(&Ir<'_>) + Copy) -> [String; 2] {
    [true, false].map(|applied| {
        let context = Context::create();
        let ir = read(&context, text);
        machine.prepare(&ir.module);
        if applied {
            pass(&ir);
        }
        ir.module.verify().unwrap_or_else(|error| panic!("{error}\n{}", ir.module.to_string()));
        String::from_utf8(machine.emit("k", &ir.module, FileType::Assembly).unwrap()).unwrap()
    })
}

/// Whether a code has none of these instructions with a pass, and has some without.
pub(crate) fn keeps_from(machine: &Machine, text: &str, pass: impl Fn(&Ir<'_>) + Copy, wrong: &[&str]) {
    let has = |code: &String| wrong.iter().any(|instruction| code.contains(instruction));
    let [with, without] = codes(machine, text, pass);
    assert!(has(&without), "nothing to mend in {text}\n{without}");
    assert!(!has(&with), "{text}\n{with}");
}

fn arm() -> Machine {
    Machine::cpu(Cpu::Level(CpuLevel::named("armv8-a").unwrap()), System::Elf).unwrap()
}

pub(crate) fn amd() -> Vec<Machine> {
    ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"].map(|gpu| Machine::amdgpu(gpu, "").unwrap()).into()
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
            (format!("ult {ty} %x, 0.0"), format!("{ty} 0.0, {ty} %x")),
            (format!("ugt {ty} %x, 0.0"), format!("{ty} -0.0, {ty} %x")),
        ] {
            let text = selection(ty, &compare, &sides);
            let nvidia = Machine::nvptx("sm_90a", "").unwrap();
            let amd = amd().into_iter().map(|machine| (machine, amd_numbers::FENCE));
            for (machine, fence) in [(nvidia, Fence::Own), (arm(), Fence::Own)].into_iter().chain(amd) {
                let [with, _] = codes(&machine, &text, |ir| keep_signs_of_zeros(ir, fence));
                assert!(!MINIMA.iter().any(|it| with.contains(it)), "{text}\n{with}");
            }
        }
        let text = selection(ty, &format!("olt {ty} %x, 0.0"), &format!("{ty} %x, {ty} 0.0"));
        let chosen_zero = selection(ty, &format!("ult {ty} %x, 0.0"), &format!("{ty} 0.0, {ty} %x"));
        let by = |fence| move |ir: &Ir<'_>| keep_signs_of_zeros(ir, fence);
        keeps_from(&Machine::nvptx("sm_90a", "").unwrap(), &text, by(Fence::Own), &MINIMA);
        amd().iter().for_each(|machine| keeps_from(machine, &text, by(amd_numbers::FENCE), &MINIMA));
        keeps_from(&arm(), &text, by(Fence::Own), &MINIMA);
        keeps_from(&arm(), &chosen_zero, by(Fence::Own), &MINIMA);
    }
}

/// LLVM keeps a vector of zeros, one of equal numbers, one of which an element isn't known and what it computes from addresses
/// each in its own way.
#[test]
fn zeros_are_found_in_constants_of_every_kind() {
    for float in ["half", "bfloat", "float", "double"] {
        for other in ["0.0", "-0.0", "1.0", "undef"] {
            let text = selected(float, "i1", other, "0.0");
            assert_eq!(is_fenced(&text), other == "0.0", "{text}");
        }
        let splat = |number: &str| format!("splat ({float} {number})");
        let lanes =
            |lanes: [&str; 4]| format!("<{}>", lanes.map(|lane| format!("{float} {lane}")).join(", "));
        for (other, expected) in [
            ("zeroinitializer".to_owned(), true),
            (splat("0.0"), true),
            (splat("-0.0"), false),
            (splat("1.0"), false),
            ("poison".to_owned(), false),
            (lanes(["1.0", "poison", "0.0", "2.0"]), true),
            (lanes(["1.0", "undef", "-0.0", "2.0"]), false),
        ] {
            let text = selected(&format!("<4 x {float}>"), "<4 x i1>", &other, "zeroinitializer");
            assert_eq!(is_fenced(&text), expected, "{text}");
        }
    }
}

#[test]
fn numbers_made_of_addresses_are_none() {
    let address = "bitcast (<2 x i64> <i64 ptrtoint (ptr @k to i64), i64 1> to <2 x double>)";
    let text = selected("<2 x double>", "<2 x i1>", address, "zeroinitializer");
    assert!(!is_fenced(&text), "{text}");
}

/// `x < zero ? x : other`.
fn selected(ty: &str, condition: &str, other: &str, zero: &str) -> String {
    format!(
        "define {ty} @k({ty} %x) {{\n  %c = fcmp olt {ty} %x, {zero}\n  \
         %r = select {condition} %c, {ty} %x, {ty} {other}\n  ret {ty} %r\n}}\n"
    )
}

fn is_fenced(text: &str) -> bool {
    let context = Context::create();
    let ir = read(&context, text);
    keep_signs_of_zeros(&ir, Fence::Own);
    ir.module.to_string().contains("llvm.arithmetic.fence")
}

/// `max(x, 0)` as a selection is what a maximum gives, of either zero.
#[test]
fn selections_that_maxima_give_are_left() {
    let text = selection("float", "ogt float %x, 0.0", "float %x, float 0.0");
    let pass = |ir: &Ir<'_>| keep_signs_of_zeros(ir, Fence::Own);
    let [with, without] = codes(&Machine::nvptx("sm_90a", "").unwrap(), &text, pass);
    assert_eq!(with, without);
}
