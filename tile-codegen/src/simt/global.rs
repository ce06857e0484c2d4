//! Global memory: where the arguments lie, what blocks did to them, and what atomic writes publish.
//!
//! Blocks run one after the other here, unless one waits for another, but on a device in any order. What a block wrote is seen by another
//! only if a thread *released* it, by an atomic write with that order or behind a fence, and one of the other
//! *acquired* it from the same address, both at a scope that holds both blocks.

use super::cells::Cells;
use super::counters::Recorder;
use super::fault::{Memory, Problem};
use super::flight::Flights;
use super::order::{Clock, Of, Ordering, Scope, Snapshot};
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
    /// Of each byte whether it belongs to an element; empty where all do.
    elements: Vec<bool>,
    cells: Cells,
}

impl Region {
    pub(super) fn new(name: &str, start: u64, bytes: usize, mutable: bool) -> Region {
        Region {
            name: name.to_owned(),
            start,
            bytes,
            mutable,
            elements: Vec::new(),
            cells: Cells::new(bytes),
        }
    }

    /// A region of elements at these positions. What lies between them isn't the tensor's.
    fn of_elements(name: &str, start: u64, element: usize, positions: &[usize], mutable: bool) -> Region {
        let count = positions.iter().max().map_or(0, |last| last + 1);
        let mut elements = vec![false; count * element];
        for position in positions {
            elements[position * element..(position + 1) * element].fill(true);
        }
        let is_whole = elements.iter().all(|&is_element| is_element);
        let region = Region::new(name, start, elements.len(), mutable);
        Region { elements: if is_whole { Vec::new() } else { elements }, ..region }
    }

    /// Whether bytes from one on belong to elements.
    fn are_elements(&self, bytes: Range<usize>) -> bool {
        self.elements.is_empty() || self.elements[bytes].iter().all(|&is_element| is_element)
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
#[derive(Default)]
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
            Some(match layout {
                Some(layout) => {
                    let positions = positions(layout, &extents, &size);
                    Region::of_elements(name, start, dtype.bytes(), &positions, *mutable)
                }
                None => {
                    let elements: usize = extents.iter().product();
                    Region::new(name, start, elements * dtype.bytes(), *mutable)
                }
            })
        }
    };
    abi.arguments.iter().zip(slots).filter_map(region).collect()
}

/// Where a tensor's elements lie, counted in elements from its address on.
fn positions(layout: &Strided, extents: &[usize], size: &dyn Fn(&str) -> Option<i64>) -> Vec<usize> {
    let number = |dim: &Dim| dim.evaluate_signed(size).unwrap_or(0);
    let mut positions = vec![number(&layout.offset)];
    for (stride, &extent) in layout.strides.iter().zip(extents) {
        let stride = number(stride);
        // All elements of an axis of stride 0 are one, however many there are.
        let extent = if stride == 0 { extent.min(1) } else { extent };
        let along = |&first: &i64| (0..extent as i64).map(move |index| first + index * stride);
        positions = positions.iter().flat_map(along).collect();
    }
    positions.into_iter().filter_map(|position| usize::try_from(position).ok()).collect()
}

impl Global {
    pub(super) fn new(regions: Vec<Region>) -> Global {
        Global { regions, published: HashMap::new(), prefetched: Vec::new(), recorder: None }
    }

    /// The region of some bytes, and which of its bytes they are. Elements of one tensor may lie between another's.
    fn find(&self, address: u64, bytes: usize) -> Result<(usize, Range<usize>), Problem> {
        let holding = self.regions.iter().enumerate().filter(|(_, region)| region.holds(address, bytes));
        let mut holding = holding.map(|(number, region)| {
            let first = (address - region.start) as usize;
            (number, first..first + bytes)
        });
        let Some(first) = holding.clone().next() else { return Err(self.outside(address, bytes)) };
        holding.find(|(number, bytes)| self.regions[*number].are_elements(bytes.clone())).ok_or_else(|| {
            let (number, bytes) = first;
            Problem::BetweenElements {
                argument: self.regions[number].name.clone(),
                offset: bytes.start,
                bytes: bytes.len(),
            }
        })
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
        flights: &Flights,
    ) -> Result<(), Problem> {
        let (found, range) = self.find(address, bytes)?;
        let region = &mut self.regions[found];
        if !region.mutable {
            let argument = region.name.clone();
            return if access.writes { Err(Problem::WritesInput { argument }) } else { Ok(()) };
        }
        let Region { cells, name, .. } = region;
        cells.change(range, |offset, cell| {
            cell.note(access, clock, Of::All).map_err(|conflict| {
                let memory = Memory::Tensor(name.clone());
                Problem::of_conflict(conflict, memory, offset, access.writes, flights, clock.block())
            })
        })
    }

    /// Does something to the cells of some bytes, each told by how far it is from the first. Inputs have none.
    ///
    /// # Errors
    /// If the bytes aren't an argument's.
    pub(super) fn each_cell(
        &mut self,
        address: u64,
        bytes: usize,
        action: impl FnMut(usize, &mut Cell),
    ) -> Result<(), Problem> {
        let (found, range) = self.find(address, bytes)?;
        let region = &mut self.regions[found];
        if region.mutable {
            region.cells.each(range, action);
        }
        Ok(())
    }

    /// The tensor that an address lies in, and how far it is from its first byte.
    pub(super) fn name_of(&self, address: u64) -> Option<(&str, usize)> {
        let region = self.regions.iter().find(|region| region.holds(address, 1))?;
        Some((&region.name, (address - region.start) as usize))
    }

    /// Whether an address is that of a tensor which the kernel writes.
    pub(super) fn is_written(&self, address: u64) -> bool {
        self.regions.iter().any(|region| region.mutable && region.holds(address, 1))
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

    /// Forgets what nobody can acquire any more because a cluster of these blocks has ended: what addresses of its shared memory
    /// published, and what its threads did anywhere for themselves alone.
    pub(super) fn forget(&mut self, shared: &Range<u64>, blocks: &Range<u64>) {
        let is_over = |snapshot: &Snapshot| {
            snapshot.scope <= Scope::Cluster && blocks.contains(&u64::from(snapshot.block()))
        };
        self.published.retain(|address, published| {
            published.0.retain(|snapshot| !is_over(snapshot));
            !shared.contains(address) && !published.0.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(acquires: bool, releases: bool, scope: Scope) -> Ordering {
        Ordering { acquires, releases, scope, of: Of::All }
    }

    /// As barriers of a workgroup on AMD's GPUs hand on, before updates that all blocks make of one element: these would come to
    /// look at what ever more blocks published.
    #[test]
    fn what_blocks_published_for_themselves_ends_with_them() {
        let (mut global, element, shared) = (Global::default(), 64, 1024..2048);
        let update = order(false, false, Scope::Device);
        for block in 0..1000 {
            for clock in &mut Clock::of_block(block, 4) {
                clock.fence(order(false, true, Scope::Block));
                global.synchronize(element, [true; 2], update, clock);
            }
            assert_eq!(global.published[&element].0.len(), 4, "block {block}");
            global.forget(&shared, &(block.into()..u64::from(block) + 1));
        }
        assert!(global.published.is_empty());
    }

    /// Of a cluster that goes on, and of one that has ended but said it to the device.
    #[test]
    fn what_others_may_acquire_stays() {
        let (mut global, element, shared) = (Global::default(), 64, 1024..2048);
        let [ended, going_on, later] = [0, 1, 2].map(|block| Clock::of_block(block, 2));
        let (release, acquire) = (order(false, true, Scope::Device), order(true, false, Scope::Device));
        let (mut ended, mut going_on, mut later) = (ended, going_on, later);
        let moment = ended[0].moment();
        global.synchronize(element, [true; 2], release, &mut ended[0]);
        let own = going_on[0].moment();
        global.synchronize(element, [true; 2], order(false, true, Scope::Block), &mut going_on[0]);
        global.synchronize(shared.start, [true; 2], release, &mut ended[1]);
        global.forget(&shared, &(0..1));
        assert_eq!(global.published.len(), 1);
        global.synchronize(element, [true, false], acquire, &mut later[0]);
        assert!(later[0].knows(moment) && !later[0].knows(own));
        global.synchronize(element, [true, false], acquire, &mut going_on[1]);
        assert!(going_on[1].knows(moment) && going_on[1].knows(own));
    }
}
