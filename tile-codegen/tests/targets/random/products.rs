//! Random kernels of products in loops, in the forms that targets have ways of their own for: factors that are loaded either
//! way round, converted, scaled, gathered, made, or products themselves, in loops that are nested, that data ends, or that
//! skip turns, with several sums and with arithmetic behind them.

use super::writer::{Counters, Entry, Input, Kind, Output, Writer, list, names};
use proptest::prelude::*;
use tile_ir::DType;
use tile_ir::ops::AtomicKind;
use tile_ir::ops::infer::mma_accumulators;

/// The formats of both factors and of sums.
type Formats = (DType, DType, DType);

/// Every product of formats that there is.
pub(super) fn products() -> Vec<Formats> {
    let pairs = DType::ALL.iter().flat_map(|&left| DType::ALL.iter().map(move |&right| (left, right)));
    pairs
        .flat_map(|(left, right)| mma_accumulators(left, right).iter().map(move |&sum| (left, right, sum)))
        .collect()
}

/// The sizes and formats of a kernel.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    formats: Formats,
    /// The format of the result.
    out: DType,
    /// Rows, columns and depth of tiles.
    tile: [usize; 3],
    /// Rows, columns and depth of matrices.
    extents: [usize; 3],
    /// The depth of products that are factors.
    inner: usize,
    /// How many matrices there are, where they are several.
    batch: Option<usize>,
    /// Whether the kernel knows the sizes.
    fixed: bool,
    /// Whether factors are f32 that narrower formats have, as far as can be told.
    narrow: bool,
}

/// A tensor among a kernel's arguments.
#[derive(Clone, Debug)]
pub(super) struct Argument {
    name: String,
    pub(super) dtype: DType,
    pub(super) extents: Vec<usize>,
    /// The extents in the type.
    names: Vec<String>,
}

impl Argument {
    fn ty(&self, kind: &str, cut: &str) -> String {
        format!("{kind}<{} x {}{cut}>", self.names.join(" x "), self.dtype)
    }
}

/// Most multiplications of a kernel, which the evaluator does one by one.
const MOST_WORK: usize = 3_000_000;

/// Depths whose sums are exact in f16, of factors up to 4.
const MOST_DEPTH_OF_F16: usize = 64;

pub(super) fn shapes() -> impl Strategy<Value = Shape> {
    let sides = || prop::sample::select(vec![16usize, 32, 64, 64, 128, 8, 24, 40, 48, 5, 1]);
    let rows = prop_oneof![3 => sides(), 1 => prop::sample::select(vec![128usize, 128, 256])];
    let tiles = [
        rows.boxed(),
        sides().boxed(),
        prop::sample::select(vec![16usize, 32, 64, 64, 8, 10, 33, 1]).boxed(),
    ];
    // Whole tiles, and any number of elements.
    let extent =
        || prop_oneof![2 => (1usize..=3).prop_map(|tiles| (tiles, 0)), 2 => (0usize..=1, 0usize..=70)];
    let extents = [extent(), extent(), extent()];
    let batch = prop_oneof![4 => Just(None), 1 => (0usize..=3).prop_map(Some)];
    let outs = prop::sample::select(super::formats());
    let formats = (prop::sample::select(products()), outs, any::<bool>());
    let narrow = prop_oneof![7 => Just(false), 1 => Just(true)];
    (formats, tiles, extents, 1usize..40, batch, any::<bool>(), narrow).prop_map(
        |((formats, other, converts), tile, extents, inner, batch, fixed, narrow)| {
            let formats = if narrow { (DType::F32, DType::F32, DType::F32) } else { formats };
            let mut axes = tile.iter().zip(extents).map(|(tile, (tiles, rest))| tile * tiles + rest);
            let mut extents = [(); 3].map(|()| axes.next().expect("there are three axes"));
            if formats.2 == DType::F16 {
                extents[2] = extents[2].min(MOST_DEPTH_OF_F16);
            }
            while extents.iter().product::<usize>() > MOST_WORK {
                extents = extents.map(|extent| extent * 2 / 3);
            }
            let out = if converts { other } else { formats.2 };
            Shape { formats, out, tile, extents, inner, batch, fixed, narrow }
        },
    )
}

/// Names of a kernel's sizes: rows, columns, depth, depth of inner products, matrices.
const SIZES: [&str; 5] = ["m", "n", "k", "d", "b"];

/// Writes a kernel: views of its arguments stand before everything else.
struct Kernel<'a> {
    writer: Writer<'a>,
    shape: &'a Shape,
    arguments: Vec<Argument>,
    views: String,
    /// The block's indices.
    place: Vec<&'static str>,
    /// Sizes that turns are counted by.
    counted: Vec<&'static str>,
    /// Whether a factor has larger integers already: sums of two such are rounded.
    is_wide: bool,
}

/// A matrix of the kernel's: its sizes, the tile that is loaded, and the indices of it.
#[derive(Clone)]
struct Matrix {
    sizes: [&'static str; 2],
    tile: [usize; 2],
    index: [String; 2],
}

impl Matrix {
    fn turned(&self) -> Matrix {
        let [first, second] = self.index.clone();
        Matrix {
            sizes: [self.sizes[1], self.sizes[0]],
            tile: [self.tile[1], self.tile[0]],
            index: [second, first],
        }
    }
}

/// A kernel by the choices on a tape, and its arguments.
pub(super) fn kernel(tape: &[u8], shape: &Shape, ops: usize) -> (String, Vec<Argument>) {
    let rank = 2 + usize::from(shape.batch.is_some());
    let tile = [vec![1; rank - 2], shape.tile[..2].to_vec()].concat();
    let mut writer = Writer::new(tape, tile, Kind::Any);
    writer.counters = Some(Counters { dtype: DType::I32, kind: AtomicKind::Add });
    let place = ["%i", "%j", "%h"][..rank].to_vec();
    let mut kernel = Kernel {
        writer,
        shape,
        arguments: Vec::new(),
        views: String::new(),
        place,
        counted: Vec::new(),
        is_wide: false,
    };
    kernel.write(ops);
    kernel.bind_sizes();
    let signature: Vec<String> = kernel
        .arguments
        .iter()
        .map(|argument| {
            let mutable = if ["%y", "%c"].contains(&argument.name.as_str()) { "mut " } else { "" };
            format!("{}: {mutable}{}", argument.name, argument.ty("tensor", ""))
        })
        .collect();
    let (views, body) = (&kernel.views, &kernel.writer.text);
    (format!("kernel @products({}) {{\n{views}{body}}}\n", signature.join(", ")), kernel.arguments)
}

impl Kernel<'_> {
    fn write(&mut self, ops: usize) {
        let persistent = self.own();
        let sums = self.sums();
        let mut result = sums[0].clone();
        let total = self.shape.formats.2;
        for other in &sums[1..] {
            let other = self.writer.cast(other, total);
            let body = format!("add {}, {}", result.name, other.name);
            result = self.writer.define(&body, &result.shape.clone(), total);
        }
        self.writer.region(ops);
        let whole = self.writer.tile.clone();
        let result = self.writer.cast(&result, self.shape.out);
        let mut result = self.writer.reshaped(&result, &whole);
        if ops > 0 {
            let other = self.writer.fitted(self.shape.out);
            let op = if self.shape.out == DType::Bool { "xor" } else { "add" };
            let body = format!("{op} {}, {}", result.name, other.name);
            result = self.writer.define(&body, &whole, self.shape.out);
        }
        let own = self.writer.own(0, true);
        self.writer.line(&format!("store_masked {own}, {}", result.name));
        if persistent {
            self.writer.depth -= 1;
            self.writer.line("}");
        }
    }

    fn size(&self, name: &str) -> usize {
        let [m, n, k] = self.shape.extents;
        let sizes = [m, n, k, self.shape.inner, self.shape.batch.unwrap_or(1)];
        SIZES.iter().zip(sizes).find(|(size, _)| **size == name).expect("a size of the kernel").1
    }

    fn argument(&mut self, name: &str, sizes: &[&str], dtype: DType) -> Argument {
        let extents: Vec<usize> = sizes.iter().map(|size| self.size(size)).collect();
        let named = match self.shape.fixed {
            true => extents.iter().map(usize::to_string).collect(),
            false => sizes.iter().map(|&size| size.to_owned()).collect(),
        };
        let argument = Argument { name: name.to_owned(), dtype, extents, names: named };
        self.arguments.push(argument.clone());
        argument
    }

    /// Sizes and extents with the axis of matrices in front, where there is one.
    fn batched<T: Clone>(&self, batch: T, axes: &[T]) -> Vec<T> {
        let front = vec![batch; self.place.len() - 2];
        front.into_iter().chain(axes.iter().cloned()).collect()
    }

    fn view(&mut self, argument: &Argument, tile: &[usize], mutable: &str) -> String {
        let name = self.writer.name();
        let cut = format!("[{}]", list(tile));
        let ty = argument.ty(&format!("{mutable}partition"), &format!(", {cut}"));
        self.views += &format!("  {name} = partition {} {cut} : {ty}\n", argument.name);
        name
    }

    /// The result, the counters, and the block's tile; whether it has one after the other.
    fn own(&mut self) -> bool {
        let sizes = self.batched("b", &["m", "n"]);
        let result = self.argument("%y", &sizes, self.shape.out);
        let counters = Argument {
            name: "%c".to_owned(),
            dtype: DType::I32,
            extents: vec![7],
            names: vec!["7".to_owned()],
        };
        self.arguments.push(counters);
        let tile = self.writer.tile.clone();
        let name = self.view(&result, &tile, "mut ");
        self.writer.outputs.push(Output { name, dtype: self.shape.out, whole: false, spanned: 0 });
        self.writer.own_tile()
    }

    /// A tile of a matrix of this format, the right way round; the tensor may have it the other way.
    fn load(&mut self, matrix: &Matrix, dtype: DType) -> Entry {
        let is_turned = self.writer.choose(3) == 0;
        let lies = if is_turned { matrix.turned() } else { matrix.clone() };
        let name = format!("%f{}", self.arguments.len());
        let sizes = self.batched("b", &lies.sizes);
        let argument = self.argument(&name, &sizes, dtype);
        let tile = self.batched(1, &lies.tile);
        let view = self.view(&argument, &tile, "");
        self.writer.tensors.push((name, tile.len(), dtype));
        self.writer.inputs.push(Input { name: view.clone(), tile: tile.clone(), dtype, whole: false });
        let pad = usize::from(self.writer.choose(6) == 0);
        let pad = self.writer.number(dtype, pad as u8);
        let index = self.batched(self.place[0].to_owned(), &lies.index).join(", ");
        let loaded =
            self.writer.define(&format!("load_masked {view}[{index}] pad {}", pad.name), &tile, dtype);
        let loaded = self.writer.reshaped(&loaded, &lies.tile);
        if !is_turned {
            return loaded;
        }
        self.writer.define(&format!("permute {} [1, 0]", loaded.name), &matrix.tile, dtype)
    }

    /// A factor of small integers; one of a kernel may have integers of twelve bits.
    fn factor(&mut self, matrix: &Matrix, dtype: DType, may_be_product: bool) -> Entry {
        let may_be_wide = [DType::F32, DType::F64].contains(&dtype) && !self.is_wide;
        // Converted, made, or some bits of integers.
        let kind =
            if self.shape.narrow { [3, 3, 7, 7][self.writer.choose(4)] } else { self.writer.choose(9) };
        match kind {
            0..=2 => self.load(matrix, dtype),
            3 => {
                let stored = self.writer.format();
                let loaded = self.load(matrix, stored);
                self.writer.cast(&loaded, dtype)
            }
            4 => self.scaled(matrix, dtype),
            5 => self.gathered(matrix, dtype),
            6 if may_be_product => self.inner_product(matrix, dtype),
            7 if may_be_wide => self.taken(matrix, dtype),
            7 => self.made(matrix, dtype),
            _ => {
                let loaded = self.load(matrix, dtype);
                let ops = self.writer.choose(3);
                self.writer.region(ops);
                let any = self.writer.same_type_as(&loaded);
                self.writer.summable(&any)
            }
        }
    }

    /// A tile times a line along the depth, which the same turn loads.
    fn scaled(&mut self, matrix: &Matrix, dtype: DType) -> Entry {
        let loaded = self.load(matrix, dtype);
        let along = usize::from(matrix.sizes[0] != "k");
        let name = format!("%f{}", self.arguments.len());
        let argument = self.argument(&name, &[matrix.sizes[along]], dtype);
        let extent = matrix.tile[along];
        let view = self.view(&argument, &[extent], "");
        let pad = self.writer.number(dtype, 1);
        let body = format!("load_masked {view}[{}] pad {}", matrix.index[along], pad.name);
        let line = self.writer.define(&body, &[extent], dtype);
        let mut shape = [1, 1];
        shape[along] = extent;
        let line = self.writer.reshaped(&line, &shape);
        let line = self.writer.define(&format!("broadcast {}", line.name), &matrix.tile, dtype);
        let op = ["mul", "add", "max"][self.writer.choose(3)];
        self.writer.define(&format!("{op} {}, {}", loaded.name, line.name), &matrix.tile, dtype)
    }

    /// Rows that a list names, at the same columns.
    fn gathered(&mut self, matrix: &Matrix, dtype: DType) -> Entry {
        if self.shape.batch.is_some() {
            return self.load(matrix, dtype);
        }
        let [rows, columns] = matrix.tile;
        let indices = format!("%f{}", self.arguments.len());
        let indices = self.argument(&indices, &[matrix.sizes[0]], DType::I32);
        let view = self.view(&indices, &[rows], "");
        let name = format!("%f{}", self.arguments.len());
        self.argument(&name, &matrix.sizes, dtype);
        self.writer.tensors.push((name.clone(), 2, dtype));
        let none = self.writer.number(DType::I32, 0);
        let body = format!("load_masked {view}[{}] pad {}", matrix.index[0], none.name);
        let row = self.writer.define(&body, &[rows], DType::I32);
        let row = self.writer.reshaped(&row, &[rows, 1]);
        let row = self.writer.define(&format!("broadcast {}", row.name), &matrix.tile, DType::I32);
        let column = self.writer.define("iota 1", &matrix.tile, DType::I32);
        let extent = self.writer.number(DType::I32, columns as u8);
        let at = self.writer.define(&format!("cast {}", matrix.index[1]), &[], DType::I32);
        let start = self.writer.define(&format!("mul {}, {}", at.name, extent.name), &[], DType::I32);
        let start = self.writer.splat(&start, &matrix.tile);
        let body = format!("add {}, {}", column.name, start.name);
        let column = self.writer.define(&body, &matrix.tile, DType::I32);
        let pad = self.writer.number(dtype, 0);
        let body = format!("gather_load {name}[{}, {}] pad {}", row.name, column.name, pad.name);
        self.writer.define(&body, &matrix.tile, dtype)
    }

    /// Positions in the tile, and the turn, made small.
    fn made(&mut self, matrix: &Matrix, dtype: DType) -> Entry {
        let axis = self.writer.choose(2);
        let count = self.writer.define(&format!("iota {axis}"), &matrix.tile, DType::I32);
        let turn = self.writer.choose(2);
        let turn = self.writer.define(&format!("cast {}", matrix.index[turn]), &[], DType::I32);
        let turn = self.writer.splat(&turn, &matrix.tile);
        let sum = self.writer.define(&format!("add {}, {}", count.name, turn.name), &matrix.tile, DType::I32);
        let four = self.writer.number(DType::I32, 4);
        let four = self.writer.splat(&four, &matrix.tile);
        let rest = self.writer.define(&format!("rem {}, {}", sum.name, four.name), &matrix.tile, DType::I32);
        self.writer.cast(&rest, dtype)
    }

    /// A tile with a number.
    fn with(&mut self, op: &str, entry: &Entry, number: u32) -> Entry {
        let number = self.writer.define(&format!("constant {number}"), &[], entry.dtype);
        let number = self.writer.splat(&number, &entry.shape);
        self.writer.define(&format!("{op} {}, {}", entry.name, number.name), &entry.shape, entry.dtype)
    }

    /// Some bits of what positions and the turn give, shifted by amounts that count modulo the width.
    fn taken(&mut self, matrix: &Matrix, dtype: DType) -> Entry {
        self.is_wide = true;
        let format = [DType::I32, DType::U32, DType::U16, DType::U64][self.writer.choose(4)];
        let axis = self.writer.choose(2);
        let place = self.writer.define(&format!("iota {axis}"), &matrix.tile, DType::I32);
        let turn = self.writer.define(&format!("cast {}", matrix.index[axis]), &[], DType::I32);
        let turn = self.writer.splat(&turn, &matrix.tile);
        let spread = self.with("mul", &place, 37);
        let body = format!("add {}, {}", spread.name, turn.name);
        let sum = self.writer.define(&body, &matrix.tile, DType::I32);
        let low = self.with("and", &sum, 4095);
        let low = self.writer.cast(&low, format);
        let up = 4 * self.writer.choose(if format == DType::U16 { 2 } else { 3 }) as u32;
        let down = up + self.writer.choose(3) as u32 + format.bits() * self.writer.choose(2) as u32;
        let high = self.with("shl", &low, up);
        let mut bits = self.with("shr", &high, down);
        if let Some(&mask) = [15, 255, 511].get(self.writer.choose(6)) {
            bits = self.with("and", &bits, mask);
        }
        if format.is_signed() && self.writer.choose(2) == 0 {
            bits = self.with("sub", &bits, 8);
        }
        self.writer.cast(&bits, dtype)
    }

    /// A factor that is a product itself, the right way round or turned.
    fn inner_product(&mut self, matrix: &Matrix, dtype: DType) -> Entry {
        if self.writer.choose(3) > 0 {
            return self.product_of(matrix, dtype);
        }
        let product = self.product_of(&matrix.turned(), dtype);
        self.across(&product)
    }

    /// A tile turned, perhaps in a branch as well, of which elements that are larger count.
    fn across(&mut self, tile: &Entry) -> Entry {
        let (body, shape) = (format!("permute {} [1, 0]", tile.name), [tile.shape[1], tile.shape[0]]);
        if self.writer.choose(2) > 0 {
            return self.writer.define(&body, &shape, tile.dtype);
        }
        let zero = self.writer.number(tile.dtype, 0);
        let zero = self.writer.splat(&zero, &shape);
        let one = self.writer.number(DType::Index, 1);
        let place = self.place[self.place.len() - 1];
        let first = self.writer.define(&format!("lt {place}, {}", one.name), &[], DType::Bool);
        let of_branch = Entry { name: self.writer.name(), ..zero.clone() };
        self.writer.line(&format!("{} = if {} : {} {{", of_branch.name, first.name, zero.ty()));
        let outer = self.writer.enter();
        let inside = self.writer.define(&body, &shape, tile.dtype);
        self.writer.line(&format!("yield {}", inside.name));
        self.writer.leave(outer);
        self.writer.line("} else {");
        let outer = self.writer.enter();
        self.writer.line(&format!("yield {}", zero.name));
        self.close(outer);
        let outside = self.writer.define(&body, &shape, tile.dtype);
        self.writer.define(&format!("max {}, {}", outside.name, of_branch.name), &shape, tile.dtype)
    }

    /// A product of small integers, made small itself, at once or in a loop of its own.
    fn product_of(&mut self, matrix: &Matrix, dtype: DType) -> Entry {
        let all = products();
        let (left, right, total) = all[self.writer.choose(all.len())];
        let [rows, columns] = matrix.tile;
        let depth = [16, 32, 8, 5][self.writer.choose(4)];
        let loops = self.writer.choose(2) == 0;
        let zero = self.writer.number(total, 0);
        let zero = self.writer.splat(&zero, &matrix.tile);
        let start = self.writer.number(DType::Index, 0);
        let turn = if loops { self.writer.name() } else { start.name.clone() };
        let [of_rows, of_columns] = matrix.index.clone();
        let a = Matrix { sizes: [matrix.sizes[0], "d"], tile: [rows, depth], index: [of_rows, turn.clone()] };
        let b = Matrix {
            sizes: ["d", matrix.sizes[1]],
            tile: [depth, columns],
            index: [turn.clone(), of_columns],
        };
        let mut sum = zero.clone();
        if loops {
            let end = self.turns("d", depth);
            let (carried, result) = (self.writer.name(), self.writer.name());
            let ty = zero.ty();
            self.writer.line(&format!(
                "{result} = for {turn} = {} to {} carry ({carried} = {}) : {ty} {{",
                start.name, end.name, zero.name
            ));
            let outer = self.writer.enter();
            self.writer.scope.push(Entry { name: turn, shape: Vec::new(), dtype: DType::Index });
            let carried = Entry { name: carried, ..zero.clone() };
            let next = self.multiplied(&a, &b, (left, right, total), &carried, false);
            self.writer.line(&format!("yield {}", next.name));
            self.close(outer);
            sum = Entry { name: result, ..zero };
            self.writer.scope.push(sum.clone());
        } else {
            sum = self.multiplied(&a, &b, (left, right, total), &sum, false);
        }
        let small = if total.is_float() { self.writer.summable(&sum) } else { self.clamped(&sum) };
        self.writer.cast(&small, dtype)
    }

    /// Integers as those of -4..=4.
    fn clamped(&mut self, entry: &Entry) -> Entry {
        let four = self.writer.number(entry.dtype, 4);
        let four = self.writer.splat(&four, &entry.shape);
        let body = format!("min {}, {}", entry.name, four.name);
        let low = self.writer.define(&body, &entry.shape, entry.dtype);
        if !entry.dtype.is_signed() {
            return low;
        }
        let least = self.writer.define(&format!("neg {}", four.name), &entry.shape, entry.dtype);
        self.writer.define(&format!("max {}, {}", low.name, least.name), &entry.shape, entry.dtype)
    }

    /// How many tiles of that many elements a size has.
    fn turns(&mut self, size: &'static str, tile: usize) -> Entry {
        self.counted.push(size);
        let extent = if self.shape.fixed { self.size(size).to_string() } else { size.to_owned() };
        self.writer.define(&format!("extent ceil_div({extent}, {tile})"), &[], DType::Index)
    }

    /// Sizes that the kernel counts turns by are those of some argument.
    fn bind_sizes(&mut self) {
        for size in std::mem::take(&mut self.counted) {
            if !self.shape.fixed && self.arguments.iter().all(|it| it.names.iter().all(|name| name != size)) {
                let name = format!("%f{}", self.arguments.len());
                self.argument(&name, &[size], DType::U8);
            }
        }
    }

    fn multiplied(
        &mut self,
        a: &Matrix,
        b: &Matrix,
        (left, right, total): Formats,
        sum: &Entry,
        may_be_product: bool,
    ) -> Entry {
        let a = self.factor(a, left, may_be_product);
        let b = self.factor(b, right, may_be_product);
        self.writer.define(&format!("mma {}, {}, {}", a.name, b.name, sum.name), &sum.shape, total)
    }

    /// Ends a region and what it is of.
    fn close(&mut self, outer: usize) {
        self.writer.leave(outer);
        self.writer.line("}");
    }

    /// The sums of all products, and what else the loop over the depth carries, as tiles of the result's matrix.
    fn sums(&mut self) -> Vec<Entry> {
        let (left, _, total) = self.shape.formats;
        let [rows, columns, _] = self.shape.tile;
        let whole = [rows, columns];
        let count = 1 + usize::from(self.writer.choose(3) == 0);
        let mut carried: Vec<Entry> = (0..count)
            .map(|_| {
                let first = self.writer.choose(3) as u8;
                let first = self.writer.number(total, first / 2);
                self.writer.splat(&first, &whole)
            })
            .collect();
        if self.writer.choose(4) == 0 {
            // The greatest of each row.
            let least = self.writer.number(left, 0);
            carried.push(self.writer.splat(&least, &[rows, 1]));
        }
        let repeats = self.writer.choose(5) == 0;
        let sums = if repeats {
            let (zero, two) = (self.writer.number(DType::Index, 0), self.writer.number(DType::Index, 2));
            self.repeated(&zero, &two, &carried, |kernel, _, carried| kernel.depth_loop(carried, count))
        } else {
            self.depth_loop(&carried, count)
        };
        self.spread(sums, &whole)
    }

    /// What is a column is repeated along rows.
    fn spread(&mut self, entries: Vec<Entry>, whole: &[usize]) -> Vec<Entry> {
        let mut spread = Vec::new();
        for entry in entries {
            spread.push(match entry.shape == whole {
                true => entry,
                false => self.writer.define(&format!("broadcast {}", entry.name), whole, entry.dtype),
            });
        }
        spread
    }

    /// A loop whose body makes the next of what it carries.
    fn repeated(
        &mut self,
        start: &Entry,
        end: &Entry,
        carried: &[Entry],
        body: impl FnOnce(&mut Self, &Entry, &[Entry]) -> Vec<Entry>,
    ) -> Vec<Entry> {
        let counter = Entry { name: self.writer.name(), shape: Vec::new(), dtype: DType::Index };
        let (params, results) = (self.writer.fresh(carried), self.writer.fresh(carried));
        let pairs: Vec<String> =
            params.iter().zip(carried).map(|(p, c)| format!("{} = {}", p.name, c.name)).collect();
        let types: Vec<String> = carried.iter().map(Entry::ty).collect();
        self.writer.line(&format!(
            "{} = for {} = {} to {} carry ({}) : {} {{",
            names(&results),
            counter.name,
            start.name,
            end.name,
            pairs.join(", "),
            types.join(", ")
        ));
        let outer = self.writer.enter();
        self.writer.scope.push(counter.clone());
        let next = body(self, &counter, &params);
        self.writer.line(&format!("yield {}", names(&next)));
        self.close(outer);
        self.writer.scope.extend(results.iter().cloned());
        results
    }

    fn depth_loop(&mut self, carried: &[Entry], count: usize) -> Vec<Entry> {
        let depth = self.shape.tile[2];
        let start = self.writer.number(DType::Index, 0);
        let end = self.turns("k", depth);
        let end = if self.writer.choose(6) == 0 { self.ended_by_data(&end) } else { end };
        self.repeated(&start, &end, carried, |kernel, turn, carried| {
            if kernel.writer.choose(6) == 0 {
                kernel.skipped(turn, carried, count)
            } else {
                kernel.turn(turn, carried, count)
            }
        })
    }

    /// The end, or an earlier one that a tensor says.
    fn ended_by_data(&mut self, end: &Entry) -> Entry {
        let name = format!("%f{}", self.arguments.len());
        let argument = self.argument(&name, &["m"], DType::I32);
        let view = self.view(&argument, &[1], "");
        let pad = self.writer.number(DType::I32, 1);
        let place = self.place[self.place.len() - 2];
        let body = format!("load_masked {view}[{place}] pad {}", pad.name);
        let tile = self.writer.define(&body, &[1], DType::I32);
        let item = self.writer.define(&format!("item {}", tile.name), &[], DType::I32);
        let item = self.writer.define(&format!("cast {}", item.name), &[], DType::Index);
        self.writer.define(&format!("min {}, {}", item.name, end.name), &[], DType::Index)
    }

    /// A turn that is left out unless it is the first.
    fn skipped(&mut self, turn: &Entry, carried: &[Entry], count: usize) -> Vec<Entry> {
        let one = self.writer.number(DType::Index, 1);
        let body = format!("lt {}, {}", turn.name, one.name);
        let condition = self.writer.define(&body, &[], DType::Bool);
        let results = self.writer.fresh(carried);
        let types: Vec<String> = carried.iter().map(Entry::ty).collect();
        let all = names(&results);
        self.writer.line(&format!("{all} = if {} : {} {{", condition.name, types.join(", ")));
        let outer = self.writer.enter();
        let next = self.turn(turn, carried, count);
        self.writer.line(&format!("yield {}", names(&next)));
        self.writer.leave(outer);
        self.writer.line("} else {");
        let outer = self.writer.enter();
        self.writer.line(&format!("yield {}", names(carried)));
        self.close(outer);
        self.writer.scope.extend(results.iter().cloned());
        results
    }

    /// What a turn adds: products that share their left factor, and the greatest of its rows.
    fn turn(&mut self, turn: &Entry, carried: &[Entry], count: usize) -> Vec<Entry> {
        let (left, right, total) = self.shape.formats;
        let [rows, columns, depth] = self.shape.tile;
        let [i, j] = [2, 1].map(|back| self.place[self.place.len() - back].to_owned());
        let a = Matrix { sizes: ["m", "k"], tile: [rows, depth], index: [i, turn.name.clone()] };
        let b = Matrix { sizes: ["k", "n"], tile: [depth, columns], index: [turn.name.clone(), j] };
        let a = self.factor(&a, left, true);
        let mut next = Vec::new();
        for sum in &carried[..count] {
            let b = self.factor(&b, right, true);
            let body = format!("mma {}, {}, {}", a.name, b.name, sum.name);
            next.push(self.writer.define(&body, &sum.shape, total));
        }
        for greatest in &carried[count..] {
            let row = self.writer.define(&format!("reduce max {} axis 1", a.name), &greatest.shape, left);
            let body = format!("max {}, {}", greatest.name, row.name);
            next.push(self.writer.define(&body, &greatest.shape, left));
        }
        next
    }
}
