//! Every operation on a symbolic layout against the static operation on the bound layout, element by element.

use super::operands::{answer, extent, hold, layout, tiler};
use super::{launch, same_function};
use crate::symbolic::{Bindings, Divided, Expr, Facts, Obligations, SymbolicLayout};
use crate::{Layout, Tiler};
use proptest::prelude::*;
use std::collections::BTreeSet;

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn coalesce(layout in layout(), launch in launch(0..13)) {
        let facts = &launch.facts;
        hold(&layout, &launch, |a, _| a.coalesce(facts), |r| r, |a| Ok(a.coalesce()))?;
        hold(&layout, &launch, |a, _| a.coalesce_modes(facts), |r| r, |a| Ok(a.coalesce_modes()))?;
        hold(&layout, &launch, |a, _| a.simplify(facts), |r| r, |a| Ok(a.clone()))?;
        for profile in [0.into(), (0, 0).into(), (0, (0, 0)).into()] {
            hold(&layout, &launch, |a, _| a.coalesce_by(&profile, facts), |r| r, |a| a.coalesce_by(&profile))?;
        }
    }

    #[test]
    fn filter(layout in layout(), launch in launch(0..13)) {
        let Ok(bound) = layout.bind(&launch.bindings) else { return Ok(()) };
        let Some(filtered) = answer(&launch, |o| layout.filter(o))? else { return Ok(()) };
        let filtered = filtered.bind(&launch.bindings).unwrap();
        // A stride that happens to be 0 stays, and can still be filtered out.
        prop_assert!(same_function(&filtered.filter(), &bound.filter()), "{} {}", filtered, bound);
        if bound.leaves().iter().all(|mode| mode.stride != 0) {
            prop_assert!(same_function(&filtered, &bound), "{} {}", filtered, bound);
        }
    }

    #[test]
    fn sizes(layout in layout(), launch in launch(0..13)) {
        let Ok(bound) = layout.bind(&launch.bindings) else { return Ok(()) };
        prop_assert_eq!(layout.size().unwrap().evaluate(&launch.bindings).unwrap(), bound.size());
        let cosize = layout.cosize(&launch.facts).unwrap();
        prop_assert_eq!(cosize.evaluate(&launch.bindings).unwrap(), bound.cosize(), "{}", cosize);
        if layout.is_compact(&launch.facts) {
            prop_assert!(bound.is_compact(), "{}", bound);
        }
    }

    #[test]
    fn compose(layout in layout(), tiler in tiler(), launch in launch(0..13)) {
        let Ok(bound) = layout.bind(&launch.bindings) else { return Ok(()) };
        // An empty layout composes with what is empty or keeps a mode, which has no offsets to compare.
        if bound.size() > 0 {
            hold(&layout, &launch, |a, o| a.compose(tiler.clone(), o), |r| r, |a| a.compose(tiler.clone()))?;
        }
    }

    #[test]
    fn compose_extended(layout in layout(), tiler in tiler(), launch in launch(0..9)) {
        let tiler = || tiler.clone();
        hold(&layout, &launch, |a, o| a.compose_extended(tiler(), o), |r| r, |a| a.compose_extended(tiler()))?;
    }

    #[test]
    fn divides(layout in layout(), tiler in tiler(), launch in launch(0..13)) {
        let result: fn(&Divided) -> &SymbolicLayout = |divided| &divided.layout;
        let tiler = || tiler.clone();
        let divided = hold(&layout, &launch, |a, o| a.zipped_divide(tiler(), o), result, |a| a.zipped_divide(tiler()))?;
        hold(&layout, &launch, |a, o| a.logical_divide(tiler(), o), result, |a| a.logical_divide(tiler()))?;
        hold(&layout, &launch, |a, o| a.tiled_divide(tiler(), o), result, |a| a.tiled_divide(tiler()))?;
        hold(&layout, &launch, |a, o| a.flat_divide(tiler(), o), result, |a| a.flat_divide(tiler()))?;
        if let (Some(divided), Ok(bound)) = (divided, layout.bind(&launch.bindings))
            && divided.overhang.is_empty()
        {
            // Without an overhang every element is visited equally often.
            prop_assert_eq!(divided.layout.bind(&launch.bindings).unwrap().size() % bound.size().max(1), 0);
        }
    }

    #[test]
    fn upcast_and_downcast(layout in layout(), factor in prop::sample::select(std::vec![1i64, 2, 3, 4, 6, 8]), launch in launch(0..17)) {
        hold(&layout, &launch, |a, o| a.upcast(factor, o), |r| r, |a| a.upcast(factor))?;
        hold(&layout, &launch, |a, o| a.downcast(factor, o), |r| r, |a| a.downcast(factor))?;
    }

    #[test]
    fn complement(layout in layout(), cotarget in extent(), launch in launch(0..13)) {
        let Ok(bound) = layout.bind(&launch.bindings) else { return Ok(()) };
        let mut obligations = Obligations::collect(&launch.facts);
        let Ok(rest) = layout.complement(&cotarget, &mut obligations) else { return Ok(()) };
        if obligations.into_checks().verify(&launch.bindings).is_err() {
            return Ok(());
        }
        let rest = rest.bind(&launch.bindings).unwrap();
        // Broadcast modes repeat; what is left of the layout and its complement has every offset once. Of an empty layout
        // nothing is left.
        let left = if bound.size() == 0 { Layout::unit() } else { bound.filter() };
        let pair = Layout::concat(&[left, rest.clone()]).unwrap();
        prop_assert!(pair.is_injective(), "{} {}", bound, rest);
        prop_assert!(pair.cosize() >= cotarget.evaluate(&launch.bindings).unwrap(), "{} {}", bound, rest);
        prop_assert!(rest.offsets().is_sorted());
    }

    #[test]
    fn vectors_are_whole(layout in layout(), base in 0i64..9, launch in launch(0..17)) {
        let Ok(bound) = layout.bind(&launch.bindings) else { return Ok(()) };
        let width = layout.max_vector_width(base, &launch.facts).unwrap();
        let offsets: BTreeSet<i64> = bound.offsets().map(|offset| base + offset).collect();
        for offset in &offsets {
            let start = offset - offset.rem_euclid(width);
            let whole = (start..start + width).all(|neighbour| offsets.contains(&neighbour));
            prop_assert!(whole, "{} of {} at {}", width, bound, base);
        }
        match layout.max_alignment(&launch.facts).unwrap() {
            Some(factor) => prop_assert!(bound.size() == 0 || bound.upcast(factor).is_ok(), "{} {}", factor, bound),
            None => prop_assert!(bound.offsets().all(|offset| offset == 0)),
        }
    }
}

/// Beside no elements a complement that counts on them would reach too little: a mode that repeats them has some, too.
#[test]
fn complements_of_what_a_broadcast_may_empty_are_checked() {
    let layout: SymbolicLayout = "(2*k,n):(2,0)".parse().unwrap();
    let facts = Facts::new();
    let mut obligations = Obligations::collect(&facts);
    layout.complement("m", &mut obligations).unwrap();
    let checks = obligations.into_checks();
    let launch = |n: i64| Bindings::from([("k", 4), ("m", 9), ("n", n)]);
    assert!(checks.verify(&launch(2)).is_ok());
    assert_eq!(checks.verify(&launch(0)).unwrap_err().kind(), crate::ErrorKind::OutOfBounds);
}

/// An extent that the facts make 0 is a multiple of everything, and continues nothing.
#[test]
fn an_empty_mode_upcasts_to_an_empty_mode() {
    let facts = Facts::new().equal_to("n", 0);
    let layout: SymbolicLayout = "(n,4):(1,0)".parse().unwrap();
    let words = layout.upcast(2, &mut Obligations::refuse(&facts)).unwrap();
    assert_eq!(std::format!("{words}"), "(0,4):(1,0)");
}

/// The cases above are not all refused: what must succeed, and with which result.
#[test]
fn operations_succeed_where_the_facts_suffice() {
    let facts = Facts::new().at_least("m", 64).multiple_of("m", 64).at_least("k", 32).multiple_of("k", 32);
    let mut refuse = Obligations::refuse(&facts);
    let layout = |text: &str| text.parse::<SymbolicLayout>().unwrap();
    let columns = layout("(m,k):(1,lda)");
    let text = |layout: SymbolicLayout| std::format!("{layout}");

    let flat: Layout = "(32,2):(1,32)".parse().unwrap();
    assert_eq!(text(columns.compose(&flat, &mut refuse).unwrap()), "(32,2):(1,32)");
    let tiles = columns.zipped_divide(Layout::leaf(64, 1).unwrap(), &mut refuse).unwrap();
    assert_eq!(text(tiles.layout), "(64,(floor_div(m, 64),k)):(1,(64,lda))");
    assert!(tiles.overhang.is_empty());
    let strided = columns.zipped_divide((Layout::leaf(8, 2).unwrap(), 32), &mut refuse).unwrap();
    assert_eq!(
        text(strided.layout),
        "((8,32),((2,floor_div(m, 16)),floor_div(k, 32))):((2,lda),((1,16),32*lda))"
    );
    let nested = layout("(b,(m,k)):(m*k,(1,m))").logical_divide((Tiler::Keep, [16, 3]), &mut refuse).unwrap();
    assert_eq!(text(nested.layout), "(b,((16,floor_div(m, 16)),(3,ceil_div(k, 3)))):(k*m,((1,16),(m,3*m)))");
    assert_eq!(nested.overhang, [1]);
    assert_eq!(
        text(layout("(m,k):(k,1)").upcast(32, &mut refuse).unwrap()),
        "(m,floor_div(k, 32)):(floor_div(k, 32),1)"
    );
    assert_eq!(text(layout("(2,k):(1,2)").upcast(8, &mut refuse).unwrap()), "(1,floor_div(k, 4)):(1,1)");
    let complement =
        layout("(k,4):(1,2*k)").complement("m".parse::<Expr>().unwrap().times("k").unwrap(), &mut refuse);
    assert_eq!(text(complement.unwrap()), "(2,floor_div(m, 8)):(k,8*k)");
}
