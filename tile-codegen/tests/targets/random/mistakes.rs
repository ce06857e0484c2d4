//! Random kernels with a mistake: each is refused with an error, or is a kernel, and then targets compile it.

use super::check::{Way, compiled};
use super::minimize::statement;
use super::writer::Kind;
use super::{cases, kernel, layouts, ways};
use crate::support::Native;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;
use tile_codegen::Options;
use tile_ir::specialize::specialize;
use tile_ir::{TargetDesc, VerifiedKernel};

/// What is done to a line.
#[derive(Clone, Copy, Debug)]
enum Mistake {
    /// It is left out, with what it has in braces.
    Drop,
    /// It changes places with another one.
    Exchange,
    /// A word of it becomes a word of another one.
    Reword,
}

type Drawn = (Mistake, [Index; 4]);

fn mistakes() -> impl Strategy<Value = Vec<Drawn>> {
    let kinds =
        prop_oneof![1 => Just(Mistake::Drop), 1 => Just(Mistake::Exchange), 4 => Just(Mistake::Reword)];
    prop::collection::vec((kinds, any::<[Index; 4]>()), 1..3)
}

fn with(source: &str, &(mistake, [line, other, word, new]): &Drawn) -> String {
    let mut lines: Vec<String> = source.lines().map(str::to_owned).collect();
    // The first line stays, or nothing would.
    let Some(behind) = lines.len().checked_sub(1).filter(|&behind| behind > 0) else {
        return source.to_owned();
    };
    let (line, other) = (1 + line.index(behind), 1 + other.index(behind));
    match mistake {
        Mistake::Drop => drop(lines.drain(line..statement(&lines, line))),
        Mistake::Exchange => lines.swap(line, other),
        Mistake::Reword => {
            let others: Vec<String> = lines[other].split_whitespace().map(str::to_owned).collect();
            let mut words: Vec<String> = lines[line].split_whitespace().map(str::to_owned).collect();
            let at = word.index(words.len());
            words[at].clone_from(&others[new.index(others.len())]);
            lines[line] = words.join(" ");
        }
    }
    lines.join("\n") + "\n"
}

/// Whether it is a kernel, which then is compiled.
fn is_compiled(source: &str, way: Way) -> bool {
    let kernel = match VerifiedKernel::parse(source) {
        Ok(kernel) => kernel,
        Err(error) => {
            assert!(!error.to_string().is_empty(), "{source}");
            return false;
        }
    };
    let Ok(instance) = specialize(&kernel, &[]) else { return false };
    Native::of(&instance, &Options { cpu: way.cpu, skip_passes: way.skip_passes, ..Options::default() });
    compiled(&instance, TargetDesc::named(way.gpu).expect("a target of the table"), way.threads);
    true
}

#[test]
fn a_mistake_is_refused_or_makes_another_kernel() {
    let tapes = prop::collection::vec(any::<u8>(), 40..200);
    let drawn = ((tapes, layouts(), 1usize..16), mistakes(), ways());
    let config = ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 40,
        ..ProptestConfig::with_cases(2 * cases())
    };
    let kernels = std::cell::Cell::new(0);
    let result = TestRunner::new(config).run(&drawn, |((tape, layout, ops), mistakes, way)| {
        let source = kernel(&tape, &layout, ops, Kind::Any);
        let source = mistakes.iter().fold(source, |source, mistake| with(&source, mistake));
        kernels.set(kernels.get() + u32::from(is_compiled(&source, way)));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    // One in twenty is: of 192, none by chance once in ten thousand runs.
    assert!(kernels.get() > 0 || cases() < 96, "none of {} was a kernel", 2 * cases());
}
