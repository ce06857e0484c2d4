//! Random expressions. Each is in parentheses, so that precedence decides nothing but where it is asked for.

use super::writer::{INTEGERS, Kind, OPERATORS, Type, Writer};

impl Writer {
    /// A number of a type as it is written, with the type or without.
    fn literal(&mut self, ty: Type) -> String {
        match ty {
            "bool" => self.one_of(&["true", "false"]).to_owned(),
            "f32" => self.one_of(&["0.0", "1.5", "-2.25", "3.0f32", "0.1", "1e10", "-0.0"]).to_owned(),
            _ => {
                let suffix = if self.once_in(2) { ty } else { "" };
                match self.choose(10) {
                    0 => format!("{ty}::MAX"),
                    1 => format!("{ty}::MIN"),
                    2 if ty.starts_with('i') => format!("-{}{suffix}", 1 + self.choose(9)),
                    3 => format!("{}{suffix}", self.choose(120)),
                    _ => format!("{}{suffix}", self.choose(8)),
                }
            }
        }
    }

    fn variable(&mut self, ty: Type) -> Option<String> {
        match self.pick(|variable| match variable.kind {
            Kind::Scalar(of) | Kind::Array(of, _) => of == ty,
            Kind::Closure(_) => false,
        }) {
            Some(variable) => Some(match variable.kind {
                Kind::Array(_, length) => format!("{}[{}]", variable.name, self.choose(length)),
                _ => variable.name,
            }),
            None => None,
        }
    }

    /// An expression whose type is seen from itself.
    pub(super) fn typed(&mut self, ty: Type, depth: usize) -> String {
        match self.variable(ty) {
            Some(variable) if self.choose(3) > 0 => variable,
            _ if depth > 0 => format!("({} as {ty})", self.any(depth - 1)),
            Some(variable) => variable,
            None => match ty {
                "bool" => "true".to_owned(),
                "f32" => "2.5f32".to_owned(),
                ty => format!("{}{ty}", 1 + self.choose(9)),
            },
        }
    }

    /// An expression of some number's type that is seen from itself.
    fn any(&mut self, depth: usize) -> String {
        let ty = self.number();
        self.typed(ty, depth)
    }

    pub(super) fn integer(&mut self) -> Type {
        self.one_of(&INTEGERS)
    }

    /// A type of numbers.
    fn number(&mut self) -> Type {
        if self.once_in(6) { "f32" } else { self.integer() }
    }

    /// A type of scalars.
    pub(super) fn scalar(&mut self) -> Type {
        if self.once_in(6) { "bool" } else { self.number() }
    }

    pub(super) fn expression(&mut self, ty: Type, depth: usize) -> String {
        if depth == 0 || self.once_in(5) {
            return match self.variable(ty) {
                Some(variable) if self.choose(4) > 0 => variable,
                _ => self.literal(ty),
            };
        }
        match self.choose(12) {
            0 if ty != "bool" => format!("({} as {ty})", self.any(depth - 1)),
            1 => {
                let (condition, a) = (self.condition(depth - 1), self.expression(ty, depth - 1));
                format!("(if {condition} {{ {a} }} else {{ {} }})", self.expression(ty, depth - 1))
            }
            2 => self.match_of(ty, depth),
            3 => {
                let (name, inner) = (self.name(), self.scalar());
                let value = self.expression(inner, depth - 1);
                let outer = self.scope.len();
                self.declare(&name, Kind::Scalar(inner), false);
                let result = self.expression(ty, depth - 1);
                self.scope.truncate(outer);
                format!("{{ let {name}: {inner} = {value}; {result} }}")
            }
            4 => match self.pick(|variable| variable.kind == Kind::Closure(ty)) {
                Some(closure) => format!("{}({})", closure.name, self.expression(ty, depth - 1)),
                None => self.of_operator(ty, depth),
            },
            5 => match self.pick(|variable| matches!(variable.kind, Kind::Array(of, _) if of == ty)) {
                Some(array) if ty != "bool" => self.fold(&array.name, ty, depth),
                _ => self.of_operator(ty, depth),
            },
            _ => self.of_operator(ty, depth),
        }
    }

    fn fold(&mut self, array: &str, ty: Type, depth: usize) -> String {
        let start = self.typed(ty, depth - 1);
        let adapter = self.one_of(&["", ".rev()", ".skip(1)", ".take(2)"]);
        let outer = self.scope.len();
        self.declare("s", Kind::Scalar(ty), false);
        self.declare("e", Kind::Scalar(ty), false);
        let body = self.expression(ty, depth.min(2) - 1);
        self.scope.truncate(outer);
        format!("{array}.iter(){adapter}.fold({start}, |s, &e| {body})")
    }

    fn of_operator(&mut self, ty: Type, depth: usize) -> String {
        match ty {
            "bool" => self.condition(depth),
            "f32" => {
                let a = self.typed(ty, depth - 1);
                let b = self.expression(ty, depth - 1);
                match self.choose(8) {
                    0 => format!("(-{a})"),
                    1 => format!("{a}.abs()"),
                    2 => format!("{a}.max({b})"),
                    3 => format!("{a}.floor()"),
                    _ => format!("({a} {} {b})", self.one_of(&["+", "-", "*", "/"])),
                }
            }
            ty => self.of_integers(ty, depth),
        }
    }

    fn of_integers(&mut self, ty: Type, depth: usize) -> String {
        let a = self.typed(ty, depth - 1);
        match self.choose(20) {
            0 if ty.starts_with('i') => format!("(-{a})"),
            1 => format!("(!{a})"),
            2 => {
                let distance =
                    if self.once_in(2) { self.choose(8).to_string() } else { self.any_integer(depth) };
                format!("({a} {} {distance})", self.one_of(&["<<", ">>"]))
            }
            3 => {
                let method = self.one_of(&[
                    "min",
                    "max",
                    "wrapping_add",
                    "wrapping_mul",
                    "rem_euclid",
                    "saturating_sub",
                ]);
                format!("{a}.{method}({})", self.expression(ty, depth - 1))
            }
            4 => format!("{a}.clamp(1, {})", 1 + self.choose(100)),
            5 if ty.starts_with('i') => format!("{a}.{}()", self.one_of(&["abs", "signum"])),
            6 => {
                format!("({a}.{}() as {ty})", self.one_of(&["count_ones", "leading_zeros", "trailing_zeros"]))
            }
            7 => format!("{a}.overflowing_add({}).0", self.expression(ty, depth - 1)),
            8 => format!("{a}.rotate_left({})", self.choose(20)),
            9 => {
                // Precedence as it is written.
                let (b, c) = (self.typed(ty, depth - 1), self.typed(ty, depth - 1));
                let [first, second] = [(); 2].map(|()| self.one_of(&OPERATORS));
                format!("({a} {first} {b} {second} {c})")
            }
            _ => {
                let operator = self.one_of(&OPERATORS);
                let b = self.right_of(operator, ty, depth - 1);
                if self.once_in(4) {
                    format!("({b} {operator} {a})")
                } else {
                    format!("({a} {operator} {b})")
                }
            }
        }
    }

    /// What stands behind an operator: not a literal that may be 0, which nothing is divided by.
    pub(super) fn right_of(&mut self, operator: &str, ty: Type, depth: usize) -> String {
        match operator {
            "/" | "%" => self.typed(ty, depth),
            _ => self.expression(ty, depth),
        }
    }

    fn any_integer(&mut self, depth: usize) -> String {
        let ty = self.integer();
        self.typed(ty, depth - 1)
    }

    /// A condition.
    pub(super) fn condition(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.variable("bool").unwrap_or_else(|| "(1 < 2)".to_owned());
        }
        match self.choose(9) {
            0 => format!("(!{})", self.condition(depth - 1)),
            1 | 2 => {
                let (a, b) = (self.condition(depth - 1), self.condition(depth - 1));
                format!("({a} {} {b})", self.one_of(&["&&", "||"]))
            }
            3 => {
                let (a, b) = (self.condition(depth - 1), self.condition(depth - 1));
                format!("({a} {} {b})", self.one_of(&["==", "!=", "&", "|", "^"]))
            }
            4 => {
                let (value, start) = (self.any_integer(depth), self.choose(6));
                let dots = self.one_of(&["..", "..="]);
                format!("({start}{dots}{}).contains(&{value})", start + self.choose(20))
            }
            5 => format!("matches!({}, 0 | 3..=9)", self.any_integer(depth)),
            _ => {
                let ty = self.number();
                let (a, b) = (self.typed(ty, depth - 1), self.expression(ty, depth - 1));
                format!("({a} {} {b})", self.one_of(&["<", "<=", ">", ">=", "==", "!="]))
            }
        }
    }

    fn match_of(&mut self, ty: Type, depth: usize) -> String {
        let of = self.integer();
        let value = self.typed(of, depth - 1);
        let mut arms = String::new();
        for _ in 0..1 + self.choose(3) {
            let start = self.choose(10);
            let pattern = match self.choose(5) {
                0 => format!("{start}"),
                1 => format!("{start} | {}", start + 1 + self.choose(5)),
                2 => format!("p @ {start}..={}", start + self.choose(30)),
                3 => "p".to_owned(),
                _ => format!("{start}.."),
            };
            let outer = self.scope.len();
            if pattern.starts_with('p') {
                self.declare("p", Kind::Scalar(of), false);
            }
            let is_guarded = pattern == "p" || self.once_in(3);
            let guard = if is_guarded { format!(" if {}", self.condition(depth - 1)) } else { String::new() };
            let result = self.expression(ty, depth - 1);
            self.scope.truncate(outer);
            arms += &format!("{pattern}{guard} => {result}, ");
        }
        format!("(match {value} {{ {arms}_ => {} }})", self.expression(ty, depth - 1))
    }
}
