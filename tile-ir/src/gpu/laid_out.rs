//! An instance whose tiles have distributions: what the steps of a schedule that follow read, and what it says of single ops.

use super::access::{Access, accesses};
use super::exchange::sorting::Lines;
use super::exchange::ways::{self, Way};
use super::layouts::{Basis, Layouts};
use super::{Pipelines, Product, Reduction, Scan, Sorting, Threads, cluster, dtype_of, layouts, products};
use crate::dtype::DType;
use crate::kernel::{OpData, OpId, ValueId};
use crate::ops::Op;
use crate::specialize::Instance;
use crate::target::TargetDesc;
use std::collections::HashMap;
use tile_layout::linear::Distribution;

/// An instance whose tiles have distributions, and how they come to these.
#[derive(Clone, Debug)]
pub(super) struct LaidOut {
    pub(super) instance: Instance,
    pub(super) distributions: HashMap<ValueId, Distribution>,
    pub(super) accesses: HashMap<OpId, Access>,
    pub(super) products: HashMap<OpId, Product>,
    pub(super) ways: HashMap<OpId, Way>,
    pub(super) staged: HashMap<OpId, OpId>,
    pub(super) threads: Threads,
}

impl LaidOut {
    pub(super) fn of(
        instance: Instance,
        target: &TargetDesc,
        threads: Threads,
        pipelines: &Pipelines,
    ) -> LaidOut {
        let (accesses, products) =
            (accesses(&instance, target), products::products(&instance, target, threads, pipelines));
        let banks = target.shared_banks;
        let basis = Basis { threads, banks, accesses: &accesses, products: &products, pipelines };
        let runs = layouts::runs(&instance, target, basis);
        let mut distributions = HashMap::new();
        let instance = instance.rewrite("layouts", |kernel| {
            distributions = Layouts::assign(kernel, basis, &runs);
        });
        let ways = ways::ways(&instance, &distributions, target);
        let staged = ways::staged(&instance, &ways, &products, pipelines);
        LaidOut { instance, distributions, accesses, products, ways, staged, threads }
    }

    pub(super) fn dtype(&self, value: ValueId) -> DType {
        dtype_of(&self.instance, value)
    }

    /// The bytes of a tile.
    pub(super) fn bytes(&self, tile: ValueId) -> u64 {
        self.distributions[&tile].shape().iter().product::<u64>() * self.dtype(tile).bytes() as u64
    }

    /// How a [`Op::Reduce`] is done.
    pub(super) fn reduction(&self, data: &OpData) -> Reduction<'_> {
        Reduction::of(self, data)
    }

    /// How an op is done that joins parts of lines; `None` of others.
    pub(super) fn scan(&self, data: &OpData) -> Option<Scan> {
        Scan::of(self, data)
    }

    /// Whether blocks of a cluster send each other what a reduction joins of each ([`cluster::sends`]).
    pub(super) fn is_sent(&self, op: OpId) -> bool {
        cluster::sends(self, op)
    }

    /// How a [`Op::Sort`] is done.
    pub(super) fn sorting(&self, data: &OpData) -> Sorting {
        let Op::Sort { axis, .. } = data.op else { unreachable!("it is asked of sorts alone") };
        let shape = |tile| self.distributions[&tile].shape();
        let (extents, kept) = (shape(data.operands[0]), shape(data.results[0])[axis]);
        let (lines, extent) = (extents.iter().product::<u64>() / extents[axis], extents[axis]);
        Sorting::of(Lines { lines, extent, kept }, self.dtype(data.operands[0]), self.threads)
    }
}
