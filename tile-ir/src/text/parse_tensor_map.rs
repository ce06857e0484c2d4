//! Tensor maps in the text form, as embedded and stored code has them: one map a text, all names in it run-time sizes.

use super::lexer::Token;
use super::parse::{ParseError, Parsed, Parser};
use crate::dtype::DType;
use crate::tensor_map::{MapAxis, Swizzle, TensorMap};

/// Reads what a [`TensorMap`] is displayed as.
///
/// # Errors
/// [`ParseError`] at the first token that doesn't fit.
pub fn parse_tensor_map(text: &str) -> Result<TensorMap, ParseError> {
    let mut parser = Parser::of(text)?;
    let map = parser.tensor_map()?;
    match parser.peek() {
        Token::End => Ok(map),
        _ => parser.expected("the end of the text"),
    }
}

impl Parser {
    fn tensor_map(&mut self) -> Parsed<TensorMap> {
        self.keyword("argument")?;
        let argument = self.small("the number of an argument")?;
        self.punct(':')?;
        let Some(elem) = DType::from_name(&self.word("an element type")?) else {
            return self.error_at(self.position - 1, "not an element type");
        };
        self.keyword("offset")?;
        let offset = self.dim()?;
        let axes = self.list('[', ']', Self::map_axis)?;
        self.keyword("swizzle")?;
        let bytes = self.unsigned("bytes of a swizzle")?;
        let Some(&swizzle) = Swizzle::ALL.iter().find(|swizzle| swizzle.bytes() == bytes) else {
            return self.error_at(self.position - 1, "a swizzle is of 0, 32, 64 or 128 bytes");
        };
        Ok(TensorMap { argument: argument as usize, elem, offset, axes, swizzle })
    }

    fn map_axis(&mut self) -> Parsed<MapAxis> {
        let extent = self.dim()?;
        self.keyword("stride")?;
        let stride = self.dim()?;
        self.keyword("tile")?;
        Ok(MapAxis { extent, stride, tile: self.small("an extent of a box")? })
    }

    fn small(&mut self, what: &str) -> Parsed<u32> {
        let position = self.position;
        match u32::try_from(self.unsigned(what)?) {
            Ok(number) => Ok(number),
            Err(_) => self.error_at(position, "the number doesn't fit 32 bits"),
        }
    }
}
