//! `tile_println!` and `tile_assert!`: their text is checked against their arguments, and each is one op.

use super::{Lowered, Lowering, Reported, kind};
use crate::messages::{self, Call};
use crate::span::{Span, Spanned};
use crate::value::Val;
use syn::{Expr, LitStr, Macro};
use tile_ir::message::{Message, Name, Part, Piece, parts};
use tile_ir::{DType, Op, ValueId};

/// The values that a text shows.
struct Shown {
    values: Vec<ValueId>,
    spans: Vec<Span>,
    /// Of those that have one.
    names: Vec<(String, usize)>,
    used: Vec<bool>,
    /// How many stand behind the text; the others are names in it.
    given: usize,
}

impl Lowering {
    /// Lowers a call of one of the two macros; `None` for others.
    pub(super) fn message_macro(&mut self, called: &Macro) -> Option<Lowered<Val>> {
        let call = messages::read(called)?;
        let prints = called.path.segments.last()?.ident == "tile_println";
        let name = if prints { "tile_println!" } else { "tile_assert!" };
        Some(match call {
            Ok(call) => self.message(name, call, called),
            Err(error) => {
                let usage = match name {
                    "tile_println!" => "write `tile_println!(\"x = {}\", x)`",
                    _ => "write `tile_assert!(x >= 0.0)` or `tile_assert!(x >= 0.0, \"x = {}\", x)`",
                };
                self.error(error.span(), error.to_string(), usage)
            }
        })
    }

    fn message(&mut self, name: &str, call: Call, called: &Macro) -> Lowered<Val> {
        let condition = call.condition.as_ref().map(|condition| self.asserted(condition)).transpose();
        let shown = self.shown(name, &call);
        let text = call.condition_text();
        let (condition, mut shown) = (condition?, shown?);
        let message = match &call.template {
            Some(template) => self.template(name, template, &mut shown)?,
            None if text.is_empty() => Message::default(),
            None => Message { pieces: vec![Piece::Text(text)] },
        };
        let operands: Vec<ValueId> =
            condition.map(|(value, _)| value).into_iter().chain(shown.values).collect();
        let spans: Vec<Span> = condition.map(|(_, span)| span).into_iter().chain(shown.spans).collect();
        let site = self.messages;
        self.messages += 1;
        let op = if condition.is_some() { Op::Assert { site, message } } else { Op::Print { site, message } };
        self.emit(op, &operands, called.path.span(), &spans)?;
        Ok(Val::Unit)
    }

    /// The condition of an assertion.
    fn asserted(&mut self, condition: &Expr) -> Lowered<(ValueId, Span)> {
        let span = condition.span();
        let value = self.expression(condition)?;
        let help = "compare: `x >= 0.0`";
        let value = match value {
            Val::Data(value) => value,
            Val::Poison => return Err(Reported),
            other => {
                let message = format!("`tile_assert!` takes a bool or a tile of bool, not {}", kind(&other));
                return self.error(span, message, help);
            }
        };
        let elem = self.elem(value);
        if self.elements.unify(&elem, &DType::Bool.into()) {
            return Ok((value, span));
        }
        let found = self.display_type(value);
        let message = format!("`tile_assert!` takes a bool or a tile of bool, and this is {found}");
        let diagnostic = crate::diagnostic::Diagnostic::new(span, message).help(help);
        let diagnostic = self.with_origin(diagnostic, value);
        self.report(diagnostic)
    }

    /// The values behind the text. Each that is wrong is reported.
    fn shown(&mut self, name: &str, call: &Call) -> Lowered<Shown> {
        let mut shown = Shown {
            values: Vec::new(),
            spans: Vec::new(),
            names: Vec::new(),
            used: Vec::new(),
            given: call.arguments.len(),
        };
        let mut wrong = false;
        for (i, argument) in call.arguments.iter().enumerate() {
            let span = argument.value.span();
            match self.expression(&argument.value).and_then(|value| self.shown_value(name, &value, span)) {
                Ok(value) => shown.values.push(value),
                Err(Reported) => wrong = true,
            }
            shown.spans.push(span);
            shown.names.extend(argument.name.as_ref().map(|name| (name.to_string(), i)));
            shown.used.push(false);
        }
        if wrong { Err(Reported) } else { Ok(shown) }
    }

    fn shown_value(&mut self, name: &str, value: &Val, span: Span) -> Lowered<ValueId> {
        match value {
            Val::Data(_) | Val::Int(_) | Val::Float(_) | Val::Dim(_) => {
                self.data(value, "what is shown", span)
            }
            Val::Poison => Err(Reported),
            Val::List(_) | Val::Record(..) => {
                let message = format!("`{name}` shows scalars and tiles, not {}", kind(value));
                self.error(span, message, "show its parts one by one")
            }
            other => {
                let message = format!("`{name}` shows scalars and tiles, not {}", kind(other));
                self.error(span, message, "load a tile from a view with `load_masked`")
            }
        }
    }

    /// The text with its places resolved; every argument has one.
    fn template(&mut self, name: &str, template: &LitStr, shown: &mut Shown) -> Lowered<Message> {
        let span = Span::from(template.span());
        let text = template.value();
        let parts = match parts(&text) {
            Ok(parts) => parts,
            Err(problem) => return self.error(span, problem, "the text is that of Rust's `println!`"),
        };
        let is_next = |part: &&Part<'_>| matches!(part, Part::Place { name: Name::Next, .. });
        let (places, mut next) = (parts.iter().filter(is_next).count(), 0);
        let mut pieces = Vec::new();
        for part in parts {
            pieces.push(match part {
                Part::Text(text) => Piece::Text(text),
                Part::Place { name: place, format } => {
                    next += usize::from(place == Name::Next);
                    let argument = match place {
                        Name::Next => next - 1,
                        Name::Position(position) => position,
                        Name::Named(wanted) => self.captured(name, wanted, shown, span)?,
                    };
                    if !matches!(place, Name::Named(_)) && argument >= shown.given {
                        let asked = if place == Name::Next { places } else { argument + 1 };
                        let (given, plural) = (shown.given, if shown.given == 1 { " is" } else { "s are" });
                        let message = format!("the text of `{name}` has places for {asked} values, but {given} argument{plural} given");
                        return self.error(span, message, "give one argument per `{}`, or name a variable: `{x}`");
                    }
                    shown.used[argument] = true;
                    Piece::Value { argument, format }
                }
            });
        }
        if let Some(unused) = shown.used.iter().position(|used| !used) {
            let message = format!("the text of `{name}` has no place for this argument");
            return self.error(
                shown.spans[unused],
                message,
                "add `{}` to the text, or leave the argument out",
            );
        }
        Ok(Message { pieces })
    }

    /// The number of the value that `{name}` is: an argument's, or that of a variable, which becomes an argument.
    fn captured(&mut self, called: &str, name: &str, shown: &mut Shown, span: Span) -> Lowered<usize> {
        if let Some(&(_, argument)) = shown.names.iter().find(|(known, _)| known == name) {
            return Ok(argument);
        }
        let value = match (self.scopes.find(name), self.text.helpers.constant(name).cloned()) {
            (Some(id), _) => self.scopes.variables[id].value.clone(),
            (None, Some(item)) => self.module_constant(name, &item)?,
            (None, None) => return self.unknown_name(name, span),
        };
        let value = self.shown_value(called, &value, span)?;
        shown.values.push(value);
        shown.spans.push(span);
        shown.used.push(true);
        shown.names.push((name.to_owned(), shown.values.len() - 1));
        Ok(shown.values.len() - 1)
    }
}
