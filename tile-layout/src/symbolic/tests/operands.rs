//! Random operands of operations on symbolic layouts, and what their results are held to.

use super::{Launch, NAMES, same_function};
use crate::symbolic::{Expr, ExprTuple, Obligations, SymbolicLayout};
use crate::tuple::Nesting;
use crate::{Layout, Result, Tiler};
use proptest::prelude::*;
use std::vec::Vec;

/// An extent: constant, a symbol, or a multiple or a part of one.
pub(super) fn extent() -> impl Strategy<Value = Expr> {
    let symbol = || (0..NAMES.len()).prop_map(|index| Expr::from(NAMES[index]));
    prop_oneof![
        3 => (1i64..9).prop_map(Expr::from),
        4 => symbol(),
        1 => (2i64..5, symbol()).prop_map(|(factor, symbol)| symbol.times(factor).unwrap()),
        1 => (2i64..5, symbol()).prop_map(|(divisor, symbol)| symbol.ceil_div(divisor).unwrap()),
    ]
}

/// How the strides of a layout come about: compact in a random order, one mode padded, one mode other.
type Strides = (Vec<usize>, Option<(usize, i64)>, Option<(usize, Expr)>);

fn strides(count: usize) -> impl Strategy<Value = Strides> {
    let order = Just((0..count).collect::<Vec<_>>()).prop_shuffle();
    let other = prop_oneof![(0i64..9).prop_map(Expr::from), extent()];
    (order, prop::option::weighted(0.3, (0..count, 2i64..4)), prop::option::weighted(0.2, (0..count, other)))
}

/// One to three modes with the same extents in all `COUNT` layouts.
pub(super) fn alike<const COUNT: usize>() -> impl Strategy<Value = [SymbolicLayout; COUNT]> {
    let modes = (prop::collection::vec(extent(), 1..4), any::<bool>());
    modes.prop_flat_map(|(extents, nested)| {
        let strides = core::array::from_fn::<_, COUNT, _>(|_| strides(extents.len()));
        strides.prop_map(move |strides| strides.map(|strides| with_strides(&extents, strides, nested)))
    })
}

pub(super) fn layout() -> impl Strategy<Value = SymbolicLayout> {
    alike().prop_map(|[layout]| layout)
}

fn with_strides(extents: &[Expr], (order, padded, other): Strides, nested: bool) -> SymbolicLayout {
    let mut strides = std::vec![Expr::from(0); extents.len()];
    let mut stride = Expr::from(1);
    for leaf in order {
        if let Some((place, factor)) = padded
            && place == leaf
        {
            stride = stride.times(factor).unwrap();
        }
        strides[leaf] = stride.clone();
        stride = stride.times(&extents[leaf]).unwrap();
    }
    if let Some((leaf, other)) = other {
        strides[leaf] = other;
    }
    let nested = |leaves| ExprTuple::new(leaves, nesting(extents.len(), nested));
    SymbolicLayout::new(nested(extents.to_vec()), nested(strides)).unwrap()
}

/// All modes in one tuple, or the first alone and the others in a tuple of their own.
fn nesting(count: usize, nested: bool) -> Nesting {
    if !nested || count < 3 {
        return Nesting::flat(count);
    }
    let mut nesting = Nesting::empty();
    nesting.open(2);
    nesting.push_leaf();
    nesting.push(Nesting::flat(count - 1).tokens());
    nesting
}

pub(super) fn tiler() -> impl Strategy<Value = Tiler> {
    let static_layout = || {
        prop::collection::vec((1i64..7, prop::sample::select(std::vec![0i64, 1, 1, 2, 3, 4, 6, 8])), 1..3)
            .prop_map(|modes| {
                let parts: Vec<Layout> =
                    modes.into_iter().map(|(extent, stride)| Layout::leaf(extent, stride).unwrap()).collect();
                if parts.len() == 1 { parts[0].clone() } else { Layout::concat(&parts).unwrap() }
            })
    };
    prop_oneof![
        static_layout().prop_map(Tiler::Layout),
        (1i64..9).prop_map(Tiler::from),
        prop::collection::vec(1i64..9, 1..3).prop_map(|sizes| Tiler::Sizes(crate::IntTuple::flat(&sizes))),
        (static_layout(), 1i64..5)
            .prop_map(|(layout, size)| { Tiler::Modes(std::vec![Tiler::Layout(layout), Tiler::from(size)]) }),
        (1i64..5).prop_map(|size| Tiler::Modes(std::vec![Tiler::Keep, Tiler::from(size)])),
    ]
}

/// What `operation` answers where the facts and the checks hold; `None` where it is refused or they do not.
pub(super) fn answer<T: core::fmt::Debug>(
    launch: &Launch,
    operation: impl Fn(&mut Obligations<'_>) -> Result<T>,
) -> core::result::Result<Option<T>, TestCaseError> {
    let mut obligations = Obligations::collect(&launch.facts);
    let answer = operation(&mut obligations);
    let checks = obligations.into_checks();
    let strict = operation(&mut Obligations::refuse(&launch.facts));
    // Without checks the answer does not depend on the policy.
    if answer.is_ok() && checks.is_empty() {
        prop_assert!(strict.is_ok(), "{:?}", strict);
    }
    let Ok(answer) = answer else {
        prop_assert!(strict.is_err());
        return Ok(None);
    };
    Ok(checks.verify(&launch.bindings).is_ok().then_some(answer))
}

/// Hold `operation` to `expected`, which works on the bound layout: where the facts and the checks hold, the
/// result is the same function. An empty layout is only held to be empty, as the static algebra refuses some.
pub(super) fn hold<T: core::fmt::Debug>(
    layout: &SymbolicLayout,
    launch: &Launch,
    operation: impl Fn(&SymbolicLayout, &mut Obligations<'_>) -> Result<T>,
    result: impl Fn(&T) -> &SymbolicLayout,
    expected: impl Fn(&Layout) -> Result<Layout>,
) -> core::result::Result<Option<T>, TestCaseError> {
    let Ok(bound) = layout.bind(&launch.bindings) else { return Ok(None) };
    let Some(answer) = answer(launch, |obligations| operation(layout, obligations))? else { return Ok(None) };
    let actual = result(&answer).bind(&launch.bindings);
    prop_assert!(actual.is_ok(), "{}: {:?}", result(&answer), actual);
    let (actual, expected) = (actual.unwrap(), expected(&bound));
    if bound.size() == 0 {
        prop_assert_eq!(actual.size(), 0, "{}", result(&answer));
        return Ok(Some(answer));
    }
    prop_assert!(expected.is_ok(), "{} but {:?}", result(&answer), expected);
    let expected = expected.unwrap();
    let same = same_function(&actual, &expected);
    prop_assert!(same, "{} is {} and not {}", result(&answer), actual, expected);
    Ok(Some(answer))
}
