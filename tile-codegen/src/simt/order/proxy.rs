//! What the asynchronous proxy sees of what the generic one wrote (PTX ISA, "Memory Consistency Model", "Causality order"):
//! what came before a proxy fence for that memory, which may stand anywhere on the way from the write to the asynchronous
//! operation, in the thread that wrote or in one that heard of it.

use super::{Clock, Moment, Of, Times, merge_shared};
use std::rc::Rc;

/// The memories that a proxy fence is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simt) struct Fenced {
    pub(in crate::simt) shared: bool,
    pub(in crate::simt) tensors: bool,
}

/// The last times whose writes a proxy fence made visible to the asynchronous proxy.
#[derive(Clone, Debug, Default)]
pub(super) struct Proxied {
    /// Those to shared memory.
    pub(super) shared: Rc<Times>,
    /// Those to tensors.
    pub(super) tensors: Rc<Times>,
}

impl Proxied {
    pub(super) fn merge(&mut self, other: &Proxied) {
        merge_shared(&mut self.shared, &other.shared);
        merge_shared(&mut self.tensors, &other.tensors);
    }
}

impl Clock {
    /// Whether a write at a moment, to shared memory or to a tensor, was made visible to the asynchronous proxy before now.
    pub(in crate::simt) fn proxied(&self, moment: Moment, memory: Of) -> bool {
        let known = &self.base.all;
        let times = match (self.is_near(moment), memory) {
            (true, Of::Shared) => Some(&known.proxied.shared),
            (true, Of::All) => Some(&known.proxied.tensors),
            (false, _) => {
                known.foreign.get(&self.shape.cluster(moment.block)).map(|foreign| &foreign.proxied)
            }
        };
        times.is_some_and(|times| times.knows(moment, self.shape))
    }

    /// Every write to these memories that comes before now is visible to the asynchronous proxy.
    pub(in crate::simt) fn fence_proxy(&mut self, fenced: Fenced) {
        let (before, shape) = (self.tick(), self.shape);
        self.base.change(Of::All, |_, known| {
            let known = Rc::make_mut(known);
            let mut times = known.own.clone();
            times.note(before, shape);
            let times = Rc::new(times);
            if fenced.shared {
                merge_shared(&mut known.proxied.shared, &times);
            }
            if fenced.tensors {
                merge_shared(&mut known.proxied.tensors, &times);
                known.foreign.values_mut().for_each(|other| other.proxied = other.times.clone());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scope;
    use super::*;

    const SHARED: Fenced = Fenced { shared: true, tensors: false };
    const TENSORS: Fenced = Fenced { shared: false, tensors: true };

    /// Whether a write at a moment is seen in shared memory, and in a tensor.
    fn seen(clock: &Clock, moment: Moment) -> [bool; 2] {
        [Of::Shared, Of::All].map(|of| clock.proxied(moment, of))
    }

    #[test]
    fn a_fence_covers_what_came_before_it_in_its_memory() {
        for (fenced, expected) in [(SHARED, [true, false]), (TENSORS, [false, true])] {
            let mut clocks = Clock::of_block(0, 2);
            let written = clocks[0].moment();
            assert_eq!(seen(&clocks[0], written), [false; 2]);
            clocks[0].fence_proxy(fenced);
            let later = clocks[0].moment();
            assert_eq!((seen(&clocks[0], written), seen(&clocks[0], later)), (expected, [false; 2]));
            assert_eq!(seen(&clocks[1], written), [false; 2]);
            let snapshot = clocks[0].release(Scope::Block);
            clocks[1].acquire(&snapshot, Of::All);
            assert_eq!(seen(&clocks[1], written), expected);
        }
    }

    #[test]
    fn another_clusters_writes_are_seen_by_a_fence_of_either() {
        for [first, second] in [[false, false], [true, false], [false, true]] {
            let (mut writer, mut reader) = (Clock::of_block(0, 1).remove(0), Clock::of_block(5, 1).remove(0));
            let written = writer.moment();
            if first {
                writer.fence_proxy(TENSORS);
            }
            let snapshot = writer.release(Scope::Device);
            reader.acquire(&snapshot, Of::All);
            reader.fence_proxy(SHARED);
            assert_eq!(reader.proxied(written, Of::All), first);
            if second {
                reader.fence_proxy(TENSORS);
            }
            assert_eq!(reader.proxied(written, Of::All), first || second);
        }
    }
}
