//! Leaf ops by name: those of one or two operands that the op tables declare. Who reads names, the text form and the
//! front end, asks here, and not each table in turn.

use super::{BinaryOp, Classification, Domain, Op, Predicate, UnaryOp};

/// A leaf op that a table declares.
///
/// ```
/// use tile_ir::ops::{BinaryOp, Leaf};
/// assert_eq!(Leaf::from_name("powf"), Some(Leaf::Binary(BinaryOp::Powf)));
/// assert_eq!(Leaf::from_name("powf").map(Leaf::operands), Some(2));
/// assert_eq!(Leaf::from_name("mma"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// Of one operand.
    Unary(UnaryOp),
    /// Of two operands.
    Binary(BinaryOp),
    /// Whether two operands compare so.
    Compare(Predicate),
    /// Whether an operand is of a kind.
    Classify(Classification),
}

impl Leaf {
    /// Every one, table by table.
    pub fn all() -> impl Iterator<Item = Leaf> {
        let unary = UnaryOp::ALL.iter().map(|&op| Leaf::Unary(op));
        let binary = BinaryOp::ALL.iter().map(|&op| Leaf::Binary(op));
        let tests = Classification::ALL.iter().map(|&test| Leaf::Classify(test));
        let comparisons = Predicate::ALL.iter().map(|&predicate| Leaf::Compare(predicate));
        unary.chain(binary).chain(tests).chain(comparisons)
    }

    /// The one with this name in IR text.
    pub fn from_name(name: &str) -> Option<Leaf> {
        Leaf::all().find(|leaf| leaf.name() == name)
    }

    /// The name in IR text.
    pub fn name(self) -> &'static str {
        match self {
            Leaf::Unary(op) => op.name(),
            Leaf::Binary(op) => op.name(),
            Leaf::Compare(predicate) => predicate.name(),
            Leaf::Classify(classification) => classification.name(),
        }
    }

    /// How many operands it has.
    pub fn operands(self) -> usize {
        match self {
            Leaf::Unary(_) | Leaf::Classify(_) => 1,
            Leaf::Binary(_) | Leaf::Compare(_) => 2,
        }
    }

    /// The element classes that it accepts.
    pub fn domain(self) -> Domain {
        match self {
            Leaf::Unary(op) => op.domain(),
            Leaf::Binary(op) => op.domain(),
            Leaf::Compare(predicate) => predicate.domain(),
            Leaf::Classify(classification) => classification.domain(),
        }
    }

    /// The largest error on f32, in units in the last place; `None` where results are exact or correctly rounded.
    pub fn ulps(self) -> Option<u32> {
        match self {
            Leaf::Unary(op) => op.ulps(),
            Leaf::Binary(op) => op.ulps(),
            Leaf::Compare(_) | Leaf::Classify(_) => None,
        }
    }

    /// Whether kernels call it by its name: arithmetic that Rust has an operator for, they write so.
    pub fn is_function(self) -> bool {
        match self {
            Leaf::Unary(op) => op.operator().is_none(),
            Leaf::Binary(op) => op.operator().is_none(),
            Leaf::Compare(_) | Leaf::Classify(_) => true,
        }
    }
}

impl From<Leaf> for Op {
    fn from(leaf: Leaf) -> Op {
        match leaf {
            Leaf::Unary(op) => Op::Unary(op),
            Leaf::Binary(op) => Op::Binary(op),
            Leaf::Compare(predicate) => Op::Compare(predicate),
            Leaf::Classify(classification) => Op::Classify(classification),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_name_is_that_of_one_leaf_op() {
        let names: HashSet<&str> = Leaf::all().map(Leaf::name).collect();
        assert_eq!(names.len(), Leaf::all().count());
        for leaf in Leaf::all() {
            assert_eq!(Leaf::from_name(leaf.name()), Some(leaf));
            assert_eq!(Op::from(leaf).name(), leaf.name());
        }
    }
}
