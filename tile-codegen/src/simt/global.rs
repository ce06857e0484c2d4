//! Global memory: where the arguments lie, what blocks did to them, and what atomic writes publish.
//!
//! Blocks run one after the other here, but on a device in any order. What a block wrote is seen by another
//! only if a thread *released* it, by an atomic write with that order or behind a fence, and one of the other
//! *acquired* it from the same address, both at a scope that holds both blocks.

use super::counters::Recorder;
use super::fault::{Memory, Problem};
use super::flight::Flight;
use super::order::{Clock, Ordering, Snapshot};
use super::shadow::{Access, Cell};
use std::collections::HashMap;
use std::ops::Range;
use tile_ir::Dim;
use tile_ir::abi::{Argument, KernelAbi};
use tile_ir::view::Strided;

/// A tensor in memory.
pub(super) struct Region {
    pub(super) name: String,
    pub(super) start: u64,
    pub(super) bytes: usize,
    pub(super) mutable: bool,
    /// One per byte, made at the first access.
    cells: Vec<Cell>,
}

impl Region {
    pub(super) fn new(name: &str, start: u64, bytes: usize, mutable: bool) -> Region {
        Region { name: name.to_owned(), start, bytes, mutable, cells: Vec::new() }
    }

    fn holds(&self, address: u64, bytes: usize) -> bool {
        address.checked_sub(self.start).is_some_and(|offset| {
            usize::try_from(offset).is_ok_and(|offset| offset.saturating_add(bytes) <= self.bytes)
        })
    }
}

/// What atomic writes of an address publish: a release sequence.
#[derive(Default)]
struct Published(Vec<Snapshot>);

/// The memory of one launch.
pub(super) struct Global {
    regions: Vec<Region>,
    published: HashMap<u64, Published>,
    /// What was asked to be brought near: addresses of lines, and of copies with their bytes.
    pub(super) prefetched: Vec<(u64, Option<u64>)>,
    /// The accesses, where they are counted.
    pub(super) recorder: Option<Recorder>,
}

/// The tensors among a kernel's slots.
pub(super) fn tensors(abi: &KernelAbi, slots: &[u64]) -> Vec<Region> {
    let sizes = &slots[abi.arguments.len()..];
    let size = |name: &str| {
        let position = abi.sizes.iter().position(|size| size == name)?;
        sizes.get(position).and_then(|&size| i64::try_from(size).ok())
    };
    let region = |(argument, &start): (&Argument, &u64)| match argument {
        Argument::Scalar { .. } => None,
        Argument::Tensor { name, dtype, extents, layout, mutable, .. } => {
            let extents: Vec<usize> =
                extents.iter().map(|extent| extent.evaluate(&size).unwrap_or(0)).collect();
            let elements = match layout {
                Some(layout) => reach(layout, &extents, &size),
                None => extents.iter().product(),
            };
            Some(Region::new(name, start, elements * dtype.bytes(), *mutable))
        }
    };
    abi.arguments.iter().zip(slots).filter_map(region).collect()
}

/// Elements from a tensor's address to the end of that which lies last; what lies between them isn't told apart.
fn reach(layout: &Strided, extents: &[usize], size: &dyn Fn(&str) -> Option<i64>) -> usize {
    if extents.contains(&0) {
        return 0;
    }
    let number = |dim: &Dim| dim.evaluate_signed(size).unwrap_or(0);
    let axes = layout.strides.iter().zip(extents);
    let behind = axes.map(|(stride, &extent)| number(stride).max(0) * (extent as i64 - 1)).sum::<i64>();
    usize::try_from(number(&layout.offset) + behind + 1).unwrap_or(0)
}

impl Global {
    pub(super) fn new(regions: Vec<Region>) -> Global {
        Global { regions, published: HashMap::new(), prefetched: Vec::new(), recorder: None }
    }

    /// The region of some bytes, and which of its bytes they are.
    fn find(&self, address: u64, bytes: usize) -> Result<(usize, Range<usize>), Problem> {
        let Some(found) = self.regions.iter().position(|region| region.holds(address, bytes)) else {
            return Err(self.outside(address, bytes));
        };
        let first = (address - self.regions[found].start) as usize;
        Ok((found, first..first + bytes))
    }

    /// Notes an access by the thread of the clock.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn access(
        &mut self,
        address: u64,
        bytes: usize,
        access: Access,
        clock: &Clock,
        flights: &[Flight],
    ) -> Result<(), Problem> {
        let (found, range) = self.find(address, bytes)?;
        let region = &mut self.regions[found];
        if !region.mutable {
            let argument = region.name.clone();
            return if access.writes { Err(Problem::WritesInput { argument }) } else { Ok(()) };
        }
        for offset in range {
            let noted = region.cell(offset).note(access, clock, false);
            noted.map_err(|conflict| {
                let memory = Memory::Tensor(region.name.clone());
                Problem::of_conflict(conflict, memory, offset, access.writes, (flights, clock.block()))
            })?;
        }
        Ok(())
    }

    /// Does something to the cell of every byte. Inputs have none.
    ///
    /// # Errors
    /// If the bytes aren't an argument's.
    pub(super) fn each_cell(
        &mut self,
        address: u64,
        bytes: usize,
        action: &mut dyn FnMut(&mut Cell),
    ) -> Result<(), Problem> {
        let (found, range) = self.find(address, bytes)?;
        let region = &mut self.regions[found];
        if region.mutable {
            range.for_each(|offset| action(region.cell(offset)));
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

    /// What an atomic access of an address orders.
    pub(super) fn synchronize(
        &mut self,
        address: u64,
        [reads, writes]: [bool; 2],
        order: Ordering,
        clock: &mut Clock,
    ) {
        if reads && let Some(published) = self.published.get(&address) {
            published.0.iter().for_each(|snapshot| clock.observe(snapshot, order));
        }
        if !writes {
            return;
        }
        let released = clock.published(order);
        let published = self.published.entry(address).or_default();
        match &released {
            _ if !reads => published.0.clear(),
            Some(released) => {
                published.0.retain(|other| other.scope > released.scope || !other.is_known(clock))
            }
            None => {}
        }
        published.0.extend(released);
    }

    /// Forgets what addresses of this range published.
    pub(super) fn forget(&mut self, range: &Range<u64>) {
        self.published.retain(|address, _| !range.contains(address));
    }
}

impl Region {
    fn cell(&mut self, offset: usize) -> &mut Cell {
        if self.cells.is_empty() {
            self.cells = vec![Cell::default(); self.bytes];
        }
        &mut self.cells[offset]
    }
}
