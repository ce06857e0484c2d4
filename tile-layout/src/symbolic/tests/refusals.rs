//! What is refused, and in which words.

use super::message;
use crate::ErrorKind;
use crate::symbolic::{Bindings, Expr, Facts, Obligations, SymbolicLayout};
use std::format;
use std::string::String;
use std::vec::Vec;

#[test]
fn arithmetic_never_wraps_and_stays_small() {
    let large = Expr::from(i64::MAX);
    for result in [large.plus(1), Expr::from(i64::MIN).minus(1), large.times("m").and_then(|e| e.times(2))] {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Overflow);
    }
    let squared = Expr::from("m").times("m").unwrap();
    let error = squared.evaluate(&Bindings::from([("m", 1 << 32)])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Overflow);
    // Every step would double it.
    let mut grown = Expr::from("m");
    let refused = (0..100).find_map(|step| {
        let more = grown.times(&grown).and_then(|square| square.plus(format!("x{step}").as_str()));
        let more = more.and_then(|sum| sum.floor_div(7 + step));
        more.map(|more| grown = more).err()
    });
    assert_eq!(refused.map(|error| error.kind()), Some(ErrorKind::Overflow));
}

#[test]
fn conditions_that_fail_name_symbol_value_and_demand() {
    let facts = Facts::new().sizes(["m", "k"]);
    let layout: SymbolicLayout = "(m,k):(k,1)".parse().unwrap();
    let mut obligations = Obligations::collect(&facts);
    layout.upcast(8, &mut obligations).unwrap();
    layout.compose([16, 8], &mut obligations).unwrap();
    layout.compose([16], &mut obligations).unwrap();
    let checks = obligations.into_checks();
    let lines: Vec<String> = checks.iter().map(|check| format!("{check}")).collect();
    assert_eq!(
        lines,
        [
            "k must be a multiple of 8: stride of mode 0",
            "m must be at least 16: 16:1 must stay within m:k",
            "k must be at least 8: 8:1 must stay within k:1",
        ]
    );
    let verify = |m: i64, k: i64| checks.verify(&Bindings::from([("m", m), ("k", k)]));
    assert!(verify(16, 8).is_ok());
    assert_eq!(message(verify(16, 9)), "k must be a multiple of 8 (stride of mode 0), but k = 9");
    assert_eq!(message(verify(15, 8)), "m must be at least 16 (16:1 must stay within m:k), but m = 15");
    assert_eq!(message(checks.verify(&Bindings::from([("m", 16)]))), "`k` has no value");
}

#[test]
fn unproved_conditions_are_refused_by_name() {
    let facts = Facts::new().sizes(["m", "k"]).at_most("m", 8);
    let layout: SymbolicLayout = "(m,k):(k,1)".parse().unwrap();
    let mut refuse = Obligations::refuse(&facts);
    let cases = [
        (layout.upcast(8, &mut refuse), ErrorKind::Unproved, "k must be a multiple of 8: stride of mode 0; "),
        (layout.compose([16], &mut refuse), ErrorKind::OutOfBounds, "m must be at least 16: "),
        (layout.compose([1, 1, 1], &mut refuse), ErrorKind::Rank, "a tiler of 3 modes is too long"),
        (layout.downcast(2, &mut refuse), ErrorKind::Unproved, "k must be at least 2: stride of mode 0, "),
        (layout.upcast(0, &mut refuse), ErrorKind::InvalidExtent, "a factor or a width must be 1 or more"),
        (layout.recast(3, 2, &mut refuse), ErrorKind::NotDivisible, "elements of 3 bits"),
        (layout.complement("m", &mut refuse), ErrorKind::Unproved, "m must be at least 1: elements"),
        (
            layout.zipped_divide([0], &mut refuse).map(|divided| divided.layout),
            ErrorKind::InvalidExtent,
            "m:k is cut into empty tiles 0:1",
        ),
    ];
    for (result, kind, start) in cases {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(format!("{error}").starts_with(start), "{error}");
    }
    let contradictory = Facts::new().at_least("m", 2).at_most("m", 1);
    let error = layout.upcast(8, &mut Obligations::collect(&contradictory)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Contradiction);
}
