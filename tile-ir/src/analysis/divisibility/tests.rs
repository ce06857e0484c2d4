//! Divisors against every value that the evaluator gives.

use super::*;
use crate::array::Array;
use crate::{VerifiedKernel, interp, specialize, verify};
use proptest::prelude::*;
use std::fmt::Write;

fn kernel(conditions: &str, lines: &str) -> Kernel {
    let source = format!(
        "kernel @k(%x: tensor<m x n x f32>, %s: index, %y: mut tensor<m x n x f32>){conditions} {{
  %v = partition %y [8, 4] : mut partition<m x n x f32, [8, 4]>
  %i, %j = block_index %v : index, index
{lines}
}}
"
    );
    VerifiedKernel::parse(&source).unwrap_or_else(|error| panic!("{error}\n{source}")).into_inner()
}

#[test]
fn divisors_are_printed_beside_definitions() {
    let lines = "  %zero = constant 0 : index
  %three = constant 3 : index
  %six = constant 6 : index
  %ten = constant 10 : index
  %m = extent m : index
  %tiles = extent ceil_div(m, 48) : index
  %first = mul %i, %six : index
  %next = add %first, %ten : index
  %unknown = mul %s, %six : index
  %third = div %first, %three : index
  %part = rem %first, %ten : index
  %lower = min %first, %six : index
  %word = cast %first : i32
  %shifted = shl %unknown, %three : index
  %bits = and %shifted, %s : index
  %tile = splat %word : tile<4 x i32>
  %end = for %p = %zero to %m carry (%offset = %six) : index {
%step = mul %i, %six : index
%turned = add %offset, %three : index
%doubled = mul %step, %p : index
yield %turned
  }";
    insta::assert_snapshot!(print(&kernel(" where \"m % 48 == 0\": rem(m, 48) eq 0", lines)));
}

#[test]
fn what_every_kind_of_loop_carries_has_a_divisor() {
    let lines = "  %go = constant true : bool
  %zero = constant 0 : index
  %six = constant 6 : index
  %ten = constant 10 : index
  %f = for %p = %zero to %s carry (%a = %six) : index {
    %fa = add %a, %ten : index
    yield %fa
  }
  %w = while %go carry (%b = %six) : index {
    %wa = add %b, %ten : index
    yield %go, %wa
  }";
    let loops = kernel("", lines);
    let tiles = VerifiedKernel::parse(
        "kernel @k(%y: mut tensor<m x f32>) {
  %v = partition %y [4] : mut partition<m x f32, [4]>
  %six = constant 6 : index
  %ten = constant 10 : index
  %t = tiles %v row_major carry (%a = %six) : index {
    %n = add %a, %ten : index
    yield %n
  }
}
",
    );
    let tiles = tiles.unwrap_or_else(|error| panic!("{error}")).into_inner();
    let mut found = Vec::new();
    for kernel in [&loops, &tiles] {
        let divisors = Divisors::of(kernel);
        let carrying = kernel.walk().into_iter().map(|op| kernel.op(op)).filter(|data| data.op.is_loop());
        found.extend(carrying.map(|data| (data.op.name(), divisors.divisor(data.results[0]))));
    }
    assert_eq!(found, [("for", 2), ("while", 2), ("tiles", 2)]);
}

/// Writes a kernel by the choices on a tape; it prints every value.
struct Writer<'a> {
    tape: std::slice::Iter<'a, u8>,
    text: String,
    scope: Vec<(String, &'static str)>,
    names: usize,
    sites: usize,
    depth: usize,
}

impl Writer<'_> {
    fn choose(&mut self, below: usize) -> usize {
        usize::from(self.tape.next().copied().unwrap_or(0)) % below
    }

    fn pick(&mut self, ty: &str) -> String {
        let found: Vec<_> = self.scope.iter().filter(|(_, other)| *other == ty).cloned().collect();
        let chosen = self.choose(found.len());
        found[chosen].0.clone()
    }

    fn define(&mut self, body: &str, ty: &'static str) -> String {
        self.names += 1;
        let name = format!("%v{}", self.names);
        let _ = writeln!(self.text, "{name} = {body} : {ty}");
        self.say(&name, ty);
        name
    }

    fn say(&mut self, name: &str, ty: &'static str) {
        let _ = writeln!(self.text, "print {} \"{{0}}\" {name}", self.sites);
        self.sites += 1;
        self.scope.push((name.to_owned(), ty));
    }

    fn op(&mut self) {
        let types = ["index", "u8", "i8", "i32"];
        let which = self.choose(types.len());
        let ty = types[which];
        let a = self.pick(ty);
        match self.choose(9) {
            0..4 => {
                let b = self.pick(ty);
                let names =
                    ["add", "mul", "sub", "div", "rem", "and", "or", "xor", "shl", "shr", "min", "max"];
                let name = names[self.choose(names.len())];
                self.define(&format!("{name} {a}, {b}"), ty);
            }
            4 => {
                let value = [0, 1, 2, 3, 6, 8, 24, 48, 96, 127][self.choose(10)];
                self.define(&format!("constant {value}"), ty);
            }
            5 => {
                let which = self.choose(types.len());
                if types[which] != ty {
                    self.define(&format!("cast {a}"), types[which]);
                }
            }
            6 if ty.starts_with('i') && ty != "index" => {
                self.define(&format!("neg {a}"), ty);
            }
            7 if self.depth < 2 => self.nested(ty, &a),
            _ => {
                let dims = ["m", "n", "ceil_div(m, 12)", "6*n", "m - 24", "rem(n, 9)", "24*floor_div(n, 6)"];
                let dim = dims[self.choose(dims.len())];
                self.define(&format!("extent {dim}"), "index");
            }
        }
    }

    fn nested(&mut self, ty: &'static str, start: &str) {
        let kept = self.scope.len();
        self.names += 2;
        let (result, param) = (format!("%v{}", self.names - 1), format!("%v{}", self.names));
        let is_loop = self.choose(2) == 0;
        if is_loop {
            let _ = writeln!(
                self.text,
                "{result} = for %p{} = %zero to %three carry ({param} = {start}) : {ty} {{",
                self.names
            );
            self.say(&param.clone(), ty);
        } else {
            let c = self.pick("index");
            let _ = writeln!(
                self.text,
                "%c{} = lt {c}, %three : bool\n{result} = if %c{} : {ty} {{",
                self.names, self.names
            );
        }
        self.depth += 1;
        (0..1 + self.choose(3)).for_each(|_| self.op());
        self.depth -= 1;
        let yielded = self.pick(ty);
        let _ = writeln!(self.text, "yield {yielded}");
        self.scope.truncate(kept);
        if !is_loop {
            let _ = writeln!(self.text, "}} else {{\nyield {start}");
        }
        self.text.push_str("}\n");
        self.say(&result.clone(), ty);
    }
}

fn program(tape: &[u8]) -> String {
    let mut writer =
        Writer { tape: tape.iter(), text: String::new(), scope: Vec::new(), names: 0, sites: 0, depth: 0 };
    writer.text.push_str("%zero = constant 0 : index\n%three = constant 3 : index\n");
    for (name, ty) in [("%i", "index"), ("%j", "index"), ("%s", "index"), ("%three", "index")] {
        writer.say(name, ty);
    }
    for ty in ["u8", "i8", "i32"] {
        writer.define("constant 12", ty);
        writer.define("cast %s", ty);
    }
    while writer.tape.len() > 0 {
        writer.op();
    }
    writer.text
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 200, ..ProptestConfig::default() })]

    /// Every value that a random program has, for sizes that satisfy its condition, is a multiple of its divisor.
    #[test]
    fn divisors_divide_every_value(tape in proptest::collection::vec(any::<u8>(), 0..120)) {
        let source = program(&tape);
        let kernel = kernel(" where \"m % 24 == 0\": rem(m, 24) eq 0", &source);
        let divisors = Divisors::of(&kernel);
        let printed: HashMap<u32, ValueId> = kernel
            .walk()
            .into_iter()
            .filter_map(|op| match kernel.op(op).op {
                Op::Print { site, .. } => Some((site, kernel.op(op).operands[0])),
                _ => None,
            })
            .collect();
        let instance = specialize(&verify(kernel.clone()).unwrap(), &[]).unwrap();
        for (m, n, s) in [(24, 5, 0), (48, 12, 5), (0, 9, 3), (72, 13, u64::MAX), (24, 8, 1 << 61)] {
            let tensor = || Array::full(DType::F32, &[m, n], Literal::Float(0.0));
            let scalar = Array::scalar(DType::Index, Literal::Int(s.into()));
            let events = interp::run_logged(&instance, &mut [tensor(), scalar, tensor()]).unwrap();
            for event in events {
                let value = event.values[0].get_int(0);
                let divisor = i128::from(divisors.divisor(printed[&event.site]));
                let divides = if divisor == 0 { value == 0 } else { value % divisor == 0 };
                prop_assert!(divides, "{value} by {divisor} at {}\n{source}", event.site);
            }
        }
    }
}
