//! Expressions against evaluation of the tree that they were written as; proofs against random values.

use super::{Launch, NAMES, launch};
use crate::symbolic::{Condition, Expr, Facts, Proof};
use crate::{ErrorKind, Result};
use proptest::prelude::*;
use std::boxed::Box;
use std::string::ToString;

/// An expression as it is written.
#[derive(Clone, Debug)]
enum Tree {
    Constant(i64),
    Symbol(usize),
    Apply(Operator, Box<Tree>, Box<Tree>),
}

#[derive(Clone, Copy, Debug)]
enum Operator {
    Plus,
    Minus,
    Times,
    FloorDiv,
    CeilDiv,
    Rem,
    Minimum,
    Maximum,
}

impl Tree {
    fn build(&self) -> Result<Expr> {
        let Tree::Apply(operator, left, right) = self else {
            return Ok(match self {
                Tree::Symbol(index) => Expr::from(NAMES[*index]),
                Tree::Constant(value) => Expr::from(*value),
                Tree::Apply(..) => unreachable!("matched above"),
            });
        };
        let (left, right) = (left.build()?, right.build()?);
        match operator {
            Operator::Plus => left.plus(right),
            Operator::Minus => left.minus(right),
            Operator::Times => left.times(right),
            Operator::FloorDiv => left.floor_div(right),
            Operator::CeilDiv => left.ceil_div(right),
            Operator::Rem => left.rem(right),
            Operator::Minimum => left.minimum(right),
            Operator::Maximum => left.maximum(right),
        }
    }

    /// The value by the definition of each operator; `None` where it has none.
    fn value(&self, launch: &Launch) -> Option<i128> {
        let Tree::Apply(operator, left, right) = self else {
            return match self {
                Tree::Symbol(index) => launch.bindings.value(&NAMES[*index].into()).ok().map(i128::from),
                Tree::Constant(value) => Some(i128::from(*value)),
                Tree::Apply(..) => unreachable!("matched above"),
            };
        };
        let (a, b) = (left.value(launch)?, right.value(launch)?);
        Some(match operator {
            Operator::Plus => a.checked_add(b)?,
            Operator::Minus => a.checked_sub(b)?,
            Operator::Times => a.checked_mul(b)?,
            Operator::FloorDiv | Operator::CeilDiv | Operator::Rem if b < 1 => return None,
            Operator::FloorDiv => a.div_euclid(b),
            Operator::CeilDiv => -((-a).div_euclid(b)),
            Operator::Rem => a.rem_euclid(b),
            Operator::Minimum => a.min(b),
            Operator::Maximum => a.max(b),
        })
    }
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        prop::sample::select(std::vec![-3i64, -1, 0, 1, 2, 3, 4, 6, 8, 16, 63, 64]).prop_map(Tree::Constant),
        (0..NAMES.len()).prop_map(Tree::Symbol),
    ];
    leaf.prop_recursive(4, 16, 2, |inner| {
        let operator = prop::sample::select(std::vec![
            Operator::Plus,
            Operator::Minus,
            Operator::Times,
            Operator::Times,
            Operator::FloorDiv,
            Operator::CeilDiv,
            Operator::Rem,
            Operator::Minimum,
            Operator::Maximum,
        ]);
        (operator, inner.clone(), inner)
            .prop_map(|(operator, left, right)| Tree::Apply(operator, Box::new(left), Box::new(right)))
    })
}

/// The value of an expression, where it has one and it fits.
fn value(expr: &Expr, launch: &Launch) -> Option<i64> {
    expr.evaluate(&launch.bindings).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn normal_form_keeps_the_value(tree in tree(), launch in launch(-40..80)) {
        if let (Some(expected), Ok(expr)) = (tree.value(&launch), tree.build())
            && let Ok(expected) = i64::try_from(expected)
        {
            prop_assert_eq!(value(&expr, &launch), Some(expected), "{}", expr);
        }
    }

    #[test]
    fn text_is_read_back(tree in tree()) {
        if let Ok(expr) = tree.build() {
            prop_assert_eq!(expr.to_string().parse::<Expr>().unwrap(), expr);
        }
    }

    #[test]
    fn simplifying_by_facts_keeps_the_value(tree in tree(), launch in launch(-40..80)) {
        prop_assert!(launch.facts.check(&launch.bindings).is_ok());
        if let Ok(expr) = tree.build()
            && let Some(expected) = value(&expr, &launch)
        {
            let simple = launch.facts.simplify(&expr);
            prop_assert_eq!(value(&simple, &launch), Some(expected), "{} -> {}", expr, simple);
            let divisor = launch.facts.known_divisor(&expr);
            let divides = if divisor == 0 { expected == 0 } else { expected % divisor == 0 };
            prop_assert!(divides, "{} divides {}", divisor, expr);
        }
    }

    #[test]
    fn proofs_are_never_wrong(left in tree(), right in tree(), launch in launch(-40..80)) {
        let (Ok(left), Ok(right)) = (left.build(), right.build()) else { return Ok(()) };
        if value(&left, &launch).is_none() || value(&right, &launch).is_none() {
            return Ok(());
        }
        for condition in [
            Condition::divides(&left, &right),
            Condition::equal(&left, &right),
            Condition::at_most(&left, &right),
        ] {
            let holds = condition.check(&launch.bindings).is_ok();
            match launch.facts.prove(&condition) {
                Proof::Proved => prop_assert!(holds, "proved: {} by {}", condition, launch.facts),
                Proof::Refuted => prop_assert!(!holds, "refuted: {} by {}", condition, launch.facts),
                Proof::Unknown => {}
            }
        }
        if let Some(quotient) = right.exact_quotient(&left)
            && let (Some(a), Some(b)) = (value(&quotient, &launch), value(&left, &launch))
        {
            prop_assert_eq!(a.checked_mul(b), value(&right, &launch));
        }
    }
}

#[test]
fn simplifies_what_divides_for_all_values() {
    for (text, simple) in [
        ("floor_div(64*a, 64)", "a"),
        ("ceil_div(64*a + 63, 64)", "a + 1"),
        ("floor_div(2*m + 1, 64)", "floor_div(m, 32)"),
        ("ceil_div(ceil_div(m, 4), 16)", "ceil_div(m, 64)"),
        ("floor_div(m*n*6, 2*n)", "3*m"),
        ("floor_div(m, 1)", "m"),
        ("rem(6*m, 3)", "0"),
        ("rem(4*m + 2, 8)", "2*rem(2*m + 1, 4)"),
        ("min(m, m + 1, n)", "min(m, n)"),
        ("max(3, 7)", "7"),
        ("(m + n)*(m - n)", "m*m - n*n"),
    ] {
        assert_eq!(text.parse::<Expr>().unwrap().to_string(), simple, "{text}");
    }
}

#[test]
fn proves_what_tiling_needs() {
    let facts = Facts::new()
        .sizes(["m", "n", "k"])
        .multiple_of("m", 64)
        .at_least("m", 64)
        .at_least("k", 1)
        .at_most("n", 63)
        .same("n", "j");
    let expr = |text: &str| text.parse::<Expr>().unwrap();
    for (condition, proof) in [
        (Condition::divides(64, expr("m*k + 128")), Proof::Proved),
        (Condition::divides(64, expr("m + 1")), Proof::Refuted),
        (Condition::divides(64, "k"), Proof::Unknown),
        (Condition::divides("m", expr("m*k")), Proof::Proved),
        (Condition::divides("n", expr("n*k")), Proof::Unknown),
        (Condition::divides("m", "n"), Proof::Unknown),
        (Condition::divides("m", expr("n + 1")), Proof::Unknown),
        (Condition::divides("m", expr("min(n, 62) + 1")), Proof::Refuted),
        (Condition::equal("j", "n"), Proof::Proved),
        (Condition::equal(expr("64*ceil_div(m, 64)"), "m"), Proof::Proved),
        (Condition::equal("m", expr("n + 1")), Proof::Unknown),
        (Condition::equal("m", "n"), Proof::Refuted),
        (Condition::at_most("m", expr("m*k")), Proof::Proved),
        (Condition::at_most("k", expr("64*ceil_div(k, 64)")), Proof::Proved),
        (Condition::at_most(expr("64*floor_div(k, 64)"), "k"), Proof::Proved),
        (Condition::at_most(expr("64*ceil_div(k, 64) - k"), 62), Proof::Unknown),
        (Condition::at_most(expr("min(m, k)"), "m"), Proof::Proved),
        (Condition::at_most("m", expr("max(m, k)")), Proof::Proved),
        (Condition::at_most("m", 63), Proof::Refuted),
        (Condition::non_negative(expr("m*k - m")), Proof::Proved),
        (Condition::non_negative(expr("rem(k, 8)")), Proof::Proved),
        (Condition::non_negative("unknown"), Proof::Unknown),
    ] {
        assert_eq!(facts.prove(&condition), proof, "{condition}");
    }
}

#[test]
fn contradictions_prove_nothing() {
    for facts in [
        Facts::new().at_least("m", 2).at_most("m", 1),
        Facts::new().multiple_of("m", 0),
        Facts::new().multiple_of("m", 64).equal_to("m", 65),
        Facts::new().multiple_of("m", 2).equal_to("k", 3).same("m", "k"),
        Facts::new().at_least("m", i64::MAX).multiple_of("m", 2),
    ] {
        assert_eq!(facts.prove(&Condition::equal(1, 1)), Proof::Unknown);
        assert_eq!(facts.clone().consistent().unwrap_err().kind(), ErrorKind::Contradiction, "{facts}");
    }
    let large = Facts::new().multiple_of("m", 1 << 62).multiple_of("m", 3);
    assert_eq!(large.prove(&Condition::equal("m", 0)), Proof::Proved);
}
