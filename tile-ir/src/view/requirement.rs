//! What a movement asks of extents: decided where they are known by form, else checked at the launch.

use crate::dim::{Dim, DimError};
use std::fmt;

/// A relation between two extents that a movement relies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The axis of the tensor that is moved.
    pub axis: usize,
    /// What must hold.
    pub rule: Rule,
    /// The left side.
    pub left: Dim,
    /// The right side.
    pub right: Dim,
}

/// The relation, by the movement that asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// `unflatten`: the axis has as many elements as the axes made of it.
    Elements,
    /// `shrink`: a range begins before its end.
    Begin,
    /// `shrink`: a range ends inside the axis.
    End,
    /// `squeeze`: the axis has extent 1.
    One,
    /// `unfold`: a window fits the axis.
    Window,
    /// A step is 1 or more.
    Step,
    /// A count isn't negative.
    Natural,
}

impl Rule {
    /// Every rule, by its name in the text form.
    const NAMED: [(&'static str, Rule); 7] = [
        ("elements", Rule::Elements),
        ("begin", Rule::Begin),
        ("end", Rule::End),
        ("one", Rule::One),
        ("window", Rule::Window),
        ("step", Rule::Step),
        ("natural", Rule::Natural),
    ];

    pub(crate) fn named(name: &str) -> Option<Rule> {
        Rule::NAMED.iter().find(|(known, _)| *known == name).map(|&(_, rule)| rule)
    }

    fn name(self) -> &'static str {
        let (name, _) =
            Rule::NAMED.iter().find(|(_, rule)| *rule == self).expect("verified: every rule has a name");
        name
    }

    /// Whether the sides are equal; else the left one is no larger.
    fn is_equality(self) -> bool {
        matches!(self, Rule::Elements | Rule::One)
    }
}

impl Requirement {
    pub(super) fn new(axis: usize, rule: Rule, left: impl Into<Dim>, right: impl Into<Dim>) -> Requirement {
        Requirement { axis, rule, left: left.into(), right: right.into() }
    }

    /// The same of other extents.
    pub(super) fn map(&self, f: &dyn Fn(&Dim) -> Dim) -> Requirement {
        Requirement { left: f(&self.left), right: f(&self.right), ..self.clone() }
    }

    /// Whether it holds, where that is known without sizes.
    pub fn decide(&self) -> Option<bool> {
        let difference = self.right.clone() - self.left.clone();
        match (self.is_equality(), difference.as_const()) {
            (true, Some(difference)) => Some(difference == 0),
            (true, None) => None,
            (false, Some(difference)) => Some(difference >= 0),
            (false, None) => difference.is_natural().then_some(true),
        }
    }

    fn is_equality(&self) -> bool {
        self.rule.is_equality()
    }

    /// Why it doesn't hold for these sizes; `None` where it holds. `tensor` is what is moved.
    ///
    /// # Errors
    /// [`DimError`] where a side has no value.
    pub fn violation(
        &self,
        tensor: &str,
        lookup: &dyn Fn(&str) -> Option<i64>,
    ) -> Result<Option<String>, DimError> {
        let (left, right) = (self.left.evaluate_signed(lookup)?, self.right.evaluate_signed(lookup)?);
        let holds = if self.is_equality() { left == right } else { left <= right };
        Ok((!holds).then(|| self.explain(tensor, &valued(&self.left, left), &valued(&self.right, right))))
    }

    /// The message for sides without sizes.
    pub fn message(&self, tensor: &str) -> String {
        self.explain(tensor, &format!("{:#}", self.left), &format!("{:#}", self.right))
    }

    fn explain(&self, tensor: &str, left: &str, right: &str) -> String {
        let axis = format!("axis {} of {tensor}", self.axis);
        match self.rule {
            Rule::Elements => {
                format!(
                    "`unflatten` of {axis}: it has {left} elements, the new axes {right}; they must be equal"
                )
            }
            Rule::Begin => format!("`shrink` of {axis}: the range begins at {left} and ends at {right}"),
            Rule::End => {
                format!("`shrink` of {axis}: the range ends at {left}, but the axis has {right} elements")
            }
            Rule::One => format!("`squeeze` of {axis}: it has {left} elements, not 1"),
            Rule::Window => {
                format!("`unfold` of {axis}: windows of {left} elements don't fit, it has {right}")
            }
            Rule::Natural => format!("a count for {axis} is negative: {right}"),
            Rule::Step => format!("a step along {axis} is {right}, but must be 1 or more"),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({}, {})", self.rule.name(), self.axis, self.left, self.right)
    }
}

/// An extent with its value: `10 (m)`.
fn valued(dim: &Dim, value: i64) -> String {
    if dim.as_const().is_some() { value.to_string() } else { format!("{value} ({dim:#})") }
}
