//! What a movement asks of extents: decided where they are known by form, else checked at the launch.

use crate::dim::{Dim, DimError};

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
    /// Whether the sides are equal; else the left one is no larger.
    pub fn is_equality(self) -> bool {
        matches!(self, Rule::Elements | Rule::One)
    }
}

impl Requirement {
    pub(super) fn new(axis: usize, rule: Rule, left: impl Into<Dim>, right: impl Into<Dim>) -> Requirement {
        Requirement { axis, rule, left: left.into(), right: right.into() }
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

/// An extent with its value: `10 (m)`.
fn valued(dim: &Dim, value: i64) -> String {
    if dim.as_const().is_some() { value.to_string() } else { format!("{value} ({dim:#})") }
}
