//! Global memory: where the arguments lie, what blocks did to them, and what atomics order.
//!
//! Blocks run one after the other here, but on a device in any order. What a block wrote is seen by another
//! only if it *released* it, by an atomic write with that order or behind a fence, and the other *acquired*
//! it from the same address.

use super::fault::{Earlier, Memory, Problem};
use super::shadow::{Access, GridCell, Stamp};
use std::collections::HashMap;
use tile_ir::abi::{Argument, KernelAbi};

/// A tensor in memory.
struct Region {
    name: String,
    start: u64,
    bytes: usize,
    mutable: bool,
    /// One per byte, made at the first write.
    cells: Vec<GridCell>,
}

/// What an atomic access does to the order of other accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ordering {
    pub(super) acquires: bool,
    pub(super) releases: bool,
}

/// The memory of one launch.
pub(super) struct Global {
    regions: Vec<Region>,
    block: u64,
    /// How often the running block released its writes.
    releases: u32,
    /// The releases that the running block knows of, per block: one more than the last one's number.
    seen: HashMap<u64, u32>,
    /// The same, from atomic reads that no fence has followed yet.
    pending: HashMap<u64, u32>,
    /// What the running block released by a fence and so publishes by any atomic write.
    fenced: Option<HashMap<u64, u32>>,
    /// What an address publishes.
    published: HashMap<u64, HashMap<u64, u32>>,
    /// What was asked to be brought near: addresses of lines, and of copies with their bytes.
    pub(super) prefetched: Vec<(u64, Option<u64>)>,
}

fn merge(into: &mut HashMap<u64, u32>, from: &HashMap<u64, u32>) {
    for (&block, &releases) in from {
        let known = into.entry(block).or_default();
        *known = releases.max(*known);
    }
}

impl Global {
    /// The memory of a launch with these slots.
    pub(super) fn of(abi: &KernelAbi, slots: &[u64]) -> Global {
        let sizes = &slots[abi.arguments.len()..];
        let size = |name: &str| {
            let position = abi.sizes.iter().position(|size| size == name)?;
            sizes.get(position).and_then(|&size| i64::try_from(size).ok())
        };
        let region = |(argument, &start): (&Argument, &u64)| match argument {
            Argument::Scalar { .. } => None,
            Argument::Tensor { name, dtype, extents, mutable, .. } => {
                let elements: usize =
                    extents.iter().map(|extent| extent.evaluate(&size).unwrap_or(0)).product();
                let bytes = elements * dtype.bytes();
                Some(Region { name: name.clone(), start, bytes, mutable: *mutable, cells: Vec::new() })
            }
        };
        Global {
            regions: abi.arguments.iter().zip(slots).filter_map(region).collect(),
            block: 0,
            releases: 0,
            seen: HashMap::new(),
            pending: HashMap::new(),
            fenced: None,
            published: HashMap::new(),
            prefetched: Vec::new(),
        }
    }

    /// Adds memory that every block writes atomically, such as the log.
    pub(super) fn add(&mut self, name: &str, start: u64, bytes: usize) {
        let region = Region { name: name.to_owned(), start, bytes, mutable: true, cells: Vec::new() };
        self.regions.push(region);
    }

    /// The next block begins.
    pub(super) fn enter(&mut self, block: u64) {
        (self.block, self.releases) = (block, 0);
        self.seen.clear();
        self.pending.clear();
        self.fenced = None;
    }

    /// Notes an access.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn access(&mut self, address: u64, bytes: usize, access: Access) -> Result<(), Problem> {
        let Some(found) = self.regions.iter().position(|region| region.holds(address, bytes)) else {
            return Err(self.outside(address, bytes));
        };
        let stamp = Stamp { block: self.block, releases: self.releases };
        let (seen, region) = (&self.seen, &mut self.regions[found]);
        if !region.mutable {
            let argument = region.name.clone();
            return if access.writes { Err(Problem::WritesInput { argument }) } else { Ok(()) };
        }
        if region.cells.is_empty() {
            region.cells = vec![GridCell::default(); region.bytes];
        }
        let ordered = |other: Stamp| seen.get(&other.block).is_some_and(|&known| other.releases < known);
        let first = (address - region.start) as usize;
        for offset in first..first + bytes {
            let noted = region.cells[offset].note(access, stamp, &ordered);
            noted.map_err(|earlier: Earlier| Problem::Race {
                memory: Memory::Tensor(region.name.clone()),
                offset,
                writes: access.writes,
                earlier,
            })?;
        }
        Ok(())
    }

    fn outside(&self, address: u64, bytes: usize) -> Problem {
        let distance = |region: &&Region| {
            let end = region.start + region.bytes as u64;
            if address < region.start { region.start - address } else { (address + 1).saturating_sub(end) }
        };
        let nearest = self.regions.iter().min_by_key(distance).map(|region| {
            (region.name.clone(), address.wrapping_sub(region.start).cast_signed(), region.bytes)
        });
        Problem::OutsideArguments { bytes, nearest }
    }

    /// What an atomic access orders.
    pub(super) fn synchronize(&mut self, address: u64, reads: bool, writes: bool, order: Ordering) {
        if reads && let Some(published) = self.published.get(&address) {
            merge(if order.acquires { &mut self.seen } else { &mut self.pending }, published);
        }
        if !writes {
            return;
        }
        let released = if order.releases { Some(self.release()) } else { self.fenced.clone() };
        if let Some(released) = released {
            merge(self.published.entry(address).or_default(), &released);
        }
    }

    /// A fence.
    pub(super) fn fence(&mut self, order: Ordering) {
        if order.acquires {
            merge(&mut self.seen, &self.pending);
        }
        if order.releases {
            self.fenced = Some(self.release());
        }
    }

    /// Everything that the running block did and knows so far.
    fn release(&mut self) -> HashMap<u64, u32> {
        self.releases += 1;
        let mut known = self.seen.clone();
        known.insert(self.block, self.releases);
        known
    }
}

impl Region {
    fn holds(&self, address: u64, bytes: usize) -> bool {
        address.checked_sub(self.start).is_some_and(|offset| {
            usize::try_from(offset).is_ok_and(|offset| offset.saturating_add(bytes) <= self.bytes)
        })
    }
}
