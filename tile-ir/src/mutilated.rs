//! Kernels of which a few tokens were exchanged or left out. The verifier has an error for each that isn't IR. What the verifier accepts of them runs through specialisation, every
//! pass, the counts and the schedules of GPUs: none of these has an error for IR that isn't well formed.

use crate::abi::KernelAbi;
use crate::counts::Counts;
use crate::kernel::GenericKind;
use crate::specialize::Binding;
use crate::text::tests::{GRID, MATMUL, TILES, VIEWS};
use crate::{DType, Kernel, TargetDesc, VerifiedKernel, gpu, passes, specialize};
use proptest::prelude::*;

const KERNELS: [&str; 4] = [MATMUL, VIEWS, GRID, TILES];

/// What numbers are exchanged for: also one that is a quotient of a number below 0, and one that is none.
const NUMBERS: [&str; 10] =
    ["0", "1", "2", "3", "4", "7", "16", "64", "8*floor_div(3 - 8, 4) + 32", "floor_div(8, 3 - 3)"];

/// The words, numbers and single characters of a text.
fn tokens(text: &str) -> Vec<&str> {
    let is_word = |character: char| character.is_alphanumeric() || "%@_.".contains(character);
    let (mut tokens, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let length = match is_word(first) {
            true => rest.find(|character| !is_word(character)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (token, behind) = rest.split_at(length);
        tokens.push(token);
        rest = behind;
    }
    tokens
}

/// Whether a token may stand where another one does: values for values, numbers for numbers, words for words.
fn is_alike(token: &str, other: &str) -> bool {
    let kind = |token: &str| {
        let first = token.chars().next().unwrap_or(' ');
        (first == '%', first.is_ascii_digit(), first.is_alphabetic())
    };
    kind(token) == kind(other)
}

/// What is done to the tokens at a place, which counts modulo their number.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// The token is exchanged for another of its kind.
    Exchange { place: usize, choice: usize },
    /// So many tokens are left out.
    LeaveOut { place: usize, count: usize },
}

/// A text with such changes.
fn mutilated(text: &str, changes: &[Change]) -> String {
    let mut tokens = tokens(text);
    for &change in changes {
        match change {
            Change::Exchange { place, choice } => {
                let place = place % tokens.len();
                let is_other = |other: &&str| is_alike(other, tokens[place]);
                let mut others: Vec<&str> = tokens.iter().chain(&NUMBERS).copied().filter(is_other).collect();
                others.sort_unstable();
                others.dedup();
                tokens[place] = others[choice % others.len()];
            }
            Change::LeaveOut { place, count } => {
                let place = place % tokens.len();
                tokens.drain(place..(place + count).min(tokens.len()));
            }
        }
    }
    tokens.concat()
}

/// Exchanges twice as often as gaps, of which few leave a text that is read.
fn changes() -> impl Strategy<Value = Change> {
    let exchange = (any::<usize>(), any::<usize>());
    prop_oneof![
        2 => exchange.prop_map(|(place, choice)| Change::Exchange { place, choice }),
        1 => (any::<usize>(), 1..12usize).prop_map(|(place, count)| Change::LeaveOut { place, count }),
    ]
}

/// Each parameter bound to something that it accepts, numbers to this one.
fn bindings(kernel: &Kernel, number: usize) -> Vec<(String, Binding)> {
    let binding = |kind: &GenericKind| match kind {
        GenericKind::Const => Binding::Const(number),
        GenericKind::Bool => Binding::Bool(number.is_multiple_of(2)),
        GenericKind::Elem(domain) if domain.accepts(DType::F32) => Binding::Elem(DType::F32),
        GenericKind::Elem(_) => Binding::Elem(DType::I32),
    };
    kernel.generics.iter().map(|generic| (generic.name.clone(), binding(&generic.kind))).collect()
}

/// Whether a text is a kernel that has such an instance, which then has run through everything.
fn runs_through(text: &str, number: usize) -> bool {
    let Ok(kernel) = VerifiedKernel::parse(text) else { return false };
    let Ok(instance) = specialize(&kernel, &bindings(&kernel, number)) else { return false };
    KernelAbi::of(&instance);
    Counts::of(&instance);
    let optimized = passes::optimize(instance);
    for target in ["sm_80", "sm_90a", "gfx942"] {
        gpu::schedule(optimized.clone(), TargetDesc::named(target).expect("a target"), None);
    }
    true
}

#[test]
fn kernels_as_they_are_run_through_everything() {
    for kernel in KERNELS {
        assert!(runs_through(kernel, 8), "{kernel}");
    }
}

proptest! {
    #[test]
    fn what_the_verifier_accepts_runs_through_everything(
        (text, number) in (
            prop::sample::select(&KERNELS[..]),
            prop::collection::vec(changes(), 1..4),
            prop::sample::select(&[1usize, 2, 8, 16][..]),
        ).prop_map(|(text, changes, number)| (mutilated(text, &changes), number)),
    ) {
        runs_through(&text, number);
    }
}
