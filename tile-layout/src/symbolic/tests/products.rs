//! Products against the static products of the bound operands, element by element.

use super::launch;
use super::operands::{extent, hold, layout};
use crate::symbolic::{Expr, ExprTuple, Facts, Obligations, SymbolicLayout};
use crate::{ErrorKind, Layout};
use proptest::prelude::*;
use std::format;
use std::vec::Vec;

/// Products of more elements are left out.
const MOST: i64 = 1 << 14;

/// A layout of constants, with gaps and broadcasts among the likely ones.
fn atom() -> impl Strategy<Value = SymbolicLayout> {
    let stride = prop::sample::select(std::vec![0i64, 1, 1, 2, 4, 4, 8, 16]);
    prop::collection::vec((1i64..5, stride), 1..3).prop_map(|modes| {
        let modes: Vec<Layout> =
            modes.into_iter().map(|(extent, stride)| Layout::leaf(extent, stride).unwrap()).collect();
        Layout::concat(&modes).unwrap().into()
    })
}

fn operand() -> impl Strategy<Value = SymbolicLayout> {
    prop_oneof![atom(), layout()]
}

/// Extents of which many are whole tiles, and an order.
fn wholes() -> impl Strategy<Value = Vec<(bool, Expr, i64)>> {
    prop::collection::vec((prop::bool::weighted(0.7), extent(), 0i64..3), 3)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn products(tile in operand(), copies in operand(), launch in launch(0..7)) {
        let Ok(walk) = copies.bind(&launch.bindings) else { return Ok(()) };
        let Ok(bound) = tile.bind(&launch.bindings) else { return Ok(()) };
        if walk.size() * bound.size() > MOST {
            return Ok(());
        }
        hold(&tile, &launch, |a, o| a.logical_product(&copies, o), |r| r, |a| a.logical_product(&walk))?;
        hold(&tile, &launch, |a, o| a.blocked_product(&copies, o), |r| r, |a| a.blocked_product(&walk))?;
        hold(&tile, &launch, |a, o| a.raked_product(&copies, o), |r| r, |a| a.raked_product(&walk))?;
    }

    #[test]
    fn tile_to_shape(tile in operand(), wholes in wholes(), launch in launch(0..9)) {
        let (mut shape, mut order) = (Vec::new(), Vec::new());
        for (mode, (whole, extent, place)) in tile.modes().zip(wholes) {
            shape.push(if whole { mode.size().unwrap().times(extent).unwrap() } else { extent });
            order.push(place);
        }
        let values = shape.iter().map(|extent| extent.evaluate(&launch.bindings)).collect::<crate::Result<Vec<_>>>();
        let Ok(values) = values else { return Ok(()) };
        if values.iter().product::<i64>() > MOST {
            return Ok(());
        }
        let shape = || ExprTuple::tuple(&shape.iter().map(ExprTuple::from).collect::<Vec<_>>());
        hold(
            &tile,
            &launch,
            |a, o| a.tile_to_shape(shape(), &order, o),
            |r| r,
            |a| a.tile_to_shape(&values, &order),
        )?;
    }
}

/// An atom repeated as often as the launch says: no fact but that sizes are sizes is needed.
#[test]
fn atoms_without_gaps_repeat_without_checks() {
    let facts = Facts::new().sizes(["m", "k"]);
    let mut refuse = Obligations::refuse(&facts);
    let tiles = ["ceil_div(m, 8)", "ceil_div(k, 16)"].map(|text| text.parse::<Expr>().unwrap());
    let (columns, rows) =
        (SymbolicLayout::column_major(tiles.clone()).unwrap(), SymbolicLayout::row_major(tiles).unwrap());
    for (atom, copies, expected) in [
        ("(8,16):(16,1)", &columns, "(8*ceil_div(m, 8),(16,ceil_div(k, 16))):(16,(1,128*ceil_div(m, 8)))"),
        (
            "(8,16):(16,1)",
            &rows,
            "((8,ceil_div(m, 8)),(16,ceil_div(k, 16))):((16,128*ceil_div(k, 16)),(1,128))",
        ),
        (
            "(8,16):(1,8)",
            &columns,
            "((8,ceil_div(m, 8)),(16,ceil_div(k, 16))):((1,128),(8,128*ceil_div(m, 8)))",
        ),
    ] {
        let atom: SymbolicLayout = atom.parse().unwrap();
        assert_eq!(format!("{}", atom.blocked_product(copies, &mut refuse).unwrap()), expected);
    }
    // A symbolic tile, in the order of its copies.
    let rows: SymbolicLayout = "(m,4):(4,1)".parse().unwrap();
    let sized = Facts::new().at_least("m", 1).sizes(["k"]);
    let product =
        rows.logical_product(SymbolicLayout::row_major("k").unwrap(), &mut Obligations::refuse(&sized));
    assert_eq!(format!("{}", product.unwrap()), "((m,4),k):((4,1),4*m)");
}

#[test]
fn gaps_ask_how_far_the_copies_reach() {
    let gaps: SymbolicLayout = "(4,2):(1,16)".parse().unwrap();
    let copies = SymbolicLayout::column_major("n").unwrap();
    let whole = Facts::new().sizes(["n"]).multiple_of("n", 4);
    let product = gaps.logical_product(&copies, &mut Obligations::refuse(&whole)).unwrap();
    assert_eq!(format!("{product}"), "((4,2),(4,floor_div(n, 4))):((1,16),(4,32))");
    let sized = Facts::new().sizes(["n"]);
    let error = gaps.logical_product(&copies, &mut Obligations::refuse(&sized)).unwrap_err();
    assert_eq!((error.kind(), error.modes()), (ErrorKind::Unproved, &[0][..]));
    let mut obligations = Obligations::collect(&sized);
    gaps.logical_product(&copies, &mut obligations).unwrap();
    assert_eq!(
        format!("{}", obligations.into_checks()),
        "n must be at most 4: its steps must end within the mode that they begin in"
    );
}

#[test]
fn tiles_that_do_not_fit_are_refused_by_mode() {
    let atom: SymbolicLayout = "(8,8):(8,1)".parse().unwrap();
    let facts = Facts::new().multiple_of("m", 8);
    let mut refuse = Obligations::refuse(&facts);
    let open = atom.tile_to_shape(("m", "k"), &[0, 1], &mut refuse).unwrap_err();
    assert_eq!((open.kind(), open.modes()), (ErrorKind::Unproved, &[1][..]));
    let never = atom.tile_to_shape(("m", 12), &[0, 1], &mut Obligations::collect(&facts)).unwrap_err();
    assert_eq!((never.kind(), never.modes()), (ErrorKind::NotDivisible, &[1][..]));
    for (shape, order) in
        [(ExprTuple::from("m"), &[0, 1][..]), (("m", ("m", "m")).into(), &[0, 1]), (("m", "m").into(), &[0])]
    {
        let error = atom.tile_to_shape(shape, order, &mut refuse).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Rank);
    }
    let backward: SymbolicLayout = "n:-1".parse().unwrap();
    let error = atom.logical_product(backward, &mut refuse).unwrap_err();
    assert_eq!((error.kind(), error.modes()), (ErrorKind::OutOfBounds, &[0][..]));
}
