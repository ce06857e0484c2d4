//! The texts of `print` and `assert`: templates with places for values, as Rust's `format!` has them, and how
//! values stand in them.
//!
//! A template is read here once for the front end (which knows what `{name}` is) and for the IR's text (where
//! every place is the number of an operand). Values are written by Rust's own formatting, so that a kernel
//! prints the same on every device.

use crate::array::{Array, Elements};
use crate::dtype::DType;
use crate::ops::Literal;
use crate::text::is_word;
use std::fmt::{self, Write};

/// The largest width and precision.
const MAX_COUNT: usize = 255;

/// What `{:+8.3?}` says: how a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Format {
    /// `?`.
    pub debug: bool,
    /// `+`: positive numbers have a sign too.
    pub sign: bool,
    /// The least number of characters.
    pub width: usize,
    /// Digits after the point.
    pub precision: Option<usize>,
}

impl Format {
    /// What a formatter was asked for.
    pub fn of(f: &fmt::Formatter<'_>) -> Format {
        let width = f.width().unwrap_or(0);
        Format { debug: false, sign: f.sign_plus(), width, precision: f.precision() }
    }

    /// Reads what stands between `:` and `}`.
    fn parse(text: &str) -> Option<Format> {
        let (sign, rest) = text.strip_prefix('+').map_or((false, text), |rest| (true, rest));
        let (debug, rest) = rest.strip_suffix('?').map_or((false, rest), |rest| (true, rest));
        let (width, precision) =
            rest.split_once('.').map_or((rest, None), |(width, precision)| (width, Some(precision)));
        // A width that begins with 0 asks for zeros.
        let number = |digits: &str| {
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|&count| plain && count <= MAX_COUNT)
        };
        let width = match width {
            "" => 0,
            digits if digits.starts_with('0') => return None,
            digits => number(digits)?,
        };
        let precision = precision.map(|digits| number(digits).ok_or(())).transpose().ok()?;
        Some(Format { debug, sign, width, precision })
    }

    fn write<T: fmt::Display + fmt::Debug>(self, value: T) -> String {
        let width = self.width;
        match (self.debug, self.sign, self.precision) {
            (false, false, None) => format!("{value:width$}"),
            (false, false, Some(digits)) => format!("{value:width$.digits$}"),
            (false, true, None) => format!("{value:+width$}"),
            (false, true, Some(digits)) => format!("{value:+width$.digits$}"),
            (true, false, None) => format!("{value:width$?}"),
            (true, false, Some(digits)) => format!("{value:width$.digits$?}"),
            (true, true, None) => format!("{value:+width$?}"),
            (true, true, Some(digits)) => format!("{value:+width$.digits$?}"),
        }
    }

    fn number(self, dtype: DType, value: Literal) -> String {
        match value {
            Literal::Int(value) if dtype == DType::Bool => self.write(value != 0),
            Literal::Int(value) => self.write(value),
            // An f32 keeps the shortest digits of every format up to f32.
            Literal::Float(value) if dtype != DType::F64 => self.write(value as f32),
            Literal::Float(value) => self.write(value),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Format::default() {
            return Ok(());
        }
        f.write_str(if self.sign { ":+" } else { ":" })?;
        if self.width > 0 {
            write!(f, "{}", self.width)?;
        }
        if let Some(digits) = self.precision {
            write!(f, ".{digits}")?;
        }
        f.write_str(if self.debug { "?" } else { "" })
    }
}

/// What a place in a template names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name<'t> {
    /// `{}`: the next argument.
    Next,
    /// `{2}`.
    Position(usize),
    /// `{name}`.
    Named(&'t str),
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part<'t> {
    /// Text as it is.
    Text(String),
    /// A place for a value.
    Place {
        /// Which.
        name: Name<'t>,
        /// How.
        format: Format,
    },
}

/// The parts of a template; no two texts follow each other, and none is empty.
///
/// # Errors
/// What is wrong with it, and what can be written instead.
pub fn parts(template: &str) -> Result<Vec<Part<'_>>, String> {
    let (mut parts, mut text, mut rest) = (Vec::new(), String::new(), template);
    while let Some(at) = rest.find(['{', '}']) {
        text.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            text.push_str(brace);
            rest = after;
            continue;
        }
        let end = rest.find('}').filter(|_| brace == "{").ok_or_else(|| {
            format!("`{brace}` stands alone in the text; for the character itself write `{brace}{brace}`")
        })?;
        if !text.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut text)));
        }
        parts.push(place(&rest[..end])?);
        rest = &rest[end + 1..];
    }
    text.push_str(rest);
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
    Ok(parts)
}

fn place(inside: &str) -> Result<Part<'_>, String> {
    let (name, format) = inside.split_once(':').unwrap_or((inside, ""));
    let (name, format) = (name.trim(), format.trim_end());
    let is_name = |name: &str| name.chars().all(is_word) && !name.starts_with(|c: char| c.is_numeric());
    let name = match name {
        "" => Name::Next,
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            // One that is there has fewer bits by far, and can be counted on from.
            let position: u32 =
                digits.parse().map_err(|_| format!("`{{{inside}}}` names an argument that isn't there"))?;
            Name::Position(position as usize)
        }
        name if is_name(name) => Name::Named(name),
        name => {
            return Err(format!(
                "`{{{inside}}}` holds `{name}`, which isn't a name: give it as an argument, `\"{{}}\", {name}`"
            ));
        }
    };
    match Format::parse(format) {
        Some(format) => Ok(Part::Place { name, format }),
        None => Err(format!(
            "`{{{inside}}}` has a format that kernels don't have: there are `{{}}`, `{{:?}}`, `{{:8}}` (width), \
             `{{:.3}}` (digits), `{{:+}}` and `{{:+8.3}}`"
        )),
    }
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text as it is.
    Text(String),
    /// The value of an argument.
    Value {
        /// The argument, counted from 0.
        argument: usize,
        /// How it is written.
        format: Format,
    },
}

/// The text of a print or an assertion.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Message {
    /// Its parts in order.
    pub pieces: Vec<Piece>,
}

impl Message {
    /// The message that [`fmt::Display`] writes: every place is numbered.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(template: &str) -> Result<Message, String> {
        let pieces = parts(template)?.into_iter().map(|part| match part {
            Part::Text(text) => Ok(Piece::Text(text)),
            Part::Place { name: Name::Position(argument), format } => Ok(Piece::Value { argument, format }),
            Part::Place { .. } => Err("every place of a message is numbered: `{0}`".to_owned()),
        });
        Ok(Message { pieces: pieces.collect::<Result<_, _>>()? })
    }

    /// How many arguments the message asks for: one more than the last that it names.
    pub fn arguments(&self) -> usize {
        let used = self.pieces.iter().map(|piece| match piece {
            Piece::Text(_) => 0,
            Piece::Value { argument, .. } => argument + 1,
        });
        used.max().unwrap_or(0)
    }

    /// The text with values in place. Those that aren't there are left out.
    pub fn render(&self, values: &[Array]) -> String {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Value { argument, format } => {
                    text.extend(values.get(*argument).map(|value| array_text(value, *format)));
                }
            }
        }
        text
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}"))?,
                Piece::Value { argument, format } => write!(f, "{{{argument}{format}}}")?,
            }
        }
        Ok(())
    }
}

/// A value as text: a scalar as Rust writes it, a tile as NumPy does: nested brackets, one line per row of the
/// last axis. A format says how each element is written; floats keep their point.
pub fn array_text(array: &Array, format: Format) -> String {
    let (shape, dtype) = (array.shape(), array.dtype());
    if shape.is_empty() {
        return format.number(dtype, array.get(0));
    }
    let element = Format { debug: matches!(array.elements(), Elements::Float(_)), ..format };
    let texts: Vec<String> = (0..array.len()).map(|i| element.number(dtype, array.get(i))).collect();
    let width = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    nested(&mut text, shape, &texts, width, 1);
    text
}

fn nested(out: &mut String, shape: &[usize], texts: &[String], width: usize, depth: usize) {
    let [_, inner @ ..] = shape else {
        out.push_str(&texts[0]);
        return;
    };
    let size: usize = inner.iter().product();
    out.push('[');
    for (i, part) in texts.chunks(size).enumerate() {
        if inner.is_empty() {
            let _ = write!(out, "{}{:>width$}", if i == 0 { "" } else { ", " }, part[0]);
            continue;
        }
        if i > 0 {
            // A blank line between matrices, as NumPy prints them.
            let _ = write!(out, ",{}{}", "\n".repeat(inner.len()), " ".repeat(depth));
        }
        nested(out, inner, part, width, depth + 1);
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_those_of_rust() {
        let value = |name, format| Part::Place { name, format };
        let plain = Format::default();
        assert_eq!(
            parts("a {{{}}} {x:?}{0:+8.3} b").unwrap(),
            [
                Part::Text("a {".to_owned()),
                value(Name::Next, plain),
                Part::Text("} ".to_owned()),
                value(Name::Named("x"), Format { debug: true, ..plain }),
                value(Name::Position(0), Format { sign: true, width: 8, precision: Some(3), debug: false }),
                Part::Text(" b".to_owned()),
            ]
        );
        for (template, part) in [
            ("a } b", "`}` stands alone"),
            ("{", "`{` stands alone"),
            ("{:x}", "`{:x}` has a format that kernels don't have"),
            ("{:08}", "`{:08}` has a format"),
            ("{:.}", "`{:.}` has a format"),
            ("{:999999999999}", "has a format"),
            ("{x.y}", "holds `x.y`, which isn't a name"),
            ("{99999999999999999999}", "isn't there"),
            ("{18446744073709551615}", "isn't there"),
        ] {
            let message = parts(template).unwrap_err();
            assert!(message.contains(part), "{template}: {message}");
        }
    }

    /// Marks of scripts are no letters, and stand in Rust's names.
    #[test]
    fn names_of_all_scripts_are_named() {
        for name in ["größe", "col·lapse", "क्षेत्र"] {
            let place = format!("{{{name}}}");
            let parts = parts(&place).unwrap();
            assert!(matches!(&parts[..], [Part::Place { name: Name::Named(found), .. }] if *found == name));
        }
    }

    #[test]
    fn messages_round_trip_and_render() {
        let text = "p = {0}, {{x}} = {1:.2}, again {0:?} {1:+7}\n\"q\"";
        let message = Message::parse(text).unwrap();
        assert_eq!((message.to_string().as_str(), message.arguments()), (text, 2));
        let p = Array::scalar(DType::F32, Literal::Float(1.0));
        let x = Array::new(DType::F16, vec![2], Elements::Float(vec![0.5, -12.25]));
        // What `format!` of Rust's own values gives.
        assert_eq!(
            message.render(&[p, x]),
            "p = 1, {x} = [  0.50, -12.25], again 1.0 [   +0.5,  -12.25]\n\"q\""
        );
        assert!(Message::parse("{}").is_err() && Message::parse("{name}").is_err());
    }
}
