//! Inverses, the nullspace and common vectors: the static result where there is one, else the defining equation.

use super::operands::{alike, answer, hold, layout};
use super::{Launch, launch};
use crate::symbolic::{Bindings, Facts, Obligations, SymbolicLayout};
use crate::{ErrorKind, Layout};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::format;

/// The layout at the launch, where it has elements.
fn bound(layout: &SymbolicLayout, launch: &Launch) -> Option<Layout> {
    layout.bind(&launch.bindings).ok().filter(|bound| bound.size() > 0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, ..ProptestConfig::default() })]

    #[test]
    fn right_inverse(layout in layout(), launch in launch(0..13)) {
        let Some(bound) = bound(&layout, &launch) else { return Ok(()) };
        if bound.is_injective() {
            hold(&layout, &launch, |a, o| a.right_inverse(o), |r| r, |a| Ok(a.right_inverse()))?;
        }
        // Where elements share offsets there are several, and the facts may lead to another one.
        let Some(inverse) = answer(&launch, |o| layout.right_inverse(o))? else { return Ok(()) };
        let inverse = inverse.bind(&launch.bindings).unwrap();
        for (offset, index) in inverse.offsets().enumerate() {
            prop_assert_eq!(bound.get(index), Some(offset as i64), "{} of {}", inverse, bound);
        }
    }

    #[test]
    fn left_inverse(layout in layout(), launch in launch(0..13)) {
        let Some(bound) = bound(&layout, &launch) else { return Ok(()) };
        let Some(inverse) = answer(&launch, |o| layout.left_inverse(o))? else { return Ok(()) };
        let inverse = inverse.bind(&launch.bindings).unwrap();
        // What is sent to offsets that the layout skips is not the same as in the static inverse.
        for (index, offset) in bound.offsets().enumerate() {
            prop_assert_eq!(inverse.get(offset), Some(index as i64), "{} of {}", inverse, bound);
        }
        prop_assert!(bound.left_inverse().is_ok(), "{}", bound);
    }

    #[test]
    fn nullspace(layout in layout(), launch in launch(0..13)) {
        let Ok(bound) = layout.bind(&launch.bindings) else { return Ok(()) };
        let Some(nullspace) = answer(&launch, |o| layout.nullspace(o))? else { return Ok(()) };
        let nullspace = nullspace.bind(&launch.bindings).unwrap();
        prop_assert!(nullspace.is_injective());
        for index in nullspace.offsets() {
            prop_assert_eq!(bound.get(index), Some(0), "{} of {}", nullspace, bound);
        }
        let simple = layout.simplify(&launch.facts).unwrap();
        let still = simple.leaves().iter().zip(bound.leaves()).filter(|(known, _)| known.stride.is(0));
        let expected = if bound.size() == 0 { 0 } else { still.map(|(_, mode)| mode.extent).product::<i64>() };
        prop_assert_eq!(nullspace.size(), expected);
    }

    #[test]
    fn common_vectors([a, b] in alike(), other in layout(), launch in launch(0..13)) {
        for b in [&b, &a, &other] {
            if let (Some(bound_a), Some(bound_b)) = (bound(&a, &launch), bound(b, &launch)) {
                let width = a.max_common_vector(b, &launch.facts).unwrap();
                let pairs: BTreeSet<_> = bound_a.offsets().zip(bound_b.offsets()).collect();
                let common = (0..width).all(|offset| pairs.contains(&(offset, offset)));
                prop_assert!(common || width == 1, "{} of {} and {}", width, bound_a, bound_b);
                // Where elements share offsets the static search follows the first that it meets.
                if bound_b.is_injective() {
                    let widest = bound_a.max_common_vector(&bound_b);
                    prop_assert_eq!(widest % width, 0, "{} and {} of {} and {}", width, widest, bound_a, bound_b);
                }
            }
        }
    }
}

/// The cases above are not all refused: what must succeed, and with which result.
#[test]
fn inverses_of_compact_and_padded_layouts() {
    let facts = Facts::new().at_least("a", 1).at_least("b", 1).at_least("c", 1);
    let mut refuse = Obligations::refuse(&facts);
    for (layout, right, left) in [
        ("(a,b,c):(b*c,c,1)", "(c,b,a):(a*b,a,1)", "(c,b,a):(a*b,a,1)"),
        ("(a,b,c):(1,a,a*b)", "a*b*c:1", "a*b*c:1"),
        ("(a,b,c):(c,a*c,1)", "(c,a*b):(a*b,1)", "(c,a*b):(a*b,1)"),
        ("(a,(b,1)):(b,(1,7))", "(b,a):(a,1)", "(b,a):(a,1)"),
        ("(a,b):(2*b,1)", "b:a", "(2*b,a):(a,1)"),
        ("(4,a):(2,16)", "1:0", "(2,8,a):(0,1,4)"),
    ] {
        let layout: SymbolicLayout = layout.parse().unwrap();
        assert_eq!(format!("{}", layout.right_inverse(&mut refuse).unwrap()), right, "right of {layout}");
        assert_eq!(format!("{}", layout.left_inverse(&mut refuse).unwrap()), left, "left of {layout}");
    }
}

#[test]
fn chains_that_are_open_are_refused_by_mode() {
    let facts = Facts::new().sizes(["m", "k", "lda"]);
    let layout = |text: &str| text.parse::<SymbolicLayout>().unwrap();
    let mut collect = Obligations::collect(&facts);
    let padded = layout("(m,k):(lda,1)");
    assert_eq!(format!("{}", padded.right_inverse(&mut collect).unwrap()), "(k,m):(m,1)");
    assert_eq!(
        format!("{}", collect.into_checks()),
        "lda must be equal to k: stride of mode 0, which goes on where the modes below it end"
    );
    let mut refuse = Obligations::refuse(&facts);
    let several = layout("(m,k,4):(lda,ldb,1)").right_inverse(&mut Obligations::collect(&facts)).unwrap_err();
    let cases = [
        (padded.right_inverse(&mut refuse).unwrap_err(), ErrorKind::Unproved, &[0][..]),
        (several, ErrorKind::Unproved, &[0, 1]),
        (padded.left_inverse(&mut refuse).unwrap_err(), ErrorKind::Unproved, &[0]),
        (layout("(m,k):(0,1)").left_inverse(&mut refuse).unwrap_err(), ErrorKind::NotInjective, &[0]),
        (layout("(4,8):(4,1)").left_inverse(&mut refuse).unwrap_err(), ErrorKind::OutOfBounds, &[0]),
        (layout("(2,2):(3,2)").left_inverse(&mut refuse).unwrap_err(), ErrorKind::NotDivisible, &[0]),
    ];
    for (error, kind, modes) in cases {
        assert_eq!((error.kind(), error.modes()), (kind, modes), "{error}");
    }
}

/// Where no fact orders the strides, one that divides another is below it, as both are 1 or more by a check.
#[test]
fn compact_layouts_are_ordered_without_facts() {
    let facts = Facts::new();
    let mut collect = Obligations::collect(&facts);
    let rows: SymbolicLayout = "(a,b,c):(b*c,c,1)".parse().unwrap();
    assert_eq!(format!("{}", rows.left_inverse(&mut collect).unwrap()), "(c,b,a):(a*b,a,1)");
    assert_eq!(
        format!("{}", collect.into_checks()),
        "b*c must be at least 1: stride of mode 0\n\
         c must be at least 1: stride of mode 1\n\
         b*c must be a multiple of c: stride of mode 0 over the one below it"
    );
}

#[test]
fn common_vectors_of_leading_dimensions() {
    let facts = Facts::new().multiple_of("k", 8).multiple_of("m", 4);
    let layout = |text: &str| text.parse::<SymbolicLayout>().unwrap();
    for (a, b, width) in [
        ("(m,k):(lda,1)", "(m,k):(ldb,1)", 8),
        ("(m,k):(k,1)", "(m,k):(k,1)", 32),
        ("(m,k):(1,lda)", "(m,k):(1,m)", 4),
        ("(m,k):(1,lda)", "(m,k):(k,1)", 1),
        ("(m,(2,k)):(lda,(k,1))", "(m,(2,k)):(ldb,(k,1))", 16),
        ("(4,8):(8,1)", "(4,8):(9,1)", 8),
    ] {
        assert_eq!(layout(a).max_common_vector(&layout(b), &facts).unwrap(), width, "{a} and {b}");
    }
}

/// Of a layout that turns out empty nothing moves and nothing is sent to offset 0; what is left out must have elements.
#[test]
fn modes_left_out_must_have_elements() {
    let facts = Facts::new().sizes(["m"]);
    let layout = |text: &str| text.parse::<SymbolicLayout>().unwrap();
    let (repeated, moving) = (layout("(m,4):(0,1)"), layout("(m,3):(1,0)"));
    let mut collect = Obligations::collect(&facts);
    assert_eq!(format!("{}", repeated.filter(&mut collect).unwrap()), "4:1");
    assert_eq!(format!("{}", moving.nullspace(&mut collect).unwrap()), "3:m");
    let checks = collect.into_checks();
    assert_eq!(format!("{checks}"), "m must be at least 1: extent of mode 0");
    assert!(checks.verify(&Bindings::from([("m", 2)])).is_ok());
    assert!(checks.verify(&Bindings::from([("m", 0)])).is_err());
    let mut refuse = Obligations::refuse(&facts);
    for refused in [repeated.filter(&mut refuse), moving.nullspace(&mut refuse)] {
        let error = refused.unwrap_err();
        assert_eq!((error.kind(), error.modes()), (ErrorKind::Unproved, &[0][..]));
    }
    let empty = Facts::new().equal_to("m", 0);
    let mut refuse = Obligations::refuse(&empty);
    for of_nothing in [repeated.filter(&mut refuse), moving.nullspace(&mut refuse)] {
        assert_eq!(format!("{}", of_nothing.unwrap()), "0:0");
    }
}
