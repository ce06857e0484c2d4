//! The order of accesses of tensor memory (PTX ISA, "Memory Consistency Model for 5th generation of TensorCore
//! operations", "Specialized Inter-thread Synchronization for tcgen05 instructions").
//!
//! What a thread did to tensor memory is handed on by `tcgen05.fence::before_thread_sync` and whatever lets one thread
//! wait for another after it, with or without an order of memory; and it comes before another thread's accesses of tensor
//! memory from that one's next `tcgen05.fence::after_thread_sync` on. So there are two sets of accesses: those handed on
//! as far as a thread has heard (part of [`Known`]), and those that come before its next access. What has ended
//! asynchronously is handed on by its end (PTX ISA, "Non-pipelined instructions, same thread").

use super::{Clock, Knowledge, Known, Moment, Of, Times};
use std::rc::Rc;

impl Clock {
    /// `tcgen05.fence::before_thread_sync`: what the thread did to tensor memory, and what comes before that, is handed on
    /// by whatever makes others wait for it from now on.
    pub(in crate::simt) fn fence_tensor_before(&mut self) {
        let (before, shape, tensor) = (self.tick(), self.shape, self.tensor.clone());
        self.base.change(Of::All, |_, known| {
            let handed = Rc::make_mut(&mut Rc::make_mut(known).tensor);
            handed.merge(&tensor);
            handed.note(before, shape);
        });
    }

    /// `tcgen05.fence::after_thread_sync`: what was handed on comes before what the thread does to tensor memory from now
    /// on.
    pub(in crate::simt) fn fence_tensor_after(&mut self) {
        super::merge_shared(&mut self.tensor, &self.base.all.tensor);
    }

    /// An operation of this cluster's agents on tensor memory has ended, as this thread has heard.
    pub(in crate::simt) fn learn_tensor(&mut self, moment: Moment) {
        let shape = self.shape;
        if !self.base.all.tensor.knows(moment, shape) {
            self.base.change(Of::All, |_, known| {
                Rc::make_mut(&mut Rc::make_mut(known).tensor).note(moment, shape);
            });
        }
    }

    /// The thread's clock for accesses of tensor memory: it knows of those that come before the next one.
    pub(in crate::simt) fn of_tensor_memory(&self) -> Clock {
        self.with(self.tensor.clone())
    }

    /// The same if `tcgen05.fence::after_thread_sync` came now.
    pub(in crate::simt) fn of_tensor_memory_after_fence(&self) -> Clock {
        let mut fenced = self.clone();
        fenced.fence_tensor_after();
        fenced.of_tensor_memory()
    }

    fn with(&self, times: Rc<Times>) -> Clock {
        let own = Rc::unwrap_or_clone(times);
        let all = Rc::new(Known { own, ..Known::default() });
        Clock { base: Knowledge { all, shared: None }, fenced: None, pending: Vec::new(), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Joined, Scope};
    use super::*;

    /// Two threads, the first of which did something to tensor memory, between these fences and a barrier.
    fn ordered(before: bool, after: bool, relaxed: bool) -> bool {
        let mut clocks = Clock::of_block(0, 2);
        let moment = clocks[0].moment();
        if before {
            clocks[0].fence_tensor_before();
        }
        if relaxed {
            let ended = clocks[0].ended();
            clocks[1].learn_ended(&ended);
        } else {
            let snapshots: Vec<_> = clocks.iter_mut().map(|clock| clock.release(Scope::Block)).collect();
            let joined = Joined::of(&snapshots).expect("two threads came");
            clocks.iter_mut().for_each(|clock| clock.absorb(&joined));
        }
        let if_fenced = clocks[1].of_tensor_memory_after_fence().knows(moment);
        if after {
            clocks[1].fence_tensor_after();
        }
        let is_known = clocks[1].of_tensor_memory().knows(moment);
        assert!(if_fenced || !is_known);
        is_known
    }

    #[test]
    fn both_fences_are_needed() {
        for bits in 0..8 {
            let [before, after, relaxed] = [0, 1, 2].map(|i| bits >> i & 1 == 1);
            assert_eq!(ordered(before, after, relaxed), before && after, "{before} {after} {relaxed}");
        }
    }

    #[test]
    fn what_was_handed_on_goes_on_without_fences() {
        let mut clocks = Clock::of_block(0, 3);
        let moment = clocks[0].moment();
        clocks[0].fence_tensor_before();
        for (from, to) in [(0, 1), (1, 2)] {
            let joined = Joined::of(&[clocks[from].release(Scope::Block)]).expect("one came");
            clocks[to].absorb(&joined);
        }
        clocks[2].fence_tensor_after();
        assert!(clocks[2].of_tensor_memory().knows(moment));
        assert!(!clocks[1].of_tensor_memory().knows(moment));
    }

    #[test]
    fn what_a_thread_does_after_a_fence_is_not_handed_on() {
        let mut clocks = Clock::of_block(0, 2);
        clocks[0].fence_tensor_before();
        let moment = clocks[0].moment();
        let joined = Joined::of(&[clocks[0].release(Scope::Block)]).expect("one came");
        clocks[1].absorb(&joined);
        clocks[1].fence_tensor_after();
        assert!(!clocks[1].of_tensor_memory().knows(moment));
    }

    #[test]
    fn an_end_is_handed_on_by_itself() {
        let mut clock = Clock::of_block(0, 1).remove(0);
        let moment = Moment::of_agent(0, 3, std::num::NonZeroU32::MIN);
        clock.learn_tensor(moment);
        assert!(!clock.of_tensor_memory().knows(moment));
        clock.fence_tensor_after();
        assert!(clock.of_tensor_memory().knows(moment));
    }
}
