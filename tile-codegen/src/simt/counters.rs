//! What a run's instructions cost, counted from their addresses: bank conflicts in shared memory, sectors of global
//! memory, and how often each instruction is carried out.
//!
//! Lanes of a warp that access memory at the same instruction for the same time in a row count as one access of the
//! warp. Shared memory has banks of four bytes; an access is carried out in parts of those lanes that the target serves together
//! ([`SharedBanks`]), and a part takes as many turns as the fullest bank has different words. Global memory is read and written in sectors of 32
//! bytes. Asynchronous copies aren't counted as accesses.

use super::instruction::Program;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use tile_ir::Loc;
use tile_ir::target::SharedBanks;

const BANK_BYTES: u64 = 4;
const SECTOR_BYTES: u64 = 32;

/// The costs of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Of each instruction that accessed memory, in the order of the code.
    pub accesses: Vec<AccessCount>,
    /// How often threads carried out the target's own instructions, by name.
    pub instructions: BTreeMap<String, u64>,
}

/// The costs of one instruction that accesses memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessCount {
    /// What it is: `load`, `store`, `update`, or the name of an intrinsic.
    pub name: String,
    /// The op.
    pub place: Loc,
    /// Whether it accesses shared memory, rather than global.
    pub shared: bool,
    /// Bytes per lane.
    pub bytes: u64,
    /// How often warps carried it out.
    pub warps: u64,
    /// The turns of shared memory, or the sectors of global memory, that these took in all.
    pub parts: u64,
    /// The least that so many lanes and bytes could take.
    pub least: u64,
}

/// An instruction that accesses memory: of the code itself, or one that the executor carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Site {
    Code(u32),
    Instruction(u32),
}

/// What a lane accesses.
#[derive(Clone, Copy)]
pub(super) struct LaneAccess {
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// Whether it only reads.
    pub(super) reads: bool,
}

/// What the lanes of a warp access together, each with its number.
type Lanes = Vec<(u64, LaneAccess)>;

/// What the accesses of a site took: as [`AccessCount`] has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cost {
    bytes: u64,
    warps: u64,
    parts: u64,
    least: u64,
}

/// Accesses as they are made.
pub(super) struct Recorder {
    banks: SharedBanks,
    /// How often a thread came to a site.
    times: HashMap<(Site, u32), u32>,
    /// What the lanes of a warp accessed, per site, kind of memory, and time in a row.
    warps: BTreeMap<(Site, bool), BTreeMap<(u32, u32), Lanes>>,
    accesses: BTreeMap<(Site, bool), Cost>,
    instructions: BTreeMap<u32, u64>,
}

impl Recorder {
    /// Nothing so far, on a GPU whose shared memory has such banks.
    pub(super) fn new(banks: SharedBanks) -> Recorder {
        Recorder {
            banks,
            times: HashMap::new(),
            warps: BTreeMap::new(),
            accesses: BTreeMap::new(),
            instructions: BTreeMap::new(),
        }
    }

    /// A thread's access.
    pub(super) fn access(&mut self, site: Site, thread: u32, warp: u32, shared: bool, access: LaneAccess) {
        let time = self.times.entry((site, thread)).or_default();
        *time += 1;
        let lanes = self.warps.entry((site, shared)).or_default().entry((thread / warp, *time)).or_default();
        lanes.push((u64::from(thread % warp), access));
    }

    /// A thread carries out an instruction.
    pub(super) fn instruction(&mut self, number: u32) {
        *self.instructions.entry(number).or_default() += 1;
    }

    /// A block is over: its accesses are added up.
    pub(super) fn finish_block(&mut self) {
        self.times.clear();
        for ((site, shared), warps) in std::mem::take(&mut self.warps) {
            let cost = self.accesses.entry((site, shared)).or_default();
            for lanes in warps.into_values() {
                let bytes: u64 = lanes.iter().map(|(_, access)| access.bytes).sum();
                let (parts, least) = if shared {
                    let parts = parts(&lanes, self.banks);
                    (parts.iter().map(|part| turns(part, self.banks)).sum(), parts.len() as u64)
                } else {
                    (sectors(&lanes), bytes.div_ceil(SECTOR_BYTES))
                };
                cost.bytes = lanes[0].1.bytes;
                cost.warps += 1;
                cost.parts += parts;
                cost.least += least.min(parts);
            }
        }
    }

    /// The costs so far, with what the program says of its instructions.
    pub(super) fn counters(&self, program: &Program) -> Counters {
        let access = |(&(site, shared), cost): (&(Site, bool), &Cost)| {
            let Cost { bytes, warps, parts, least } = *cost;
            let (name, place) = match site {
                Site::Code(number) => program.accesses[number as usize].clone(),
                Site::Instruction(number) => {
                    let instruction = &program.instructions[number as usize];
                    (instruction.name.clone(), instruction.place)
                }
            };
            AccessCount { name, place, shared, bytes, warps, parts, least }
        };
        let mut instructions = BTreeMap::new();
        for (&number, &count) in &self.instructions {
            let name = &program.instructions[number as usize].name;
            *instructions.entry(name.clone()).or_default() += count;
        }
        Counters { accesses: self.accesses.iter().map(access).collect(), instructions }
    }
}

/// The lanes of a warp that shared memory serves together.
fn parts(lanes: &Lanes, banks: SharedBanks) -> Vec<Lanes> {
    let bytes = lanes.iter().map(|(_, access)| access.bytes).max().unwrap_or(1);
    let together = match lanes.iter().all(|(_, access)| access.reads) {
        true => banks.read_together(bytes as u32),
        false => banks.written_together(bytes as u32),
    };
    // Of lanes that are served together it is the lowest number that all have in common.
    let lowest = |lane: u64| together.iter().rev().fold(lane, |lane, number| lane.min(lane ^ number));
    let mut parts: BTreeMap<u64, Lanes> = BTreeMap::new();
    lanes.iter().for_each(|&lane| parts.entry(lowest(lane.0)).or_default().push(lane));
    parts.into_values().collect()
}

/// Turns that shared memory takes for lanes that it serves together.
fn turns(part: &Lanes, banks: SharedBanks) -> u64 {
    let mut words_of_bank = vec![0; banks.count as usize];
    for word in pieces(part, BANK_BYTES) {
        words_of_bank[(word % u64::from(banks.count)) as usize] += 1;
    }
    words_of_bank.into_iter().max().unwrap_or(0)
}

/// Sectors of global memory that the lanes of a warp touch.
fn sectors(lanes: &Lanes) -> u64 {
    pieces(lanes, SECTOR_BYTES).len() as u64
}

/// The pieces of memory of so many bytes that lanes touch, each once.
fn pieces(lanes: &Lanes, piece: u64) -> Vec<u64> {
    let touched = |&(_, LaneAccess { address, bytes, .. }): &(u64, LaneAccess)| {
        address / piece..(address + bytes).div_ceil(piece)
    };
    let mut pieces: Vec<u64> = lanes.iter().flat_map(touched).collect();
    pieces.sort_unstable();
    pieces.dedup();
    pieces
}

impl Counters {
    /// The costs with instructions added up that are the same, of as many bytes, for the same op: an op on a tile is many.
    #[must_use]
    pub fn per_op(&self) -> Counters {
        let mut accesses: Vec<AccessCount> = Vec::new();
        for access in &self.accesses {
            let key = |it: &AccessCount| (it.place, it.shared, it.bytes);
            let same = |it: &&mut AccessCount| it.name == access.name && key(it) == key(access);
            match accesses.iter_mut().find(same) {
                None => accesses.push(access.clone()),
                Some(sum) => {
                    sum.warps += access.warps;
                    sum.parts += access.parts;
                    sum.least += access.least;
                }
            }
        }
        Counters { accesses, instructions: self.instructions.clone() }
    }
}

impl fmt::Display for Counters {
    /// Two tables: accesses with what they took per warp, and instructions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>10} {:>6} {:>10} {:>10} {:>6}  access", "warps", "bytes", "parts", "least", "ratio")?;
        for access in &self.accesses {
            let AccessCount { name, place, shared, bytes, warps, parts, least } = access;
            let ratio = *parts as f64 / (*least).max(1) as f64;
            let (memory, unit) = if *shared { ("shared", "turns") } else { ("global", "sectors") };
            write!(
                f,
                "{warps:>10} {bytes:>6} {parts:>10} {least:>10} {ratio:>6.2}  {name}, {memory}, {unit}"
            )?;
            if place.is_known() {
                write!(f, ", at {place}")?;
            }
            writeln!(f)?;
        }
        for (name, count) in &self.instructions {
            writeln!(f, "{count:>10}  {name}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{AccessCount, Cost, Counters, LaneAccess, Lanes, Recorder, Site, parts, sectors};
    use tile_ir::target::SharedBanks;
    use tile_ir::{Loc, TargetDesc};

    fn lanes(count: u64, bytes: u64, address: impl Fn(u64) -> u64) -> Lanes {
        let access = |lane| LaneAccess { address: address(lane), bytes, reads: true };
        (0..count).map(|lane| (lane, access(lane))).collect()
    }

    fn banks(target: &str) -> SharedBanks {
        TargetDesc::named(target).unwrap().shared_banks
    }

    fn turns_on(target: &str, lanes: &Lanes) -> u64 {
        let banks = banks(target);
        parts(lanes, banks).iter().map(|part| super::turns(part, banks)).sum()
    }

    fn turns(lanes: &Lanes) -> u64 {
        turns_on("sm_90a", lanes)
    }

    /// As measured: which lanes' reads of 16 bytes are served together (amd-shark-ai, "Empirical LDS Measurements").
    #[test]
    fn amd_serves_wide_reads_of_lanes_that_lie_apart() {
        let together = |target, count: u64, reads| -> Vec<Vec<u64>> {
            let mut lanes = lanes(count, 16, |lane| 16 * lane);
            lanes.iter_mut().for_each(|(_, access)| access.reads = reads);
            parts(&lanes, banks(target))
                .iter()
                .map(|part| part.iter().map(|(lane, _)| *lane).collect())
                .collect()
        };
        let of = |ranges: &[std::ops::Range<u64>]| -> Vec<u64> { ranges.iter().cloned().flatten().collect() };
        assert_eq!(together("gfx942", 64, true)[0], of(&[0..4, 20..24]));
        assert_eq!(together("gfx942", 64, true)[1], of(&[4..8, 16..20]));
        assert_eq!(together("gfx942", 64, true)[7], of(&[44..48, 56..60]));
        assert_eq!(together("gfx942", 64, false)[1], Vec::from_iter(8..16));
        assert_eq!(together("gfx950", 64, true)[0], of(&[0..4, 12..16, 20..28]));
        assert_eq!(together("gfx950", 64, true)[3], of(&[36..44, 48..52, 60..64]));
        assert_eq!(together("gfx1100", 32, true)[2], of(&[8..12, 28..32]));
        assert_eq!(together("gfx1201", 32, true)[2], Vec::from_iter(16..24));
        // Rows of 256 bytes meet in one bank of 64.
        assert_eq!([32, 64].map(|lanes_| turns_on("gfx950", &lanes(lanes_, 4, |lane| 128 * lane))), [16, 32]);
        assert_eq!(turns_on("gfx950", &lanes(64, 4, |lane| 4 * lane)), 1);
    }

    #[test]
    fn bank_conflicts() {
        assert_eq!(turns(&lanes(32, 4, |lane| 4 * lane)), 1);
        assert_eq!(turns(&lanes(32, 4, |_| 64)), 1);
        assert_eq!(turns(&lanes(32, 4, |lane| 8 * lane)), 2);
        assert_eq!(turns(&lanes(32, 4, |lane| 128 * lane)), 32);
        assert_eq!(turns(&lanes(32, 4, |lane| 132 * lane)), 1);
        // Sixteen bytes per lane go in four parts of eight lanes.
        assert_eq!(turns(&lanes(32, 16, |lane| 16 * lane)), 4);
        assert_eq!(turns(&lanes(32, 16, |lane| 128 * lane)), 32);
        assert_eq!(turns(&lanes(32, 2, |lane| 2 * lane)), 1);
    }

    #[test]
    fn the_least_is_what_lanes_take_without_conflicts() {
        // Warps of 64 lanes: two bytes each are two parts of 32 lanes; so are four bytes, a row of a matrix apart.
        for (bytes, apart, parts) in [(2, 2, 2), (4, 4, 2), (4, 128, 64)] {
            let mut recorder = Recorder::new(banks("gfx942"));
            for (lane, access) in lanes(64, bytes, |lane| apart * lane) {
                recorder.access(Site::Code(0), lane as u32, 64, true, access);
            }
            recorder.finish_block();
            let cost = Cost { bytes, warps: 1, parts, least: 2 };
            assert_eq!(recorder.accesses[&(Site::Code(0), true)], cost);
        }
    }

    #[test]
    fn instructions_of_an_op_are_added_up() {
        let access = |name: &str, line, bytes, warps, parts| AccessCount {
            name: name.to_owned(),
            place: Loc { line, column: 1 },
            shared: true,
            bytes,
            warps,
            parts,
            least: warps,
        };
        let accesses =
            vec![access("load", 1, 4, 2, 3), access("store", 1, 4, 2, 2), access("load", 1, 4, 5, 9)];
        let others = [access("load", 1, 8, 1, 1), access("load", 2, 4, 1, 1)];
        let counters = Counters { accesses: [accesses, others.to_vec()].concat(), ..Counters::default() };
        let expected = vec![access("load", 1, 4, 7, 12), access("store", 1, 4, 2, 2)];
        assert_eq!(counters.per_op().accesses, [expected, others.to_vec()].concat());
    }

    #[test]
    fn sectors_of_lines() {
        assert_eq!(sectors(&lanes(32, 4, |lane| 4 * lane)), 4);
        assert_eq!(sectors(&lanes(32, 4, |lane| 4 * lane + 16)), 5);
        assert_eq!(sectors(&lanes(32, 4, |lane| 64 * lane)), 32);
        assert_eq!(sectors(&lanes(32, 4, |_| 0)), 1);
    }
}
