//! Regions: what they take, what they yield, and what may stand in those of folds.

use super::{Verifier, list};
use crate::kernel::{OpId, RegionId};
use crate::ops::Op;
use crate::types::Type;

/// How many regions may stand in each other, a kernel's body among them: as many as text is read of.
pub const MAX_NESTING: usize = 64;

impl Verifier<'_> {
    pub(super) fn region(&mut self, region: RegionId, owner: Option<OpId>) {
        if let Some(owner) = owner.filter(|_| self.nesting == MAX_NESTING) {
            return self.error_with_help(
                self.kernel.op(owner).loc,
                format!("loops and branches stand in each other, more than {} of them", MAX_NESTING - 1),
                "`match` and `else if` have a branch in a branch for every arm: look up in a tensor what they choose, or \
                 compute it",
            );
        }
        self.nesting += 1;
        let data = self.kernel.region(region);
        let scope = self.defined.clone();
        self.defined.extend(&data.params);
        for (i, &op) in data.ops.iter().enumerate() {
            self.op(op, owner.is_none());
            let last = i + 1 == data.ops.len();
            if self.kernel.op(op).op == Op::Yield && (!last || owner.is_none()) {
                self.error(self.kernel.op(op).loc, "`yield` may only end a region");
            }
        }
        if let Some(owner) = owner {
            self.region_yields(region, owner);
        }
        self.defined = scope;
        self.nesting -= 1;
    }

    fn region_yields(&mut self, region: RegionId, owner: OpId) {
        let owner = self.kernel.op(owner);
        let last = self.kernel.region(region).ops.last().map(|&op| self.kernel.op(op));
        let Some(last) = last.filter(|last| last.op == Op::Yield) else {
            return self
                .error(owner.loc, format!("a region of `{}` doesn't end with `yield`", owner.op.name()));
        };
        let yielded: Vec<&Type> = last.operands.iter().map(|&value| self.kernel.ty(value)).collect();
        let fold = owner.op.is_fold();
        let results = owner.results.iter().map(|&value| self.kernel.ty(value));
        let results = results.map(|ty| if fold { Type::Scalar(ty.elem().clone()) } else { ty.clone() });
        let condition = (owner.op == Op::While).then_some(Type::BOOL);
        let expected: Vec<Type> = condition.into_iter().chain(results).collect();
        let expected: Vec<&Type> = expected.iter().collect();
        if yielded != expected {
            let message = format!(
                "a region of `{}` yields ({}), but {} ({})",
                owner.op.name(),
                list(&yielded),
                if fold || owner.op == Op::While { "it must yield" } else { "its results are" },
                list(&expected)
            );
            self.error(last.loc, message);
        }
    }

    pub(super) fn loop_region(&mut self, op: OpId) {
        let data = self.kernel.op(op);
        let name = data.op.name();
        let &[region] = data.regions.as_slice() else {
            return self.error(data.loc, format!("`{name}` has one region"));
        };
        let params: Vec<&Type> =
            self.kernel.region(region).params.iter().map(|&param| self.kernel.ty(param)).collect();
        let counter = (data.op == Op::For).then_some(&Type::INDEX);
        let carried = data.operands.iter().skip(if counter.is_some() { 2 } else { 1 });
        let expected: Vec<&Type> =
            counter.into_iter().chain(carried.map(|&value| self.kernel.ty(value))).collect();
        if params != expected {
            let message = format!(
                "the region of `{name}` takes ({}), but is given ({})",
                list(&params),
                list(&expected)
            );
            self.error(data.loc, message);
        }
        self.region(region, Some(op));
    }

    pub(super) fn branch_regions(&mut self, op: OpId) {
        let data = self.kernel.op(op);
        if data.regions.len() != 2 {
            return self.error(data.loc, "`if` has two regions");
        }
        for &region in &data.regions {
            if !self.kernel.region(region).params.is_empty() {
                self.error(data.loc, "a region of `if` has no parameters");
            }
            self.region(region, Some(op));
        }
    }

    pub(super) fn fold_region(&mut self, op: OpId) {
        let data = self.kernel.op(op);
        let &[region] = data.regions.as_slice() else {
            return self.error(data.loc, format!("`{}` has one region", data.op.name()));
        };
        let tiles = || data.operands.iter().take(data.operands.len() / 2);
        let expected: Vec<Type> =
            tiles().chain(tiles()).map(|&tile| Type::Scalar(self.kernel.ty(tile).elem().clone())).collect();
        let params = self.kernel.region(region).params.iter().map(|&param| self.kernel.ty(param));
        let params: Vec<&Type> = params.collect();
        if params.iter().copied().ne(&expected) {
            let expected: Vec<&Type> = expected.iter().collect();
            let message = format!(
                "the region of `{}` takes ({}), but is given ({})",
                data.op.name(),
                list(&params),
                list(&expected)
            );
            self.error(data.loc, message);
        }
        self.region(region, Some(op));
        for &inner in &self.kernel.region(region).ops {
            self.folds_scalars(data.op.name(), inner);
        }
    }

    fn folds_scalars(&mut self, owner: &str, inner: OpId) {
        let data = self.kernel.op(inner);
        if !data.op.is_leaf() && data.op != Op::Yield {
            let message =
                format!("`{}` stands in a region of `{owner}`, which has leaf ops only", data.op.name());
            return self.error(data.loc, message);
        }
        let mut values = data.operands.iter().chain(&data.results);
        if let Some(&tile) = values.find(|&&value| !matches!(self.kernel.ty(value), Type::Scalar(_))) {
            let message =
                format!("a region of `{owner}` computes with scalars, not with {}", self.kernel.ty(tile));
            self.error(data.loc, message);
        }
    }
}
