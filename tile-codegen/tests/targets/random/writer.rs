//! Writes a kernel's text from a tape of choices: what is in scope, and the pieces that all ops are made of.

use std::fmt::Write;
use tile_ir::DType;
use tile_ir::ops::{AtomicKind, Literal};
use tile_ir::types::TensorType;

/// A tile or, of rank 0, a scalar in scope.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
    pub(super) dtype: DType,
}

impl Entry {
    pub(super) fn ty(&self) -> String {
        type_text(&self.shape, self.dtype)
    }
}

pub(super) fn type_text(shape: &[usize], dtype: DType) -> String {
    if shape.is_empty() {
        return dtype.to_string();
    }
    let extents: String = shape.iter().map(|extent| format!("{extent} x ")).collect();
    format!("tile<{extents}{dtype}>")
}

pub(super) fn list(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// Whether a tile of the first shape is one of the second when its axes of one element are repeated.
pub(super) fn is_spread_to(from: &[usize], to: &[usize]) -> bool {
    from.len() == to.len() && from.iter().zip(to).all(|(from, to)| from == to || *from == 1)
}

pub(super) fn names(entries: &[Entry]) -> String {
    entries.iter().map(|entry| entry.name.clone()).collect::<Vec<_>>().join(", ")
}

/// A partition that tiles are read of.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) name: String,
    pub(super) tile: Vec<usize>,
    pub(super) dtype: DType,
    /// Whether its tile at the block's own index lies inside the tensor, and every other one that a block has.
    pub(super) whole: bool,
}

/// A partition that the block owns a tile of; all have one tile shape.
#[derive(Clone, Debug)]
pub(super) struct Output {
    pub(super) name: String,
    pub(super) dtype: DType,
    /// Whether its tiles lie inside the tensor.
    pub(super) whole: bool,
    /// How many axes blocks span.
    pub(super) spanned: usize,
}

/// A tensor that blocks add to, or join to in another way whose order doesn't matter.
#[derive(Clone, Debug)]
pub(super) struct Counters {
    pub(super) dtype: DType,
    pub(super) kind: AtomicKind,
}

/// Writes a kernel by the choices on a tape; an exhausted tape reads as zeros, so shorter tapes are simpler
/// kernels and proptest's shrinking works.
pub(super) struct Writer<'a> {
    pub(super) tape: std::slice::Iter<'a, u8>,
    pub(super) text: String,
    pub(super) scope: Vec<Entry>,
    pub(super) names: usize,
    pub(super) depth: usize,
    pub(super) tile: Vec<usize>,
    pub(super) inputs: Vec<Input>,
    pub(super) outputs: Vec<Output>,
    /// Tensors that elements are looked up in: name, rank and format.
    pub(super) tensors: Vec<(String, usize, DType)>,
    /// Tensors that views are made of where they are needed.
    pub(super) viewed: Vec<(String, TensorType)>,
    pub(super) counters: Option<Counters>,
    /// Whether blocks share tiles: which block has one depends on how many there are.
    pub(super) shares_tiles: bool,
    kind: Kind,
}

/// What a kernel's regions are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Any ops, in any shapes.
    Any,
    /// Ops as kernels of lines have them.
    Lines,
}

impl<'a> Writer<'a> {
    /// A writer of a kernel whose blocks own tiles of this shape, and whose regions are of that kind.
    pub(super) fn new(tape: &'a [u8], tile: Vec<usize>, kind: Kind) -> Writer<'a> {
        Writer {
            tape: tape.iter(),
            text: String::new(),
            scope: Vec::new(),
            names: 0,
            depth: 0,
            tile,
            inputs: Vec::new(),
            outputs: Vec::new(),
            tensors: Vec::new(),
            viewed: Vec::new(),
            counters: None,
            shares_tiles: false,
            kind,
        }
    }

    /// So many ops.
    pub(super) fn region(&mut self, ops: usize) {
        for _ in 0..ops {
            match self.kind {
                Kind::Any => self.any_op(),
                Kind::Lines => self.line_op(),
            }
        }
    }

    /// Begins a region, behind the line that opens it; gives how many values are known outside.
    pub(super) fn enter(&mut self) -> usize {
        self.depth += 1;
        self.scope.len()
    }

    /// Ends a region, in front of the line that closes it: what was made in it isn't known outside.
    pub(super) fn leave(&mut self, outside: usize) {
        self.depth -= 1;
        self.scope.truncate(outside);
    }

    /// A number below a bound, from the tape.
    pub(super) fn choose(&mut self, below: usize) -> usize {
        usize::from(self.tape.next().copied().unwrap_or(0)) % below
    }

    pub(super) fn name(&mut self) -> String {
        self.names += 1;
        format!("%v{}", self.names)
    }

    pub(super) fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{}{line}", "  ".repeat(self.depth + 1));
    }

    /// Adds `%v = body : type` to the kernel and the scope.
    pub(super) fn define(&mut self, body: &str, shape: &[usize], dtype: DType) -> Entry {
        let entry = Entry { name: self.name(), shape: shape.to_vec(), dtype };
        self.line(&format!("{} = {body} : {}", entry.name, entry.ty()));
        self.scope.push(entry.clone());
        entry
    }

    pub(super) fn pick(&mut self, accept: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let found: Vec<Entry> = self.scope.iter().filter(|&entry| accept(entry)).cloned().collect();
        // Recent values are likelier: chains of single uses are what gets fused.
        let back = self.choose(6).min(found.len().checked_sub(1)?);
        Some(found[found.len() - 1 - back].clone())
    }

    pub(super) fn tile(&mut self) -> Entry {
        self.pick(|entry| !entry.shape.is_empty()).expect("the first op is a load")
    }

    /// A tile or, now and then, a scalar: leaf ops take both.
    pub(super) fn operand(&mut self) -> Entry {
        let is_scalar = |entry: &Entry| entry.shape.is_empty() && entry.dtype != DType::Index;
        let scalar = if self.choose(6) == 0 { self.pick(is_scalar) } else { None };
        scalar.unwrap_or_else(|| self.tile())
    }

    pub(super) fn same_type_as(&mut self, like: &Entry) -> Entry {
        let like = like.clone();
        self.pick(|entry| entry.shape == like.shape && entry.dtype == like.dtype).expect("like is in scope")
    }

    pub(super) fn cast(&mut self, entry: &Entry, dtype: DType) -> Entry {
        if entry.dtype == dtype {
            return entry.clone();
        }
        self.define(&format!("cast {}", entry.name), &entry.shape, dtype)
    }

    pub(super) fn number(&mut self, dtype: DType, value: u8) -> Entry {
        let literal = match dtype {
            DType::Bool => (value > 0).to_string(),
            dtype if dtype.is_float() => format!("{value}.0"),
            _ => value.to_string(),
        };
        self.define(&format!("constant {literal}"), &[], dtype)
    }

    /// A scalar at an end of its format, or no number.
    pub(super) fn extreme_number(&mut self, dtype: DType) -> Entry {
        let ends = super::extremes::extreme(dtype, &[31], self.choose(256));
        let literal = match ends.get(self.choose(31)) {
            Literal::Int(value) if dtype == DType::Bool => (value > 0).to_string(),
            Literal::Int(value) => value.to_string(),
            Literal::Float(value) if value.is_nan() => "nan".to_owned(),
            Literal::Float(value) => format!("{value:?}"),
        };
        self.define(&format!("constant {literal}"), &[], dtype)
    }

    /// The same elements in another shape.
    pub(super) fn reshaped(&mut self, entry: &Entry, shape: &[usize]) -> Entry {
        if entry.shape == shape {
            return entry.clone();
        }
        self.define(&format!("reshape {}", entry.name), shape, entry.dtype)
    }

    /// A scalar everywhere in a tile; the scalar itself for the shape of one.
    pub(super) fn splat(&mut self, scalar: &Entry, shape: &[usize]) -> Entry {
        if shape.is_empty() {
            return scalar.clone();
        }
        self.define(&format!("splat {}", scalar.name), shape, scalar.dtype)
    }

    /// The entry as integers of -4..=4 (floats) or itself (integers, whose sums are exact in any order). Zeros are positive:
    /// the sign of a sum of negative ones depends on the order.
    pub(super) fn summable(&mut self, entry: &Entry) -> Entry {
        if !entry.dtype.is_float() {
            return entry.clone();
        }
        let four = self.number(entry.dtype, 4);
        let high = self.splat(&four, &entry.shape);
        let low = self.define(&format!("neg {}", high.name), &entry.shape, entry.dtype);
        let capped = self.define(&format!("min {}, {}", entry.name, high.name), &entry.shape, entry.dtype);
        let clamped = self.define(&format!("max {}, {}", capped.name, low.name), &entry.shape, entry.dtype);
        let whole = self.define(&format!("floor {}", clamped.name), &entry.shape, entry.dtype);
        let zero = self.number(entry.dtype, 0);
        let zero = self.splat(&zero, &entry.shape);
        self.define(&format!("add {}, {}", whole.name, zero.name), &entry.shape, entry.dtype)
    }

    /// An element format.
    pub(super) fn format(&mut self) -> DType {
        let formats = super::formats();
        formats[self.choose(formats.len())]
    }

    /// The entry, or its cast to f32 where sums of its format would be rounded.
    pub(super) fn wide(&mut self, entry: &Entry) -> Entry {
        let count: usize = entry.shape.iter().product();
        let rounds = match entry.dtype {
            DType::BF16 | DType::F8E4M3FN | DType::F8E5M2 | DType::Bool => true,
            DType::F16 => count > 400,
            _ => false,
        };
        if rounds { self.cast(entry, DType::F32) } else { entry.clone() }
    }

    /// Any op.
    fn any_op(&mut self) {
        match self.choose(36) {
            0..=2 => self.binary(),
            3 | 4 => self.unary(),
            5 => self.choice(),
            6 => self.convert(),
            7 => self.make(),
            8 => self.broadcast(),
            9 | 10 => self.reshape(),
            11 => self.permute(),
            12 | 13 => self.reduce(),
            14 => self.mma(),
            15 | 16 if self.depth < 3 => self.for_loop(),
            17 if self.depth < 3 => self.while_loop(),
            18 | 19 if self.depth < 3 => self.branch(),
            20 | 21 => self.load(),
            22 => self.store(),
            23 => self.scan(),
            24 => self.fold(),
            25 => self.sort(),
            26 | 27 => self.movement(),
            28 => self.indexed(),
            29 => self.look_up(),
            30 => self.count(),
            31 => self.prefetch(),
            32 => self.index(),
            33 => self.pairs(),
            34 => self.view(),
            _ => self.scalar(),
        }
    }

    /// The entry with axes of one element repeated.
    pub(super) fn spread(&mut self, entry: &Entry, shape: &[usize]) -> Entry {
        if entry.shape == shape {
            return entry.clone();
        }
        self.define(&format!("broadcast {}", entry.name), shape, entry.dtype)
    }

    /// Some value as a tile that is stored: of that shape, one that is repeated to it, or the sum of one.
    pub(super) fn fitted(&mut self, dtype: DType) -> Entry {
        let mut tile = self.tile();
        let shape = self.tile.clone();
        if is_spread_to(&tile.shape, &shape) {
            tile = self.spread(&tile, &shape);
        }
        if tile.shape != shape {
            tile = self.wide(&tile);
            tile = self.summable(&tile);
            let flat = tile.shape.iter().product();
            let ones = vec![1; shape.len()];
            let mut line = ones.clone();
            line[shape.len() - 1] = flat;
            let row = self.define(&format!("reshape {}", tile.name), &line, tile.dtype);
            let body = format!("reduce sum {} axis {}", row.name, shape.len() - 1);
            let sum = self.define(&body, &ones, row.dtype);
            tile = self.define(&format!("broadcast {}", sum.name), &shape, sum.dtype);
        }
        self.cast(&tile, dtype)
    }
}
