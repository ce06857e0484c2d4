//! What conditions say, and that forms keep their values.

use super::*;
use crate::text::parse;

fn facts(conditions: &str) -> Facts {
    let source = format!(
        "kernel @k(%x: tensor<m x n x k x f32>) where {conditions} {{\n  %i = extent m : index\n}}\n"
    );
    Facts::of(&parse(&source).unwrap_or_else(|error| panic!("{error}")))
}

fn shown(conditions: &str) -> String {
    let forms: Vec<String> =
        facts(conditions).forms().map(|(name, form)| format!("{name} = {form}")).collect();
    forms.join(", ")
}

/// Forms whose coefficients are near what 64 bits hold leave alone what is known, and are computed without
/// overflow.
#[test]
fn heavy_conditions_say_nothing() {
    for (conditions, expected) in [
        (
            "\"\": rem(m, 4) eq 0, \"\": n eq m, \"\": rem(k, 2) eq 0, \"\": rem(m + 2305843009213693952*k, 8) eq 0",
            "k = 2*k′, m = 4*m′, n = 4*m′",
        ),
        ("\"\": 0 - m - 9223372036854775807 eq 1", ""),
        ("\"\": 0 - 9223372036854775807*m - m eq 0", ""),
        ("\"\": 0 - 9223372036854775807*ceil_div(m, 2) - ceil_div(m, 2) eq m", ""),
        ("\"\": 0 - 9223372036854775807 - 1 ge m", ""),
        ("\"\": m ge 0 - 9223372036854775807 - 1", ""),
        ("\"\": rem(0 - 9223372036854775807*m - m, 3) eq 0", "m = 3*m′"),
    ] {
        assert_eq!(shown(conditions), expected, "{conditions}");
    }
}

/// Each condition squares what the one before it says.
#[test]
fn forms_have_the_length_of_extents() {
    let conditions: Vec<String> = (0..24)
        .map(|i| format!("\"\": n{i} eq n{0}*n{0}", i + 1))
        .chain(["\"\": m eq n0".to_owned()])
        .collect();
    for conditions in [conditions.join(", "), conditions.into_iter().rev().collect::<Vec<_>>().join(", ")] {
        let facts = facts(&conditions);
        assert!(!facts.is_empty() && facts.forms().all(|(_, form)| form.is_readable()));
    }
}

#[test]
fn conditions_become_forms() {
    for (conditions, expected) in [
        ("\"\": rem(m, 64) eq 0", "m = 64*m′"),
        ("\"\": 0 eq rem(m, 64)", "m = 64*m′"),
        ("\"\": 64*ceil_div(m, 64) eq m", "m = 64*m′"),
        ("\"\": m - n eq 8*floor_div(m - n, 8)", ""),
        ("\"\": m eq 8*floor_div(m, 8)", "m = 8*m′"),
        ("\"\": rem(m, 64) eq 16", "m = 64*m′ + 16"),
        ("\"\": rem(6*m, 64) eq 0", "m = 32*m′"),
        ("\"\": rem(m + 3, 4) eq 0", "m = 4*m′ + 1"),
        ("\"\": m ge 64", "m = m′ + 64"),
        ("\"\": m gt 0", "m = m′ + 1"),
        ("\"\": 8 lt m", "m = m′ + 9"),
        ("\"\": 8 le m", "m = m′ + 8"),
        ("\"\": m ne 0", "m = m′ + 1"),
        ("\"\": m eq n", "m = n"),
        ("\"\": m eq 4*n + 1", "m = 4*n + 1"),
        ("\"\": m ge n + 2", "m = m′ + n + 2"),
        ("\"\": m lt n", "n = m + n′ + 1"),
        ("\"\": m eq 256", "m = 256"),
        // Not expressed by a substitution.
        ("\"\": m le 64", ""),
        ("\"\": m + n eq 64", ""),
        ("\"\": m ne n", ""),
        ("\"\": rem(m, n) eq 0", ""),
        ("\"\": rem(m + n, 4) eq 0", ""),
        // Nothing satisfies these.
        ("\"\": rem(2*m, 4) eq 1", ""),
        ("\"\": m eq 3, \"\": m eq 4", "m = 3"),
    ] {
        assert_eq!(shown(conditions), expected, "{conditions}");
    }
}

#[test]
fn what_conditions_bound_has_an_interval() {
    let (m, n) = (Dim::size("m"), Dim::size("n"));
    let eight = Dim::from(8);
    for (conditions, dim, expected) in [
        ("\"\": m le 64", m.clone(), (0, 64)),
        ("\"\": 65 gt m, \"\": m le 80", m.clone(), (0, 64)),
        ("\"\": 3*m le 64", m.clone(), (0, 21)),
        ("\"\": m le 64, \"\": rem(m, 16) eq 8", m.clone(), (8, 56)),
        ("\"\": m ge 8, \"\": m le 64", m.ceil_div(&eight), (1, 8)),
        ("\"\": m le 64, \"\": n le 3", m.clone() * n.clone() - n.clone(), (-3, 192)),
        ("\"\": m eq 2*n, \"\": m lt 7", n.clone(), (0, 3)),
        ("\"\": m eq n, \"\": m lt 7", m.at_least(&eight), (8, 8)),
        ("\"\": m ge 3, \"\": m le 1024", m.ilog2(), (1, 10)),
        ("\"\": m le 1023", m.ilog2(), (0, 9)),
        ("\"\": m ge 5, \"\": m le 9", m.next_power_of_two(), (8, 16)),
        ("\"\": rem(m, 16) eq 0, \"\": m ge 1, \"\": m le 100", m.ilog2(), (4, 6)),
        ("\"\": n le 3", m.ilog2() + n.next_power_of_two(), (1, 66)),
        // Nothing satisfies this.
        ("\"\": m lt 0", m.clone(), (0, 0)),
        ("\"\": m + n le 64", m.clone(), (0, i64::MAX.into())),
        ("\"\": m ne 64", m.clone(), (0, i64::MAX.into())),
    ] {
        let facts = facts(conditions);
        assert_eq!(facts.interval(&facts.apply(&dim)), Some(expected), "{dim} where {conditions}");
    }
}

#[test]
fn conditions_of_parameters_become_forms_without_sizes() {
    let facts = |conditions: &str| {
        let source = format!(
            "kernel @k<B, C>(%x: tensor<m x n x f32>) where {conditions} {{\n  %i = extent m : index\n}}\n"
        );
        let facts = Facts::of(&parse(&source).unwrap_or_else(|error| panic!("{error}")));
        let forms: Vec<String> = facts.forms().map(|(name, form)| format!("{name} = {form}")).collect();
        (forms.join(", "), facts)
    };
    for (conditions, expected) in [
        ("\"\": rem(B, 8) eq 0", "B = 8*B′"),
        ("\"\": rem(B, 8) eq 0, \"\": B gt 0", "B = 8*B′′ + 8, B′ = B′′ + 1"),
        ("\"\": C eq 4*B", "C = 4*B"),
        ("\"\": 2*B eq 64", "B = 32"),
        // Sizes come first.
        ("\"\": m eq B", "m = B"),
        ("\"\": m eq 4*B, \"\": rem(B, 2) eq 0", "B = 2*B′, m = 8*B′"),
        ("\"\": m ge B + 1", "m = B + m′ + 1"),
        // What a launch decides, no parameter is made of.
        ("\"\": B ge m", ""),
        ("\"\": rem(m, B) eq 0", ""),
        // One parameter divides another.
        ("\"\": rem(B, C) eq 0", "B = B′*C"),
        ("\"\": rem(B, C) eq 0, \"\": rem(C, 4) eq 0", "B = 4*B′*C′, C = 4*C′"),
        ("\"\": rem(B, 16*C) eq 0", "B = 16*B′*C"),
        ("\"\": rem(B, C) eq 0, \"\": rem(C, B) eq 0", "B = B′*C"),
        // Of what a number divides, that alone is known, whichever is said first.
        ("\"\": rem(B, C) eq 0, \"\": rem(B, 8) eq 0", "B = 8*B′"),
        ("\"\": rem(B, C) eq 1", ""),
        // How large they are is said too, before or behind.
        ("\"\": C gt 0, \"\": rem(B, C) eq 0", "B = B′ + B′*C′, C = C′ + 1"),
        ("\"\": B gt 0, \"\": rem(B, C) eq 0, \"\": C ge 2", "B = 2*B′ + B′*C′, C = C′ + 2"),
        ("\"\": rem(B, B) eq 0", ""),
    ] {
        assert_eq!(facts(conditions).0, expected, "{conditions}");
    }
    let (_, facts) = facts("\"\": rem(B, 8) eq 0");
    let (b, eight) = (Dim::param("B"), Dim::from(8));
    let product = b.floor_div(&eight) * eight.clone() * Dim::param("C");
    assert_eq!(facts.apply(&product), facts.apply(&(b * Dim::param("C"))));
    assert_ne!(facts.apply(&Dim::param("C").floor_div(&eight)), facts.apply(&Dim::param("C")));
}

#[test]
fn a_quotient_by_a_parameter_that_divides_is_exact() {
    let source =
        "kernel @k<B, C>(%x: tensor<m x n x f32>) where \"\": rem(B, C) eq 0 {\n  %i = extent m : index\n}\n";
    let facts = Facts::of(&parse(source).unwrap());
    let (b, c) = (Dim::param("B"), Dim::param("C"));
    let same = |left: Dim, right: Dim| facts.apply(&left) == facts.apply(&right);
    assert!(same(b.floor_div(&c) * c.clone(), b.clone()));
    assert!(same(b.ceil_div(&c), b.floor_div(&c)));
    assert!(same((b.clone() * Dim::from(3) + c.clone()).rem(&c), Dim::from(0)));
    assert!(same((b.clone() + Dim::from(1)).floor_div(&c), b.floor_div(&c) + Dim::from(1).floor_div(&c)));
    assert!(!same(c.floor_div(&b) * b.clone(), c.clone()));
    assert!(!same((b.clone() + Dim::from(1)).floor_div(&c) * c, b));
}

/// It is whatever is said of how large the parameters are.
#[test]
fn bounds_of_a_divisor_leave_quotients_exact() {
    for bounds in ["C gt 0", "C ge 2", "B gt 0", "C le 8", "C ne 0"] {
        for conditions in
            [format!("\"\": rem(B, C) eq 0, \"\": {bounds}"), format!("\"\": {bounds}, \"\": rem(B, C) eq 0")]
        {
            let source = format!("kernel @k<B, C>(%x: tensor<m x n x f32>) where {conditions} {{\n}}\n");
            let facts = Facts::of(&parse(&source).unwrap());
            let (a, b, c) = (Dim::size("m"), Dim::param("B"), Dim::param("C"));
            let same = |left: Dim, right: Dim| facts.apply(&left) == facts.apply(&right);
            assert!(same(a.clone() * b.floor_div(&c) * c.clone(), a * b.clone()), "{conditions}");
            assert!(same(b.rem(&c), Dim::from(0)) && !same(c.rem(&b), Dim::from(0)), "{conditions}");
        }
    }
}

/// A quotient by a size that may be 0 has no value then, and its parts would have one.
#[test]
fn a_quotient_by_a_size_stays() {
    let facts = facts("\"\": m ge 8, \"\": k gt 0");
    let [m, n, k] = ["m", "n", "k"].map(Dim::size);
    let apply = |dim: Dim| facts.apply(&dim).to_string();
    assert_eq!(apply((m.clone() * n.clone()).floor_div(&n)), "floor_div(m′*n + 8*n, n)");
    assert_eq!(apply((m.clone() * n.clone()).rem(&n)), "rem(m′*n + 8*n, n)");
    // What is known to be 1 or more divides, though it is a sum then.
    assert_eq!(apply((m.clone() * k.clone()).ceil_div(&k)), "m′ + 8");
    assert_eq!(apply((m.clone() * k.clone() * k.clone()).rem(&k)), "0");
    assert_eq!(apply((m * k.clone() + n).floor_div(&k)), "floor_div(8*k′ + k′*m′ + m′ + n + 8, k′ + 1)");
}

#[test]
fn conditions_work_together() {
    for (conditions, expected) in [
        ("\"\": rem(m, 16) eq 0, \"\": rem(m, 24) eq 0", "m = 48*m′′, m′ = 3*m′′"),
        ("\"\": m gt 0, \"\": rem(m, 64) eq 0", "m = 64*m′′ + 64, m′ = 64*m′′ + 63"),
        ("\"\": rem(m, 64) eq 0, \"\": m gt 0", "m = 64*m′′ + 64, m′ = m′′ + 1"),
        ("\"\": m eq n, \"\": rem(n, 8) eq 0", "m = 8*n′, n = 8*n′"),
        ("\"\": rem(m, 64) eq 0, \"\": rem(n, 32) eq 0, \"\": m eq n", "m = 64*m′, n = 64*m′, n′ = 2*m′"),
        // The first says nothing before the second is known.
        ("\"\": rem(m + n, 4) eq 0, \"\": rem(n, 4) eq 0", "m = 4*m′, n = 4*n′"),
    ] {
        assert_eq!(shown(conditions), expected, "{conditions}");
    }
}

#[test]
fn equal_forms_are_equal_under_the_conditions() {
    let facts = facts("\"\": rem(m, 64) eq 0, \"\": n ge 10");
    let (m, tile) = (Dim::size("m"), Dim::from(64));
    let covered = m.ceil_div(&tile) * tile.clone();
    assert_ne!(covered, m);
    assert_eq!(facts.apply(&covered), facts.apply(&m));
    assert_eq!(facts.apply(&m.rem(&Dim::from(32))), Dim::from(0));
    let shifted = (m.clone() + Dim::from(3)).floor_div(&tile);
    assert_eq!(facts.apply(&shifted), facts.apply(&m.floor_div(&tile)));
    assert!(facts.apply(&(Dim::size("n") - Dim::from(10))).is_natural());
    assert!(!facts.apply(&(Dim::size("n") - Dim::from(11))).is_natural());
}

/// For all small sizes that satisfy the conditions, unknowns exist that give them, and a form keeps its value.
#[test]
fn forms_keep_their_values_for_every_size_that_satisfies_the_conditions() {
    let (m, n) = (Dim::size("m"), Dim::size("n"));
    let five = Dim::from(5);
    let forms = [
        m.ceil_div(&Dim::from(6)) * five.clone() + n.clone(),
        (m.clone() * Dim::from(3) - n.clone()).floor_div(&Dim::from(4)),
        (m.clone() + n.clone() - Dim::from(7)).rem(&Dim::from(6)),
        (m.clone() * n.clone()).ceil_div(&five),
    ];
    for conditions in [
        "\"\": rem(m, 6) eq 0, \"\": n gt 2",
        "\"\": rem(m, 4) eq 3, \"\": rem(n, 6) eq 2",
        "\"\": m ge n + 2, \"\": rem(n, 4) eq 0",
        "\"\": m eq 2*n + 1",
        "\"\": rem(m, 4) eq 0, \"\": rem(m, 6) eq 0, \"\": m gt 5",
    ] {
        let source = format!("kernel @k(%x: tensor<m x n x f32>) where {conditions} {{\n}}\n");
        let kernel = parse(&source).unwrap();
        let facts = Facts::of(&kernel);
        let unknown = |name: &str| !facts.forms.contains_key(name);
        let (mut params, mut names) = (BTreeSet::new(), BTreeSet::new());
        facts.forms.values().chain([&m, &n]).for_each(|form| form.collect_names(&mut params, &mut names));
        let names: Vec<String> = names.into_iter().filter(|name| unknown(name)).collect();
        let mut reached = BTreeSet::new();
        for choice in 0..20i64.pow(names.len() as u32) {
            let value = |name: &str| {
                let at = names.iter().position(|other| other == name)?;
                Some(choice / 20i64.pow(at as u32) % 20)
            };
            let size = |name: &str| facts.apply(&Dim::size(name)).evaluate_signed(&value).ok();
            reached.insert((size("m").unwrap(), size("n").unwrap()));
            for form in &forms {
                assert_eq!(
                    facts.apply(form).evaluate_signed(&value),
                    form.evaluate_signed(&size),
                    "{form} where {conditions}"
                );
            }
        }
        for (m, n) in (0..20).flat_map(|m| (0..20).map(move |n| (m, n))) {
            let lookup = |name: &str| Some(if name == "m" { m } else { n });
            let holds = kernel.conditions.iter().all(|condition| condition.holds(&lookup) == Ok(true));
            assert_eq!(holds, reached.contains(&(m, n)), "m = {m}, n = {n} where {conditions}");
        }
    }
}

#[test]
fn coefficients_that_do_not_fit_are_left_alone() {
    let huge = format!("\"\": rem(m, {}) eq 0", 1i64 << 40);
    let facts = facts(&huge);
    let square = Dim::size("m") * Dim::size("m");
    assert_eq!(facts.apply(&square), square);
    assert_eq!(facts.apply(&Dim::size("m")).to_string(), "1099511627776*m′");
}

#[test]
fn quotients_that_nothing_rounds_are_joined() {
    let (m, n) = (Dim::size("m"), Dim::size("n"));
    let half = |dim: &Dim| dim.floor_div(&Dim::from(2));
    let facts = facts("\"\": rem(m, 2) eq 0");
    for (dim, expected) in [
        (half(&m) + half(&m), m.clone()),
        (Dim::from(4) * half(&m) + n.clone(), Dim::from(2) * m.clone() + n.clone()),
        (half(&m), half(&m)),
        (half(&n) + half(&n), Dim::from(2) * half(&n)),
        (half(&m) * n.clone() * Dim::from(2), m.clone() * n.clone()),
        (half(&m) * n.clone(), half(&m) * n.clone()),
    ] {
        assert_eq!(facts.joined(&dim), expected, "{dim}");
    }
    assert!(facts.divides(&Dim::from(2), &m) && !facts.divides(&Dim::from(2), &n));
}

#[test]
fn quotients_by_parameters_are_joined() {
    let (n, b, c) = (Dim::param("N"), Dim::param("B"), Dim::param("C"));
    let source = "kernel @k<N, B, C>(%x: tensor<m x n x f32>) where \"\": rem(N, B) eq 0 {\n  %i = extent m : index\n}\n";
    let facts = Facts::of(&parse(source).unwrap());
    for (dim, expected) in [
        (n.floor_div(&b) * b.clone(), n.clone()),
        (n.ceil_div(&b) * b.clone() * c.clone() + c.clone(), n.clone() * c.clone() + c.clone()),
        (n.floor_div(&c) * c.clone(), n.floor_div(&c) * c.clone()),
        (c.floor_div(&b) * b.clone(), c.floor_div(&b) * b.clone()),
        (n.floor_div(&b) * c.clone(), n.floor_div(&b) * c.clone()),
        // Nothing says that `C` divides it, too.
        (n.floor_div(&(b.clone() * c.clone())) * b.clone() * c.clone(), {
            n.floor_div(&(b.clone() * c.clone())) * b.clone() * c.clone()
        }),
    ] {
        assert_eq!(facts.joined(&dim), expected, "{dim}");
    }
}

#[test]
fn joined_extents_have_the_value_of_what_they_are_joined_from() {
    let text = "\"\": rem(m, 6) eq 0, \"\": rem(n, k) eq 0";
    let (m, n, k) = (Dim::size("m"), Dim::size("n"), Dim::size("k"));
    let known = Facts::default();
    let facts = facts(text);
    for by in 1..=7i64 {
        let quotients =
            [m.floor_div(&by.into()), m.ceil_div(&by.into()), n.floor_div(&k), n.ceil_div(&by.into())];
        for (quotient, times) in quotients.iter().flat_map(|q| (1..=12i64).map(move |times| (q, times))) {
            for dim in [
                Dim::from(times) * quotient.clone(),
                Dim::from(times) * quotient.clone() * k.clone() - m.clone(),
                (Dim::from(times) * quotient.clone()).floor_div(&2.into()) * Dim::from(2),
            ] {
                let joined = facts.joined(&dim);
                for (m, n, k) in [(0, 0, 1), (6, 4, 2), (12, 15, 5), (18, 7, 7), (42, 12, 4)] {
                    let sizes = |name: &str| match name {
                        "m" => Some(m),
                        "n" => Some(n),
                        _ => Some(k),
                    };
                    let value = |dim: &Dim| dim.evaluate_signed(&sizes);
                    assert_eq!(value(&joined), value(&dim), "{dim} as {joined} of {m}, {n}, {k}");
                }
                assert_eq!(
                    known.joined(&dim).evaluate_signed(&|_| Some(5)),
                    dim.evaluate_signed(&|_| Some(5))
                );
            }
        }
    }
}
