//! Random programs of integers with guards and loops: whatever passes decide by ranges, a program prints what it printed.

use crate::array::{Array, wrap_int};
use crate::dtype::DType;
use crate::log::Event;
use crate::ops::Literal;
use crate::{Instance, interp, passes, text};
use proptest::prelude::*;
use std::fmt::Write;

const FORMATS: [DType; 6] = [DType::Index, DType::Index, DType::I64, DType::I32, DType::U8, DType::I8];

/// Small numbers, for bounds that are near each other, and those that wrap.
const NUMBERS: [i128; 14] =
    [0, 1, 2, 3, 5, 6, 8, -1, -3, -8, 127, 250, i32::MAX as i128, i64::MAX as i128 - 2];

const ARITHMETIC: [&str; 14] =
    ["add", "sub", "mul", "add", "sub", "mul", "div", "rem", "min", "max", "and", "shr", "shl", "sub"];

/// Writes a program by the choices on a tape; what it computes it prints.
struct Writer<'t> {
    tape: std::slice::Iter<'t, u8>,
    text: String,
    scope: Vec<(String, DType)>,
    names: usize,
    prints: usize,
}

impl Writer<'_> {
    fn choose(&mut self, below: usize) -> usize {
        usize::from(self.tape.next().copied().unwrap_or(0)) % below
    }

    fn define(&mut self, body: &str, dtype: DType) -> String {
        self.names += 1;
        let name = format!("%v{}", self.names);
        let _ = writeln!(self.text, "{name} = {body} : {dtype}");
        self.scope.push((name.clone(), dtype));
        name
    }

    fn print(&mut self, name: &str) {
        let _ = writeln!(self.text, "print {} \"{{0}}\" {name}", self.prints);
        self.prints += 1;
    }

    /// A value of a format, the last ones more often than others.
    fn value(&mut self, dtype: DType) -> String {
        let known: Vec<String> =
            self.scope.iter().rev().filter(|(_, of)| *of == dtype).map(|(name, _)| name.clone()).collect();
        let back = self.choose(5);
        match known.get(back) {
            Some(name) => name.clone(),
            None if dtype == DType::Bool => self.comparison(),
            None => self.number(dtype),
        }
    }

    fn number(&mut self, dtype: DType) -> String {
        let number = wrap_int(dtype, NUMBERS[self.choose(NUMBERS.len())]);
        self.define(&format!("constant {number}"), dtype)
    }

    fn comparison(&mut self) -> String {
        let dtype = FORMATS[self.choose(FORMATS.len())];
        let predicate = ["lt", "le", "gt", "ge", "eq", "ne", "lt", "lt"][self.choose(8)];
        let value = self.value(dtype);
        let other = if self.choose(2) == 0 { self.number(dtype) } else { self.value(dtype) };
        self.define(&format!("{predicate} {value}, {other}"), DType::Bool)
    }

    fn computed(&mut self) -> String {
        let dtype = FORMATS[self.choose(FORMATS.len())];
        match self.choose(8) {
            0 => {
                let from = FORMATS[self.choose(FORMATS.len())];
                let value = self.value(from);
                if from == dtype { value } else { self.define(&format!("cast {value}"), dtype) }
            }
            1 => {
                let (condition, value, other) =
                    (self.value(DType::Bool), self.value(dtype), self.value(dtype));
                self.define(&format!("select {condition}, {value}, {other}"), dtype)
            }
            2 => {
                let (a, b) = (self.comparison(), self.value(DType::Bool));
                let both = ["and", "or"][self.choose(2)];
                let joined = self.define(&format!("{both} {a}, {b}"), DType::Bool);
                if self.choose(2) == 0 { self.define(&format!("not {joined}"), DType::Bool) } else { joined }
            }
            3 => self.comparison(),
            _ => {
                let op = ARITHMETIC[self.choose(ARITHMETIC.len())];
                let value = self.value(dtype);
                let other = if self.choose(3) == 0 { self.number(dtype) } else { self.value(dtype) };
                self.define(&format!("{op} {value}, {other}"), dtype)
            }
        }
    }

    fn region(&mut self, ops: usize, depth: usize) {
        let outer = self.scope.len();
        for _ in 0..ops {
            match self.choose(6) {
                0 if depth < 3 => self.moved(depth),
                1 if depth < 3 => self.guarded(depth),
                2 if depth == 0 => self.repeated(depth),
                _ => {
                    let name = self.computed();
                    self.print(&name);
                }
            }
        }
        self.scope.truncate(outer);
    }

    /// A sum or difference of an index that is compared: what is known of one is known of the other, and where the
    /// comparison holds something is computed of both.
    fn moved(&mut self, depth: usize) {
        let value = self.value(DType::Index);
        let [by, limit] = [0; 2].map(|_| {
            let number = 1 + self.choose(8);
            self.define(&format!("constant {number}"), DType::Index)
        });
        let op = ["add", "sub"][self.choose(2)];
        let moved = self.define(&format!("{op} {value}, {by}"), DType::Index);
        let predicate = ["lt", "le", "ge", "gt"][self.choose(4)];
        let condition = self.define(&format!("{predicate} {moved}, {limit}"), DType::Bool);
        let _ = writeln!(self.text, "if {condition} {{");
        let outer = self.scope.len();
        let both = [value, moved];
        let (a, b) = (&both[self.choose(2)], &both[self.choose(2)]);
        let op = ["mul", "mul", "add", "sub", "min", "max"][self.choose(6)];
        let joined = self.define(&format!("{op} {a}, {b}"), DType::Index);
        let limit = self.number(DType::Index);
        let predicate = ["lt", "le", "ge", "gt"][self.choose(4)];
        let is_beyond = self.define(&format!("{predicate} {joined}, {limit}"), DType::Bool);
        [joined, is_beyond].iter().for_each(|name| self.print(name));
        let ops = self.choose(3);
        self.region(ops, depth + 1);
        self.scope.truncate(outer);
        self.text += "}\n";
    }

    fn guarded(&mut self, depth: usize) {
        let condition = if self.choose(2) == 0 { self.comparison() } else { self.value(DType::Bool) };
        let _ = writeln!(self.text, "if {condition} {{");
        let ops = 1 + self.choose(3);
        self.region(ops, depth + 1);
        if self.choose(3) == 0 {
            self.text += "} else {\n";
            let ops = 1 + self.choose(3);
            self.region(ops, depth + 1);
        }
        self.text += "}\n";
    }

    /// Five turns at most.
    fn repeated(&mut self, depth: usize) {
        let (start, end) = (self.value(DType::Index), self.value(DType::Index));
        let few = self.define("constant 5", DType::Index);
        let end = self.define(&format!("min {end}, {few}"), DType::Index);
        self.names += 1;
        let counter = format!("%v{}", self.names);
        let _ = writeln!(self.text, "for {counter} = {start} to {end} {{");
        let outer = self.scope.len();
        self.scope.push((counter, DType::Index));
        let ops = 1 + self.choose(4);
        self.region(ops, depth + 1);
        self.scope.truncate(outer);
        self.text += "}\n";
    }
}

fn program(tape: &[u8]) -> String {
    let scope = ["%i", "%j", "%n", "%m"].map(|name| (name.to_owned(), DType::Index)).to_vec();
    let mut writer = Writer { tape: tape.iter(), text: String::new(), scope, names: 0, prints: 0 };
    writer.region(8, 0);
    format!(
        "kernel @guarded(%y: mut tensor<m x n x f32>) {{
%v = partition %y [1, 2] : mut partition<m x n x f32, [1, 2]>
%i, %j = block_index %v : index, index
%n = extent n : index
%m = extent floor_div(m, 2) - 1 : index
{}}}
",
        writer.text
    )
}

fn printed(instance: &Instance, shape: [usize; 2]) -> Vec<Event> {
    let y = Array::full(DType::F32, &shape, Literal::Float(0.0));
    interp::run_logged(instance, &mut [y]).expect("the shapes fit")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn guarded_programs_print_what_they_printed(tape in proptest::collection::vec(any::<u8>(), 20..140)) {
        let source = program(&tape);
        let instance = Instance::parse(&source, &[]).unwrap_or_else(|error| panic!("{error}\n{source}"));
        let optimized = passes::optimize(instance.clone());
        for shape in [[7, 4], [1, 2]] {
            let (expected, found) = (printed(&instance, shape), printed(&optimized, shape));
            prop_assert_eq!(found, expected, "{}\nbecame\n{}", source, text::print(&optimized));
        }
    }
}
