//! Which extents and element formats the attributes of an op hold.

use super::{Cut, Op};
use crate::dim::Dim;
use crate::types::Elem;

impl Op {
    /// The op with every extent and element format of its attributes through a function. Literals stay as they are.
    pub fn map(&self, dim: &dyn Fn(&Dim) -> Dim, elem: &dyn Fn(&Elem) -> Elem) -> Op {
        let dims = |dims: &[Dim]| dims.iter().map(dim).collect::<Vec<_>>();
        match self {
            // Both.
            Op::Iota { shape, axis, elem: of } => {
                Op::Iota { shape: dims(shape), axis: *axis, elem: elem(of) }
            }
            // A format.
            Op::Constant { value, elem: of } => Op::Constant { value: *value, elem: elem(of) },
            Op::Lookup { table, elem: of } => Op::Lookup { table: table.clone(), elem: elem(of) },
            Op::Cast(to) => Op::Cast(elem(to)),
            Op::CastWith(to, rounding) => Op::CastWith(elem(to), *rounding),
            Op::SaturatingCast(to) => Op::SaturatingCast(elem(to)),
            Op::Bitcast(to) => Op::Bitcast(elem(to)),
            // Extents.
            Op::Extent(extent) => Op::Extent(dim(extent)),
            Op::Splat(shape) => Op::Splat(dims(shape)),
            Op::Broadcast(shape) => Op::Broadcast(dims(shape)),
            Op::Reshape(shape) => Op::Reshape(dims(shape)),
            Op::Movement(movement) => Op::Movement(movement.map(dim)),
            Op::Sort { axis, descending, count } => {
                Op::Sort { axis: *axis, descending: *descending, count: dim(count) }
            }
            Op::Histogram(bins) => Op::Histogram(dim(bins)),
            Op::View(movement) => Op::View(movement.map(dim)),
            Op::Tiles(order) => Op::Tiles(order.map(dim)),
            Op::Partition(cut) => Op::Partition(Cut {
                tile: dims(&cut.tile),
                steps: cut.steps.as_ref().map(|steps| dims(steps)),
                spanned: cut.spanned.clone(),
                hints: cut.hints.map(dim),
            }),
            // Neither.
            Op::Unary(_) | Op::Binary(_) | Op::Compare(_) | Op::Classify(_) | Op::Select | Op::MulAdd => {
                self.clone()
            }
            Op::Permute(_) | Op::Gather { .. } | Op::Scatter { .. } | Op::Item => self.clone(),
            Op::Reduce { .. } | Op::Scan { .. } | Op::ReduceWith { .. } | Op::ScanWith { .. } => self.clone(),
            Op::Mma | Op::MmaScaled | Op::ConvertLayout => self.clone(),
            Op::BlockIndex | Op::BlockId { .. } | Op::BlockCount { .. } => self.clone(),
            Op::LoadMasked | Op::StoreMasked | Op::Load { .. } | Op::Store | Op::GatherLoad => self.clone(),
            Op::Atomic(_) | Op::Prefetch | Op::Print { .. } | Op::Assert { .. } => self.clone(),
            Op::For | Op::While | Op::If | Op::Yield => self.clone(),
        }
    }

    /// Every extent that the attributes hold, in order.
    pub fn dims(&self) -> Vec<Dim> {
        let found = std::cell::RefCell::new(Vec::new());
        let note = |dim: &Dim| {
            found.borrow_mut().push(dim.clone());
            dim.clone()
        };
        self.map(&note, &Elem::clone);
        found.into_inner()
    }
}
