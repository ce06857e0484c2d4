//! AMX's instructions on a processor without them: each raises `SIGILL`, whose handler does what it says, and the program goes
//! on behind it.
//!
//! So a kernel's machine code is run as it is. What each instruction does, and when a processor would refuse it, is written
//! down from "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 2, and no more than LLVM makes of the
//! intrinsics: addresses of a base, an index and a displacement. What isn't such an instruction ends the program, as it would
//! without this.

use std::cell::UnsafeCell;
use std::sync::Once;

const TILES: usize = 8;
const ROWS: usize = 16;
const ROW_BYTES: usize = 64;

/// A thread's tiles.
struct Tiles {
    is_configured: bool,
    /// Rows that each has.
    rows: [usize; TILES],
    /// Bytes that each row has.
    bytes: [usize; TILES],
    held: [[[u8; ROW_BYTES]; ROWS]; TILES],
}

const RELEASED: Tiles = Tiles {
    is_configured: false,
    rows: [0; TILES],
    bytes: [0; TILES],
    held: [[[0; ROW_BYTES]; ROWS]; TILES],
};

thread_local! {
    static OWN: UnsafeCell<Tiles> = const { UnsafeCell::new(RELEASED) };
}

/// Lets this process's threads run AMX's instructions on any processor from now on.
pub(crate) fn emulate() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: a structure of numbers and of pointers that may be null.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_flags = libc::SA_SIGINFO;
        action.sa_sigaction = on_refusal as *const () as usize;
        // SAFETY: the handler has the signature that the flag asks for, and nobody else handles this signal.
        assert_eq!(unsafe { libc::sigaction(libc::SIGILL, &raw const action, std::ptr::null_mut()) }, 0);
    });
}

/// The registers of a context by their numbers in instructions.
const REGISTERS: [i32; 16] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];

extern "C" fn on_refusal(signal: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system hands the interrupted thread's registers to a handler with `SA_SIGINFO`.
    let kept = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let registers = REGISTERS.map(|register| kept[register as usize] as u64);
    let next = kept[libc::REG_RIP as usize] as *const u8;
    // SAFETY: code that raised the signal is mapped, in whole instructions; the tiles are this thread's, and code between
    // two of its instructions has no reference to them.
    let length = OWN.with(|tiles| unsafe { Instruction::at(next, &registers)?.execute(&mut *tiles.get()) });
    match length {
        Some(length) => kept[libc::REG_RIP as usize] += length as i64,
        // SAFETY: the signal's own handling, which the same instruction meets when this returns.
        None => drop(unsafe { libc::signal(signal, libc::SIG_DFL) }),
    }
}

/// An instruction as its bytes have it.
struct Instruction {
    /// What comes before the opcode: 0 for nothing, 1 for `66`, 2 for `F3`, 3 for `F2`.
    prefix: u8,
    opcode: u8,
    register: usize,
    operand: Operand,
    /// The register that stands in the prefix.
    further: usize,
    bytes: usize,
}

enum Operand {
    Register(usize),
    /// An address, and how far its rows are from each other.
    Memory(u64, u64),
}

impl Instruction {
    /// Decodes one of the map `0F38` with a `VEX` prefix of three bytes (chapter 2.3).
    ///
    /// # Safety
    /// A whole instruction is there.
    unsafe fn at(code: *const u8, registers: &[u64; 16]) -> Option<Instruction> {
        // SAFETY: the caller vouches for the instruction, of which no byte is read that what is before it doesn't announce.
        let byte = |i: usize| unsafe { *code.add(i) };
        if byte(0) != 0xc4 || byte(1) & 0x1f != 2 || byte(2) & 0x84 != 0 {
            return None;
        }
        // Bits of the prefix are inverted.
        let high = |bit: u8| usize::from(!byte(1) >> bit & 1) << 3;
        let (further, prefix, opcode) = (usize::from(!byte(2) >> 3 & 15), byte(2) & 3, byte(3));
        let (mode, low) = (byte(4) >> 6, usize::from(byte(4) & 7));
        let register = usize::from(byte(4) >> 3 & 7) | high(7);
        let instruction = |operand, bytes| Instruction { prefix, opcode, register, operand, further, bytes };
        if mode == 3 {
            return Some(instruction(Operand::Register(low | high(5)), 5));
        }
        let displacement = |from: usize, bytes: usize| match bytes {
            0 => 0,
            1 => i64::from(byte(from) as i8),
            _ => i64::from(i32::from_le_bytes([0, 1, 2, 3].map(|i| byte(from + i)))),
        };
        let (mut end, mut address, mut stride) = (5, 0, 0);
        let mut is_absolute = false;
        if low == 4 {
            let (scale, index, base) = (byte(5) >> 6, byte(5) >> 3 & 7, usize::from(byte(5) & 7));
            let index = usize::from(index) | high(6);
            end = 6;
            stride = if index == 4 { 0 } else { registers[index] << scale };
            is_absolute = base == 5 && mode == 0;
            address = if is_absolute { 0 } else { registers[base | high(5)] };
        } else if low != 5 || mode != 0 {
            address = registers[low | high(5)];
        }
        let is_relative = low == 5 && mode == 0;
        let further_bytes = match mode {
            0 if is_relative || is_absolute => 4,
            0 => 0,
            1 => 1,
            _ => 4,
        };
        address = address.wrapping_add_signed(displacement(end, further_bytes));
        end += further_bytes;
        if is_relative {
            address = address.wrapping_add(code as u64 + end as u64);
        }
        Some(instruction(Operand::Memory(address, stride), end))
    }

    /// Does it, and says how many bytes it has.
    ///
    /// # Safety
    /// What the instruction reads and writes is memory that it may.
    unsafe fn execute(&self, tiles: &mut Tiles) -> Option<usize> {
        let target = self.register;
        match (self.opcode, self.prefix, &self.operand) {
            // SAFETY: the caller vouches for the memory.
            (0x49, 0, &Operand::Memory(address, _)) => unsafe { tiles.configure(address as *const u8) },
            (0x49, 0, Operand::Register(0)) => *tiles = RELEASED,
            (0x49, 3, Operand::Register(0)) => {
                tiles.check(target);
                tiles.held[target] = [[0; ROW_BYTES]; ROWS];
            }
            // The second is `TILELOADDT1`, which differs in what stays in caches.
            // SAFETY: the caller vouches for the memory.
            (0x4b, 3 | 1, &Operand::Memory(address, stride)) => unsafe {
                tiles.load(target, address, stride)
            },
            // SAFETY: the caller vouches for the memory.
            (0x4b, 2, &Operand::Memory(address, stride)) => unsafe { tiles.store(target, address, stride) },
            (0x5c, 2, &Operand::Register(a)) => {
                tiles.multiply(target, [a, self.further], [pair, pair], add_pairs);
            }
            (0x5e, prefix, &Operand::Register(a)) => {
                let read = [2, 1].map(|sign| move |word| bytes(word, prefix & sign != 0));
                tiles.multiply(target, [a, self.further], read, add_bytes);
            }
            _ => return None,
        }
        Some(self.bytes)
    }
}

impl Tiles {
    /// `LDTILECFG`.
    ///
    /// # Safety
    /// 64 bytes are there.
    unsafe fn configure(&mut self, address: *const u8) {
        // SAFETY: the caller vouches for them.
        let bytes = unsafe { *address.cast::<[u8; 64]>() };
        assert_eq!(bytes[0], 1, "the palette of eight tiles");
        assert!(bytes[1..16].iter().chain(&bytes[32..48]).chain(&bytes[56..]).all(|&byte| byte == 0));
        *self = Tiles { is_configured: true, ..RELEASED };
        for tile in 0..TILES {
            let row = usize::from(u16::from_le_bytes([bytes[16 + 2 * tile], bytes[17 + 2 * tile]]));
            let rows = usize::from(bytes[48 + tile]);
            assert!(
                row <= ROW_BYTES && rows <= ROWS && (row == 0) == (rows == 0),
                "{rows} rows of {row} bytes"
            );
            (self.rows[tile], self.bytes[tile]) = (rows, row);
        }
    }

    fn check(&self, tile: usize) {
        assert!(self.is_configured && self.rows[tile] > 0, "tile {tile} has no rows");
    }

    /// # Safety
    /// The rows are there.
    unsafe fn load(&mut self, tile: usize, address: u64, stride: u64) {
        self.check(tile);
        self.held[tile] = [[0; ROW_BYTES]; ROWS];
        for row in 0..self.rows[tile] {
            let from = address.wrapping_add(stride.wrapping_mul(row as u64)) as *const u8;
            // SAFETY: the caller vouches for the row.
            unsafe {
                from.copy_to_nonoverlapping(self.held[tile][row].as_mut_ptr(), self.bytes[tile]);
            }
        }
    }

    /// # Safety
    /// The rows are there.
    unsafe fn store(&self, tile: usize, address: u64, stride: u64) {
        self.check(tile);
        for row in 0..self.rows[tile] {
            let to = address.wrapping_add(stride.wrapping_mul(row as u64)) as *mut u8;
            // SAFETY: the caller vouches for the row.
            unsafe { to.copy_from_nonoverlapping(self.held[tile][row].as_ptr(), self.bytes[tile]) };
        }
    }

    /// Adds products of words of `a` and of words of `b`, 32 bits each, to words of a tile of sums. What numbers words of the
    /// two have `read` says, and `add` adds the products of such numbers along K.
    fn multiply<N: Copy>(
        &mut self,
        sums: usize,
        [a, b]: [usize; 2],
        read: [impl Fn(Word) -> N; 2],
        add: impl Fn(Word, &[N], &[N]) -> Word,
    ) {
        [sums, a, b].into_iter().for_each(|tile| self.check(tile));
        assert!(sums != a && sums != b && a != b, "tiles of one instruction differ");
        assert_eq!(self.rows[sums], self.rows[a], "rows of sums and of the first factor");
        assert_eq!(self.bytes[sums], self.bytes[b], "columns of sums and of the second factor");
        assert_eq!(self.bytes[a], 4 * self.rows[b], "neighbours along K");
        let (depth, columns) = (self.rows[b], self.bytes[sums] / 4);
        let held = &self.held;
        let left = |row: usize| std::array::from_fn::<N, ROWS, _>(|k| read[0](word(&held[a][row], k)));
        let right = |column: usize| std::array::from_fn::<N, ROWS, _>(|k| read[1](word(&held[b][k], column)));
        let left: [_; ROWS] = std::array::from_fn(left);
        let right: [_; ROW_BYTES / 4] = std::array::from_fn(right);
        for (row, left) in self.held[sums].iter_mut().zip(&left).take(self.rows[sums]) {
            for (column, right) in right[..columns].iter().enumerate() {
                let sum = add(word(row, column), &left[..depth], &right[..depth]);
                row[4 * column..][..4].copy_from_slice(&sum);
            }
        }
    }
}

/// 32 bits.
type Word = [u8; 4];

/// A word of a row.
fn word(row: &[u8; ROW_BYTES], number: usize) -> Word {
    let at = 4 * number;
    [row[at], row[at + 1], row[at + 2], row[at + 3]]
}

/// Subnormal numbers are zeros.
fn flushed(number: f32) -> f32 {
    if number.is_subnormal() { 0.0_f32.copysign(number) } else { number }
}

/// Two numbers of bf16.
fn pair(word: Word) -> [f32; 2] {
    let [a, b, c, d] = word;
    [flushed(f32::from_le_bytes([0, 0, a, b])), flushed(f32::from_le_bytes([0, 0, c, d]))]
}

/// `TDPBF16PS`: a sum of first neighbours' products, one of second ones', and then both and what was there.
fn add_pairs(before: Word, left: &[[f32; 2]], right: &[[f32; 2]]) -> Word {
    let [mut first, mut second] = [0.0_f32; 2];
    for (a, b) in left.iter().zip(right) {
        first = flushed(a[0].mul_add(b[0], first));
        second = flushed(a[1].mul_add(b[1], second));
    }
    flushed(flushed(f32::from_le_bytes(before)) + flushed(first + second)).to_le_bytes()
}

/// Four numbers of 8 bits.
fn bytes(word: Word, are_signed: bool) -> [i32; 4] {
    let [a, b, c, d] = word;
    let number = |byte: u8| if are_signed { i32::from(byte as i8) } else { i32::from(byte) };
    [number(a), number(b), number(c), number(d)]
}

/// `TDPBSSD`, `TDPBSUD`, `TDPBUSD` and `TDPBUUD`, by what the bytes are read as: sums of four products, which wrap around.
fn add_bytes(before: Word, left: &[[i32; 4]], right: &[[i32; 4]]) -> Word {
    let mut sum = i32::from_le_bytes(before);
    for (a, b) in left.iter().zip(right) {
        sum = sum.wrapping_add(a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]);
    }
    sum.to_le_bytes()
}

/// What instructions do here, beside a processor that has them.
mod instructions {
    use super::*;
    use half::bf16;
    use proptest::prelude::*;
    use std::arch::naked_asm;
    use tile_ir::target::grants_tiles;

    /// Bytes of a whole tile.
    const TILE: usize = ROWS * ROW_BYTES;

    /// Where the first factor, the second and sums are behind a configuration.
    const A: usize = 64;
    const B: usize = A + TILE;
    const SUMS: usize = B + TILE;

    /// A function of AMX's instructions alone, which finds what they work on by all kinds of addresses that are decoded: of
    /// memory as above, the first factor in it, twice what isn't read, the sums, and how far rows are from each other.
    type Probe = extern "C" fn(*mut u8, *mut u8, u64, u64, *mut u8, u64);

    macro_rules! probes {
        ($($name:ident)*) => {$(
            #[unsafe(naked)]
            extern "C" fn $name(_: *mut u8, _: *mut u8, _: u64, _: u64, _: *mut u8, _: u64) {
                naked_asm!(
                    "ldtilecfg [rdi]",
                    "tileloadd tmm7, [rdi + r9 + 64]",
                    "tilezero tmm7",
                    "tileloadd tmm0, [r8 + r9]",
                    "tileloaddt1 tmm6, [rdi + r9 + 64]",
                    "tileloadd tmm5, [rsi + r9 + 1024]",
                    concat!(stringify!($name), " tmm0, tmm6, tmm5"),
                    "tilestored [r8 + r9], tmm0",
                    "tilestored [rdi + r9 + 64], tmm7",
                    "tilerelease",
                    "ret",
                )
            }
        )*};
    }

    probes! { tdpbf16ps tdpbssd tdpbsud tdpbusd tdpbuud }

    /// Memory of a probe for so many rows, columns and words along K.
    fn memory([rows, columns, depth]: [usize; 3], bytes: &[u8]) -> Vec<u8> {
        let mut configuration = [0; 64];
        configuration[0] = 1;
        for (tile, [rows, columns]) in
            [(0, [rows, columns]), (6, [rows, depth]), (5, [depth, columns]), (7, [rows, depth])]
        {
            configuration[16 + 2 * tile] = 4 * columns as u8;
            configuration[48 + tile] = rows as u8;
        }
        [&configuration, bytes].concat()
    }

    fn arguments(memory: &mut [u8]) -> [u64; 6] {
        let address = memory.as_mut_ptr() as u64;
        [address, address + A as u64, 0, 0, address + SUMS as u64, ROW_BYTES as u64]
    }

    /// What a processor leaves of the memory.
    fn by_processor(probe: Probe, mut memory: Vec<u8>) -> Vec<u8> {
        let [all, a, _, _, sums, stride] = arguments(&mut memory);
        probe(all as *mut u8, a as *mut u8, 0, 0, sums as *mut u8, stride);
        memory
    }

    /// What this module leaves of it.
    fn by_instruction(probe: Probe, mut memory: Vec<u8>) -> Vec<u8> {
        const RETURN: u8 = 0xc3;
        let mut registers = [0; 16];
        for (register, argument) in [7, 6, 2, 1, 8, 9].into_iter().zip(arguments(&mut memory)) {
            registers[register] = argument;
        }
        let (mut tiles, mut code) = (RELEASED, probe as *const u8);
        // SAFETY: the code is that of a probe, whose instructions are AMX's up to one that returns; what they read and write
        // is the memory above.
        unsafe {
            while *code != RETURN {
                let bytes = Instruction::at(code, &registers).and_then(|one| one.execute(&mut tiles));
                code = code.add(bytes.expect("an instruction that is known"));
            }
        }
        assert!(!tiles.is_configured);
        memory
    }

    /// Rows of sums, of so many words each.
    fn sums_of(memory: &[u8], [rows, columns, _]: [usize; 3]) -> Vec<Word> {
        let word = |row: usize, column: usize| {
            memory[SUMS + row * ROW_BYTES + 4 * column..][..4].try_into().unwrap()
        };
        (0..rows).flat_map(|row| (0..columns).map(move |column| word(row, column))).collect()
    }

    /// The sums as integers say, of bytes as the function reads them.
    fn expected(memory: &[u8], [rows, columns, depth]: [usize; 3], signs: [bool; 2]) -> Vec<Word> {
        let at = |from: usize, row: usize, byte: usize, is_signed: bool| {
            let byte = memory[from + row * ROW_BYTES + byte];
            if is_signed { i64::from(byte.cast_signed()) } else { i64::from(byte) }
        };
        let mut sums = sums_of(memory, [rows, columns, depth]);
        for (i, sum) in sums.iter_mut().enumerate() {
            let (row, column) = (i / columns, i % columns);
            let products =
                (0..4 * depth).map(|k| at(A, row, k, signs[0]) * at(B, k / 4, 4 * column + k % 4, signs[1]));
            *sum = ((i64::from(i32::from_le_bytes(*sum)) + products.sum::<i64>()) as i32).to_le_bytes();
        }
        sums
    }

    fn sizes() -> impl Strategy<Value = [usize; 3]> {
        [1..=ROWS, 1..=ROWS, 1..=ROWS]
    }

    proptest! {
        #[test]
        fn of_bytes(sizes in sizes(), bytes in prop::collection::vec(any::<u8>(), 3 * TILE)) {
            let probes: [(Probe, [bool; 2]); 4] =
                [(tdpbssd, [true, true]), (tdpbsud, [true, false]), (tdpbusd, [false, true]), (tdpbuud, [false, false])];
            for (probe, signs) in probes {
                let memory = memory(sizes, &bytes);
                let found = by_instruction(probe, memory.clone());
                prop_assert_eq!(sums_of(&found, sizes), expected(&memory, sizes, signs));
                if grants_tiles() {
                    prop_assert_eq!(found, by_processor(probe, memory));
                }
            }
        }

        /// Of numbers of which some are subnormal, and all sums finite: bit for bit what a processor gives.
        #[test]
        fn of_pairs(sizes in sizes(), numbers in prop::collection::vec((any::<u16>(), 0_u8..5), 3 * TILE / 2)) {
            let number = |(bits, exponent): (u16, u8)| match exponent {
                0 => bits & 0x807f,
                1 => bits & 0x80ff,
                _ => bits & 0x83ff | 0x3e00,
            };
            let bytes: Vec<u8> = numbers.into_iter().map(number).flat_map(u16::to_le_bytes).collect();
            let memory = memory(sizes, &bytes);
            let found = by_instruction(tdpbf16ps, memory.clone());
            let [rows, columns, depth] = sizes;
            let float = |memory: &[u8], at: usize| f64::from(f32::from_le_bytes(memory[at..][..4].try_into().unwrap()));
            let half = |at: usize| bf16::from_le_bytes([memory[at], memory[at + 1]]).to_f64();
            for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                let at = SUMS + row * ROW_BYTES + 4 * column;
                let products = (0..2 * depth).map(|k| {
                    half(A + row * ROW_BYTES + 2 * k) * half(B + k / 2 * ROW_BYTES + 4 * column + 2 * (k % 2))
                });
                let sum = float(&memory, at) + products.sum::<f64>();
                prop_assert!((float(&found, at) - sum).abs() < 1e-5 * (1.0 + sum.abs()), "{sum}");
            }
            if grants_tiles() {
                prop_assert_eq!(found, by_processor(tdpbf16ps, memory));
            }
        }
    }
}
