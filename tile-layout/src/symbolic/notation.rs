//! Expressions and symbolic layouts as text: `64*ceil_div(m, 64) + n`, `(m,k):(k,1)`.
//!
//! What is printed parses back to the same value, as long as each name is a letter or `_` followed by letters, digits and
//! `_`. A function's name is one only before `(`, and else a symbol's. Where a leaf of a tuple is expected, `(` opens a
//! tuple; a leaf that is a sum in brackets is written without them. Nesting is bounded, so no text can do more than be
//! refused.

use super::atom::Atom;
use super::expression::Expr;
use super::layout::SymbolicLayout;
use super::tuple::ExprTuple;
use crate::cursor::{Cursor, MAX_DEPTH};
use crate::error::{LayoutError, Result};
use crate::notation::write_nested;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// A cursor that counts the brackets it is inside.
struct Reader<'a> {
    cursor: Cursor<'a>,
    depth: usize,
}

impl<'a> Reader<'a> {
    /// Run `rule` one level of brackets deeper.
    fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == MAX_DEPTH {
            return Err(self.cursor.too_deep());
        }
        self.depth += 1;
        let value = rule(self);
        self.depth -= 1;
        value
    }

    /// Terms with `+` and `-` between them.
    fn sum(&mut self) -> Result<Expr> {
        let mut sum = match self.cursor.accept("-") {
            true => self.product(-1)?,
            false => self.product(1)?,
        };
        loop {
            if self.cursor.accept("+") {
                sum = sum.plus(self.product(1)?)?;
            } else if self.cursor.accept("-") {
                sum = sum.plus(self.product(-1)?)?;
            } else {
                return Ok(sum);
            }
        }
    }

    /// Factors with `*` between them. The sign belongs to the first, so that the smallest integer can be read.
    fn product(&mut self, sign: i64) -> Result<Expr> {
        self.cursor.skip_blanks();
        let mut product = match self.cursor.rest().starts_with(|first: char| first.is_ascii_digit()) {
            true => Expr::from(self.integer(sign)?),
            false => self.factor()?.times(sign)?,
        };
        while self.cursor.accept("*") {
            product = product.times(self.factor()?)?;
        }
        Ok(product)
    }

    fn factor(&mut self) -> Result<Expr> {
        if self.cursor.accept("(") {
            let sum = self.nested(Self::sum)?;
            self.cursor.expect(")")?;
            return Ok(sum);
        }
        match self.cursor.rest().chars().next() {
            Some(first) if first.is_ascii_digit() => self.integer(1).map(Expr::from),
            Some(first) if first.is_alphabetic() || first == '_' => self.name_or_call(),
            _ => Err(self.cursor.error("an integer, a name or `(`")),
        }
    }

    fn integer(&mut self, sign: i64) -> Result<i64> {
        let length = self.cursor.rest().bytes().take_while(u8::is_ascii_digit).count();
        let value = self.cursor.rest()[..length].bytes().try_fold(0i64, |value, digit| {
            value.checked_mul(10)?.checked_add(sign * i64::from(digit - b'0'))
        });
        let value = value.ok_or_else(|| self.cursor.error("an integer of 64 bits"))?;
        self.cursor.at += length;
        Ok(value)
    }

    fn name_or_call(&mut self) -> Result<Expr> {
        let rest = self.cursor.rest();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name = &rest[..end];
        self.cursor.at += end;
        let combine: Option<fn(&Expr, Expr) -> Result<Expr>> = match name {
            "ceil_div" => Some(|a, b| a.ceil_div(b)),
            "floor_div" => Some(|a, b| a.floor_div(b)),
            "rem" => Some(|a, b| a.rem(b)),
            "min" => Some(|a, b| a.minimum(b)),
            "max" => Some(|a, b| a.maximum(b)),
            _ => None,
        };
        let Some(combine) = combine.filter(|_| self.cursor.accept("(")) else {
            return Ok(Expr::from(name));
        };
        let takes_more = matches!(name, "min" | "max");
        let mut value = self.nested(Self::sum)?;
        self.cursor.expect(",")?;
        value = combine(&value, self.nested(Self::sum)?)?;
        while takes_more && self.cursor.accept(",") {
            value = combine(&value, self.nested(Self::sum)?)?;
        }
        self.cursor.expect(")")?;
        Ok(value)
    }

    fn tuple(&mut self) -> Result<ExprTuple> {
        if !self.cursor.accept("(") {
            return self.sum().map(ExprTuple::leaf);
        }
        let mut parts = Vec::new();
        if !self.cursor.accept(")") {
            parts.push(self.nested(Self::tuple)?);
            while self.cursor.accept(",") {
                parts.push(self.nested(Self::tuple)?);
            }
            self.cursor.expect(")")?;
        }
        Ok(ExprTuple::tuple(&parts))
    }

    fn layout(&mut self) -> Result<SymbolicLayout> {
        let shape = self.tuple()?;
        self.cursor.expect(":")?;
        SymbolicLayout::new(shape, self.tuple()?)
    }
}

/// Read all of `text` with one rule.
fn read<'a, T>(text: &'a str, rule: impl FnOnce(&mut Reader<'a>) -> Result<T>) -> Result<T> {
    let mut reader = Reader { cursor: Cursor::new(text), depth: 0 };
    let value = rule(&mut reader)?;
    reader.cursor.end()?;
    Ok(value)
}

impl FromStr for Expr {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Expr> {
        read(text, Reader::sum)
    }
}

impl FromStr for ExprTuple {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<ExprTuple> {
        read(text, Reader::tuple)
    }
}

impl FromStr for SymbolicLayout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<SymbolicLayout> {
        read(text, Reader::layout)
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Atom::Symbol(symbol) => return symbol.fmt(f),
            Atom::CeilDiv(..) => "ceil_div",
            Atom::FloorDiv(..) => "floor_div",
            Atom::Rem(..) => "rem",
            Atom::Max(_) => "max",
            Atom::Min(_) => "min",
        };
        write!(f, "{name}(")?;
        for (position, operand) in self.operands().enumerate() {
            write!(f, "{}{operand}", if position > 0 { ", " } else { "" })?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for Expr {
    /// The constant term comes last.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(constant) = self.as_constant() {
            return write!(f, "{constant}");
        }
        let (constants, products): (Vec<_>, Vec<_>) = self.terms().partition(|(atoms, _)| atoms.is_empty());
        for (position, (atoms, coefficient)) in products.into_iter().chain(constants).enumerate() {
            let sign = match (position, coefficient < 0) {
                (0, true) => "-",
                (0, false) => "",
                (_, true) => " - ",
                (_, false) => " + ",
            };
            f.write_str(sign)?;
            let magnitude = coefficient.unsigned_abs();
            if magnitude != 1 || atoms.is_empty() {
                write!(f, "{magnitude}{}", if atoms.is_empty() { "" } else { "*" })?;
            }
            for (position, atom) in atoms.iter().enumerate() {
                write!(f, "{}{atom}", if position > 0 { "*" } else { "" })?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for ExprTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let leaves: Vec<&Expr> = self.leaves().iter().collect();
        write_nested(f, self.nesting().tokens(), &leaves)
    }
}

impl fmt::Display for SymbolicLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nesting = self.nesting();
        let extents: Vec<&Expr> = self.leaves().iter().map(|mode| &mode.extent).collect();
        let strides: Vec<&Expr> = self.leaves().iter().map(|mode| &mode.stride).collect();
        write_nested(f, nesting.tokens(), &extents)?;
        f.write_str(":")?;
        write_nested(f, nesting.tokens(), &strides)
    }
}

macro_rules! debug_as_display {
    ($($type:ty),+) => {$(
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )+};
}
debug_as_display!(Atom, Expr, ExprTuple, SymbolicLayout);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use alloc::string::ToString;

    #[test]
    fn prints_what_it_reads() {
        for text in [
            "0",
            "-9223372036854775808",
            "-9223372036854775808*m - 1",
            "64*ceil_div(m, 64) + n",
            "rem(m + 1, 64)*n + min(64, m, n) - 3",
            "floor_div(m, n)",
        ] {
            assert_eq!(text.parse::<Expr>().unwrap().to_string(), text);
        }
        for text in ["m:1", "(m,(k,2)):(2*k,(1,k))", "():()", "(ceil_div(m, 64),64):(64,1)"] {
            assert_eq!(text.parse::<SymbolicLayout>().unwrap().to_string(), text);
        }
        assert_eq!("2 * ( m - (n+1) ) - -0".parse::<Expr>().unwrap_err().kind(), ErrorKind::Syntax);
        assert_eq!("2 * ( m - (n+1) )".parse::<Expr>().unwrap().to_string(), "2*m - 2*n - 2");
    }

    /// A function's name is one only before a bracket.
    #[test]
    fn symbols_may_be_called_as_functions_are() {
        for name in ["min", "max", "rem", "ceil_div", "floor_div", "_1", "größe"] {
            let symbol = Expr::from(name);
            let used = symbol.minimum("m").unwrap().plus(symbol.times(&symbol).unwrap()).unwrap();
            for expr in [symbol.clone(), symbol.times(3).unwrap(), symbol.ceil_div(7).unwrap(), used] {
                assert_eq!(expr.to_string().parse::<Expr>(), Ok(expr));
            }
            let layout = SymbolicLayout::row_major((name, "m")).unwrap();
            assert_eq!(layout.to_string().parse::<SymbolicLayout>(), Ok(layout));
        }
        assert_eq!("min (m, 3) - min".parse::<Expr>().unwrap().to_string(), "min(3, m) - min");
    }

    #[test]
    fn refusals_say_where() {
        for (text, message) in [
            ("", "expected an integer, a name or `(` at byte 0 of the text, found the end"),
            ("m +", "expected an integer, a name or `(` at byte 3 of the text, found the end"),
            ("ceil_div(m)", "expected `,` at byte 10 of the text, found `)`"),
            ("ceil_div(m, 0)", "m is divided by 0, which is less than 1"),
            ("m n", "expected the end at byte 2 of the text, found `n`"),
            (
                "9223372036854775808",
                "expected an integer of 64 bits at byte 0 of the text, found `922337203685`",
            ),
        ] {
            assert_eq!(text.parse::<Expr>().unwrap_err().to_string(), message, "{text}");
        }
        for text in ["(".repeat(100_000), "max(".repeat(100_000), "(m".into(), "(m,k):1".into(), "m".into()] {
            assert!(text.parse::<SymbolicLayout>().is_err());
        }
    }
}
