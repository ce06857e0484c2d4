//! Writes random kernels: what is in scope, and random choices.

use std::fmt::Write;

/// Numbers that look random, the same ones for the same seed (SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom
/// number generators", 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// A type of scalars.
pub(super) type Type = &'static str;

/// The integers that arithmetic is done with. Sizes are another matter: their arithmetic is checked.
pub(super) const INTEGERS: [Type; 8] = ["i32", "i64", "u8", "u32", "i8", "u64", "i16", "u16"];

/// The operators of integers.
pub(super) const OPERATORS: [&str; 8] = ["+", "-", "*", "/", "%", "&", "|", "^"];

/// What variables hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Scalar(Type),
    /// An array of so many scalars.
    Array(Type, usize),
    /// A closure of one scalar that gives such a one.
    Closure(Type),
}

#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) mutable: bool,
}

/// Writes one kernel.
pub(super) struct Writer {
    random: Random,
    pub(super) text: String,
    pub(super) scope: Vec<Variable>,
    /// The labels of the loops around, the innermost last.
    pub(super) labels: Vec<String>,
    names: usize,
    /// How deep statements are nested.
    pub(super) depth: usize,
}

impl Writer {
    pub(super) fn new(seed: u64) -> Writer {
        Writer {
            random: Random(seed),
            text: String::new(),
            scope: Vec::new(),
            labels: Vec::new(),
            names: 0,
            depth: 1,
        }
    }

    /// A number below a bound.
    pub(super) fn choose(&mut self, below: usize) -> usize {
        (self.random.next() % below as u64) as usize
    }

    /// Whether something happens once in so many times.
    pub(super) fn once_in(&mut self, times: usize) -> bool {
        self.choose(times) == 0
    }

    pub(super) fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.choose(of.len())]
    }

    pub(super) fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{}{line}", "    ".repeat(self.depth));
    }

    /// A new name, now and then one that hides another.
    pub(super) fn name(&mut self) -> String {
        if self.once_in(8) {
            let others = self.scope.iter().map(|variable| variable.name.clone());
            let others: Vec<String> = others.filter(|name| name != "acc").collect();
            return others[self.choose(others.len())].clone();
        }
        self.new_name("v")
    }

    /// A name that nothing else has.
    pub(super) fn new_name(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    pub(super) fn label(&mut self) -> String {
        self.new_name("'l")
    }

    pub(super) fn declare(&mut self, name: &str, kind: Kind, mutable: bool) {
        self.scope.push(Variable { name: name.to_owned(), kind, mutable });
    }

    /// A variable of those that a test accepts, of equal names the last.
    pub(super) fn pick(&mut self, accept: impl Fn(&Variable) -> bool) -> Option<Variable> {
        let is_seen = |at: usize| self.scope[at + 1..].iter().all(|later| later.name != self.scope[at].name);
        let seen = (0..self.scope.len()).filter(|&at| is_seen(at)).map(|at| &self.scope[at]);
        let found: Vec<Variable> = seen.filter(|variable| accept(variable)).cloned().collect();
        if found.is_empty() { None } else { Some(found[self.choose(found.len())].clone()) }
    }

    /// Writes what stands in braces between two lines.
    pub(super) fn block(&mut self, head: &str, tail: &str, body: impl FnOnce(&mut Writer)) {
        self.line(head);
        self.inside(body);
        self.line(tail);
    }

    /// Writes what stands in braces; what is declared in it is gone behind it.
    pub(super) fn inside(&mut self, body: impl FnOnce(&mut Writer)) {
        let outer = self.scope.len();
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.scope.truncate(outer);
    }
}
