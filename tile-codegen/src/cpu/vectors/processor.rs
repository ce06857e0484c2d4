//! What the emitters of CPU code need to know of a processor, by its architecture and features: instructions, and how it
//! prefetches.
//!
//! With the tables of [`crate::cpu::product`]'s dot and tile products, this is all that the CPU target knows of architectures.

use crate::cpu::product::RegisterBlock;
use crate::emit::Features;
use crate::llvm::Machine;
use tile_ir::target::{Architecture, TILE_FEATURES};

/// The instructions by which those processors are known, beside AVX-512, whose first caches have room for rows to come: 48 KiB
/// (Zen 5).
pub(in crate::cpu) const BRINGS_NEAR: &str = "avxvnni";

/// The instructions by which those are known, beside AVX-512, whose loops read far enough ahead of what they store (Zen 4).
/// Skylake, Cascade Lake and Ice Lake lack both.
pub(in crate::cpu) const READS_AHEAD: &str = "avx512bf16";

/// The instructions by which those are known that gain by asking for everything that comes from memory, as they have more of
/// it on the way than they ask for themselves, and wait long for it (Sapphire Rapids and later ones).
pub(in crate::cpu) const ASKS_FOR_ALL: &str = TILE_FEATURES[0];

/// Bytes of the longest row of which a first cache of 48 KiB holds three: one, the next one and one of weights.
pub(in crate::cpu) const LONGEST_NEAR: i64 = 16 << 10;

/// How what comes from memory is asked for before it is read. What was measured for each processor is in `docs/decisions/cpu-loops.md`,
/// "The next block's rows are prefetched on the CPU".
#[derive(Clone, Copy, Debug)]
pub(in crate::cpu) struct Prefetching {
    /// Which loops over a row ask for a later block's row.
    pub(in crate::cpu) rows: RowsAhead,
    /// How often they ask for each line: a processor that has much on the way may drop what it is asked for.
    pub(in crate::cpu) times: u32,
    /// What a loop does that reads from memory while it stores the row of another block; `None` where no loop does both.
    pub(in crate::cpu) beside_store: Option<BesideStore>,
    /// How many bytes ahead of itself a loop asks that reads what is read once and stores past the caches, if it does.
    pub(in crate::cpu) once: Option<i64>,
    /// The order of tiles that are transposed, and what their blocks ask for.
    pub(in crate::cpu) transposed: TransposedOrder,
}

/// Which loops over a row ask for a later block's row, and to which cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cpu) enum RowsAhead {
    /// As [`RowsAhead::Shares`]; where some compute functions, these alone.
    SharesOfFunctions { of_stores: i64 },
    /// Each for its share, to the second cache: one that stores for so many times as much as one that only reads.
    Shares { of_stores: i64 },
    /// To the first cache: where some compute functions, these; otherwise the last one, or of rows longer than
    /// [`LONGEST_NEAR`] each for its share.
    Last,
}

/// What a loop does that reads from memory while it stores the row of another block.
#[derive(Clone, Copy, Debug)]
pub(in crate::cpu) struct BesideStore {
    /// How many bytes ahead of itself it asks: as much as comes while it goes through them.
    pub(in crate::cpu) ahead: i64,
    /// The same of rows longer than [`LONGEST_NEAR`]; `None` where it leaves those alone.
    pub(in crate::cpu) ahead_in_long_rows: Option<i64>,
}

impl BesideStore {
    /// The most rows that the store may read.
    pub(in crate::cpu) const MOST_ROWS: usize = 2;

    /// How many bytes ahead of itself a loop over rows of so many asks, if it stores besides.
    pub(in crate::cpu) fn ahead_in(&self, row_bytes: i64) -> Option<i64> {
        if row_bytes <= LONGEST_NEAR { Some(self.ahead) } else { self.ahead_in_long_rows }
    }
}

/// The order of tiles that are transposed, and what their blocks ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cpu) enum TransposedOrder {
    /// Bands that read pieces of so many bytes of each row; the pieces that come next, one after the other.
    InPieces(i64),
    /// Along the source's rows as far as these go; what the same block of the next tile reads.
    AlongRows,
}

impl Prefetching {
    /// What pays where nothing else is known.
    const GENERAL: Prefetching = Prefetching {
        rows: RowsAhead::SharesOfFunctions { of_stores: 1 },
        times: 1,
        beside_store: None,
        once: None,
        transposed: TransposedOrder::InPieces(1 << 10),
    };

    /// Where what is asked for is dropped if much is on the way already (Zen 4).
    const AGAIN: Prefetching = Prefetching { times: 4, ..Prefetching::GENERAL };

    /// Where first caches have room for rows to come.
    const NEAR: Prefetching = Prefetching {
        rows: RowsAhead::Last,
        beside_store: Some(BesideStore { ahead: 8 << 10, ahead_in_long_rows: Some(4 << 10) }),
        ..Prefetching::GENERAL
    };

    /// Where a loop that stores waits for what it reads meanwhile, and memory gives whole pages faster than parts of them.
    const BESIDE_STORES: Prefetching = Prefetching {
        rows: RowsAhead::SharesOfFunctions { of_stores: 7 },
        beside_store: Some(BesideStore { ahead: 4 << 10, ahead_in_long_rows: Some(4 << 10) }),
        transposed: TransposedOrder::InPieces(4 << 10),
        ..Prefetching::GENERAL
    };

    /// Where processors have more on the way than they ask for themselves: rows that the first cache has room for, with the
    /// next and with weights, are left to the next block.
    const FOR_ALL: Prefetching = Prefetching {
        rows: RowsAhead::Shares { of_stores: 7 },
        times: 1,
        beside_store: Some(BesideStore { ahead: 5 << 9, ahead_in_long_rows: None }),
        once: Some(5 << 9),
        transposed: TransposedOrder::AlongRows,
    };
}

/// What emitters of CPU code choose by.
#[derive(Clone, Copy, Debug)]
pub(in crate::cpu) struct Processor {
    /// What leaf ops and functions choose by.
    pub(in crate::cpu) features: Features,
    /// Whether loads and stores have masks, of elements of every size.
    pub(in crate::cpu) masks: bool,
    /// Whether masks are vectors, by which some processors store slowly.
    pub(in crate::cpu) masks_cost: bool,
    /// The sums of 32 bits that registers hold in a product.
    pub(in crate::cpu) block: RegisterBlock,
    /// The vectors of a row of a product's right factor that registers hold beside these sums.
    pub(in crate::cpu) of_right: i64,
    /// How what comes from memory is asked for.
    pub(in crate::cpu) prefetching: Prefetching,
    /// Bytes of the longest word that an instruction compares and exchanges.
    pub(in crate::cpu) exchanged_bytes: i64,
    /// The intrinsic that has streaming stores seen by others before what the thread stores next; `None` where that holds
    /// of them as of all stores.
    pub(in crate::cpu) streaming_fence: Option<&'static str>,
}

impl Processor {
    pub(in crate::cpu) fn of(machine: &Machine) -> Processor {
        if machine.is_of(Architecture::Aarch64) { aarch64() } else { x86_64(machine) }
    }

    /// Bytes of a vector register.
    pub(in crate::cpu) fn vector_bytes(&self) -> i64 {
        4 * self.block.lanes
    }
}

/// With 32 vector registers of 512 bits 24 are sums, up to four a row of `b`, and one what of `a` is in every lane; with 16 of
/// 256 they are 12, two and one, where a multiply-add needs none for the product. A step of these takes six clocks, in which the
/// processor also begins what the loop is made of, and where it counts in the places of multiply-adds it loses some of them;
/// two steps in a turn leave it room. Stores past the caches are ordered by no other store ("Intel 64 and IA-32 Architectures
/// Software Developer's Manual", volume 1, 10.4.6.2). Every level exchanges 16 bytes (`CMPXCHG16B`).
fn x86_64(machine: &Machine) -> Processor {
    let (rows, lanes, of_right) = if machine.has("avx512f") {
        (12, 16, 4)
    } else if machine.has("fma") {
        (6, 8, 2)
    } else {
        (4, 4, 2)
    };
    Processor {
        features: Features {
            half_conversion: machine.has("f16c"),
            vector_division: true,
            fma: machine.has("fma"),
            scaling: machine.has("avx512f"),
            lanewise: machine.has("avx512dq"),
            lanewise_rounding: machine.has("avx512bf16"),
            ..Features::NONE
        },
        masks: machine.has("avx512bw") && machine.has("avx512vl"),
        masks_cost: machine.has("avx2") && !machine.has("avx512vl"),
        block: RegisterBlock { rows, vectors: 2, lanes, steps: 2 },
        of_right,
        prefetching: if machine.has(ASKS_FOR_ALL) {
            Prefetching::FOR_ALL
        } else if machine.has(BRINGS_NEAR) && machine.has("avx512f") {
            Prefetching::NEAR
        } else if machine.has("avx512f") && !machine.has(READS_AHEAD) {
            Prefetching::BESIDE_STORES
        } else {
            Prefetching::AGAIN
        },
        exchanged_bytes: 16,
        streaming_fence: Some("llvm.x86.sse.sfence"),
    }
}

/// Every processor has 32 vector registers of 128 bits, of which 24 are sums, four a row of `b` (one cache line), and the
/// rest elements of `a`: a multiply-add takes one of them for all lanes (`FMLA`, by element), so that repeating it takes no
/// place of arithmetic. Six rows of four vectors read 10 registers for 24 multiply-adds; eight of three would read 11, twelve
/// of two 14, and tiles are whole numbers of 16 columns more often than of 12. The larger and the smaller of two floats are
/// instructions (`FMAX`, `FMAXNM`), and so are conversions of f16 (`FCVTL`, `FCVTN`). Non-temporal stores (`STNP`) are
/// ordered as others are: only non-temporal loads are excepted from the order of what depends on an address ("Arm
/// Architecture Reference Manual for A-profile", C3.2.4). Processors before Armv8.1 exchange 16 bytes by a loop of their own
/// around a pair of registers, so words are those of one.
fn aarch64() -> Processor {
    let features = Features {
        half_conversion: true,
        vector_division: true,
        fma: true,
        extrema: true,
        saturating_conversion: true,
        ..Features::NONE
    };
    let block = RegisterBlock { rows: 6, vectors: 4, lanes: 4, steps: 1 };
    let (prefetching, of_right) = (Prefetching::GENERAL, block.vectors);
    Processor {
        features,
        masks: false,
        masks_cost: false,
        block,
        of_right,
        prefetching,
        exchanged_bytes: 8,
        streaming_fence: None,
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::compiled::assembly;
    use tile_ir::Instance;
    use tile_ir::target::Architecture;

    /// The code of `eˣ` of so many f32, read and written in a format.
    fn exponentials(dtype: &str, elements: usize, level: &str) -> String {
        let zero = if dtype.contains('f') { "0.0" } else { "0" };
        let source = format!(
            "kernel @k<B>(%x: tensor<n x {dtype}>, %y: mut tensor<n x {dtype}>) {{
  %vx = partition %x [B] : partition<n x {dtype}, [B]>
  %vy = partition %y [B] : mut partition<n x {dtype}, [B]>
  %i = block_index %vy : index
  %zero = constant {zero} : {dtype}
  %t = load_masked %vx[%i] pad %zero : tile<B x {dtype}>
  %f = cast %t : tile<B x f32>
  %e = exp %f : tile<B x f32>
  %r = cast %e : tile<B x {dtype}>
  store_masked %vy, %r
}}
"
        );
        let instance = Instance::parse(&source, &[("B", elements)]).unwrap();
        assembly(&instance, level)
    }

    /// Vectors of every format that f32 are made of have the instructions, whole: where LLVM's vectoriser finds no variant
    /// for so many lanes, it takes the lanes apart and calls the function of one.
    #[test]
    fn exponentials_are_instructions_of_whole_vectors() {
        for dtype in ["f64", "f32", "bf16", "i16", "u8"] {
            for elements in [16, 28, 4096] {
                let code = exponentials(dtype, elements, "x86-64-v4");
                for instruction in ["vscalefps", "vrangeps", "vperm"] {
                    assert!(code.contains(instruction), "{dtype}, {elements}: {code}");
                }
                let apart = ["call", "tile.", "vinsertps", "vscalefss"];
                let found = apart.iter().find(|text| code.contains(**text));
                assert!(found.is_none(), "{found:?} of {dtype}, {elements}: {code}");
            }
        }
    }

    /// Levels without these instructions, and kernels whose loops are straight code when they are made vectors, have others.
    #[test]
    fn other_exponentials_are_made_of_other_instructions() {
        for (elements, level) in [(4096, "x86-64-v3"), (8, "x86-64-v4")] {
            let code = exponentials("f32", elements, level);
            assert!(!code.contains("vrangeps") && !code.contains("call"), "{elements}, {level}: {code}");
        }
    }

    /// The code of an op of a tile of integers `%a`, and `%b`, as many more.
    fn of_integers(dtype: &str, body: &str, level: &str) -> String {
        let source = format!(
            "kernel @k<B>(%x: tensor<n x {dtype}>, %w: tensor<n x {dtype}>, %y: mut tensor<n x {dtype}>) {{
  %vx = partition %x [B] : partition<n x {dtype}, [B]>
  %vw = partition %w [B] : partition<n x {dtype}, [B]>
  %vy = partition %y [B] : mut partition<n x {dtype}, [B]>
  %i = block_index %vy : index
  %zero = constant 0 : {dtype}
  %a = load_masked %vx[%i] pad %zero : tile<B x {dtype}>
  %b = load_masked %vw[%i] pad %zero : tile<B x {dtype}>
  %known = constant 5 : {dtype}
  %c = splat %known : tile<B x {dtype}>
  %r = {body} : tile<B x {dtype}>
  store_masked %vy, %r
}}
"
        );
        assembly(&Instance::parse(&source, &[("B", 4096)]).unwrap(), level)
    }

    #[test]
    fn bits_move_by_instructions_of_whole_vectors() {
        for (body, dtype, level, instruction) in [
            ("rotate_left %a, %b", "u32", "x86-64-v4", "vprolvd"),
            ("rotate_right %a, %b", "i32", "x86-64-v4", "vprorvd"),
            ("rotate_left %a, %b", "u64", "x86-64-v4", "vprolvq"),
            ("rotate_left %a, %c", "u32", "x86-64-v4", "vprold"),
            ("rotate_right %a, %c", "u64", "x86-64-v4", "vprolq"),
            ("swap_bytes %a", "u16", "x86-64-v4", "vpshufb"),
            ("swap_bytes %a", "u32", "x86-64-v4", "vpshufb"),
            ("swap_bytes %a", "u64", "x86-64-v3", "vpshufb"),
            ("reverse_bits %a", "u32", "x86-64-v3", "vpshufb"),
        ] {
            let code = of_integers(dtype, body, level);
            let vector = if level == "x86-64-v4" { "zmm" } else { "ymm" };
            let found = code.lines().any(|line| line.contains(instruction) && line.contains(vector));
            assert!(found, "{body} of {dtype} for {level} has no {instruction}: {code}");
        }
    }

    /// Levels that ask for memory otherwise have code of kernels that reduce rows or transpose tiles, and of no others.
    #[test]
    fn levels_have_code_of_kernels_that_ask_otherwise() {
        let levels_of = |body: &str| {
            let source = format!(
                "kernel @k(%x: tensor<64 x 64 x f32>, %y: mut tensor<64 x 64 x f32>) {{
  %vx = partition %x [64, 64] : partition<64 x 64 x f32, [64, 64]>
  %xt = view %x permute [1, 0] : tensor<64 x 64 x f32, strided [1, 64]>
  %vt = partition %xt [64, 64] : partition<64 x 64 x f32, strided [1, 64], [64, 64]>
  %vy = partition %y [64, 64] : mut partition<64 x 64 x f32, [64, 64]>
  %i, %j = block_index %vy : index, index
  %t = load %vx[%j, %i] : tile<64 x 64 x f32>
{body}  store %vy, %r
}}
"
            );
            let instance = Instance::parse(&source, &[]).unwrap();
            let levels = crate::levels_of(&instance, Architecture::X86_64).filter(|level| !level.is_general);
            levels.map(|level| level.name).collect::<Vec<_>>()
        };
        let reduced = "  %s = reduce max %t axis 1 : tile<64 x 1 x f32>
  %b = broadcast %s : tile<64 x 64 x f32>
  %r = sub %t, %b : tile<64 x 64 x f32>
";
        assert_eq!(levels_of(reduced), ["x86-64-v4-tiles", "x86-64-v4-rows", "x86-64-v4-pairs"]);
        let transposed = "  %r = permute %t [1, 0] : tile<64 x 64 x f32>\n";
        assert_eq!(levels_of(transposed), ["x86-64-v4-tiles", "x86-64-v4-pairs"]);
        let by_view = "  %r = load %vt[%j, %i] : tile<64 x 64 x f32>\n";
        assert_eq!(levels_of(by_view), ["x86-64-v4-tiles", "x86-64-v4-pairs"]);
        assert_eq!(levels_of("  %r = neg %t : tile<64 x 64 x f32>\n"), ["x86-64-v4-tiles"]);
    }
}
