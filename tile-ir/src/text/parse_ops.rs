//! Reads the name, attributes and operands of an op: one arm per op in [`Parser::head`], and in
//! [`Parser::finish`] for attributes that stand in the result's type or in regions.

use super::lexer::Token;
use super::parse::{Name, Parsed, Parser};
use crate::dim::Dim;
use crate::kernel::{RegionId, ValueId};
use crate::message::Message;
use crate::ops::{
    Atomic, AtomicKind, Cut, Hints, Leaf, Literal, Movement, Op, Order, ReduceOp, ScanMode, ScatterMode,
    Scope,
};
use crate::round::Rounding;
use crate::tile_order::TileOrder;
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
    CastWith(Rounding),
    SaturatingCast,
    Bitcast,
    Lookup(Vec<Literal>),
    Splat,
    Iota(usize),
    Broadcast,
    Reshape,
    Extract(Vec<Dim>),
    For { counter: Name, carried: Vec<Name> },
    While { carried: Vec<Name> },
    Tiles { order: TileOrder<Dim>, carried: Vec<Name> },
    If,
    Fold { op: Op, params: Vec<Name> },
    Sort { axis: usize, descending: bool },
    Histogram,
}

impl Parser {
    pub(super) fn head(&mut self) -> Parsed<Head> {
        let position = self.position;
        let name = self.word("an op")?;
        let ready = |op, operands| Ok(Head { op: HeadOp::Ready(op), operands });
        if let Some(leaf) = Leaf::from_name(&name) {
            return ready(leaf.into(), self.values()?);
        }
        match name.as_str() {
            "constant" => Ok(Head { op: HeadOp::Constant(self.literal()?), operands: Vec::new() }),
            "extent" => ready(Op::Extent(self.dim()?), Vec::new()),
            "select" => ready(Op::Select, self.values()?),
            "cast" => Ok(Head { op: HeadOp::Cast, operands: self.values()? }),
            "cast_with" => {
                let rounding = self.rounding()?;
                Ok(Head { op: HeadOp::CastWith(rounding), operands: self.values()? })
            }
            "saturating_cast" => Ok(Head { op: HeadOp::SaturatingCast, operands: self.values()? }),
            "bitcast" => Ok(Head { op: HeadOp::Bitcast, operands: self.values()? }),
            "lookup" => {
                let table = self.list('[', ']', Parser::literal)?;
                Ok(Head { op: HeadOp::Lookup(table), operands: self.values()? })
            }
            "mul_add" => ready(Op::MulAdd, self.values()?),
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
            "extract" | "insert" | "cat" | "pad" | "flip" | "roll" | "shift" | "repeat" => {
                self.movement_head(&name)
            }
            "gather" | "scatter" | "scatter_add" => {
                let operands = self.values()?;
                let axis = self.axis()?;
                let op = match name.as_str() {
                    "gather" => Op::Gather { axis },
                    "scatter" => Op::Scatter { axis, mode: ScatterMode::Write },
                    _ => Op::Scatter { axis, mode: ScatterMode::Add },
                };
                ready(op, operands)
            }
            "reduce" => self.reduce_head(),
            "mma" => ready(Op::Mma, self.values()?),
            "partition" => {
                let operands = vec![self.value()?];
                let tile = self.list('[', ']', Self::dim)?;
                let steps =
                    if self.accept_word("step") { Some(self.list('[', ']', Self::dim)?) } else { None };
                let spanned = self.spanned()?;
                let hints = self.hints()?;
                ready(Op::Partition(Cut { tile, steps, spanned, hints }), operands)
            }
            "block_index" => ready(Op::BlockIndex, self.values()?),
            "view" => self.view_head(),
            "load_masked" => self.load_head(Op::LoadMasked),
            "load" => self.load_head(Op::Load { checked: true }),
            "load_unchecked" => self.load_head(Op::Load { checked: false }),
            "gather_load" => self.load_head(Op::GatherLoad),
            "store_masked" => self.store_head(Op::StoreMasked),
            "store" => self.store_head(Op::Store),
            "for" => self.for_head(),
            "if" => Ok(Head { op: HeadOp::If, operands: vec![self.value()?] }),
            "yield" => ready(Op::Yield, self.values()?),
            "reduce_with" => self.fold_head(|axis, _, associative| Op::ReduceWith { axis, associative }),
            "scan_with" => self.fold_head(|axis, mode, associative| Op::ScanWith { axis, mode, associative }),
            "scan" => {
                let op = self.reduction()?;
                let operands = vec![self.value()?];
                let axis = self.axis()?;
                ready(Op::Scan { op, axis, mode: self.mode() }, operands)
            }
            "sort" => {
                let operands = vec![self.value()?];
                let axis = self.axis()?;
                let descending = self.accept_word("descending");
                Ok(Head { op: HeadOp::Sort { axis, descending }, operands })
            }
            "histogram" => Ok(Head { op: HeadOp::Histogram, operands: vec![self.value()?] }),
            "while" => {
                let mut operands = vec![self.value()?];
                let carried = self.carry(&mut operands)?;
                Ok(Head { op: HeadOp::While { carried }, operands })
            }
            "item" => ready(Op::Item, self.values()?),
            "convert_layout" => ready(Op::ConvertLayout, self.values()?),
            "tiles" => {
                let mut operands = vec![self.value()?];
                let order = self.tile_order()?;
                let carried = self.carry(&mut operands)?;
                Ok(Head { op: HeadOp::Tiles { order, carried }, operands })
            }
            "print" | "assert" => self.message_head(&name),
            "atomic" => self.atomic_head(),
            "block_id" => ready(Op::BlockId { axis: self.axis()? }, Vec::new()),
            "block_count" => ready(Op::BlockCount { axis: self.axis()? }, Vec::new()),
            "prefetch" => {
                let mut operands = vec![self.value()?];
                if *self.peek() == Token::Punct('[') {
                    operands.extend(self.list('[', ']', Self::value)?);
                }
                ready(Op::Prefetch, operands)
            }
            _ => self.error_at(position, format!("`{name}` is not an op")),
        }
    }

    /// `latency n bulk_copy true`, each where it is there.
    fn hints(&mut self) -> Parsed<Hints> {
        let latency = if self.accept_word("latency") { Some(self.dim()?) } else { None };
        let bulk_copy = if self.accept_word("bulk_copy") {
            Some(self.one_of("`true` or `false`", |word| word.parse().ok())?)
        } else {
            None
        };
        Ok(Hints { latency, bulk_copy })
    }

    /// `site "message" operands`.
    fn message_head(&mut self, name: &str) -> Parsed<Head> {
        let position = self.position;
        let Ok(site) = u32::try_from(self.unsigned("a site")?) else {
            return self.error_at(position, "a site is a number of 32 bits");
        };
        let position = self.position;
        let Token::Text(template) = self.next() else {
            return self.error_at(position, "expected a quoted message");
        };
        let message = Message::parse(&template).or_else(|problem| self.error_at(position, problem))?;
        let op = if name == "print" { Op::Print { site, message } } else { Op::Assert { site, message } };
        Ok(Head { op: HeadOp::Ready(op), operands: self.values()? })
    }

    /// One of the words of an attribute.
    fn one_of<T>(&mut self, what: &str, find: fn(&str) -> Option<T>) -> Parsed<T> {
        let position = self.position;
        let name = self.word(what)?;
        match find(&name) {
            Some(found) => Ok(found),
            None => self.error_at(position, format!("`{name}` is not {what}")),
        }
    }

    /// `kind order scope %tensor[indices], values mask %mask`.
    fn atomic_head(&mut self) -> Parsed<Head> {
        let kind = self.one_of("an atomic operation", AtomicKind::from_name)?;
        let order = self.one_of("an order", Order::from_name)?;
        let scope = self.one_of("a scope", Scope::from_name)?;
        let mut operands = vec![self.value()?];
        operands.extend(self.list('[', ']', Self::value)?);
        while self.accept(',') {
            operands.push(self.value()?);
        }
        let masked = self.accept_word("mask");
        if masked {
            operands.push(self.value()?);
        }
        Ok(Head { op: HeadOp::Ready(Op::Atomic(Atomic { kind, order, scope, masked })), operands })
    }

    fn tile_order(&mut self) -> Parsed<TileOrder<Dim>> {
        let position = self.position;
        let name = self.word("an order of tiles")?;
        match name.as_str() {
            "row_major" => Ok(TileOrder::RowMajor),
            "hilbert" => Ok(TileOrder::Hilbert),
            "grouped" => {
                self.punct('(')?;
                let rows = self.dim()?;
                self.punct(')')?;
                Ok(TileOrder::Grouped(rows))
            }
            "falling" => {
                self.punct('(')?;
                let axis = self.unsigned("an axis")? as usize;
                self.punct(')')?;
                Ok(TileOrder::Falling(axis))
            }
            _ => self.error_at(position, format!("`{name}` is not an order of tiles")),
        }
    }

    fn rounding(&mut self) -> Parsed<Rounding> {
        self.one_of("a rounding direction", Rounding::from_name)
    }

    fn reduction(&mut self) -> Parsed<ReduceOp> {
        self.one_of("a reduction", ReduceOp::from_name)
    }

    pub(super) fn axis(&mut self) -> Parsed<usize> {
        self.keyword("axis")?;
        Ok(self.unsigned("an axis")? as usize)
    }

    fn mode(&mut self) -> ScanMode {
        let reverse = self.accept_word("reverse");
        ScanMode { reverse, exclusive: self.accept_word("exclusive") }
    }

    /// `tiles from starts axis n associative with (params)`.
    fn fold_head(&mut self, op: impl FnOnce(usize, ScanMode, bool) -> Op) -> Parsed<Head> {
        let mut operands = self.values()?;
        self.keyword("from")?;
        operands.extend(self.values()?);
        let axis = self.axis()?;
        let mode = self.mode();
        let op = op(axis, mode, self.accept_word("associative"));
        self.keyword("with")?;
        let params = self.list('(', ')', Self::name)?;
        Ok(Head { op: HeadOp::Fold { op, params }, operands })
    }

    fn movement_head(&mut self, name: &str) -> Parsed<Head> {
        let operands = self.values()?;
        let dims = |parser: &mut Self| parser.list('[', ']', Self::dim);
        let movement = match name {
            "extract" => return Ok(Head { op: HeadOp::Extract(dims(self)?), operands }),
            "insert" => Movement::Insert { starts: dims(self)? },
            "cat" => Movement::Cat { axis: self.axis()? },
            "pad" => Movement::Pad { before: dims(self)?, after: dims(self)? },
            "flip" => Movement::Flip { axis: self.axis()? },
            "repeat" => Movement::Repeat { counts: dims(self)? },
            _ => {
                let axis = self.axis()?;
                self.keyword("by")?;
                let by = self.dim()?;
                if name == "roll" { Movement::Roll { axis, by } } else { Movement::Shift { axis, by } }
            }
        };
        Ok(Head { op: HeadOp::Ready(Op::Movement(movement)), operands })
    }

    fn reduce_head(&mut self) -> Parsed<Head> {
        let op = self.reduction()?;
        let operands = vec![self.value()?];
        let axis = self.axis()?;
        Ok(Head { op: HeadOp::Ready(Op::Reduce { op, axis }), operands })
    }

    fn load_head(&mut self, op: Op) -> Parsed<Head> {
        let (view, indices) = self.tile_of_view()?;
        let mut operands = vec![view];
        if !matches!(op, Op::Load { .. }) {
            self.keyword("pad")?;
            operands.push(self.value()?);
        }
        operands.extend(indices);
        Ok(Head { op: HeadOp::Ready(op), operands })
    }

    fn store_head(&mut self, op: Op) -> Parsed<Head> {
        let (view, indices) = self.tile_of_view()?;
        self.punct(',')?;
        let mut operands = vec![view, self.value()?];
        operands.extend(indices);
        Ok(Head { op: HeadOp::Ready(op), operands })
    }

    /// A view and the index of its tile, where there is one: `%x[%i, %j]`.
    fn tile_of_view(&mut self) -> Parsed<(ValueId, Vec<ValueId>)> {
        let view = self.value()?;
        let indices = match self.peek() {
            Token::Punct('[') => self.list('[', ']', Self::value)?,
            _ => Vec::new(),
        };
        Ok((view, indices))
    }

    fn for_head(&mut self) -> Parsed<Head> {
        let counter = self.name()?;
        self.punct('=')?;
        let mut operands = vec![self.value()?];
        self.keyword("to")?;
        operands.push(self.value()?);
        let carried = self.carry(&mut operands)?;
        Ok(Head { op: HeadOp::For { counter, carried }, operands })
    }

    /// `carry (%inner = %initial, …)`, where it is there: the names inside; the initial values are operands.
    fn carry(&mut self, operands: &mut Vec<ValueId>) -> Parsed<Vec<Name>> {
        let mut carried = Vec::new();
        if self.accept_word("carry") {
            let pairs = self.list('(', ')', |parser| {
                let inner = parser.name()?;
                parser.punct('=')?;
                Ok((inner, parser.value()?))
            })?;
            for (inner, initial) in pairs {
                carried.push(inner);
                operands.push(initial);
            }
        }
        Ok(carried)
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
            HeadOp::CastWith(rounding) => Op::CastWith(elem(self)?, rounding),
            HeadOp::SaturatingCast => Op::SaturatingCast(elem(self)?),
            HeadOp::Bitcast => Op::Bitcast(elem(self)?),
            HeadOp::Lookup(table) => Op::Lookup { table, elem: elem(self)? },
            HeadOp::Splat => Op::Splat(shape(self)?),
            HeadOp::Iota(axis) => Op::Iota { shape: shape(self)?, axis, elem: elem(self)? },
            HeadOp::Broadcast => Op::Broadcast(shape(self)?),
            HeadOp::Reshape => Op::Reshape(shape(self)?),
            HeadOp::Extract(starts) => Op::Movement(Movement::Extract { starts, shape: shape(self)? }),
            HeadOp::For { counter, carried } => {
                let region = self.loop_region(Some(counter), &carried, types)?;
                return Ok((Op::For, vec![region]));
            }
            HeadOp::While { carried } => {
                let region = self.loop_region(None, &carried, types)?;
                return Ok((Op::While, vec![region]));
            }
            HeadOp::Tiles { order, carried } => {
                let region = self.loop_region(None, &carried, types)?;
                return Ok((Op::Tiles(order), vec![region]));
            }
            HeadOp::If => return self.if_regions(),
            HeadOp::Fold { op, params } => return self.fold_region(op, &params, types),
            HeadOp::Sort { axis, descending } => {
                Op::Sort { axis, descending, count: self.extent_of(start, types, axis)? }
            }
            HeadOp::Histogram => Op::Histogram(self.extent_of(start, types, 0)?),
        };
        Ok((op, Vec::new()))
    }

    /// The extent of an axis of the first result.
    fn extent_of(&self, start: usize, types: &[Type], axis: usize) -> Parsed<Dim> {
        match types {
            [Type::Tile(tile), ..] if axis < tile.shape.len() => Ok(tile.shape[axis].clone()),
            _ => self.error_at(start, format!("the first result must be a tile with an axis {axis}")),
        }
    }
}
