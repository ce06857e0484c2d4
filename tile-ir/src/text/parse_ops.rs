//! Reads the name, attributes and operands of an op: one arm per op in [`Parser::head`], and in
//! [`Parser::finish`] for attributes that stand in the result's type or in regions.

use super::lexer::Token;
use super::parse::{Parsed, Parser};
use crate::kernel::{RegionId, ValueId};
use crate::ops::{BinaryOp, Classification, Cut, Literal, Op, Predicate, ReduceOp, UnaryOp};
use crate::types::Type;

/// What stands before the type of an op line.
pub(super) struct Head {
    pub(super) op: HeadOp,
    pub(super) operands: Vec<ValueId>,
}

/// An op whose attributes may still be in the result type.
pub(super) enum HeadOp {
    Ready(Op),
    Constant(Literal),
    Cast,
    Splat,
    Iota(usize),
    Broadcast,
    Reshape,
    For { counter: String, carried: Vec<String> },
    If,
}

impl Parser {
    pub(super) fn head(&mut self) -> Parsed<Head> {
        let position = self.position;
        let name = self.word("an op")?;
        let leaf = UnaryOp::from_name(&name)
            .map(Op::Unary)
            .or_else(|| BinaryOp::from_name(&name).map(Op::Binary))
            .or_else(|| Predicate::from_name(&name).map(Op::Compare))
            .or_else(|| Classification::from_name(&name).map(Op::Classify));
        if let Some(op) = leaf {
            return Ok(Head { op: HeadOp::Ready(op), operands: self.values()? });
        }
        let ready = |op, operands| Ok(Head { op: HeadOp::Ready(op), operands });
        match name.as_str() {
            "constant" => Ok(Head { op: HeadOp::Constant(self.literal()?), operands: Vec::new() }),
            "extent" => ready(Op::Extent(self.dim()?), Vec::new()),
            "select" => ready(Op::Select, self.values()?),
            "cast" => Ok(Head { op: HeadOp::Cast, operands: self.values()? }),
            "splat" => Ok(Head { op: HeadOp::Splat, operands: self.values()? }),
            "iota" => Ok(Head { op: HeadOp::Iota(self.unsigned("an axis")? as usize), operands: Vec::new() }),
            "broadcast" => Ok(Head { op: HeadOp::Broadcast, operands: self.values()? }),
            "reshape" => Ok(Head { op: HeadOp::Reshape, operands: self.values()? }),
            "permute" => {
                let operands = vec![self.value()?];
                let axes =
                    self.list('[', ']', |parser| parser.unsigned("an axis").map(|axis| axis as usize))?;
                ready(Op::Permute(axes), operands)
            }
            "reduce" => self.reduce_head(),
            "mma" => ready(Op::Mma, self.values()?),
            "partition" => {
                let operands = vec![self.value()?];
                let tile = self.list('[', ']', Self::dim)?;
                let steps =
                    if self.accept_word("step") { Some(self.list('[', ']', Self::dim)?) } else { None };
                ready(Op::Partition(Cut { tile, steps }), operands)
            }
            "block_index" => ready(Op::BlockIndex, self.values()?),
            "view" => self.view_head(),
            "load_masked" => self.load_head(Op::LoadMasked),
            "load" => self.load_head(Op::Load { checked: true }),
            "load_unchecked" => self.load_head(Op::Load { checked: false }),
            "gather_load" => self.load_head(Op::GatherLoad),
            "store_masked" => ready(Op::StoreMasked, self.values()?),
            "store" => ready(Op::Store, self.values()?),
            "for" => self.for_head(),
            "if" => Ok(Head { op: HeadOp::If, operands: vec![self.value()?] }),
            "yield" => ready(Op::Yield, self.values()?),
            _ => self.error_at(position, format!("`{name}` is not an op")),
        }
    }

    fn reduce_head(&mut self) -> Parsed<Head> {
        let position = self.position;
        let name = self.word("a reduction")?;
        let Some(op) = ReduceOp::from_name(&name) else {
            return self.error_at(position, format!("`{name}` is not a reduction"));
        };
        let operands = vec![self.value()?];
        self.keyword("axis")?;
        let axis = self.unsigned("an axis")? as usize;
        Ok(Head { op: HeadOp::Ready(Op::Reduce { op, axis }), operands })
    }

    fn load_head(&mut self, op: Op) -> Parsed<Head> {
        let view = self.value()?;
        let indices = match self.peek() {
            Token::Punct('[') => self.list('[', ']', Self::value)?,
            _ => Vec::new(),
        };
        let mut operands = vec![view];
        if !matches!(op, Op::Load { .. }) {
            self.keyword("pad")?;
            operands.push(self.value()?);
        }
        operands.extend(indices);
        Ok(Head { op: HeadOp::Ready(op), operands })
    }

    fn for_head(&mut self) -> Parsed<Head> {
        let counter = self.value_name()?;
        self.punct('=')?;
        let mut operands = vec![self.value()?];
        self.keyword("to")?;
        operands.push(self.value()?);
        let mut carried = Vec::new();
        if self.accept_word("carry") {
            let pairs = self.list('(', ')', |parser| {
                let inner = parser.value_name()?;
                parser.punct('=')?;
                Ok((inner, parser.value()?))
            })?;
            for (inner, initial) in pairs {
                carried.push(inner);
                operands.push(initial);
            }
        }
        Ok(Head { op: HeadOp::For { counter, carried }, operands })
    }

    /// Takes attributes from the result types and reads regions.
    pub(super) fn finish(
        &mut self,
        start: usize,
        head: HeadOp,
        types: &[Type],
    ) -> Parsed<(Op, Vec<RegionId>)> {
        let shape = |parser: &Self| match types {
            [Type::Tile(tile)] => Ok(tile.shape.clone()),
            _ => parser.error_at(start, "the result must be one tile"),
        };
        let elem = |parser: &Self| match types {
            [ty] => Ok(ty.elem().clone()),
            _ => parser.error_at(start, "the op has one result"),
        };
        let op = match head {
            HeadOp::Ready(op) => op,
            HeadOp::Constant(value) => Op::Constant { value, elem: elem(self)? },
            HeadOp::Cast => Op::Cast(elem(self)?),
            HeadOp::Splat => Op::Splat(shape(self)?),
            HeadOp::Iota(axis) => Op::Iota { shape: shape(self)?, axis, elem: elem(self)? },
            HeadOp::Broadcast => Op::Broadcast(shape(self)?),
            HeadOp::Reshape => Op::Reshape(shape(self)?),
            HeadOp::For { counter, carried } => return self.for_region(counter, &carried, types),
            HeadOp::If => return self.if_regions(),
        };
        Ok((op, Vec::new()))
    }
}
