//! Products of a warpgroup, from the descriptors to the accumulators.

use super::harness::{Kernel, SHARED_BYTES, copy_to_shared, settled, words};
use crate::simt::{Fault, Problem, Timing};
use half::bf16;
use tile_test_edit::Edit;

/// How one matrix lies in shared memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Rows of A or columns of B.
    pub(super) others: usize,
    pub(super) depth: usize,
    pub(super) bytes: usize,
    pub(super) k_major: bool,
    /// Bytes of the swizzle, 0 for none.
    pub(super) swizzle: usize,
    pub(super) start: usize,
}

impl Place {
    /// The leading and stride byte offsets that the test's matrices have: blocks follow each other.
    pub(super) fn offsets(self) -> (usize, usize) {
        let per_piece = 16 / self.bytes;
        match (self.k_major, self.swizzle) {
            // Columns of eight pieces; first all rows, then the next piece of k.
            (true, 0) => (self.others * 16, 128),
            (true, span) => (16, 8 * span),
            (false, 0) => (self.others / per_piece * 128, 128),
            (false, span) => (self.depth / 8 * 8 * span, 8 * span),
        }
    }

    /// Where an element is, as the manual's figures show it: rows of the swizzle's width whose pieces change places.
    pub(super) fn byte(self, other: usize, k: usize) -> usize {
        let (leading, stride) = self.offsets();
        let (per_piece, span) = (16 / self.bytes, self.swizzle);
        let moved = |row: usize, piece: usize| match span {
            0 => piece,
            32 => piece ^ (row / 4),
            64 => piece ^ (row / 2),
            _ => piece ^ row,
        };
        let within = |i: usize| i % per_piece * self.bytes;
        self.start
            + match (self.k_major, span) {
                (true, 0) => other / 8 * stride + other % 8 * 16 + k / per_piece * leading + within(k),
                (true, _) => {
                    other / 8 * stride + other % 8 * span + moved(other % 8, k / per_piece) * 16 + within(k)
                }
                (false, 0) => other / per_piece * stride + k / 8 * leading + k % 8 * 16 + within(other),
                (false, _) => {
                    let line = span / self.bytes;
                    let piece = other % line / per_piece;
                    other / line * leading
                        + k / 8 * stride
                        + k % 8 * span
                        + moved(k % 8, piece) * 16
                        + within(other)
                }
            }
    }

    /// The descriptor but for the start address, by the manual's table.
    fn descriptor(self) -> u64 {
        let (leading, stride) = self.offsets();
        let mode: u64 = match self.swizzle {
            0 => 0,
            128 => 1,
            64 => 2,
            _ => 3,
        };
        (leading as u64 >> 4) << 16 | (stride as u64 >> 4) << 32 | mode << 62
    }
}

/// A product of the test.
#[derive(Clone, Copy)]
struct Product {
    name: &'static str,
    columns: usize,
    a: Place,
    b: Place,
    encode: fn(i32) -> u32,
    integer: bool,
}

const PROXY: &str = "  call void @llvm.nvvm.fence.proxy.async.shared_cta()\n";
const BARRIER: &str = "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n";
const FENCE: &str = "  call void @llvm.nvvm.wgmma.fence.sync.aligned()\n";
const COMMIT: &str = "  call void @llvm.nvvm.wgmma.commit_group.sync.aligned()\n";
const WAIT: &str = "  call void @llvm.nvvm.wgmma.wait_group.sync.aligned(i64 0)\n";

fn descriptor(name: &str, place: Place) -> String {
    format!(
        "  %{name}.base = ptrtoint ptr addrspace(3) @shared to i64\n  %{name}.start = add i64 %{name}.base, {}\n  \
         %{name}.field = lshr i64 %{name}.start, 4\n  %{name} = or i64 %{name}.field, {}\n",
        place.start,
        place.descriptor().cast_signed()
    )
}

impl Product {
    fn element(&self) -> &'static str {
        if self.integer { "i32" } else { "float" }
    }

    /// The call, with these operands for A and to add, of accumulators that are 1.
    fn call(&self, a: &str, adds: u32) -> String {
        let (element, count) = (self.element(), self.columns / 2);
        let one = if self.integer { "i32 1" } else { "float 1.0" };
        let ty = format!("{{ {} }}", vec![element; count].join(", "));
        format!(
            "  %d = call {ty} @{}({a}, i64 %db, i32 {adds}, {})\n",
            self.name,
            vec![one; count].join(", ")
        )
    }

    fn store(&self) -> String {
        let (element, count) = (self.element(), self.columns / 2);
        let ty = format!("{{ {} }}", vec![element; count].join(", "));
        let mut text = format!("  %first = mul i32 %tid, {count}\n");
        for i in 0..count {
            text += &format!("  %sum{i} = extractvalue {ty} %d, {i}\n");
        }
        let sums: Vec<String> = (0..count).map(|i| format!("%sum{i}")).collect();
        text += &settled(&sums, element, "result");
        for i in 0..count {
            text += &format!(
                "  %n{i} = add i32 %first, {i}\n  %out{i} = getelementptr i32, ptr addrspace(1) %b, i32 %n{i}\n  \
                 store {element} %result{i}, ptr addrspace(1) %out{i}\n"
            );
        }
        text
    }

    fn body(&self, adds: u32) -> String {
        let prepare = format!("{}{PROXY}{BARRIER}{FENCE}", copy_to_shared(SHARED_BYTES, 128));
        let descriptors = format!("{}{}", descriptor("da", self.a), descriptor("db", self.b));
        format!("{prepare}{descriptors}{}{COMMIT}{WAIT}{}", self.call("i64 %da", adds), self.store())
    }

    fn numbers(&self) -> [Vec<i32>; 2] {
        let count = |place: Place| place.others * place.depth;
        let random = words(count(self.a) + count(self.b), 21);
        let (a, b) = random.split_at(count(self.a));
        [a, b].map(|words| words.iter().map(|&word| (word % 7) as i32 - 3).collect())
    }

    fn image(&self) -> Vec<u32> {
        let mut image = vec![0u8; SHARED_BYTES];
        for (place, numbers) in [self.a, self.b].into_iter().zip(self.numbers()) {
            for (i, &number) in numbers.iter().enumerate() {
                let at = place.byte(i / place.depth, i % place.depth);
                image[at..at + place.bytes]
                    .copy_from_slice(&(self.encode)(number).to_le_bytes()[..place.bytes]);
            }
        }
        image.chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect()
    }

    fn run(&self, body: &str, timing: Timing) -> Result<Vec<u32>, Fault> {
        let mut arrays = [self.image(), vec![0; 64 * self.columns]];
        Kernel::new("sm_90a", 128, body).run_blocks(&mut arrays, 1, timing)?;
        Ok(std::mem::take(&mut arrays[1]))
    }

    /// Compares with a triple loop, at the places that the manual's figure gives to accumulators.
    fn compare(&self, result: &[u32], added: i32) {
        let [a, b] = self.numbers();
        let (depth, count) = (self.a.depth, self.columns / 2);
        for thread in 0..128 {
            for i in 0..count {
                let (warp, lane) = (thread / 32, thread % 32);
                let row = warp * 16 + lane / 4 + if i % 4 < 2 { 0 } else { 8 };
                let column = i / 4 * 8 + lane % 4 * 2 + i % 2;
                let sum: i32 = (0..depth).map(|k| a[row * depth + k] * b[column * depth + k]).sum();
                let expected =
                    if self.integer { (sum + added) as u32 } else { ((sum + added) as f32).to_bits() };
                assert_eq!(result[thread * count + i], expected, "{}: [{row}, {column}]", self.name);
            }
        }
    }

    fn check(&self) {
        for (adds, added) in [(1, 1), (0, 0)] {
            for timing in [Timing::Late, Timing::Early] {
                let result = self
                    .run(&self.body(adds), timing)
                    .unwrap_or_else(|fault| panic!("{}: {fault}", self.name));
                self.compare(&result, added);
            }
        }
    }
}

fn as_bf16(number: i32) -> u32 {
    u32::from(bf16::from_f32(number as f32).to_bits())
}

fn places(columns: usize, depth: usize, bytes: usize, majors: [bool; 2], swizzles: [usize; 2]) -> [Place; 2] {
    let place = |others, k_major, swizzle, start| Place { others, depth, bytes, k_major, swizzle, start };
    [place(64, majors[0], swizzles[0], 0), place(columns, majors[1], swizzles[1], 16384)]
}

fn bf16_product(name: &'static str, columns: usize, majors: [bool; 2], swizzles: [usize; 2]) -> Product {
    let [a, b] = places(columns, 16, 2, majors, swizzles);
    Product { name, columns, a, b, encode: as_bf16, integer: false }
}

#[test]
fn operands_with_k_first() {
    for swizzle in [0, 32, 64, 128] {
        bf16_product("tile.wgmma.m64n24k16.f32.bf16.bf16.ss.ka.kb", 24, [true; 2], [swizzle; 2]).check();
    }
}

#[test]
fn operands_with_k_last() {
    for swizzle in [0, 32, 64, 128] {
        bf16_product("tile.wgmma.m64n128k16.f32.bf16.bf16.ss.ma.nb", 128, [false; 2], [swizzle; 2]).check();
    }
    bf16_product("tile.wgmma.m64n64k16.f32.bf16.bf16.ss.ka.nb", 64, [true, false], [128, 64]).check();
}

#[test]
fn elements_of_other_formats() {
    let [a, b] = places(16, 8, 4, [true; 2], [128, 0]);
    let encode: fn(i32) -> u32 = |number| (number as f32).to_bits();
    Product { name: "tile.wgmma.m64n16k8.f32.tf32.tf32.ss.ka.kb", columns: 16, a, b, encode, integer: false }
        .check();
    let [a, b] = places(16, 32, 1, [true; 2], [64, 32]);
    let encode: fn(i32) -> u32 = |number| number as u32;
    Product { name: "tile.wgmma.m64n16k32.s32.s8.s8.ss.ka.kb", columns: 16, a, b, encode, integer: true }
        .check();
    // e4m3: the bits of 0, 1, 2, 3 and their signs.
    let encode: fn(i32) -> u32 =
        |number| [0, 0x38, 0x40, 0x44][number.unsigned_abs() as usize] | if number < 0 { 0x80 } else { 0 };
    Product {
        name: "tile.wgmma.m64n16k32.f32.e4m3.e4m3.ss.ka.kb",
        columns: 16,
        a,
        b,
        encode,
        integer: false,
    }
    .check();
}

#[test]
fn rows_in_registers() {
    let product = bf16_product("tile.wgmma.m64n16k16.f32.bf16.bf16.rs.kb", 16, [true; 2], [0, 128]);
    // A lies in shared memory without a swizzle; each thread loads its part by the manual's fragment of A.
    let mut load = String::new();
    for register in 0..4 {
        let place = |row: usize, k: usize| product.a.byte(row, k);
        // Rows are 16 bytes apart within eight, which the next eight follow.
        let (row, k) = (8 * (register % 2), 8 * (register / 2));
        load += &format!(
            "  %p{register} = add i32 %mine, {}\n  %at{register} = getelementptr i8, ptr addrspace(3) @shared, i32 %p{register}\n  \
             %a{register} = load i32, ptr addrspace(3) %at{register}\n",
            place(row, k)
        );
    }
    let body = format!(
        "{}{PROXY}{BARRIER}  %warp = udiv i32 %tid, 32\n  %w = mul i32 %warp, 256\n  %group = udiv i32 %lane, 4\n  \
         %g = mul i32 %group, 16\n  %part = and i32 %lane, 3\n  %pair = mul i32 %part, 4\n  %wg = add i32 %w, %g\n  \
         %mine = add i32 %wg, %pair\n{load}{FENCE}{}{}{COMMIT}{WAIT}{}",
        copy_to_shared(SHARED_BYTES, 128),
        descriptor("db", product.b),
        product.call("i32 %a0, i32 %a1, i32 %a2, i32 %a3", 1),
        product.store()
    );
    let result = product.run(&body, Timing::Late).unwrap_or_else(|fault| panic!("{fault}"));
    product.compare(&result, 1);
}

/// Of four warps that multiply together, nothing makes the last wait for what the first thread wrote.
#[test]
fn every_thread_of_a_product_must_know_its_factors() {
    let product = bf16_product("tile.wgmma.m64n8k16.f32.bf16.bf16.ss.ka.kb", 8, [true; 2], [128; 2]);
    let right = product.body(1);
    let write = format!("  store i32 0, ptr addrspace(3) @shared\n{PROXY}");
    let by_first = format!(
        "{BARRIER}  %is_first = icmp eq i32 %tid, 0\n  br i1 %is_first, label %alone, label %written\nalone:\n{write}  \
         br label %written\nwritten:\n"
    );
    let some = "  %is_early = icmp ult i32 %tid, 96\n  br i1 %is_early, label %meet, label %met\nmeet:\n  \
                call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 96)\n  br label %met\nmet:\n";
    for timing in [Timing::Late, Timing::Early] {
        let all = right.edit(BARRIER, &format!("{by_first}{BARRIER}"));
        product.run(&all, timing).unwrap_or_else(|fault| panic!("{fault}"));
        let fault = product.run(&right.edit(BARRIER, &format!("{by_first}{some}")), timing);
        let fault = fault.expect_err("a warp doesn't wait");
        let Problem::Race { earlier, writes: false, .. } = &fault.problem else { panic!("{fault}") };
        assert_eq!((fault.thread, earlier.thread), (96, Some(0)), "{fault}");
    }
}

#[test]
fn what_is_missing_is_found() {
    let product = bf16_product("tile.wgmma.m64n8k16.f32.bf16.bf16.ss.ka.kb", 8, [true; 2], [128; 2]);
    let right = product.body(1);
    let fails = |body: &str, is_expected: &dyn Fn(&Problem) -> bool| {
        for timing in [Timing::Late, Timing::Early] {
            let fault = product.run(body, timing).expect_err("something is missing");
            assert!(is_expected(&fault.problem), "{fault}");
        }
    };
    fails(&right.edit(PROXY, ""), &|problem| matches!(problem, Problem::Unfenced { .. }));
    fails(&right.edit(BARRIER, ""), &|problem| {
        matches!(problem, Problem::Race { .. } | Problem::Uninitialized { .. })
    });
    fails(
        &right.edit(FENCE, ""),
        &|problem| matches!(problem, Problem::Misuse(what) if what.contains("wgmma.fence")),
    );
    fails(
        &right.edit(WAIT, ""),
        &|problem| matches!(problem, Problem::Misuse(what) if what.contains("block ends")),
    );
    // Thread 5 writes what is being read.
    let write = "  %five = icmp eq i32 %tid, 5\n  br i1 %five, label %write, label %go\nwrite:\n  \
                 store i32 0, ptr addrspace(3) @shared\n  br label %go\ngo:\n";
    fails(
        &right.edit(WAIT, &format!("{write}{WAIT}")),
        // Others may have waited by then, which doesn't help the thread that writes.
        &|problem| matches!(problem, Problem::InFlight { .. } | Problem::Race { .. }),
    );
    // A barrier makes everybody come before anybody waits.
    fails(&right.edit(WAIT, &format!("{BARRIER}{write}{WAIT}")), &|problem| {
        matches!(problem, Problem::InFlight { .. } | Problem::Race { .. })
    });
    let after = right.edit(WAIT, &format!("{WAIT}{write}"));
    product.run(&after, Timing::Late).unwrap_or_else(|fault| panic!("{fault}"));
    // Descriptors differ among threads.
    let differs = right.edit(
        "%da = or i64 %da.field",
        "%t64 = zext i32 %tid to i64\n  %da.other = add i64 %da.field, %t64\n  %da = or i64 %da.other",
    );
    fails(&differs, &|problem| matches!(problem, Problem::NotUniform { .. }));
    let outside = right.edit("%db.base, 16384", "%db.base, 33000");
    fails(&outside, &|problem| matches!(problem, Problem::OutsideShared { .. } | Problem::Misuse(_)));
}
