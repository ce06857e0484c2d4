//! CuTe's notation, read and written: `(4,(2,2)):(1,(4,8))`, `Sw<3,4,3>`, `Sw<3,4,3> o 16 o (8,64):(64,1)`; and
//! its continuation for views, `(4,4):(1,6) + 1 within (6,4) at (1,0) else 7`.
//!
//! What is printed parses back to the same value. Reading also takes blanks between the parts and CuTe's mark of
//! a static integer, `_4`. Nesting is read without recursion and to a bounded depth, so no text, however long or
//! deep, can do more than be refused.

use crate::cursor::{Cursor, MAX_DEPTH};
use crate::error::{LayoutError, Result};
use crate::layout::Layout;
use crate::swizzle::{Swizzle, SwizzledLayout};
use crate::tuple::{INLINE, IntTuple, Ints, Nesting, children, is_leaf, leaf_count};
use crate::view::{Fill, View};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use smallvec::SmallVec;

/// The rules of the notation on a cursor.
impl Cursor<'_> {
    fn integer(&mut self) -> Result<i64> {
        self.skip_blanks();
        let marked = self.rest().strip_prefix('_').unwrap_or(self.rest());
        let digits = marked.strip_prefix('-').unwrap_or(marked);
        let length = digits.bytes().take_while(u8::is_ascii_digit).count();
        let end = self.text.len() - digits.len() + length;
        let start = self.text.len() - marked.len();
        if length == 0 {
            return Err(self.error("an integer or `(`"));
        }
        let value = self.text[start..end].parse().map_err(|_| self.error("an integer of 64 bits"))?;
        self.at = end;
        Ok(value)
    }

    fn tuple(&mut self) -> Result<IntTuple> {
        let mut leaves = Ints::new();
        // Preorder with the number of children filled in when a bracket closes: `None` is a leaf.
        let mut preorder: SmallVec<[Option<usize>; 2 * INLINE]> = SmallVec::new();
        let mut open: SmallVec<[usize; INLINE]> = SmallVec::new();
        loop {
            if self.accept("(") {
                if open.len() == MAX_DEPTH {
                    return Err(self.too_deep());
                }
                open.push(preorder.len());
                preorder.push(Some(0));
                if !self.accept(")") {
                    continue;
                }
                open.pop();
            } else {
                leaves.push(self.integer()?);
                preorder.push(None);
            }
            // A subtree is complete: close what ends here, then go on to its sibling.
            loop {
                let Some(&parent) = open.last() else {
                    let mut nesting = Nesting::empty();
                    for entry in preorder {
                        match entry {
                            Some(count) => nesting.open(count),
                            None => nesting.push_leaf(),
                        }
                    }
                    return Ok(IntTuple { leaves, nesting });
                };
                if let Some(count) = &mut preorder[parent] {
                    *count += 1;
                }
                if self.accept(",") {
                    break;
                }
                self.expect(")")?;
                open.pop();
            }
        }
    }

    fn layout(&mut self) -> Result<Layout> {
        let shape = self.tuple()?;
        self.expect(":")?;
        let stride = self.tuple()?;
        Layout::new(shape, stride)
    }

    fn swizzle(&mut self) -> Result<Swizzle> {
        self.expect("Sw")?;
        self.expect("<")?;
        let bits = self.integer()?;
        self.expect(",")?;
        let base = self.integer()?;
        self.expect(",")?;
        let shift = self.integer()?;
        self.expect(">")?;
        Swizzle::new(bits, base, shift)
    }
}

impl Cursor<'_> {
    /// `layout + offset [of element] [through swizzle] [within shape at begin [else fill]]`.
    fn view(&mut self) -> Result<View> {
        let layout = self.layout()?;
        self.expect("+")?;
        let offset = self.integer()?;
        let element = if self.accept("of") { self.layout()? } else { Layout::unit() };
        let swizzle = if self.accept("through") { self.swizzle()? } else { Swizzle::IDENTITY };
        let view = if self.accept("within") {
            let shape = self.tuple()?;
            self.expect("at")?;
            let begin = self.tuple()?;
            let fill = if self.accept("else") { self.fill()? } else { Fill::ZERO };
            View::placed(&layout, offset, shape.leaves(), begin.leaves(), fill)?
        } else {
            View::from_layout(&layout, offset)?
        };
        let view = view.of_elements(element)?;
        if swizzle == Swizzle::IDENTITY { Ok(view) } else { view.with_swizzle(swizzle) }
    }

    fn fill(&mut self) -> Result<Fill> {
        self.skip_blanks();
        let word = self.rest().split_whitespace().next().unwrap_or("");
        let fill = match (word.parse::<i64>(), word.parse::<f64>()) {
            (Ok(integer), _) => Fill::Integer(integer),
            (_, Ok(real)) => Fill::Real(real),
            _ => return Err(self.error("a number")),
        };
        self.at += word.len();
        Ok(fill)
    }
}

/// Read all of `text` with one rule.
fn read<T>(text: &str, rule: impl FnOnce(&mut Cursor<'_>) -> Result<T>) -> Result<T> {
    let mut reader = Cursor::new(text);
    let value = rule(&mut reader)?;
    reader.end()?;
    Ok(value)
}

impl FromStr for IntTuple {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<IntTuple> {
        read(text, |reader| reader.tuple())
    }
}

impl FromStr for Layout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Layout> {
        read(text, |reader| reader.layout())
    }
}

impl FromStr for Swizzle {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Swizzle> {
        read(text, |reader| reader.swizzle())
    }
}

impl FromStr for View {
    type Err = LayoutError;

    /// Reads what a view prints.
    fn from_str(text: &str) -> Result<View> {
        read(text, |reader| reader.view())
    }
}

impl FromStr for SwizzledLayout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<SwizzledLayout> {
        read(text, |reader| {
            let swizzle = reader.swizzle()?;
            reader.expect("o")?;
            let offset = reader.integer()?;
            reader.expect("o")?;
            SwizzledLayout::new(swizzle, offset, reader.layout()?)
        })
    }
}

/// Write `leaves` with the brackets that `tokens` describe.
pub(crate) fn write_nested<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    tokens: &[u32],
    leaves: &[T],
) -> fmt::Result {
    if is_leaf(tokens) {
        return leaves.first().map_or(Ok(()), |leaf| leaf.fmt(f));
    }
    f.write_str("(")?;
    let mut rest = leaves;
    for (position, child) in children(tokens).enumerate() {
        if position > 0 {
            f.write_str(",")?;
        }
        let (own, after) = rest.split_at(leaf_count(child));
        write_nested(f, child, own)?;
        rest = after;
    }
    f.write_str(")")
}

impl fmt::Display for IntTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_nested(f, self.nesting.tokens(), &self.leaves)
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = self.part();
        let extents: Vec<i64> = part.modes.iter().map(|mode| mode.extent).collect();
        let strides: Vec<i64> = part.modes.iter().map(|mode| mode.stride).collect();
        write_nested(f, part.tokens, &extents)?;
        f.write_str(":")?;
        write_nested(f, part.tokens, &strides)
    }
}

impl fmt::Display for View {
    /// The layout of the window and the offset of its first index, then what departs from a plain, whole view.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} + {}", self.layout(), self.offset())?;
        if self.element() != Layout::unit() {
            write!(f, " of {}", self.element())?;
        }
        if self.swizzle() != Swizzle::IDENTITY {
            write!(f, " through {}", self.swizzle())?;
        }
        if self.is_masked() || self.is_nothing() {
            let begin: Ints = self.windows().iter().map(|window| window.0).collect();
            write!(f, " within {} at {}", IntTuple::flat(self.shape()), IntTuple::flat(&begin))?;
        }
        if self.fill() != Fill::ZERO {
            write!(f, " else {}", self.fill())?;
        }
        Ok(())
    }
}

impl fmt::Display for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sw<{},{},{}>", self.bits(), self.base(), self.shift())
    }
}

impl fmt::Display for SwizzledLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} o {} o {}", self.swizzle(), self.offset(), self.layout())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use alloc::format;
    use alloc::string::ToString;

    #[test]
    fn prints_what_it_reads() {
        for text in ["4:1", "(4):(1)", "():()", "(4,(2,2)):(1,(4,-8))", "((2,3),(4,(5,6))):((0,1),(2,(3,4)))"]
        {
            assert_eq!(text.parse::<Layout>().unwrap().to_string(), text);
        }
        assert_eq!(
            " ( _4 , ( 2 , _2 ) ) : (1,(4,_8)) ".parse::<Layout>().unwrap().to_string(),
            "(4,(2,2)):(1,(4,8))"
        );
        let text = "Sw<3,4,3> o 16 o (8,64):(64,1)";
        assert_eq!(text.parse::<SwizzledLayout>().unwrap().to_string(), text);
    }

    #[test]
    fn refusals_say_where() {
        let refusals =
            ["", "4", "(4,2:1", "(4,2):(1)", "4:x", "(4,):(1)", "4:1 5", "99999999999999999999:1", "-4:1"]
                .map(|text| format!("{text} -> {}", text.parse::<Layout>().unwrap_err()));
        insta::assert_snapshot!("notation_refusals", refusals.join("\n"));
        let deep = "(".repeat(100_000);
        assert_eq!(deep.parse::<Layout>().unwrap_err().kind(), ErrorKind::Syntax);
    }
}
