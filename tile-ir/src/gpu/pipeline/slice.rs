//! What the producer of a kernel's pipelines executes: the copies, the loops and branches around them, and the numbers
//! that these need. Of tiles it has those of one element, which are numbers to it: what such a tile holds of a tensor that
//! nobody writes one thread loads as well as another, so that it needn't be told by the consumers. So it takes the
//! branches that they take. Whoever has tensor cores multiply executes the same, so that the loops around these products are
//! part of it whether or not something is copied in them.

use super::super::shape_of;
use crate::kernel::{Kernel, OpId, RegionId, ValueId};
use crate::ops::{Carried, Op};
use crate::view::Source;
use std::collections::{HashMap, HashSet};

/// A part of a kernel that can be executed alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    ops: HashSet<OpId>,
    values: HashSet<ValueId>,
}

/// Where what a loop carries stands, of those that the producer goes round: it takes no part in a `while`.
fn carried_of(op: &Op) -> Option<Carried> {
    Carried::of(op).filter(|_| *op != Op::While)
}

/// Whether an op gives its operand, of which there is one, where that has one element.
pub(super) fn is_same_of_one(op: &Op) -> bool {
    let is_moved = matches!(op, Op::Reshape(_) | Op::Permute(_) | Op::Broadcast(_) | Op::ConvertLayout);
    is_moved || matches!(op, Op::Item | Op::Splat(_))
}

/// Whether the producer can execute something; otherwise what it can't.
type Executed = Result<(), OpId>;

struct Search<'k> {
    kernel: &'k Kernel,
    definitions: HashMap<ValueId, OpId>,
    /// The op whose region an op stands in, or a parameter belongs to.
    owners: HashMap<RegionId, OpId>,
    homes: HashMap<OpId, RegionId>,
    params: HashMap<ValueId, RegionId>,
    found: Slice,
}

impl Slice {
    /// What is executed for these loads, and around these products.
    ///
    /// # Errors
    /// What the producer can't execute of it: an op that gives more than numbers.
    pub(super) fn of(kernel: &Kernel, loads: Vec<OpId>, products: Vec<OpId>) -> Result<Slice, OpId> {
        let mut search = Search {
            kernel,
            definitions: HashMap::new(),
            owners: HashMap::new(),
            homes: HashMap::new(),
            params: HashMap::new(),
            found: Slice::default(),
        };
        search.read(kernel.body());
        loads.into_iter().try_for_each(|load| search.copy(load))?;
        products.into_iter().try_for_each(|product| search.around(product))?;
        Ok(search.found)
    }

    /// Whether the producer executes an op.
    pub fn executes(&self, op: OpId) -> bool {
        self.ops.contains(&op)
    }

    /// Takes a number away from the producer.
    #[cfg(test)]
    pub(super) fn forget(&mut self, value: ValueId) {
        self.values.remove(&value);
    }

    /// Whether the producer has a number.
    pub fn has(&self, value: ValueId) -> bool {
        self.values.contains(&value)
    }
}

impl Search<'_> {
    fn read(&mut self, region: RegionId) {
        let data = self.kernel.region(region);
        self.params.extend(data.params.iter().map(|&param| (param, region)));
        for &op in &data.ops {
            self.homes.insert(op, region);
            self.definitions.extend(self.kernel.op(op).results.iter().map(|&result| (result, op)));
            for &inner in &self.kernel.op(op).regions {
                self.owners.insert(inner, op);
                self.read(inner);
            }
        }
    }

    /// A load whose tile is copied: its index, and where it stands. The view is an address and numbers.
    fn copy(&mut self, load: OpId) -> Executed {
        self.found.ops.insert(load);
        self.around(load)?;
        let index = self.kernel.op(load).load().expect("a load").index;
        index.iter().try_for_each(|&index| self.number(index))
    }

    /// The loops and branches around an op, with their bounds and conditions.
    fn around(&mut self, op: OpId) -> Executed {
        let Some(&owner) = self.owners.get(&self.homes[&op]) else { return Ok(()) };
        if !self.found.ops.insert(owner) {
            return Ok(());
        }
        let data = self.kernel.op(owner);
        let numbers = match data.op {
            Op::For => &data.operands[..2],
            Op::If => &data.operands,
            Op::Tiles(_) => &[],
            _ => return Err(owner),
        };
        numbers.iter().try_for_each(|&number| self.number(number))?;
        self.around(owner)
    }

    fn number(&mut self, value: ValueId) -> Executed {
        if !self.found.values.insert(value) || self.kernel.params().contains(&value) {
            return Ok(());
        }
        match self.definitions.get(&value).copied() {
            Some(op) => self.defined(value, op),
            None => self.carried(value),
        }
    }

    /// A number that an op gives.
    fn defined(&mut self, value: ValueId, op: OpId) -> Executed {
        let data = self.kernel.op(op);
        if shape_of(self.kernel, value).is_some_and(|shape| shape.iter().any(|&extent| extent != 1)) {
            return Err(op);
        }
        self.around(op)?;
        if let Some(carried) = carried_of(&data.op) {
            let result = data.results.iter().position(|&result| result == value).expect("the op gives it");
            let param = self.kernel.region(data.regions[0]).params[carried.param + result];
            self.found.ops.insert(op);
            if let Op::For = data.op {
                data.operands[..2].iter().try_for_each(|&bound| self.number(bound))?;
            }
            return self.number(param);
        }
        if data.op == Op::If {
            return self.chosen(value, op);
        }
        self.found.ops.insert(op);
        self.found.values.extend(&data.results);
        match &data.op {
            op if op.is_leaf() || is_same_of_one(op) => {
                data.operands.iter().try_for_each(|&operand| self.number(operand))
            }
            Op::LoadMasked | Op::Load { .. } => self.loaded(op),
            Op::GatherLoad => self.gathered(op),
            Op::BlockIndex | Op::BlockId { .. } | Op::BlockCount { .. } => Ok(()),
            _ => Err(op),
        }
    }

    /// What either way of a branch gives. No tile of these is a number to the producer.
    fn chosen(&mut self, value: ValueId, branch: OpId) -> Executed {
        let data = self.kernel.op(branch);
        if shape_of(self.kernel, value).is_some() {
            return Err(branch);
        }
        self.found.ops.insert(branch);
        self.number(data.operands[0])?;
        let result = data.results.iter().position(|&result| result == value).expect("the op gives it");
        let ends = data.regions.iter().filter_map(|&region| self.kernel.region(region).ops.last());
        ends.into_iter().try_for_each(|&end| self.number(self.kernel.op(end).operands[result]))
    }

    /// A tile of one element that is loaded of a tensor that nobody writes: its index, and the axes that the tensor was
    /// selected by.
    fn loaded(&mut self, op: OpId) -> Executed {
        let load = self.kernel.op(op).load().expect("a load");
        let view = self.kernel.ty(load.view).as_partition().expect("verified: a view");
        if view.tensor.mutable {
            return Err(op);
        }
        let cut = self.kernel.definition(load.view).expect("verified: a view is made by `partition`");
        let selected = self.selected(cut.operands[0]);
        let mut numbers = load.index.iter().copied().chain(load.pad).chain(selected);
        numbers.try_for_each(|number| self.number(number))
    }

    /// An element that is gathered, at places that are numbers. Verified: of a tensor that nobody writes.
    fn gathered(&mut self, op: OpId) -> Executed {
        let (tensor, others) = self.kernel.op(op).operands.split_first().expect("verified: a tensor first");
        let mut numbers = others.iter().copied().chain(self.selected(*tensor));
        numbers.try_for_each(|number| self.number(number))
    }

    /// The indices of the axes that a tensor was selected by.
    fn selected(&self, tensor: ValueId) -> Vec<ValueId> {
        let selections = Source::of(self.kernel, tensor).selections;
        selections.into_iter().map(|selection| selection.index).collect()
    }

    /// A parameter of a loop: its counter, or what it carries. No tile of these is a number to the producer.
    fn carried(&mut self, param: ValueId) -> Executed {
        let region = self.params[&param];
        let owner = self.owners[&region];
        let data = self.kernel.op(owner);
        let carried = carried_of(&data.op).filter(|_| shape_of(self.kernel, param).is_none()).ok_or(owner)?;
        let position = self.kernel.region(region).params.iter().position(|&other| other == param);
        let Some(i) = position.expect("the region has it").checked_sub(carried.param) else {
            return Ok(());
        };
        let end = *self.kernel.region(region).ops.last().expect("verified: a loop's region yields");
        self.found.values.insert(data.results[i]);
        self.number(data.operands[carried.initial + i])?;
        self.number(self.kernel.op(end).operands[carried.yielded + i])
    }
}
