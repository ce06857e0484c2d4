//! The symbolic algebra held to plain evaluation and to the static algebra, on random input.
//!
//! Cases are made from the values outward: first what the symbols are worth, then facts that are true of it. So
//! every case satisfies its facts, and a proof that is wrong shows.

mod expressions;
mod inverses;
mod layouts;
mod operands;
mod products;
mod refusals;

use super::{Bindings, Facts};
use crate::Layout;
use proptest::prelude::*;
use std::string::String;
use std::vec::Vec;

/// The symbols of all tests.
const NAMES: [&str; 3] = ["m", "n", "k"];

/// Values of the symbols and facts that are true of them.
#[derive(Clone, Debug)]
struct Launch {
    bindings: Bindings,
    facts: Facts,
}

/// What is stated of one symbol, relative to its value.
#[derive(Clone, Copy, Debug)]
enum Hint {
    Nothing,
    Multiple(i64),
    AtLeast(i64),
    AtMost(i64),
    Exact,
}

fn hint() -> impl Strategy<Value = Hint> {
    prop_oneof![
        Just(Hint::Nothing),
        prop::sample::select(std::vec![2i64, 3, 4, 6, 8, 16]).prop_map(Hint::Multiple),
        (0i64..4).prop_map(Hint::AtLeast),
        (0i64..4).prop_map(Hint::AtMost),
        (0i64..60).prop_map(|odds| if odds == 0 { Hint::Exact } else { Hint::Nothing }),
    ]
}

/// Launches whose symbols have values in `range`.
fn launch(range: core::ops::Range<i64>) -> impl Strategy<Value = Launch> {
    let symbol = (range, prop::collection::vec(hint(), 0..4));
    prop::collection::vec(symbol, NAMES.len()).prop_map(|symbols| {
        let values: Vec<(&str, i64)> =
            NAMES.into_iter().zip(symbols.iter().map(|(value, _)| *value)).collect();
        let mut facts = Facts::new();
        for ((name, value), (_, hints)) in values.iter().zip(&symbols) {
            for hint in hints {
                facts = match *hint {
                    Hint::Nothing => facts,
                    Hint::Multiple(factor) if value % factor == 0 => facts.multiple_of(*name, factor),
                    Hint::Multiple(_) => facts,
                    Hint::AtLeast(distance) => facts.at_least(*name, value - distance),
                    Hint::AtMost(distance) => facts.at_most(*name, value + distance),
                    Hint::Exact => facts.equal_to(*name, *value),
                };
            }
        }
        if values[0].1 == values[2].1 {
            facts = facts.same(values[2].0, values[0].0);
        }
        Launch { bindings: values.into_iter().collect(), facts }
    })
}

/// The text of an error, for tests that compare it.
fn message<T: core::fmt::Debug>(result: crate::Result<T>) -> String {
    std::string::ToString::to_string(&result.unwrap_err())
}

/// Whether two layouts send the same linear indices to the same offsets.
fn same_function(a: &Layout, b: &Layout) -> bool {
    a.size() == b.size() && a.offsets().eq(b.offsets())
}
