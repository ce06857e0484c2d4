//! Types and extents in the text form: the other half of [`super::parse`]'s parser.

use super::lexer::{Spanned, Token};
use super::parse::{Parsed, Parser};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::kernel::{Generic, GenericKind};
use crate::ops::TypeError;
use crate::types::{Elem, PartitionType, TileType, Type};

impl Parser {
    pub(super) fn ty(&mut self) -> Parsed<Type> {
        let mutable = self.accept_word("mut");
        if self.accept_word("tensor") {
            self.punct('<')?;
            let (tensor, _) = self.tensor(mutable)?;
            self.punct('>')?;
            return Ok(Type::Tensor(tensor));
        }
        if self.accept_word("partition") {
            self.punct('<')?;
            let (tensor, comma) = self.tensor(mutable)?;
            if !comma {
                self.punct(',')?;
            }
            let tile = self.list('[', ']', Self::dim)?;
            let steps = if self.accept_word("step") { self.list('[', ']', Self::dim)? } else { tile.clone() };
            let spanned = self.spanned()?;
            self.punct('>')?;
            return Ok(Type::Partition(PartitionType { tensor, tile, steps, spanned }));
        }
        if mutable {
            return self.expected("`tensor` or `partition`");
        }
        if self.accept_word("tile") {
            self.punct('<')?;
            let (shape, elem) = self.product()?;
            self.punct('>')?;
            return Ok(Type::Tile(TileType { shape, elem }));
        }
        let name = self.word("a type")?;
        self.elem(&name).map(Type::Scalar)
    }

    /// `spanning [1]`, where it is there: the axes.
    pub(super) fn spanned(&mut self) -> Parsed<Vec<usize>> {
        if !self.accept_word("spanning") {
            return Ok(Vec::new());
        }
        self.list('[', ']', |parser| parser.unsigned("an axis").map(|axis| axis as usize))
    }

    fn elem(&self, name: &str) -> Parsed<Elem> {
        let is_param = |g: &Generic| g.name == name && matches!(g.kind, GenericKind::Elem(_));
        if self.kernel.generics.iter().any(is_param) {
            return Ok(Elem::Param(name.to_owned()));
        }
        match DType::from_name(name) {
            Some(dtype) => Ok(Elem::Known(dtype)),
            None => {
                self.error_at(self.position.saturating_sub(1), format!("`{name}` is not an element type"))
            }
        }
    }

    /// `d x d x elem`: what stands before `>` or `,` is the element type.
    pub(super) fn product(&mut self) -> Parsed<(Vec<Dim>, Elem)> {
        let mut dims = Vec::new();
        loop {
            let ends = matches!(
                self.tokens.get(self.position + 1),
                Some(Spanned { token: Token::Punct('>' | ','), .. })
            );
            if ends {
                let name = self.word("an element type")?;
                return Ok((dims, self.elem(&name)?));
            }
            dims.push(self.dim()?);
            self.keyword("x")?;
        }
    }

    /// A sum of terms.
    pub(super) fn dim(&mut self) -> Parsed<Dim> {
        self.extent_in_extents(|parser| {
            let negative = parser.accept('-');
            let first = parser.term()?;
            let mut sum = if negative { -first } else { first };
            loop {
                let position = parser.position;
                if parser.accept('+') {
                    sum = sum + parser.term()?;
                } else if parser.accept('-') {
                    sum = sum - parser.term()?;
                } else {
                    return Ok(sum);
                }
                parser.readable(&sum, position)?;
            }
        })
    }

    /// Refuses an extent that no kernel has, at the operator that made it.
    fn readable(&self, extent: &Dim, position: usize) -> Parsed<()> {
        TypeError::refuse_long([extent]).or_else(|error| self.error_at(position, error.message))
    }

    fn term(&mut self) -> Parsed<Dim> {
        let mut product = self.factor()?;
        loop {
            let position = self.position;
            if !self.accept('*') {
                return Ok(product);
            }
            product = product * self.factor()?;
            self.readable(&product, position)?;
        }
    }

    fn factor(&mut self) -> Parsed<Dim> {
        if let Token::Number(_) = self.peek() {
            let position = self.position;
            return match i64::try_from(self.unsigned("an extent")?) {
                Ok(value) => Ok(Dim::from(value)),
                Err(_) => self.error_at(position, "the extent doesn't fit 64 bits"),
            };
        }
        let position = self.position;
        let name = self.word("an extent")?;
        let of_one: Option<fn(&Dim) -> Dim> = match name.as_str() {
            "ilog2" => Some(Dim::ilog2),
            "next_power_of_two" => Some(Dim::next_power_of_two),
            _ => None,
        };
        if let Some(function) = of_one
            && *self.peek() == Token::Punct('(')
        {
            self.punct('(')?;
            let operand = self.dim()?;
            self.punct(')')?;
            let made = function(&operand);
            return self.readable(&made, position).map(|()| made);
        }
        let function: Option<fn(&Dim, &Dim) -> Dim> = match name.as_str() {
            "ceil_div" => Some(Dim::ceil_div),
            "floor_div" => Some(Dim::floor_div),
            "rem" => Some(Dim::rem),
            "min" => Some(Dim::at_most),
            "max" => Some(Dim::at_least),
            _ => None,
        };
        match function {
            Some(function) if *self.peek() == Token::Punct('(') => {
                self.punct('(')?;
                let a = self.dim()?;
                self.punct(',')?;
                let b = self.dim()?;
                self.punct(')')?;
                let made = function(&a, &b);
                self.readable(&made, position).map(|()| made)
            }
            _ if self.kernel.generics.iter().any(|generic| generic.name == name) => Ok(Dim::param(name)),
            _ => Ok(Dim::size(name)),
        }
    }
}
