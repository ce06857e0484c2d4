//! Matrix products: random matrices through the manuals' fragments against a plain triple loop.
//!
//! The formulas here are those of the manuals' tables, element by element, not the executor's.

use super::harness::{Kernel, problem, words};
use crate::simt::Problem;
use half::{bf16, f16};

/// A format of test matrices: small integers, which every sum of them is exact with.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ty {
    F64,
    F32,
    F16,
    Bf16,
    E4m3,
    E5m2,
    E4m3Fnuz,
    I32,
    S8,
    U8,
}

impl Ty {
    fn bytes(self) -> usize {
        match self {
            Ty::F64 => 8,
            Ty::F32 | Ty::I32 => 4,
            Ty::F16 | Ty::Bf16 => 2,
            _ => 1,
        }
    }

    fn encode(self, value: i32) -> Vec<u8> {
        let small = |bias: i32, mantissa: i32| {
            if value == 0 {
                return vec![0];
            }
            let (size, sign) = (value.unsigned_abs(), if value < 0 { 0x80 } else { 0 });
            let exponent = size.ilog2() as i32;
            let fraction = ((size as i32) << mantissa >> exponent) - (1 << mantissa);
            vec![sign | ((exponent + bias) << mantissa | fraction) as u8]
        };
        match self {
            Ty::F64 => f64::from(value).to_le_bytes().to_vec(),
            Ty::F32 => (value as f32).to_le_bytes().to_vec(),
            Ty::F16 => f16::from_f32(value as f32).to_le_bytes().to_vec(),
            Ty::Bf16 => bf16::from_f32(value as f32).to_le_bytes().to_vec(),
            Ty::E4m3 => small(7, 3),
            Ty::E5m2 => small(15, 2),
            Ty::E4m3Fnuz => small(8, 3),
            Ty::I32 => value.to_le_bytes().to_vec(),
            Ty::S8 | Ty::U8 => vec![value as u8],
        }
    }
}

/// Where an element is, given lane and number.
type Place = Box<dyn Fn(usize, usize) -> (usize, usize)>;

/// An operand: its LLVM types, its format, how many elements a lane holds, and where they are.
struct Operand {
    types: Vec<&'static str>,
    ty: Ty,
    held: usize,
    place: Place,
}

/// A product: what is before, between and after the operands in the call.
struct Product {
    gpu: &'static str,
    name: &'static str,
    lanes: usize,
    size: [usize; 3],
    a: Operand,
    b: Operand,
    c: Operand,
    /// Extra operands: before A, before B, at the end.
    extra: [&'static str; 3],
}

fn bytes_of(ty: &str) -> usize {
    match ty {
        "i16" | "half" | "bfloat" => 2,
        "i32" | "float" => 4,
        "i64" | "double" => 8,
        _ => {
            let (count, element) = ty.trim_matches(['<', '>']).split_once(" x ").expect("a vector");
            count.parse::<usize>().expect("a number") * bytes_of(element)
        }
    }
}

impl Product {
    /// The kernel: each lane loads its operands from its part of an array, and stores the result to `%b`.
    fn body(&self) -> String {
        let mut text = String::new();
        let mut values = Vec::new();
        let lane_bytes: usize = [&self.a, &self.b, &self.c].iter().map(|it| it.held * it.ty.bytes()).sum();
        let mut offset = 0;
        for (which, operand) in [&self.a, &self.b, &self.c].into_iter().enumerate() {
            if which < 2 && !self.extra[which].is_empty() {
                values.push(self.extra[which].to_owned());
            }
            for (i, ty) in operand.types.iter().enumerate() {
                let name = format!("%o{which}.{i}");
                text += &format!(
                    "  {name}.lane = mul i32 %tid, {lane_bytes}\n  {name}.offset = add i32 {name}.lane, {offset}\n  \
                     {name}.at = getelementptr i8, ptr addrspace(1) %a, i32 {name}.offset\n  \
                     {name} = load {ty}, ptr addrspace(1) {name}.at, align 4\n"
                );
                values.push(format!("{ty} {name}"));
                offset += bytes_of(ty);
            }
        }
        if !self.extra[2].is_empty() {
            values.push(self.extra[2].to_owned());
        }
        let results = &self.c.types;
        let ty = match results.as_slice() {
            [one] => (*one).to_owned(),
            several => format!("{{ {} }}", several.join(", ")),
        };
        text += &format!("  %d = call {ty} @{}({})\n", self.name, values.join(", "));
        let mut offset = 0;
        for (i, result) in results.iter().enumerate() {
            let value = if results.len() == 1 { "%d".to_owned() } else { format!("%d{i}") };
            if results.len() > 1 {
                text += &format!("  {value} = extractvalue {ty} %d, {i}\n");
            }
            text += &format!(
                "  %r{i}.lane = mul i32 %tid, {}\n  %r{i}.offset = add i32 %r{i}.lane, {offset}\n  \
                 %r{i}.at = getelementptr i8, ptr addrspace(1) %b, i32 %r{i}.offset\n  \
                 store {result} {value}, ptr addrspace(1) %r{i}.at, align 4\n",
                self.c.held * self.c.ty.bytes()
            );
            offset += bytes_of(result);
        }
        text
    }

    fn check(&self) {
        let [m, n, k] = self.size;
        let random = words(m * k + k * n + m * n, 17);
        let number = |word: u32, ty: Ty| {
            let signed = (word % 15) as i32 - 7;
            if ty == Ty::U8 { (word % 200) as i32 } else { signed }
        };
        let a: Vec<i32> = random[..m * k].iter().map(|&word| number(word, self.a.ty)).collect();
        let b: Vec<i32> = random[m * k..m * k + k * n].iter().map(|&word| number(word, self.b.ty)).collect();
        let c: Vec<i32> = random[m * k + k * n..].iter().map(|&word| number(word, self.c.ty)).collect();
        let mut input = Vec::new();
        for lane in 0..self.lanes {
            for (operand, matrix, columns) in [(&self.a, &a, k), (&self.b, &b, n), (&self.c, &c, n)] {
                for i in 0..operand.held {
                    let (row, column) = (operand.place)(lane, i);
                    input.extend(operand.ty.encode(matrix[row * columns + column]));
                }
            }
        }
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        let result_bytes = self.lanes * self.c.held * self.c.ty.bytes();
        let mut arrays = [input.chunks_exact(4).map(word).collect(), vec![0; result_bytes / 4]];
        let kernel = Kernel::new(self.gpu, self.lanes as u32, &self.body());
        kernel.run(&mut arrays).unwrap_or_else(|fault| panic!("{}: {fault}", self.name));
        let result: Vec<u8> = arrays[1].iter().flat_map(|word| word.to_le_bytes()).collect();
        let size = self.c.ty.bytes();
        for lane in 0..self.lanes {
            for i in 0..self.c.held {
                let (row, column) = (self.c.place)(lane, i);
                let sum: i32 = (0..k).map(|k_| a[row * k + k_] * b[k_ * n + column]).sum();
                let at = (lane * self.c.held + i) * size;
                let expected = self.c.ty.encode(sum + c[row * n + column]);
                assert_eq!(
                    result[at..at + size],
                    expected,
                    "{} of {}: [{row}, {column}]",
                    self.name,
                    self.gpu
                );
            }
        }
    }
}

fn operand(
    types: &[&'static str],
    ty: Ty,
    held: usize,
    place: impl Fn(usize, usize) -> (usize, usize) + 'static,
) -> Operand {
    Operand { types: types.to_vec(), ty, held, place: Box::new(place) }
}

/// The C and D of every `mma.m16n8`.
fn accumulators(types: &[&'static str], ty: Ty) -> Operand {
    operand(types, ty, 4, |lane, i| {
        let (group, thread) = (lane >> 2, lane % 4);
        (if i < 2 { group } else { group + 8 }, thread * 2 + (i & 1))
    })
}

fn nvidia(name: &'static str, depth: usize, a: Operand, b: Operand, c: Operand) -> Product {
    Product { gpu: "sm_90a", name, lanes: 32, size: [16, 8, depth], a, b, c, extra: [""; 3] }
}

const I4: [&str; 4] = ["i32"; 4];
const F4: [&str; 4] = ["float"; 4];
const H2: &str = "<2 x half>";

/// A of m16n8k16 with 16-bit elements.
fn a_k16(types: &[&'static str], ty: Ty) -> Operand {
    operand(types, ty, 8, |lane, i| {
        let (group, thread) = (lane >> 2, lane % 4);
        let upper = i < 2 || (4..6).contains(&i);
        (if upper { group } else { group + 8 }, thread * 2 + (i & 1) + if i < 4 { 0 } else { 8 })
    })
}

fn b_k16(types: &[&'static str], ty: Ty) -> Operand {
    operand(types, ty, 4, |lane, i| (lane % 4 * 2 + (i & 1) + if i < 2 { 0 } else { 8 }, lane >> 2))
}

fn a_k8(types: &[&'static str], ty: Ty) -> Operand {
    operand(types, ty, 4, |lane, i| (if i < 2 { lane >> 2 } else { (lane >> 2) + 8 }, lane % 4 * 2 + (i & 1)))
}

fn b_k8(types: &[&'static str], ty: Ty) -> Operand {
    operand(types, ty, 2, |lane, i| (lane % 4 * 2 + i, lane >> 2))
}

#[test]
fn products_of_sixteen_bits() {
    nvidia(
        "llvm.nvvm.mma.m16n8k16.row.col.bf16",
        16,
        a_k16(&I4, Ty::Bf16),
        b_k16(&I4[..2], Ty::Bf16),
        accumulators(&F4, Ty::F32),
    )
    .check();
    nvidia(
        "llvm.nvvm.mma.m16n8k16.row.col.f32.f32",
        16,
        a_k16(&[H2; 4], Ty::F16),
        b_k16(&[H2; 2], Ty::F16),
        accumulators(&F4, Ty::F32),
    )
    .check();
    nvidia(
        "llvm.nvvm.mma.m16n8k16.row.col.f16.f16",
        16,
        a_k16(&[H2; 4], Ty::F16),
        b_k16(&[H2; 2], Ty::F16),
        accumulators(&[H2; 2], Ty::F16),
    )
    .check();
    nvidia(
        "llvm.nvvm.mma.m16n8k8.row.col.bf16",
        8,
        a_k8(&I4[..2], Ty::Bf16),
        b_k8(&I4[..1], Ty::Bf16),
        accumulators(&F4, Ty::F32),
    )
    .check();
    nvidia(
        "llvm.nvvm.mma.m16n8k8.row.col.f32.f32",
        8,
        a_k8(&[H2; 2], Ty::F16),
        b_k8(&[H2], Ty::F16),
        accumulators(&F4, Ty::F32),
    )
    .check();
}

#[test]
fn products_of_tf32() {
    let a = operand(&I4, Ty::F32, 4, |lane, i| {
        let (group, thread) = (lane >> 2, lane % 4);
        (if i == 0 || i == 2 { group } else { group + 8 }, if i < 2 { thread } else { thread + 4 })
    });
    let b = operand(&I4[..2], Ty::F32, 2, |lane, i| (lane % 4 + 4 * i, lane >> 2));
    nvidia("llvm.nvvm.mma.m16n8k8.row.col.tf32", 8, a, b, accumulators(&F4, Ty::F32)).check();
}

#[test]
fn products_of_eight_bits_of_half_the_depth() {
    let a = |ty| {
        operand(&I4[..2], ty, 8, |lane, i| {
            (if i < 4 { lane >> 2 } else { (lane >> 2) + 8 }, lane % 4 * 4 + (i & 3))
        })
    };
    let b = |ty| operand(&I4[..1], ty, 4, |lane, i| (lane % 4 * 4 + i, lane >> 2));
    nvidia("llvm.nvvm.mma.m16n8k16.row.col.s8", 16, a(Ty::S8), b(Ty::S8), accumulators(&I4, Ty::I32)).check();
    let name = "llvm.nvvm.mma.m16n8k16.row.col.satfinite.u8.s8";
    nvidia(name, 16, a(Ty::U8), b(Ty::S8), accumulators(&I4, Ty::I32)).check();
}

#[test]
fn products_of_eight_bits() {
    let a = |ty| {
        operand(&I4, ty, 16, |lane, i| {
            let (group, thread) = (lane >> 2, lane % 4);
            let upper = i < 4 || (8..12).contains(&i);
            (if upper { group } else { group + 8 }, thread * 4 + (i & 3) + if i < 8 { 0 } else { 16 })
        })
    };
    let b = |ty| {
        operand(&I4[..2], ty, 8, |lane, i| (lane % 4 * 4 + (i & 3) + if i < 4 { 0 } else { 16 }, lane >> 2))
    };
    let integer = |name, one, other| nvidia(name, 32, a(one), b(other), accumulators(&I4, Ty::I32)).check();
    integer("llvm.nvvm.mma.m16n8k32.row.col.s8", Ty::S8, Ty::S8);
    integer("llvm.nvvm.mma.m16n8k32.row.col.u8", Ty::U8, Ty::U8);
    integer("llvm.nvvm.mma.m16n8k32.row.col.s8.u8", Ty::S8, Ty::U8);
    let float = |name, one, other| nvidia(name, 32, a(one), b(other), accumulators(&F4, Ty::F32)).check();
    float("llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32", Ty::E4m3, Ty::E4m3);
    float("llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e5m2.f32", Ty::E4m3, Ty::E5m2);
}

/// An `mfma` whose lanes hold `held` consecutive elements of k.
fn mfma(
    gpu: &'static str,
    name: &'static str,
    [size, depth]: [usize; 2],
    ab: (&'static str, Ty, Ty),
    result: (&'static str, Ty),
) -> Product {
    let held = depth * size / 64;
    let (ty, a, b) = ab;
    let a = operand(&[ty], a, held, move |lane, i| (lane % size, held * (lane / size) + i));
    let b = operand(&[ty], b, held, move |lane, i| (held * (lane / size) + i, lane % size));
    let c = operand(&[result.0], result.1, size * size / 64, move |lane, i| match size {
        _ if result.1 == Ty::F64 => (4 * i + lane / 16, lane % 16),
        16 => (4 * (lane / 16) + i, lane % 16),
        _ => (8 * (i / 4) + 4 * (lane / 32) + i % 4, lane % 32),
    });
    let modifiers = ["", "", "i32 0, i32 0, i32 0"];
    Product { gpu, name, lanes: 64, size: [size, size, depth], a, b, c, extra: modifiers }
}

#[test]
fn products_of_cdna() {
    let (f4, f16s) = (("<4 x float>", Ty::F32), ("<16 x float>", Ty::F32));
    let (half, short) = (("<4 x half>", Ty::F16, Ty::F16), ("<4 x i16>", Ty::Bf16, Ty::Bf16));
    for gpu in ["gfx90a", "gfx942"] {
        mfma(gpu, "llvm.amdgcn.mfma.f32.16x16x16f16", [16, 16], half, f4).check();
        mfma(gpu, "llvm.amdgcn.mfma.f32.32x32x8f16", [32, 8], half, f16s).check();
        mfma(gpu, "llvm.amdgcn.mfma.f32.16x16x16bf16.1k", [16, 16], short, f4).check();
        mfma(gpu, "llvm.amdgcn.mfma.f32.32x32x8bf16.1k", [32, 8], short, f16s).check();
    }
    mfma("gfx942", "llvm.amdgcn.mfma.f32.16x16x4f32", [16, 4], ("float", Ty::F32, Ty::F32), f4).check();
    mfma("gfx942", "llvm.amdgcn.mfma.f32.32x32x2f32", [32, 2], ("float", Ty::F32, Ty::F32), f16s).check();
    let double = ("double", Ty::F64, Ty::F64);
    mfma("gfx942", "llvm.amdgcn.mfma.f64.16x16x4f64", [16, 4], double, ("<4 x double>", Ty::F64)).check();
}

#[test]
fn products_of_cdna_with_eight_bits_and_of_gfx950() {
    let (f4, f16s, i4, i16s) = (
        ("<4 x float>", Ty::F32),
        ("<16 x float>", Ty::F32),
        ("<4 x i32>", Ty::I32),
        ("<16 x i32>", Ty::I32),
    );
    let (half, bf16) = (("<8 x half>", Ty::F16, Ty::F16), ("<8 x bfloat>", Ty::Bf16, Ty::Bf16));
    mfma("gfx950", "llvm.amdgcn.mfma.f32.16x16x32.f16", [16, 32], half, f4).check();
    mfma("gfx950", "llvm.amdgcn.mfma.f32.32x32x16.bf16", [32, 16], bf16, f16s).check();
    mfma("gfx942", "llvm.amdgcn.mfma.i32.16x16x32.i8", [16, 32], ("i64", Ty::S8, Ty::S8), i4).check();
    mfma("gfx942", "llvm.amdgcn.mfma.i32.32x32x16.i8", [32, 16], ("i64", Ty::S8, Ty::S8), i16s).check();
    mfma("gfx950", "llvm.amdgcn.mfma.i32.16x16x64.i8", [16, 64], ("<4 x i32>", Ty::S8, Ty::S8), i4).check();
    mfma("gfx950", "llvm.amdgcn.mfma.f32.16x16x32.fp8.bf8", [16, 32], ("i64", Ty::E4m3, Ty::E5m2), f4)
        .check();
    mfma("gfx950", "llvm.amdgcn.mfma.i32.32x32x32.i8", [32, 32], ("<4 x i32>", Ty::S8, Ty::S8), i16s).check();
    mfma("gfx950", "llvm.amdgcn.mfma.f32.32x32x16.bf8.fp8", [32, 16], ("i64", Ty::E5m2, Ty::E4m3), f16s)
        .check();
    for (formats, a, b) in [
        ("i32 0, i32 1, i32 0, i32 0, i32 0, i32 0", Ty::E4m3, Ty::E5m2),
        ("i32 1, i32 0, i32 0, i32 0, i32 0, i32 0", Ty::E5m2, Ty::E4m3),
    ] {
        any_formats([16, 128], (formats, a, b), f4).check();
        any_formats([32, 64], (formats, a, b), f16s).check();
    }
    mfma("gfx90a", "llvm.amdgcn.mfma.i32.16x16x16i8", [16, 16], ("i32", Ty::S8, Ty::S8), i4).check();
    mfma("gfx90a", "llvm.amdgcn.mfma.i32.32x32x8i8", [32, 8], ("i32", Ty::S8, Ty::S8), i16s).check();
    let fnuz = ("i64", Ty::E4m3Fnuz, Ty::E4m3Fnuz);
    mfma("gfx942", "llvm.amdgcn.mfma.f32.16x16x32.fp8.fp8", [16, 32], fnuz, f4).check();
}

/// A product of gfx950 whose operands say the formats. A lane has 16 bytes of the lower half of k, and 16 of the upper one
/// (AMD matrix instruction calculator, `v_mfma_f32_16x16x128_f8f6f4`).
fn any_formats(
    [size, depth]: [usize; 2],
    (formats, a, b): (&'static str, Ty, Ty),
    result: (&'static str, Ty),
) -> Product {
    let name = match size {
        16 => "llvm.amdgcn.mfma.scale.f32.16x16x128.f8f6f4.v8i32.v8i32",
        _ => "llvm.amdgcn.mfma.scale.f32.32x32x64.f8f6f4.v8i32.v8i32",
    };
    let along = move |lane: usize, i: usize| {
        let (half, within) = if i < 16 { (0, i) } else { (depth / 2, i - 16) };
        half + 16 * (lane / size) + within
    };
    let product = mfma("gfx950", name, [size, depth], ("<8 x i32>", a, b), result);
    Product {
        a: operand(&["<8 x i32>"], a, 32, move |lane, i| (lane % size, along(lane, i))),
        b: operand(&["<8 x i32>"], b, 32, move |lane, i| (along(lane, i), lane % size)),
        extra: ["", "", formats],
        ..product
    }
}

fn wmma(
    gpu: &'static str,
    name: &'static str,
    types: [&'static str; 2],
    ty: [Ty; 2],
    extra: [&'static str; 3],
) -> Product {
    let old = gpu == "gfx1100";
    let held = if old { 16 } else { 8 };
    let first = move |lane: usize| if old { 0 } else { 8 * (lane / 16) };
    let a = operand(&[types[0]], ty[0], held, move |lane, i| (lane % 16, first(lane) + i));
    let b = operand(&[types[0]], ty[0], held, move |lane, i| (first(lane) + i, lane % 16));
    let c = operand(&[types[1]], ty[1], 8, move |lane, i| {
        (if old { 2 * i + lane / 16 } else { 8 * (lane / 16) + i }, lane % 16)
    });
    Product { gpu, name, lanes: 32, size: [16; 3], a, b, c, extra }
}

#[test]
fn products_of_rdna() {
    let f8 = "<8 x float>";
    let none = [""; 3];
    wmma(
        "gfx1100",
        "llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v16f16",
        ["<16 x half>", f8],
        [Ty::F16, Ty::F32],
        none,
    )
    .check();
    wmma(
        "gfx1100",
        "llvm.amdgcn.wmma.f32.16x16x16.bf16.v8f32.v16i16",
        ["<16 x i16>", f8],
        [Ty::Bf16, Ty::F32],
        none,
    )
    .check();
    wmma(
        "gfx1201",
        "llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v8f16",
        ["<8 x half>", f8],
        [Ty::F16, Ty::F32],
        none,
    )
    .check();
    wmma(
        "gfx1201",
        "llvm.amdgcn.wmma.f32.16x16x16.bf16.v8f32.v8i16",
        ["<8 x i16>", f8],
        [Ty::Bf16, Ty::F32],
        none,
    )
    .check();
    let name = "llvm.amdgcn.wmma.f32.16x16x16.fp8.fp8.v8f32.v2i32";
    wmma("gfx1201", name, ["<2 x i32>", f8], [Ty::E4m3, Ty::F32], none).check();
    let name = "llvm.amdgcn.wmma.f32.16x16x16.bf8.bf8.v8f32.v2i32";
    wmma("gfx1201", name, ["<2 x i32>", f8], [Ty::E5m2, Ty::F32], none).check();
    for (sign, ty) in [("i1 true", Ty::S8), ("i1 false", Ty::U8)] {
        let signs = [sign, sign, "i1 false"];
        let i8s = "<8 x i32>";
        wmma(
            "gfx1100",
            "llvm.amdgcn.wmma.i32.16x16x16.iu8.v8i32.v4i32",
            ["<4 x i32>", i8s],
            [ty, Ty::I32],
            signs,
        )
        .check();
        wmma(
            "gfx1201",
            "llvm.amdgcn.wmma.i32.16x16x16.iu8.v8i32.v2i32",
            ["<2 x i32>", i8s],
            [ty, Ty::I32],
            signs,
        )
        .check();
    }
}

#[test]
fn halves_of_a_wave_that_differ_are_told() {
    let body = "  %v = insertelement <16 x i16> zeroinitializer, i16 1, i32 0\n  \
                %late = icmp ugt i32 %tid, 15\n  \
                %x = select i1 %late, <16 x i16> %v, <16 x i16> zeroinitializer\n  \
                %d = call <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.bf16.v8f32.v16i16(<16 x i16> %x, \
                <16 x i16> zeroinitializer, <8 x float> zeroinitializer)\n";
    assert!(matches!(problem("gfx1100", 32, body), Problem::Misuse(_)));
    let cbsz = "  %d = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x4f32(float 0.0, float 0.0, \
                <4 x float> zeroinitializer, i32 1, i32 0, i32 0)\n";
    assert!(matches!(problem("gfx942", 64, cbsz), Problem::Misuse(_)));
    let four_bits = "  %d = call <4 x float> @llvm.amdgcn.mfma.scale.f32.16x16x128.f8f6f4.v8i32.v8i32(<8 x i32> \
                     zeroinitializer, <8 x i32> zeroinitializer, <4 x float> zeroinitializer, i32 4, i32 0, i32 0, i32 127, \
                     i32 0, i32 127)\n";
    assert!(matches!(problem("gfx950", 64, four_bits), Problem::Misuse(_)));
}
