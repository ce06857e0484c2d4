//! Random statements: variables, assignments, loops, branches and exits.

use super::writer::{Kind, OPERATORS, Type, Variable, Writer};

/// How deep expressions are.
const DEPTH: usize = 3;

/// How deep loops and branches are nested.
const NESTED: usize = 4;

impl Writer {
    pub(super) fn statements(&mut self, count: usize) {
        for _ in 0..count {
            self.statement();
        }
    }

    fn statement(&mut self) {
        let nests = self.depth < NESTED;
        match self.choose(24) {
            0..=4 => self.variable_of_a_scalar(),
            5..=9 => self.assignment(),
            10 => self.array(),
            11 => self.closure(),
            12 => self.pair(),
            13 => self.late_literal(),
            14 | 15 if nests => self.branch(),
            16..=18 if nests => self.for_loop(),
            19 if nests => self.while_loop(),
            20 if nests => self.loop_with_a_value(),
            21 if nests => self.match_statement(),
            22 if nests => self.labelled_block(),
            23 => self.exit(),
            _ => self.assignment(),
        }
    }

    fn variable_of_a_scalar(&mut self) {
        let (ty, mutable) = (self.scalar(), self.choose(3) > 0);
        let value = self.expression(ty, DEPTH);
        let name = self.name();
        let word = if mutable { "mut " } else { "" };
        self.line(&format!("let {word}{name}: {ty} = {value};"));
        self.declare(&name, Kind::Scalar(ty), mutable);
    }

    /// A number whose type is known from a later use alone.
    fn late_literal(&mut self) {
        let ty = self.integer();
        let (first, number) = (self.name(), self.choose(100));
        self.line(&format!("let {first} = {number};"));
        self.declare(&first, Kind::Scalar(ty), false);
        let second = self.name();
        self.line(&format!("let {second}: {ty} = {first};"));
        self.declare(&second, Kind::Scalar(ty), false);
    }

    fn array(&mut self) {
        let (ty, length, mutable) = (self.integer(), 2 + self.choose(3), self.once_in(2));
        let value = match self.choose(3) {
            0 => format!("[{}; {length}]", self.expression(ty, 2)),
            _ => {
                let values: Vec<String> = (0..length).map(|_| self.expression(ty, 2)).collect();
                format!("[{}]", values.join(", "))
            }
        };
        let name = self.name();
        let word = if mutable { "mut " } else { "" };
        self.line(&format!("let {word}{name}: [{ty}; {length}] = {value};"));
        self.declare(&name, Kind::Array(ty, length), mutable);
    }

    fn closure(&mut self) {
        let ty = self.integer();
        let parameter = self.name();
        // What is assigned while a closure borrows it is Rust's error.
        let outside = std::mem::take(&mut self.scope);
        let names = |variable: &Variable| outside.iter().filter(|other| other.name == variable.name).count();
        self.scope = outside.iter().filter(|it| !it.mutable && names(it) == 1).cloned().collect();
        self.declare(&parameter, Kind::Scalar(ty), false);
        let body = self.expression(ty, DEPTH);
        self.scope = outside;
        let name = self.name();
        self.line(&format!("let {name} = |{parameter}: {ty}| {body};"));
        self.declare(&name, Kind::Closure(ty), false);
    }

    /// Two variables at once, or two that change places.
    fn pair(&mut self) {
        if let Some(first) = self.assigned()
            && let Kind::Scalar(ty) = first.kind
            && let Some(second) = self.pick(|other| other.mutable && other.kind == Kind::Scalar(ty))
            && first.name != second.name
        {
            self.line(&format!("({0}, {1}) = ({1}, {0});", first.name, second.name));
            return;
        }
        let [a, b] = [(); 2].map(|()| self.scalar());
        let (value, other) = (self.expression(a, DEPTH), self.expression(b, DEPTH));
        let first = self.name();
        let second = format!("{first}b");
        self.line(&format!("let ({first}, mut {second}): ({a}, {b}) = ({value}, {other});"));
        self.declare(&first, Kind::Scalar(a), false);
        self.declare(&second, Kind::Scalar(b), true);
    }

    /// A variable that may be assigned.
    fn assigned(&mut self) -> Option<Variable> {
        self.pick(|variable| variable.mutable)
    }

    fn assignment(&mut self) {
        let Some(variable) = self.assigned() else { return self.variable_of_a_scalar() };
        let (place, ty) = match variable.kind {
            Kind::Scalar(ty) => (variable.name, ty),
            Kind::Array(ty, length) => (format!("{}[{}]", variable.name, self.choose(length)), ty),
            Kind::Closure(_) => unreachable!("no closure is mutable"),
        };
        let operators: &[&str] = match ty {
            "bool" => &["&", "|", "^"],
            "f32" => &["+", "-", "*"],
            _ => &OPERATORS,
        };
        let operator = if self.once_in(2) { self.one_of(operators) } else { "" };
        let value = self.right_of(operator, ty, DEPTH);
        self.line(&format!("{place} {operator}= {value};"));
    }

    fn branch(&mut self) {
        let condition = self.condition(DEPTH);
        let count = 1 + self.choose(3);
        self.line(&format!("if {condition} {{"));
        self.inside(|writer| writer.statements(count));
        if self.once_in(2) {
            let count = 1 + self.choose(2);
            self.line("} else {");
            self.inside(|writer| writer.statements(count));
        }
        self.line("}");
    }

    fn in_loop(&mut self, head: &str, body: impl FnOnce(&mut Writer)) {
        let label = self.label();
        self.labels.push(label.clone());
        self.block(&format!("{label}: {head}"), "}", body);
        self.labels.pop();
    }

    /// A loop over a range of few numbers, or over an array.
    fn for_loop(&mut self) {
        let count = 1 + self.choose(3);
        if let Some(array) = self.pick(|variable| matches!(variable.kind, Kind::Array(..)))
            && let Kind::Array(ty, length) = array.kind
            && self.once_in(3)
        {
            let name = self.name();
            let counts = self.once_in(2);
            let head = if counts {
                format!("for (at, &{name}) in {}.iter().enumerate() {{", array.name)
            } else {
                format!("for {name} in {} {{", array.name)
            };
            self.in_loop(&head, |writer| {
                // While the loop borrows it.
                writer.declare(&array.name, array.kind, false);
                writer.declare(&name, Kind::Scalar(ty), false);
                if counts {
                    writer.line(&format!("let at = at as {ty} % {length};"));
                    writer.declare("at", Kind::Scalar(ty), false);
                }
                writer.statements(count);
            });
            return;
        }
        if self.once_in(4) {
            return self.unrolled_loop(count);
        }
        let ty = self.integer();
        let (range, name) = (self.range(ty), self.name());
        self.in_loop(&format!("for {name} in {range} {{"), |writer| {
            writer.declare(&name, Kind::Scalar(ty), false);
            writer.statements(count);
        });
    }

    /// A loop whose turns are written one after the other, because its counter, a `usize`, is an index of an array: in each the
    /// number is known.
    fn unrolled_loop(&mut self, count: usize) {
        let Some(array) = self.pick(|variable| matches!(variable.kind, Kind::Array(..))) else {
            return self.array();
        };
        let Kind::Array(ty, length) = array.kind else { unreachable!("an array was asked for") };
        let name = self.new_name("at");
        let range = self.one_of(&["", ".rev()", ".step_by(2)"]);
        let range = if range.is_empty() { format!("0..{length}") } else { format!("(0..{length}){range}") };
        self.in_loop(&format!("for {name} in {range} {{"), |writer| {
            writer.declare(&name, Kind::Scalar("usize"), false);
            let element = writer.name();
            writer.line(&format!("let {element}: {ty} = {}[{name}];", array.name));
            writer.declare(&element, Kind::Scalar(ty), false);
            let known = writer.known(&name, &array.name, ty);
            writer.line(&known);
            writer.statements(count);
        });
    }

    /// What depends on a number that is known: a condition that decides whether something else may be computed.
    fn known(&mut self, at: &str, array: &str, ty: Type) -> String {
        let (value, element) = (self.typed(ty, 1), self.new_name("e"));
        let condition = match self.choose(4) {
            0 => format!("{at} > 0 && {array}[{at} - 1] != {value}"),
            1 => format!("{at} > 0 && 12 % {at} == 0"),
            2 => format!("{at} == 0 || 12 / {at} > 5 || {array}[{at} - 1] > {value}"),
            _ => format!("matches!({at}, 1 | 3) && {array}[{at} - 1] < {value}"),
        };
        let result = format!("let {element}: {ty} = if {condition} {{ {array}[{at}] }} else {{ {value} }};");
        self.declare(&element, Kind::Scalar(ty), false);
        result
    }

    fn range(&mut self, ty: Type) -> String {
        let first = if ty.starts_with('i') && self.once_in(3) { "-2" } else { self.one_of(&["0", "1", "3"]) };
        let start = if self.once_in(2) { format!("{first}{ty}") } else { first.to_owned() };
        let dots = self.one_of(&["..", "..="]);
        let (end, is_typed) = match self.choose(4) {
            0 => (format!("({}.rem_euclid(6))", self.expression_that_is_typed(ty)), true),
            1 => (format!("({}.clamp(0, 4))", self.expression_that_is_typed(ty)), true),
            _ => (format!("{}", self.choose(7)), false),
        };
        let start = if is_typed || start.ends_with(ty) { start } else { format!("{start}{ty}") };
        let step = match self.choose(3) {
            0 => format!("(1 + ({} as usize % 3))", self.expression_of_any_variable()),
            _ => (1 + self.choose(3)).to_string(),
        };
        match self.choose(5) {
            0 => format!("({start}{dots}{end}).rev()"),
            1 => format!("({start}{dots}{end}).step_by({step})"),
            2 => format!("({start}{dots}{end}).rev().step_by({step})"),
            _ => format!("{start}{dots}{end}"),
        }
    }

    /// An expression of a type that is written.
    fn expression_that_is_typed(&mut self, ty: Type) -> String {
        format!("({} as {ty})", self.expression_of_any_variable())
    }

    fn expression_of_any_variable(&mut self) -> String {
        let variable = self.pick(|variable| matches!(variable.kind, Kind::Scalar(ty) if ty != "bool"));
        variable.map_or_else(|| "5i32".to_owned(), |variable| variable.name)
    }

    fn while_loop(&mut self) {
        let left = self.new_name("left");
        let (ty, turns) = (self.integer(), self.choose(5));
        self.line(&format!("let mut {left}: {ty} = {turns};"));
        let (condition, count) = (self.condition(2), 1 + self.choose(3));
        let condition = if self.once_in(2) { String::new() } else { format!(" && {condition}") };
        self.in_loop(&format!("while {left} > 0{condition} {{"), |writer| {
            writer.line(&format!("{left} -= 1;"));
            writer.declare(&left, Kind::Scalar(ty), false);
            writer.statements(count);
        });
    }

    fn loop_with_a_value(&mut self) {
        let (turn, ty) = (self.new_name("turn"), self.scalar());
        self.line(&format!("let mut {turn} = 0u32;"));
        let (name, count, last) = (self.name(), 1 + self.choose(2), self.choose(4));
        let condition = self.condition(2);
        let (label, value) = (self.label(), self.expression(ty, 2));
        let other = self.once_in(3);
        self.block(&format!("let {name}: {ty} = {label}: loop {{"), "};", |writer| {
            writer.line(&format!("if {turn} >= {last} || {condition} {{ break {value}; }}"));
            writer.line(&format!("{turn} += 1;"));
            writer.declare(&turn, Kind::Scalar("u32"), false);
            writer.own_labels(|writer| writer.statements(count));
            if other {
                let (condition, value) = (writer.condition(2), writer.expression(ty, 2));
                writer.line(&format!("if {condition} {{ break {label} {value}; }}"));
            }
        });
        self.declare(&name, Kind::Scalar(ty), false);
    }

    /// Writes what leaves no loop or block around it: those that give a value aren't left without one, nor by an exit that names
    /// no label.
    fn own_labels(&mut self, body: impl FnOnce(&mut Writer)) {
        let outside = std::mem::take(&mut self.labels);
        body(self);
        self.labels = outside;
    }

    fn labelled_block(&mut self) {
        let (ty, name) = (self.scalar(), self.name());
        let label = self.label();
        let count = self.choose(2);
        self.block(&format!("let {name}: {ty} = {label}: {{"), "};", |writer| {
            let (condition, value) = (writer.condition(2), writer.expression(ty, 2));
            writer.line(&format!("if {condition} {{ break {label} {value}; }}"));
            writer.own_labels(|writer| writer.statements(count));
            let value = writer.expression(ty, 2);
            writer.line(&value);
        });
        self.declare(&name, Kind::Scalar(ty), false);
    }

    fn match_statement(&mut self) {
        let [a, b] = [(); 2].map(|()| self.integer());
        let (first, second) = (self.expression_that_is_typed(a), self.expression_that_is_typed(b));
        self.line(&format!("match ({first}, {second}) {{"));
        self.depth += 1;
        let start = self.choose(5);
        let arms = [
            (format!("({start}, q) if q != {start}"), Some(("q", b))),
            (format!("(q @ {start}..=40, _)"), Some(("q", a))),
            (format!("(_, 1 | {})", 3 + start), None),
            ("(q, 0..=9)".to_owned(), Some(("q", a))),
        ];
        let kept = self.choose(16);
        for (at, (pattern, bound)) in arms.into_iter().enumerate() {
            if kept & (1 << at) == 0 {
                let count = 1 + self.choose(2);
                self.block(&format!("{pattern} => {{"), "}", |writer| {
                    if let Some((name, ty)) = bound {
                        writer.declare(name, Kind::Scalar(ty), false);
                    }
                    writer.statements(count);
                });
            }
        }
        let count = self.choose(2);
        self.block("_ => {", "}", |writer| writer.statements(count));
        self.depth -= 1;
        self.line("}");
    }

    fn exit(&mut self) {
        let condition = self.condition(2);
        if self.labels.is_empty() || self.once_in(30) {
            if self.once_in(3) {
                self.line(&format!("if {condition} {{ return; }}"));
            }
            return;
        }
        let at = self.choose(self.labels.len());
        let label = self.labels[at].clone();
        let label = if self.once_in(2) { format!(" {label}") } else { String::new() };
        let word = self.one_of(&["break", "continue"]);
        self.line(&format!("if {condition} {{ {word}{label}; }}"));
    }
}
