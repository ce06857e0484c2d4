//! Variables that a loop or branch assigns to: they become carried values of the loop, or results of the
//! branch, so that the IR has no variables.

use crate::assigned::Assigned;
use crate::lower::{Lowered, Lowering};
use crate::scope::{Changes, Variable, VariableId};
use crate::span::Span;
use crate::value::Val;
use tile_ir::{Op, RegionId, ValueId};

impl Lowering {
    /// The assigned variables that exist outside, their values as SSA values. What isn't data can't be
    /// carried.
    pub(in crate::lower) fn carried(&mut self, assigned: &Assigned, span: Span) -> Lowered<Vec<VariableId>> {
        let mut candidates = self.scopes.visible(assigned.names.iter().cloned());
        candidates.extend(self.flags_of(&assigned.exits));
        candidates.sort_unstable();
        candidates.dedup();
        let mut carried = Vec::new();
        for id in candidates {
            let Variable { value, changes, name, .. } = self.scopes.variables[id].clone();
            if changes != Changes::Allowed || matches!(value, Val::Poison) {
                continue;
            }
            if !matches!(value, Val::Unset) {
                let what = format!("`{name}`, which is assigned in a loop or branch,");
                self.scopes.variables[id].value = self.flatten(&value, &what, span, &mut Vec::new())?;
            }
            carried.push(id);
        }
        Ok(carried)
    }

    /// Turns literals and extents inside a value into SSA values, and lists them. `what` is the value in a
    /// message.
    pub(in crate::lower) fn flatten(
        &mut self,
        value: &Val,
        what: &str,
        span: Span,
        values: &mut Vec<ValueId>,
    ) -> Lowered<Val> {
        match value {
            Val::List(parts) => {
                let parts = parts.iter().map(|part| self.flatten(part, what, span, values));
                parts.collect::<Lowered<_>>().map(Val::List)
            }
            Val::Record(name, fields) => {
                let fields = fields
                    .iter()
                    .map(|(field, value)| Ok((field.clone(), self.flatten(value, what, span, values)?)));
                fields.collect::<Lowered<_>>().map(|fields| Val::Record(name.clone(), fields))
            }
            value => {
                let id = self.data(value, what, span)?;
                values.push(id);
                Ok(Val::Data(id))
            }
        }
    }

    pub(in crate::lower) fn fresh_like(&mut self, value: ValueId) -> ValueId {
        let ty = self.kernel.ty(value).clone();
        self.kernel.new_value(ty, None)
    }

    /// Puts SSA values into a variable, in the structure of a value, and names them after it.
    pub(in crate::lower) fn set_value(
        &mut self,
        variable: VariableId,
        structure: &Val,
        parts: &mut dyn Iterator<Item = ValueId>,
    ) {
        let name = self.scopes.variables[variable].name.clone();
        let kernel = &mut self.kernel;
        let mut named = parts.inspect(|&part| kernel.name_value(part, &name));
        self.scopes.variables[variable].value = replaced(structure, &mut named);
    }

    pub(in crate::lower) fn end_region(&mut self, region: RegionId, yielded: &[ValueId], span: Span) {
        let outer = std::mem::replace(&mut self.region, region);
        self.append(Op::Yield, yielded, &[], Vec::new(), span);
        self.region = outer;
    }
}

/// A value with its SSA values replaced in order.
pub(in crate::lower) fn replaced(value: &Val, parts: &mut dyn Iterator<Item = ValueId>) -> Val {
    match value {
        Val::List(values) => Val::List(values.iter().map(|value| replaced(value, parts)).collect()),
        Val::Record(name, fields) => {
            let fields = fields.iter().map(|(field, value)| (field.clone(), replaced(value, parts)));
            Val::Record(name.clone(), fields.collect())
        }
        Val::Unit | Val::Never | Val::Unset => value.clone(),
        _ => parts.next().map_or(Val::Poison, Val::Data),
    }
}
