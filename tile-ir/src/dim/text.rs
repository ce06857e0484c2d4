//! Extents as text: `{}` in the notation of the IR, which its parser reads, and `{:#}` as the user's Rust has them, for
//! messages: `4*(n / 4) + 1` instead of `4*floor_div(n, 4) + 1`.

use super::{Atom, Dim};
use std::fmt;

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, f.alternate()) {
            (Atom::Param(name) | Atom::Size(name), _) => f.write_str(name),
            (Atom::CeilDiv(a, b), false) => write!(f, "ceil_div({a}, {b})"),
            (Atom::FloorDiv(a, b), false) => write!(f, "floor_div({a}, {b})"),
            (Atom::Rem(a, b), false) => write!(f, "rem({a}, {b})"),
            (Atom::Min(a, b), false) => write!(f, "min({a}, {b})"),
            (Atom::Max(a, b), false) => write!(f, "max({a}, {b})"),
            (Atom::Ilog2(a), false) => write!(f, "ilog2({a})"),
            (Atom::NextPowerOfTwo(a), false) => write!(f, "next_power_of_two({a})"),
            (Atom::Ilog2(a), true) => write!(f, "{}.ilog2()", operand(a)),
            (Atom::NextPowerOfTwo(a), true) => write!(f, "{}.next_power_of_two()", operand(a)),
            (Atom::CeilDiv(a, b), true) => write!(f, "{}.div_ceil({b:#})", operand(a)),
            (Atom::Min(a, b), true) => write!(f, "{}.min({b:#})", operand(a)),
            (Atom::Max(a, b), true) => write!(f, "{}.max({b:#})", operand(a)),
            (Atom::FloorDiv(a, b), true) => write!(f, "{} / {}", operand(a), operand(b)),
            (Atom::Rem(a, b), true) => write!(f, "{} % {}", operand(a), operand(b)),
        }
    }
}

/// A side of a quotient in Rust: in parentheses where it is more than a number or a name.
fn operand(dim: &Dim) -> String {
    let is_one = dim.as_const().is_some_and(|value| value >= 0) || dim.single_atom().is_some_and(is_name);
    if is_one { format!("{dim:#}") } else { format!("({dim:#})") }
}

fn is_name(atom: &Atom) -> bool {
    matches!(atom, Atom::Param(_) | Atom::Size(_))
}

/// Whether Rust reads the atom as two operands beside a `*`.
fn is_infix(atom: &Atom) -> bool {
    matches!(atom, Atom::FloorDiv(..) | Atom::Rem(..))
}

impl fmt::Display for Dim {
    /// Non-constant terms first, in canonical order, the constant last: `2*BM + m - 1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let symbolic = self.terms().filter(|(factors, _)| !factors.is_empty());
        let constant = self.terms().filter(|(factors, _)| factors.is_empty());
        let mut first = true;
        for (factors, coefficient) in symbolic.chain(constant) {
            match (first, coefficient < 0) {
                (true, false) => {}
                (true, true) => f.write_str("-")?,
                (false, false) => f.write_str(" + ")?,
                (false, true) => f.write_str(" - ")?,
            }
            first = false;
            write_term(f, factors, coefficient)?;
        }
        if first {
            f.write_str("0")?;
        }
        Ok(())
    }
}

/// A term without its sign.
fn write_term(f: &mut fmt::Formatter<'_>, factors: &[Atom], coefficient: i64) -> fmt::Result {
    let magnitude = coefficient.unsigned_abs();
    if factors.is_empty() {
        return write!(f, "{magnitude}");
    }
    if magnitude != 1 {
        write!(f, "{magnitude}*")?;
    }
    let is_alone = factors.len() == 1 && coefficient == 1;
    for (i, atom) in factors.iter().enumerate() {
        let times = if i == 0 { "" } else { "*" };
        match f.alternate() {
            true if is_infix(atom) && !is_alone => write!(f, "{times}({atom:#})")?,
            true => write!(f, "{times}{atom:#}")?,
            false => write!(f, "{times}{atom}")?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_extents_as_rust_has_them() {
        let (m, b) = (Dim::size("m"), Dim::param("B"));
        let half = m.floor_div(&Dim::from(2));
        let shown = [
            (Dim::from(2) * half.clone(), "2*floor_div(m, 2)", "2*(m / 2)"),
            (half.clone() + b.clone(), "B + floor_div(m, 2)", "B + m / 2"),
            (b.clone() - half.clone(), "B - floor_div(m, 2)", "B - (m / 2)"),
            (m.rem(&b) * b.clone(), "B*rem(m, B)", "B*(m % B)"),
            (half.rem(&b), "rem(floor_div(m, 2), B)", "(m / 2) % B"),
            ((m.clone() + b.clone()).ceil_div(&b), "ceil_div(B + m, B)", "(B + m).div_ceil(B)"),
            (m.ceil_div(&(b.clone() + Dim::from(1))), "ceil_div(m, B + 1)", "m.div_ceil(B + 1)"),
            (m.at_least(&b), "max(B, m)", "B.max(m)"),
            ((m.clone() + b.clone()).at_most(&Dim::from(64)), "min(64, B + m)", "64.min(B + m)"),
            (Dim::from(7).floor_div(&(m.clone() - b)), "floor_div(7, -B + m)", "7 / (-B + m)"),
            ((m.clone() + Dim::from(1)).ilog2(), "ilog2(m + 1)", "(m + 1).ilog2()"),
            (m.next_power_of_two(), "next_power_of_two(m)", "m.next_power_of_two()"),
            (Dim::from(-3).rem(&m), "rem(-3, m)", "(-3) % m"),
            (-half, "-floor_div(m, 2)", "-(m / 2)"),
        ];
        for (dim, notation, rust) in shown {
            assert_eq!((dim.to_string().as_str(), format!("{dim:#}").as_str()), (notation, rust));
        }
    }
}
