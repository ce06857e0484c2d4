//! Products with sums in tensor memory: a warp allocates it, one of its threads issues products, and a warpgroup loads
//! what they gave. They are right whatever is done first; what isn't is in [`faults`].

mod faults;

use super::harness::{Kernel, SHARED_BYTES, copy_to_shared, words};
use super::wgmma::Place;
use crate::simt::{Fault, Timing};
use half::{bf16, f16};
use tile_test_edit::Edit;

const THREADS: u32 = 160;
const BOTH: [Timing; 2] = [Timing::Late, Timing::Early];

/// Bytes at the end of shared memory that are no matrix's: two mbarriers and the address of tensor memory.
const OWN_BYTES: usize = 2048;
const DONE: usize = SHARED_BYTES - OWN_BYTES;
const FREE: usize = DONE + 8;
const WHERE: usize = DONE + 16;

const PROXY: &str = "  call void @llvm.nvvm.fence.proxy.async.shared_cta()\n";
const BARRIER: &str = "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n";
const BEFORE: &str = "  call void @llvm.nvvm.tcgen05.fence.before.thread.sync()\n";
const AFTER: &str = "  call void @llvm.nvvm.tcgen05.fence.after.thread.sync()\n";
const COMMIT: &str = "  call void @llvm.nvvm.tcgen05.commit.shared.cg1(ptr addrspace(3) %done)\n";
const RELINQUISH: &str = "  call void @llvm.nvvm.tcgen05.relinq.alloc.permit.cg1()\n";

/// One factor: where it lies, which numbers it has, and the bits of each.
#[derive(Clone, Copy)]
struct Factor {
    place: Place,
    encode: fn(i32) -> u32,
    unsigned: bool,
}

impl Factor {
    fn descriptor(self) -> u64 {
        let (leading, stride) = self.place.offsets();
        let mode: u64 = match self.place.swizzle {
            0 => 0,
            128 => 2,
            64 => 4,
            _ => 6,
        };
        (leading as u64 >> 4) << 16 | (stride as u64 >> 4) << 32 | 1 << 46 | mode << 61
    }

    fn numbers(self, seed: u32) -> Vec<i32> {
        let random = words(self.place.others * self.place.depth, seed);
        let number = |word: u32| (word % 7) as i32 - if self.unsigned { 0 } else { 3 };
        random.into_iter().map(number).collect()
    }
}

/// A product of 128 rows.
#[derive(Clone, Copy)]
struct Product {
    columns: usize,
    kind: u32,
    /// Formats and signs, by the manual's table.
    fields: u32,
    a: Factor,
    b: Factor,
}

impl Product {
    fn integer(self) -> bool {
        self.kind == 3
    }

    /// The instruction descriptor, by the manual's table.
    fn instruction(self) -> u32 {
        let sums = if self.integer() { 2 } else { 1 };
        let majors = u32::from(!self.a.place.k_major) << 15 | u32::from(!self.b.place.k_major) << 16;
        8 << 24 | (self.columns as u32 / 8) << 17 | majors | sums << 4 | self.fields
    }

    /// Sums at `%base`, of the descriptors `%da` and `%db`.
    fn multiply(self, adds: bool) -> String {
        self.multiply_at("%d", adds)
    }

    fn multiply_at(self, sums: &str, adds: bool) -> String {
        format!(
            "  call void @llvm.nvvm.tcgen05.mma.shared(ptr addrspace(6) {sums}, i64 %da, i64 %db, i32 {}, i1 {adds}, \
             i32 {}, i32 1, i32 0)\n",
            self.instruction(),
            self.kind
        )
    }

    fn numbers(self) -> [Vec<i32>; 2] {
        [self.a.numbers(21), self.b.numbers(22)]
    }

    fn image(self) -> Vec<u32> {
        let mut image = vec![0u8; SHARED_BYTES];
        for (factor, numbers) in [self.a, self.b].into_iter().zip(self.numbers()) {
            let place = factor.place;
            for (i, &number) in numbers.iter().enumerate() {
                let at = place.byte(i / place.depth, i % place.depth);
                image[at..at + place.bytes]
                    .copy_from_slice(&(factor.encode)(number).to_le_bytes()[..place.bytes]);
            }
        }
        image.chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect()
    }

    /// What comes before anybody multiplies: factors in shared memory, mbarriers, and tensor memory of so many columns.
    fn prepare(self, columns: usize) -> String {
        let mut text = copy_to_shared(SHARED_BYTES - OWN_BYTES, THREADS as usize);
        for (name, byte) in [("done", DONE), ("free", FREE), ("where", WHERE)] {
            text += &format!("  %{name} = getelementptr i8, ptr addrspace(3) @shared, i32 {byte}\n");
        }
        for (name, factor) in [("da", self.a), ("db", self.b)] {
            text += &format!(
                "  %{name}.base = ptrtoint ptr addrspace(3) @shared to i64\n  \
                 %{name}.start = add i64 %{name}.base, {}\n  %{name}.field = lshr i64 %{name}.start, 4\n  \
                 %{name} = or i64 %{name}.field, {}\n",
                factor.place.start,
                factor.descriptor().cast_signed()
            );
        }
        text += "  %warp = udiv i32 %tid, 32\n  %is.first = icmp eq i32 %tid, 0\n  \
                 %is.issuer = icmp eq i32 %tid, 128\n  %is.last = icmp eq i32 %warp, 4\n";
        let init = |name: &str, count: u32| {
            format!("  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) %{name}, i32 {count})\n")
        };
        text += &only("is.first", "init", &(init("done", 1) + &init("free", 128)));
        text += &only("is.last", "alloc", &format!("{}{RELINQUISH}", allocate(columns)));
        format!("{text}{PROXY}{BARRIER}{ADDRESS}")
    }

    /// Each thread of the warpgroup loads its part of the sums and stores it to `%b`.
    fn load(self) -> String {
        let mut text = "  %rows = shl i32 %warp, 21\n  %low = add i32 %base, %rows\n  \
                        %high = add i32 %low, 1048576\n"
            .to_owned();
        let (element, format) = if self.integer() { ("i32", "s32") } else { ("float", "f32") };
        let count = self.columns / 2;
        let ty = format!("{{ {} }}", vec![element; count].join(", "));
        text += &format!("  %first = mul i32 %tid, {}\n", self.columns);
        for (half, name) in ["low", "high"].into_iter().enumerate() {
            text += &format!(
                "  %{name}.p = inttoptr i32 %{name} to ptr addrspace(6)\n  \
                 %{name}.v = call {ty} @tile.tcgen05.load.16x256b.x{}.{format}(ptr addrspace(6) %{name}.p)\n",
                self.columns / 8
            );
            for i in 0..count {
                text += &format!(
                    "  %{name}.v{i} = extractvalue {ty} %{name}.v, {i}\n  %{name}.n{i} = add i32 %first, {}\n  \
                     %{name}.o{i} = getelementptr i32, ptr addrspace(1) %b, i32 %{name}.n{i}\n  \
                     store {element} %{name}.v{i}, ptr addrspace(1) %{name}.o{i}\n",
                    half * count + i
                );
            }
        }
        only("is.loader", "load", &text)
    }

    /// A whole kernel: thread 128 does this, then the warpgroup loads.
    fn body(self, issue: &str) -> String {
        let columns = self.columns.max(32);
        format!(
            "{}  %is.loader = icmp ult i32 %tid, 128\n{}{}{AFTER}{}{BARRIER}{}",
            self.prepare(columns),
            only("is.issuer", "issue", &format!("{issue}{COMMIT}")),
            wait("end", "done", 0),
            self.load(),
            free(columns)
        )
    }

    fn run(self, body: &str, timing: Timing) -> Result<Vec<u32>, Fault> {
        let mut arrays = [self.image(), vec![0; 128 * self.columns]];
        Kernel::new("sm_100a", THREADS, body).run_blocks(&mut arrays, 1, timing)?;
        Ok(std::mem::take(&mut arrays[1]))
    }

    /// Compares with a triple loop, so many times, at the places that the manual's figures give.
    fn compare(self, result: &[u32], times: i32) {
        let [a, b] = self.numbers();
        let (depth, half) = (self.a.place.depth, self.columns / 2);
        for thread in 0..128 {
            for i in 0..self.columns {
                let (warp, lane, word) = (thread / 32, thread % 32, i % half);
                let row = 32 * warp + 16 * (i / half) + lane / 4 + if word % 4 < 2 { 0 } else { 8 };
                let column = word / 4 * 8 + lane % 4 * 2 + word % 2;
                let sum: i32 = (0..depth).map(|k| a[row * depth + k] * b[column * depth + k]).sum();
                let sum = times * sum;
                let expected = if self.integer() { sum as u32 } else { (sum as f32).to_bits() };
                assert_eq!(result[thread * self.columns + i], expected, "[{row}, {column}]");
            }
        }
    }

    fn check(self) {
        for (issue, times) in [
            (self.multiply(false), 1),
            (self.multiply(false) + &self.multiply(true), 2),
            // What isn't added to is forgotten.
            (self.multiply(false) + &self.multiply(false) + &self.multiply(true) + &self.multiply(true), 3),
        ] {
            for timing in BOTH {
                let result = self.run(&self.body(&issue), timing).unwrap_or_else(|fault| panic!("{fault}"));
                self.compare(&result, times);
            }
        }
    }

    /// A kernel that is wrong in any timing, in these words.
    fn fails(self, body: &str, expected: &str) {
        BOTH.into_iter().for_each(|timing| self.fails_in(timing, body, expected));
    }

    fn fails_in(self, timing: Timing, body: &str, expected: &str) {
        let fault = self.run(body, timing).expect_err("something is wrong");
        assert!(fault.to_string().contains(expected), "{timing:?}: {fault}\nnot: {expected}");
    }
}

/// Every thread knows the address that was written.
const ADDRESS: &str =
    "  %base = load i32, ptr addrspace(3) %where\n  %d = inttoptr i32 %base to ptr addrspace(6)\n";

fn allocate(columns: usize) -> String {
    format!("  call void @llvm.nvvm.tcgen05.alloc.shared.cg1(ptr addrspace(3) %where, i32 {columns})\n")
}

fn deallocate(columns: usize) -> String {
    format!("  call void @llvm.nvvm.tcgen05.dealloc.cg1(ptr addrspace(6) %d, i32 {columns})\n")
}

fn free(columns: usize) -> String {
    only("is.last", "dealloc", &deallocate(columns))
}

/// What the threads do of which a condition holds.
fn only(condition: &str, name: &str, what: &str) -> String {
    format!(
        "  br i1 %{condition}, label %{name}, label %{name}.on\n{name}:\n{what}  br label %{name}.on\n{name}.on:\n"
    )
}

fn wait(name: &str, barrier: &str, parity: u32) -> String {
    format!(
        "  br label %{name}\n{name}:\n  \
         %{name}.w = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) %{barrier}, i32 {parity})\n  \
         br i1 %{name}.w, label %{name}.over, label %{name}\n{name}.over:\n"
    )
}

fn as_bf16(number: i32) -> u32 {
    u32::from(bf16::from_f32(number as f32).to_bits())
}

/// A small number in a float of eight bits: those of 0 to 3.
fn as_float8(magnitudes: [u32; 4], number: i32) -> u32 {
    magnitudes[number.unsigned_abs() as usize] | if number < 0 { 0x80 } else { 0 }
}

fn factors(
    columns: usize,
    bytes: usize,
    majors: [bool; 2],
    swizzles: [usize; 2],
    encode: [fn(i32) -> u32; 2],
) -> [Factor; 2] {
    let factor = |i: usize, others, start| {
        let place =
            Place { others, depth: 32 / bytes, bytes, k_major: majors[i], swizzle: swizzles[i], start };
        Factor { place, encode: encode[i], unsigned: false }
    };
    [factor(0, 128, 0), factor(1, columns, 16384)]
}

fn bf16_product(columns: usize, majors: [bool; 2], swizzles: [usize; 2]) -> Product {
    let [a, b] = factors(columns, 2, majors, swizzles, [as_bf16; 2]);
    Product { columns, kind: 0, fields: 1 << 7 | 1 << 10, a, b }
}

fn small() -> Product {
    bf16_product(16, [true; 2], [128; 2])
}

#[test]
fn factors_with_k_first() {
    for swizzle in [0, 32, 64, 128] {
        bf16_product(32, [true; 2], [swizzle; 2]).check();
    }
    bf16_product(256, [true; 2], [128, 0]).check();
}

#[test]
fn factors_with_k_last() {
    for swizzle in [0, 32, 64, 128] {
        bf16_product(64, [false; 2], [swizzle; 2]).check();
    }
    bf16_product(64, [true, false], [128, 64]).check();
    bf16_product(16, [false, true], [0, 32]).check();
}

#[test]
fn elements_of_other_formats() {
    let as_f16: fn(i32) -> u32 = |number| u32::from(f16::from_f32(number as f32).to_bits());
    let [a, b] = factors(16, 2, [true; 2], [128; 2], [as_f16; 2]);
    Product { columns: 16, kind: 0, fields: 0, a, b }.check();
    let as_f32: fn(i32) -> u32 = |number| (number as f32).to_bits();
    let [a, b] = factors(16, 4, [true; 2], [128, 0], [as_f32; 2]);
    Product { columns: 16, kind: 1, fields: 2 << 7 | 2 << 10, a, b }.check();
    let e4m3: fn(i32) -> u32 = |number| as_float8([0, 0x38, 0x40, 0x44], number);
    let e5m2: fn(i32) -> u32 = |number| as_float8([0, 0x3c, 0x40, 0x42], number);
    let [a, b] = factors(32, 1, [true, false], [64, 32], [e4m3, e5m2]);
    Product { columns: 32, kind: 2, fields: 1 << 10, a, b }.check();
    let integer: fn(i32) -> u32 = |number| number as u32;
    let [a, b] = factors(16, 1, [false, true], [128, 32], [integer; 2]);
    Product { columns: 16, kind: 3, fields: 1 << 7 | 1 << 10, a, b }.check();
    let b = Factor { unsigned: true, ..b };
    Product { columns: 16, kind: 3, fields: 1 << 7, a, b }.check();
}

#[test]
fn factors_may_be_negated() {
    let product = small();
    for (bits, times) in [(1 << 13, -1), (1 << 14, -1), (3 << 13, 1)] {
        let negated = Product { fields: product.fields | bits, ..product };
        let body = negated.body(&negated.multiply(false));
        let result = negated.run(&body, Timing::Late).unwrap_or_else(|fault| panic!("{fault}"));
        product.compare(
            &result.iter().map(|&bits| if bits == 1 << 31 { 0 } else { bits }).collect::<Vec<_>>(),
            times,
        );
    }
}

/// Two blocks that free each other's shared memory: each waits for the products of both.
#[test]
fn a_commit_may_arrive_in_other_blocks() {
    let product = small();
    let all =
        "  call void @llvm.nvvm.barrier.cluster.arrive()\n  call void @llvm.nvvm.barrier.cluster.wait()\n";
    let rank = "  %rank = call i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()\n  %is.one = icmp eq i32 %rank, 0\n  \
                %is.low = icmp ult i32 %tid, 128\n  %is.loader = and i1 %is.low, %is.one\n";
    let commit = "  call void @llvm.nvvm.tcgen05.commit.mc.shared.cg1(ptr addrspace(3) %done, i16 3)\n";
    let right = product
        .body(&product.multiply(false))
        .replacen(BARRIER, all, 1)
        .edit("  %is.loader = icmp ult i32 %tid, 128\n", rank)
        .edit("%done, i32 1)", "%done, i32 2)")
        .edit(COMMIT, commit);
    let run = |body: &str, timing| {
        let mut arrays = [product.image(), vec![0; 128 * product.columns]];
        let run = Kernel::of_clusters("sm_100a", THREADS, 2, body).run_blocks(&mut arrays, 2, timing);
        run.map(|_| std::mem::take(&mut arrays[1]))
    };
    for timing in BOTH {
        let result = run(&right, timing).unwrap_or_else(|fault| panic!("{fault}"));
        product.compare(&result, 1);
        for (body, expected) in [
            (
                right.edit("%done, i16 3)", "%done, i16 5)"),
                "arrives in the blocks of mask 0x5, of a cluster of 2",
            ),
            (right.edit(commit, COMMIT), "waits for the phase of parity 0"),
            (right.edit(all, BARRIER), "which may not have begun"),
        ] {
            let fault = run(&body, timing).expect_err("something is wrong").to_string();
            assert!(fault.contains(expected), "{fault}");
        }
    }
}
