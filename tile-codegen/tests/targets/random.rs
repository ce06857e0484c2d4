//! Random kernels, natively, thread by thread as on a GPU, and by the evaluator.
//!
//! Every program is **exact**: elementwise ops round once by definition on both sides, and what is summed
//! (by `reduce sum` and `mma`, whose order is free) is first clamped to integers so small that no partial sum
//! rounds. So the comparison allows no tolerance, and a wrong buffer can't hide in one.

use crate::support::{close, instance, run_native, run_simt, sample};
use proptest::prelude::*;
use std::fmt::Write;
use tile_codegen::{CpuLevel, Options};
use tile_ir::{DType, interp, passes};

/// A tile or, of rank 0, a scalar in scope.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    name: String,
    shape: Vec<usize>,
    dtype: DType,
}

impl Entry {
    fn ty(&self) -> String {
        type_text(&self.shape, self.dtype)
    }
}

fn type_text(shape: &[usize], dtype: DType) -> String {
    if shape.is_empty() {
        return dtype.to_string();
    }
    let extents: String = shape.iter().map(|extent| format!("{extent} x ")).collect();
    format!("tile<{extents}{dtype}>")
}

fn list(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

fn names(entries: &[Entry]) -> String {
    entries.iter().map(|entry| entry.name.clone()).collect::<Vec<_>>().join(", ")
}

const FORMATS: &[DType] = &[
    DType::F32,
    DType::I32,
    DType::F16,
    DType::BF16,
    DType::U8,
    DType::I8,
    DType::F64,
    DType::I64,
    DType::Bool,
    DType::U16,
];

/// Writes a kernel by the choices on a tape; an exhausted tape reads as zeros, so shorter tapes are simpler
/// kernels and proptest's shrinking works.
struct Writer<'a> {
    tape: std::slice::Iter<'a, u8>,
    text: String,
    scope: Vec<Entry>,
    names: usize,
    depth: usize,
    tile: [usize; 2],
    dtype: DType,
}

impl Writer<'_> {
    fn choose(&mut self, below: usize) -> usize {
        usize::from(self.tape.next().copied().unwrap_or(0)) % below
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("%v{}", self.names)
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{}{line}", "  ".repeat(self.depth + 1));
    }

    /// Adds `%v = body : type` to the kernel and the scope.
    fn define(&mut self, body: &str, shape: &[usize], dtype: DType) -> Entry {
        let entry = Entry { name: self.name(), shape: shape.to_vec(), dtype };
        self.line(&format!("{} = {body} : {}", entry.name, entry.ty()));
        self.scope.push(entry.clone());
        entry
    }

    fn pick(&mut self, accept: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let found: Vec<Entry> = self.scope.iter().filter(|&entry| accept(entry)).cloned().collect();
        // Recent values are likelier: chains of single uses are what gets fused.
        let back = self.choose(6).min(found.len().checked_sub(1)?);
        Some(found[found.len() - 1 - back].clone())
    }

    fn tile(&mut self) -> Entry {
        self.pick(|entry| !entry.shape.is_empty()).expect("the first op is a load")
    }

    fn same_type_as(&mut self, like: &Entry) -> Entry {
        let like = like.clone();
        self.pick(|entry| entry.shape == like.shape && entry.dtype == like.dtype).expect("like is in scope")
    }

    fn cast(&mut self, entry: &Entry, dtype: DType) -> Entry {
        if entry.dtype == dtype {
            return entry.clone();
        }
        self.define(&format!("cast {}", entry.name), &entry.shape, dtype)
    }

    fn number(&mut self, dtype: DType, value: u8) -> Entry {
        let literal = match dtype {
            DType::Bool => (value > 0).to_string(),
            dtype if dtype.is_float() => format!("{value}.0"),
            _ => value.to_string(),
        };
        self.define(&format!("constant {literal}"), &[], dtype)
    }

    fn splat(&mut self, scalar: &Entry, shape: &[usize]) -> Entry {
        self.define(&format!("splat {}", scalar.name), shape, scalar.dtype)
    }

    /// The entry as integers of -4..=4 (floats) or itself (integers, whose sums are exact in any order).
    fn summable(&mut self, entry: &Entry) -> Entry {
        if !entry.dtype.is_float() {
            return entry.clone();
        }
        let four = self.number(entry.dtype, 4);
        let high = self.splat(&four, &entry.shape);
        let low = self.define(&format!("neg {}", high.name), &entry.shape, entry.dtype);
        let capped = self.define(&format!("min {}, {}", entry.name, high.name), &entry.shape, entry.dtype);
        let clamped = self.define(&format!("max {}, {}", capped.name, low.name), &entry.shape, entry.dtype);
        self.define(&format!("floor {}", clamped.name), &entry.shape, entry.dtype)
    }

    fn op(&mut self) {
        match self.choose(22) {
            0 | 1 => self.binary(),
            2 => self.unary(),
            3 => self.choice(),
            4 => {
                let (tile, to) = (self.tile(), self.choose(FORMATS.len()));
                self.cast(&tile, FORMATS[to]);
            }
            5 => self.make(),
            6 => self.broadcast(),
            7 => {
                let tile = self.tile();
                let flat = [vec![tile.shape.iter().product()], tile.shape.iter().rev().copied().collect()];
                let shape = flat[self.choose(2)].clone();
                self.define(&format!("reshape {}", tile.name), &shape, tile.dtype);
            }
            8 => {
                let tile = self.tile();
                let order: Vec<usize> = (0..tile.shape.len()).rev().collect();
                let shape: Vec<usize> = tile.shape.iter().rev().copied().collect();
                self.define(&format!("permute {} [{}]", tile.name, list(&order)), &shape, tile.dtype);
            }
            9 | 10 => self.reduce(),
            11 => self.mma(),
            12 if self.depth < 2 => {
                if self.choose(2) == 0 {
                    self.for_loop();
                } else {
                    self.while_loop();
                }
            }
            13 if self.depth < 2 => self.branch(),
            14 => self.load(),
            15 => {
                let result = self.fitted();
                self.line(&format!("store_masked %vy, {}", result.name));
            }
            16 => self.scan(),
            17 => self.fold(),
            18 => self.sort(),
            19 | 20 => self.movement(),
            21 => self.indexed(),
            _ => self.scalar(),
        }
    }

    fn binary(&mut self) {
        let a = self.tile();
        let b = self.same_type_as(&a);
        let names: &[&str] = match a.dtype {
            DType::Bool => &["and", "or", "xor"],
            dtype if dtype.is_float() => {
                &["add", "sub", "mul", "min", "max", "div", "minimum", "maximum", "rem"]
            }
            _ => &["add", "sub", "mul", "min", "max", "div", "rem", "xor", "shl", "shr"],
        };
        let op = names[self.choose(names.len())];
        self.define(&format!("{op} {}, {}", a.name, b.name), &a.shape, a.dtype);
    }

    fn unary(&mut self) {
        let a = self.tile();
        let names: &[&str] = match a.dtype {
            DType::Bool => &["not"],
            dtype if dtype.is_float() => &["neg", "abs", "floor", "ceil", "sqrt"],
            dtype if dtype.is_signed() => &["neg", "abs", "not"],
            _ => &["not"],
        };
        let op = names[self.choose(names.len())];
        self.define(&format!("{op} {}", a.name), &a.shape, a.dtype);
    }

    fn choice(&mut self) {
        let a = self.tile();
        let b = self.same_type_as(&a);
        let predicate = if a.dtype == DType::Bool { "ne" } else { ["lt", "ge", "eq"][self.choose(3)] };
        let condition = self.define(&format!("{predicate} {}, {}", a.name, b.name), &a.shape, DType::Bool);
        let x = self.tile();
        if x.shape == a.shape {
            let y = self.same_type_as(&x);
            self.define(&format!("select {}, {}, {}", condition.name, x.name, y.name), &a.shape, x.dtype);
        }
    }

    fn make(&mut self) {
        let like = self.tile();
        if self.choose(2) == 0 && like.dtype != DType::Bool {
            let axis = self.choose(like.shape.len());
            self.define(&format!("iota {axis}"), &like.shape, like.dtype);
        } else if let Some(scalar) = self.pick(|entry| entry.shape.is_empty()) {
            let scalar = if scalar.dtype == DType::Index { self.cast(&scalar, DType::I32) } else { scalar };
            self.splat(&scalar, &like.shape);
        }
    }

    fn broadcast(&mut self) {
        let tile = self.tile();
        let one = 1 + self.choose(5);
        let shape: Vec<usize> =
            tile.shape.iter().map(|&extent| if extent == 1 { one } else { extent }).collect();
        self.define(&format!("broadcast {}", tile.name), &shape, tile.dtype);
    }

    /// Elements of tiles in other places.
    fn movement(&mut self) {
        let tile = self.tile();
        let axis = self.choose(tile.shape.len());
        let (name, mut shape) = (tile.name, tile.shape);
        let body = match self.choose(6) {
            0 => format!("flip {name} axis {axis}"),
            1 => format!("roll {name} axis {axis} by {}", self.choose(9) as i32 - 4),
            2 => {
                let fill = self.number(tile.dtype, 1);
                format!("shift {name}, {} axis {axis} by {}", fill.name, self.choose(9) as i32 - 4)
            }
            3 => {
                let mut starts = vec![0; shape.len()];
                starts[axis] = self.choose(shape[axis]);
                shape[axis] -= starts[axis];
                format!("extract {name} {starts:?}")
            }
            4 if shape[axis] <= 64 => {
                shape[axis] *= 2;
                format!("cat {name}, {name} axis {axis}")
            }
            _ => {
                let rank = shape.len();
                let fits = |part: &Entry| {
                    part.shape.len() == rank
                        && part.dtype == tile.dtype
                        && part.shape.iter().zip(&shape).all(|(part, whole)| part <= whole)
                };
                let part = self.pick(fits).expect("the tile itself fits");
                let starts: Vec<usize> = shape.iter().zip(&part.shape).map(|(w, p)| w - p).collect();
                format!("insert {name}, {} {starts:?}", part.name)
            }
        };
        self.define(&body, &shape, tile.dtype);
    }

    /// Elements of tiles at places that other tiles name.
    fn indexed(&mut self) {
        let tile = self.tile();
        let axis = self.choose(tile.shape.len());
        let from = self.same_type_as(&tile);
        let indices = if from.dtype == DType::Bool || from.dtype.is_float() {
            self.cast(&from, DType::I16)
        } else {
            from
        };
        let (x, indices) = (tile.name.clone(), indices.name);
        let body = match self.choose(3) {
            0 => {
                let fill = self.number(tile.dtype, 1);
                format!("gather {x}, {indices}, {} axis {axis}", fill.name)
            }
            1 if tile.dtype != DType::Bool => format!("scatter_add {x}, {indices}, {x} axis {axis}"),
            _ => format!("scatter {x}, {indices}, {x} axis {axis}"),
        };
        self.define(&body, &tile.shape, tile.dtype);
    }

    fn reduce(&mut self) {
        let tile = self.tile();
        if tile.dtype == DType::Bool {
            return;
        }
        let axis = self.choose(tile.shape.len());
        let op = ["sum", "max", "min"][self.choose(3)];
        let mut from = tile;
        if op == "sum" {
            // bf16 holds integers up to 256 only.
            if from.dtype == DType::BF16 {
                from = self.cast(&from, DType::F32);
            }
            from = self.summable(&from);
        }
        let mut shape = from.shape.clone();
        shape[axis] = 1;
        self.define(&format!("reduce {op} {} axis {axis}", from.name), &shape, from.dtype);
    }

    /// The order of a scan is defined, so that its sums round alike.
    fn scan(&mut self) {
        let tile = self.tile();
        if tile.dtype == DType::Bool {
            return;
        }
        let axis = self.choose(tile.shape.len());
        let op = ["sum", "prod", "max", "min"][self.choose(4)];
        let mode = ["", " reverse", " exclusive", " reverse exclusive"][self.choose(4)];
        self.define(&format!("scan {op} {} axis {axis}{mode}", tile.name), &tile.shape, tile.dtype);
    }

    /// A fold of two tiles, or of one with itself, whose closure uses a scalar from outside.
    fn fold(&mut self) {
        let a = self.tile();
        let b = self.same_type_as(&a);
        let axis = self.choose(a.shape.len());
        let start = self.number(a.dtype, 1);
        let (op, other) = if a.dtype == DType::Bool { ("xor", "and") } else { ("sub", "max") };
        let mut shape = a.shape.clone();
        let head = match self.choose(2) {
            0 => "reduce_with",
            _ => "scan_with",
        };
        if head == "reduce_with" {
            shape[axis] = 1;
        }
        let (p, q, r, s) = (self.name(), self.name(), self.name(), self.name());
        let (x, y) = (self.name(), self.name());
        let (first, second) = (self.name(), self.name());
        let (ty, dtype) = (type_text(&shape, a.dtype), a.dtype);
        self.line(&format!(
            "{first}, {second} = {head} {}, {} from {}, {} axis {axis} with ({p}, {q}, {r}, {s}) : {ty}, {ty} {{",
            a.name, b.name, start.name, start.name
        ));
        self.line(&format!("  {x} = {op} {r}, {q} : {dtype}"));
        self.line(&format!("  {y} = {other} {x}, {} : {dtype}", start.name));
        self.line(&format!("  yield {y}, {s}"));
        self.line("}");
        self.scope.extend([first, second].map(|name| Entry { name, shape: shape.clone(), dtype }));
    }

    fn sort(&mut self) {
        let tile = self.tile();
        if tile.dtype == DType::Bool {
            return;
        }
        if tile.dtype.is_int() && self.choose(2) == 0 {
            let bins = 1 + self.choose(40);
            self.define(&format!("histogram {}", tile.name), &[bins], DType::I32);
            return;
        }
        let axis = self.choose(tile.shape.len());
        let mut shape = tile.shape.clone();
        shape[axis] = 1 + self.choose(shape[axis]);
        let word = ["", " descending"][self.choose(2)];
        let (values, places) = (self.name(), self.name());
        let types = [type_text(&shape, tile.dtype), type_text(&shape, DType::I32)].join(", ");
        self.line(&format!("{values}, {places} = sort {} axis {axis}{word} : {types}", tile.name));
        self.scope.push(Entry { name: values, shape: shape.clone(), dtype: tile.dtype });
        self.scope.push(Entry { name: places, shape, dtype: DType::I32 });
    }

    fn mma(&mut self) {
        let Some(a) = self.pick(|entry| entry.shape.len() == 2) else { return };
        let formats = [
            (DType::F32, DType::F32),
            (DType::BF16, DType::F32),
            (DType::F16, DType::F16),
            (DType::I8, DType::I32),
            (DType::U8, DType::I32),
            (DType::F64, DType::F64),
        ];
        let (operand, accumulator) = formats[self.choose(formats.len())];
        let b = match self.pick(|entry| entry.shape.len() == 2 && entry.shape[0] == a.shape[1]) {
            Some(b) => b,
            None => {
                let order: Vec<usize> = a.shape.iter().rev().copied().collect();
                self.define(&format!("permute {} [1, 0]", a.name), &order, a.dtype)
            }
        };
        let (a, b) = (self.cast(&a, operand), self.cast(&b, operand));
        let (a, b) = (self.summable(&a), self.summable(&b));
        let shape = [a.shape[0], b.shape[1]];
        let c = match self.pick(|entry| entry.shape == shape && entry.dtype == accumulator) {
            Some(c) => self.summable(&c),
            None => {
                let zero = self.number(accumulator, 0);
                self.splat(&zero, &shape)
            }
        };
        self.define(&format!("mma {}, {}, {}", a.name, b.name, c.name), &shape, accumulator);
    }

    fn scalar(&mut self) {
        let (format, value) = (self.choose(FORMATS.len()), self.choose(9) as u8);
        let number = self.number(FORMATS[format], value);
        let dtype = number.dtype;
        if let Some(other) = self.pick(|e| e.shape.is_empty() && e.dtype == dtype && dtype != DType::Bool) {
            self.define(&format!("sub {}, {}", number.name, other.name), &[], dtype);
        }
    }

    /// A tile of `%x` at indices that may lie beyond it, or the block's own tile of `%y`.
    fn load(&mut self) {
        let pad = self.number(self.dtype, 3);
        let source = if self.choose(3) == 0 {
            "%vy".to_owned()
        } else {
            let is_index = |entry: &Entry| entry.dtype == DType::Index;
            let row = self.pick(is_index).expect("the block's index is in scope");
            let column = self.pick(is_index).expect("the block's index is in scope");
            format!("%vx[{}, {}]", row.name, column.name)
        };
        let (shape, dtype) = (self.tile, self.dtype);
        self.define(&format!("load_masked {source} pad {}", pad.name), &shape, dtype);
    }

    fn region(&mut self, ops: usize) {
        for _ in 0..ops {
            self.op();
        }
    }

    /// What a loop carries; at least one value.
    fn carried(&mut self) -> Vec<Entry> {
        (0..1 + self.choose(3))
            .map(|_| {
                let scalars = self.choose(4) == 0;
                self.pick(|entry| entry.dtype != DType::Index && entry.shape.is_empty() == scalars)
                    .unwrap_or_else(|| self.scope[2].clone())
            })
            .collect()
    }

    /// The same types under new names.
    fn fresh(&mut self, like: &[Entry]) -> Vec<Entry> {
        like.iter().map(|entry| Entry { name: self.name(), ..entry.clone() }).collect()
    }

    /// A `while` that ends after at most three iterations, and sooner where an element of a tile says so.
    fn while_loop(&mut self) {
        let carried = self.carried();
        let start = self.choose(4);
        let start = self.define(&format!("constant {start}"), &[], DType::I32);
        let limit = self.number(DType::I32, 3);
        let first = self.define(&format!("lt {}, {}", start.name, limit.name), &[], DType::Bool);
        let count = Entry { name: self.name(), shape: Vec::new(), dtype: DType::I32 };
        let (params, results) = (self.fresh(&carried), self.fresh(&carried));
        let counted = Entry { name: self.name(), ..count.clone() };
        let initial = std::iter::once((&count, &start)).chain(params.iter().zip(&carried));
        let pairs: Vec<String> = initial.map(|(p, c)| format!("{} = {}", p.name, c.name)).collect();
        let all: Vec<Entry> = std::iter::once(counted.clone()).chain(results.iter().cloned()).collect();
        let types: Vec<String> = all.iter().map(Entry::ty).collect();
        let (names, carry, types) = (names(&all), pairs.join(", "), types.join(", "));
        self.line(&format!("{names} = while {} carry ({carry}) : {types} {{", first.name));
        let outer = self.scope.len();
        self.depth += 1;
        self.scope.extend(params.iter().cloned());
        let ops = self.choose(5);
        self.region(ops);
        let one = self.number(DType::I32, 1);
        let next = self.define(&format!("add {}, {}", count.name, one.name), &[], DType::I32);
        let mut again = self.define(&format!("lt {}, {}", next.name, limit.name), &[], DType::Bool);
        if self.choose(2) == 0 {
            let stop = self.item();
            again = self.define(&format!("and {}, {}", again.name, stop.name), &[], DType::Bool);
        }
        let yielded: Vec<Entry> = params.iter().map(|param| self.same_type_as(param)).collect();
        let yielded: Vec<Entry> = [again, next].into_iter().chain(yielded).collect();
        self.line(&format!("yield {}", self::names(&yielded)));
        self.scope.truncate(outer);
        self.depth -= 1;
        self.line("}");
        self.scope.extend(results);
    }

    /// One element of some tile, as a condition: the largest of all.
    fn item(&mut self) -> Entry {
        let tile = self.tile();
        let tile = self.cast(&tile, DType::I32);
        let flat = self.define(&format!("reshape {}", tile.name), &[tile.shape.iter().product()], DType::I32);
        let largest = self.define(&format!("reduce max {} axis 0", flat.name), &[1], DType::I32);
        let item = self.define(&format!("item {}", largest.name), &[], DType::I32);
        let limit = self.number(DType::I32, 5);
        self.define(&format!("ge {}, {}", item.name, limit.name), &[], DType::Bool)
    }

    fn for_loop(&mut self) {
        let carried = self.carried();
        let start = self.choose(3);
        let end = self.choose(4);
        let (start, end) = (
            self.define(&format!("constant {start}"), &[], DType::Index),
            self.define(&format!("constant {end}"), &[], DType::Index),
        );
        let counter = self.name();
        let (params, results) = (self.fresh(&carried), self.fresh(&carried));
        let pairs: Vec<String> =
            params.iter().zip(&carried).map(|(p, c)| format!("{} = {}", p.name, c.name)).collect();
        let types: Vec<String> = carried.iter().map(Entry::ty).collect();
        self.line(&format!(
            "{} = for {counter} = {} to {} carry ({}) : {} {{",
            names(&results),
            start.name,
            end.name,
            pairs.join(", "),
            types.join(", ")
        ));
        let outer = self.scope.len();
        self.depth += 1;
        self.scope.push(Entry { name: counter, shape: Vec::new(), dtype: DType::Index });
        self.scope.extend(params.iter().cloned());
        let ops = self.choose(5);
        self.region(ops);
        let yielded: Vec<Entry> = params.iter().map(|param| self.same_type_as(param)).collect();
        self.line(&format!("yield {}", names(&yielded)));
        self.scope.truncate(outer);
        self.depth -= 1;
        self.line("}");
        self.scope.extend(results);
    }

    fn branch(&mut self) {
        let like: Vec<Entry> = (0..1 + self.choose(2)).map(|_| self.tile()).collect();
        let index = self.scope[0].clone();
        let limit = self.define("constant 1", &[], DType::Index);
        let condition = self.define(&format!("lt {}, {}", index.name, limit.name), &[], DType::Bool);
        let results = self.fresh(&like);
        let types: Vec<String> = like.iter().map(Entry::ty).collect();
        self.line(&format!("{} = if {} : {} {{", names(&results), condition.name, types.join(", ")));
        for side in 0..2 {
            let outer = self.scope.len();
            self.depth += 1;
            let ops = self.choose(4);
            self.region(ops);
            let yielded: Vec<Entry> = like.iter().map(|entry| self.same_type_as(entry)).collect();
            self.line(&format!("yield {}", names(&yielded)));
            self.scope.truncate(outer);
            self.depth -= 1;
            self.line(if side == 0 { "} else {" } else { "}" });
        }
        self.scope.extend(results);
    }

    /// Some value in the type that is stored: a tile of that shape, or the sum of one, repeated.
    fn fitted(&mut self) -> Entry {
        let mut tile = self.tile();
        let (shape, dtype) = (self.tile.to_vec(), self.dtype);
        if tile.shape != shape {
            if tile.dtype == DType::Bool || tile.dtype == DType::BF16 {
                tile = self.cast(&tile, DType::F32);
            }
            tile = self.summable(&tile);
            let flat = tile.shape.iter().product();
            let row = self.define(&format!("reshape {}", tile.name), &[1, flat], tile.dtype);
            let sum = self.define(&format!("reduce sum {} axis 1", row.name), &[1, 1], row.dtype);
            tile = self.define(&format!("broadcast {}", sum.name), &shape, sum.dtype);
        }
        self.cast(&tile, dtype)
    }
}

fn kernel(tape: &[u8], dtype: DType, tile: [usize; 2], ops: usize) -> String {
    let mut writer =
        Writer { tape: tape.iter(), text: String::new(), scope: Vec::new(), names: 0, depth: 0, tile, dtype };
    let tensor = format!("m x n x {dtype}");
    let shape = list(&tile);
    let _ = writeln!(writer.text, "kernel @random(%x: tensor<{tensor}>, %y: mut tensor<{tensor}>) {{");
    writer.line(&format!("%vx = partition %x [{shape}] : partition<{tensor}, [{shape}]>"));
    writer.line(&format!("%vy = partition %y [{shape}] : mut partition<{tensor}, [{shape}]>"));
    // One block per tile, or blocks that share tiles.
    let order = [None, Some("row_major"), Some("grouped(2)"), Some("hilbert")];
    let order = order[tape.first().map_or(0, |&byte| usize::from(byte) % order.len())];
    if let Some(order) = order {
        writer.line(&format!("tiles %vy {order} {{"));
    }
    writer.line("%i, %j = block_index %vy : index, index");
    for name in ["%i", "%j"] {
        writer.scope.push(Entry { name: name.to_owned(), shape: Vec::new(), dtype: DType::Index });
    }
    writer.load();
    // The first load's pad comes before it; loops that find nothing else to carry take the tile.
    writer.scope.swap(2, 3);
    writer.region(ops);
    let mut result = writer.fitted();
    for _ in 0..3 {
        let other = writer.fitted();
        let op = if dtype == DType::Bool { "xor" } else { "add" };
        result = writer.define(&format!("{op} {}, {}", result.name, other.name), &tile, dtype);
    }
    writer.line(&format!("store_masked %vy, {}", result.name));
    if order.is_some() {
        writer.line("}");
    }
    writer.text.push_str("}\n");
    writer.text
}

fn formats() -> impl Strategy<Value = DType> {
    prop::sample::select(FORMATS)
}

fn extents() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 1usize..=9, 1 => Just(16), 1 => 30usize..=40]
}

/// How many kernels a run tries; `cargo xtask fuzz` asks for more.
fn cases() -> u32 {
    std::env::var("TILE_FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(96)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]
    #[test]
    fn random_kernels_agree_exactly(
        tape in prop::collection::vec(any::<u8>(), 0..200),
        dtype in formats(),
        tile in [extents(), extents()],
        m in 0usize..20,
        n in 0usize..50,
        ops in 1usize..24,
        cpu in prop::sample::select(&[CpuLevel::Host, CpuLevel::Host, CpuLevel::V2]),
        skip_passes in any::<bool>(),
    ) {
        let source = kernel(&tape, dtype, tile, ops);
        let instance = instance(&source, &[]);
        let arguments = [sample(dtype, &[m, n], 1), sample(dtype, &[m, n], 2)];
        let mut expected = arguments.to_vec();
        interp::run(&instance, &mut expected).expect("the shapes fit");
        let mut rewritten = instance.clone();
        for pass in passes::PIPELINE {
            rewritten = passes::run(rewritten, pass);
            let mut arguments = arguments.to_vec();
            interp::run(&rewritten, &mut arguments).expect("the shapes fit");
            close(&arguments[1], &expected[1], 0.0, &format!("after `{}`: {source}", pass.name));
        }
        let options = Options { cpu, skip_passes, ..Options::default() };
        let actual = run_native(&instance, &arguments, &options);
        close(&actual[1], &expected[1], 0.0, &source);
        let threads = run_simt(&instance, &arguments, Some(8));
        close(&threads[1], &expected[1], 0.0, &source);
    }
}
