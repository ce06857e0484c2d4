//! What has ended has ended for everybody, however far a thread's arrival at an mbarrier orders what it did.

use super::{Clock, Of, Times, maximum, merge_shared};
use std::rc::Rc;

/// What whoever comes later may rely on even if nothing orders memory: of a cluster's agents, the last time of those
/// operations that have ended, and the accesses of tensor memory that were handed on.
#[derive(Clone, Debug, Default)]
pub(in crate::simt) struct Ended {
    agents: Vec<u32>,
    tensor: Rc<Times>,
}

impl Ended {
    pub(in crate::simt) fn merge(&mut self, other: &Ended) {
        maximum(&mut self.agents, &other.agents);
        merge_shared(&mut self.tensor, &other.tensor);
    }
}

impl Clock {
    /// What the thread knows to have ended.
    pub(in crate::simt) fn ended(&self) -> Ended {
        Ended { agents: self.base.all.own.agents.clone(), tensor: self.base.all.tensor.clone() }
    }

    /// That comes before what this thread does from now on.
    pub(in crate::simt) fn learn_ended(&mut self, ended: &Ended) {
        let known = &self.base.all.own.agents;
        let is_known =
            |(i, &time): (usize, &u32)| known.get(i).is_some_and(|&known| known >= time) || time == 0;
        if !ended.agents.iter().enumerate().all(is_known) {
            self.base.change(Of::All, |_, known| maximum(&mut Rc::make_mut(known).own.agents, &ended.agents));
        }
        if !ended.tensor.is_empty() {
            self.base
                .change(Of::All, |_, known| merge_shared(&mut Rc::make_mut(known).tensor, &ended.tensor));
        }
    }
}
