//! Variables and their scopes.

use crate::span::Span;
use crate::value::Val;
use std::collections::HashMap;

/// A variable of the body, or an argument.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: Val,
    pub(crate) changes: Changes,
    /// Whether it is a `const`, which a pattern compares with.
    pub(crate) constant: bool,
    /// Where it was defined.
    pub(crate) span: Span,
}

/// Whether a variable may be assigned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changes {
    /// It was bound with `mut`.
    Allowed,
    /// It was bound without.
    Refused,
    /// Nothing binds it that takes a `mut`: a size, a constant.
    Never,
}

impl Changes {
    /// Those of a name that is bound with `mut` or without.
    pub(crate) fn of_binding(mutable: bool) -> Changes {
        if mutable { Changes::Allowed } else { Changes::Refused }
    }
}

/// The position of a variable among all of the kernel.
pub(crate) type VariableId = usize;

/// What names mean at a place in the body.
#[derive(Clone, Default)]
pub(crate) struct Scopes {
    pub(crate) variables: Vec<Variable>,
    stack: Vec<HashMap<String, VariableId>>,
}

impl Scopes {
    pub(crate) fn enter(&mut self) {
        self.stack.push(HashMap::new());
    }

    pub(crate) fn leave(&mut self) {
        self.stack.pop();
    }

    /// Hides all names, for the body of a function that is called; gives what to [`Scopes::restore`].
    pub(crate) fn isolate(&mut self) -> Vec<HashMap<String, VariableId>> {
        std::mem::replace(&mut self.stack, vec![HashMap::new()])
    }

    pub(crate) fn restore(&mut self, outer: Vec<HashMap<String, VariableId>>) {
        self.stack = outer;
    }

    pub(crate) fn define(&mut self, variable: Variable) {
        let name = variable.name.clone();
        self.variables.push(variable);
        let id = self.variables.len() - 1;
        if let Some(scope) = self.stack.last_mut() {
            scope.insert(name, id);
        }
    }

    /// A variable that no name in the source reaches: a flag of control flow.
    pub(crate) fn hide(&mut self, variable: Variable) -> VariableId {
        self.variables.push(variable);
        self.variables.len() - 1
    }

    pub(crate) fn find(&self, name: &str) -> Option<VariableId> {
        self.stack.iter().rev().find_map(|scope| scope.get(name).copied())
    }

    /// The visible variables with these names, in order of definition.
    pub(crate) fn visible(&self, names: impl IntoIterator<Item = String>) -> Vec<VariableId> {
        let mut found: Vec<VariableId> = names.into_iter().filter_map(|name| self.find(&name)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}
