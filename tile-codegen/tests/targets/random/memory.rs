//! A kernel's arguments, the views and partitions of them, and the ops that read and write memory.

use super::writer::{Counters, Entry, Input, Output, Writer, list, type_text};
use tile_ir::ops::{AtomicKind, Order};
use tile_ir::types::TensorType;
use tile_ir::view::TensorMovement;
use tile_ir::{DType, Dim};

/// What a kernel's tensors hold, and how large they are.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// The format of the first input and the first output.
    pub(super) dtype: DType,
    /// The format of the second ones.
    pub(super) other: DType,
    /// The extents of tiles that blocks own, along one to five axes.
    pub(super) tile: Vec<usize>,
    /// The extents of every tensor but the counters.
    pub(super) extents: Vec<usize>,
    /// Whether the kernel knows them.
    pub(super) fixed: bool,
    /// Whether there is a second output.
    pub(super) two: bool,
    /// How many counters there are.
    pub(super) counters: usize,
    /// Whether tensors hold the greatest and least numbers too, and what is no number.
    pub(super) extreme: bool,
}

/// Where views are selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Selected {
    /// At small numbers.
    AtNumbers,
    /// At indices that may be computed, and lie outside.
    AtIndices,
}

/// The block's index along each axis.
const PLACE: [&str; 5] = ["%i", "%j", "%h", "%g", "%f"];

impl Layout {
    fn tensor(&self, dtype: DType, mutable: bool) -> TensorType {
        let sizes = ["m", "n", "b", "d", "e"].into_iter().zip(&self.extents);
        let extent = |(name, &extent)| if self.fixed { Dim::from(extent as i64) } else { Dim::size(name) };
        TensorType::dense(sizes.map(extent).collect(), dtype, mutable)
    }

    /// Whether tiles without a mask are accepted. A tensor that is known to be empty has none.
    fn divides(&self) -> bool {
        let mut axes = self.extents.iter().zip(&self.tile);
        axes.all(|(extent, tile)| extent % tile == 0 && (!self.fixed || *extent > 0))
    }
}

fn partition_type(tensor: &TensorType, cut: &str) -> String {
    let text = tensor.to_string().replacen("tensor<", "partition<", 1);
    format!("{}, {cut}>", text.strip_suffix('>').expect("a tensor's type ends so"))
}

impl Writer<'_> {
    /// The head of the kernel: what everything else uses.
    pub(super) fn arguments(&mut self, layout: &Layout) {
        let (x, z) = (layout.tensor(layout.dtype, false), layout.tensor(layout.other, false));
        let (y, w) = (layout.tensor(layout.dtype, true), layout.tensor(layout.other, true));
        let counters = self.counted();
        self.text = format!(
            "kernel @random(%x: {x}, %z: {z}, %y: {y}, %w: {w}, %c: mut tensor<k x {}>, %s: {}) {{\n",
            counters.dtype, layout.other
        );
        self.counters = Some(counters);
        self.scope.push(Entry { name: "%s".to_owned(), shape: Vec::new(), dtype: layout.other });
        self.outputs(layout, y, w);
        let rank = self.tile.len();
        self.tensors = vec![("%x".to_owned(), rank, layout.dtype), ("%z".to_owned(), rank, layout.other)];
        for (name, tensor) in [("%x", x), ("%z", z)] {
            self.viewed.push((name.to_owned(), tensor.clone()));
            let dtype = tensor.elem.known().expect("no kernel is generic");
            let tile = self.tile.clone();
            self.input(name, &tensor, &tile, layout.divides());
            let (view, moved) = self.moved(name, tensor, 3, Selected::AtNumbers);
            let rank = moved.extents.len();
            self.tensors.push((view.clone(), rank, dtype));
            self.viewed.push((view.clone(), moved.clone()));
            let most = if rank > 3 { 3 } else { 5 };
            let tile: Vec<usize> = (0..rank).map(|_| 1 + self.choose(most)).collect();
            self.input(&view, &moved, &tile, false);
        }
    }

    /// What is done to counters: what leaves the same in any order.
    fn counted(&mut self) -> Counters {
        use AtomicKind::{Add, And, Max, Min, Or, Store, Sub, Xor};
        let kinds = [Add, Sub, Min, Max, And, Or, Xor, Store];
        let kind = kinds[self.choose(kinds.len())];
        // Sums of f16 and bf16 are rounded.
        let is_exact = |dtype: DType| kind == Store || !matches!(dtype, DType::F16 | DType::BF16);
        let supports = |dtype: &DType| kind.supports(*dtype) && is_exact(*dtype);
        let formats: Vec<DType> = super::formats().into_iter().filter(supports).collect();
        Counters { dtype: formats[self.choose(formats.len())], kind }
    }

    /// The partitions that are written: one movement for both, so that their grids agree.
    fn outputs(&mut self, layout: &Layout, y: TensorType, w: TensorType) {
        let mut chain = 0;
        if self.choose(2) == 0 {
            chain = 1 + self.choose(3);
        }
        let rank = self.tile.len();
        let spanned: &[usize] = [&[][..], &[], &[], &[0], &[1], &[0, 1], &[2], &[1, 3]][self.choose(8)];
        let spanned = if spanned.iter().all(|&axis| axis < rank) { spanned } else { &[] };
        let spanning = if spanned.is_empty() { String::new() } else { format!(" spanning {spanned:?}") };
        let start = self.tape.clone();
        let both = [("%y", y), ("%w", w)];
        let count = if layout.two { 2 } else { 1 };
        for (name, tensor) in both.into_iter().take(count) {
            self.tape = start.clone();
            let (mut view, mut moved) = (name.to_owned(), tensor.clone());
            if chain > 0 {
                (view, moved) = self.moved_alike(name, tensor, chain);
            }
            let tile = self.tile.clone();
            let cut = format!("[{}]{spanning}", list(&tile));
            let partition = self.name();
            self.line(&format!("{partition} = partition {view} {cut} : {}", partition_type(&moved, &cut)));
            let dtype = moved.elem.known().expect("no kernel is generic");
            // Blocks that span an axis are there even if no tile is.
            let has_tiles = spanned.is_empty() || layout.extents.iter().all(|&extent| extent > 0);
            let whole = view == name && layout.divides() && has_tiles;
            self.outputs.push(Output { name: partition, dtype, whole, spanned: spanned.len() });
        }
    }

    /// The block's tile: its only one, or, as this says, one after the other in an order.
    pub(super) fn own_tile(&mut self) -> bool {
        let first = self.outputs[0].name.clone();
        let orders = [None, None, None, Some("row_major"), Some("grouped(2)"), Some("hilbert")];
        let order = orders[self.choose(orders.len())];
        if let Some(order) = order {
            self.shares_tiles = true;
            self.line(&format!("tiles {first} {order} {{"));
            self.depth += 1;
        }
        let place = self.place();
        let types = vec!["index"; place.len()].join(", ");
        self.line(&format!("{} = block_index {first} : {types}", place.join(", ")));
        for &name in place {
            self.scope.push(Entry { name: name.to_owned(), shape: Vec::new(), dtype: DType::Index });
        }
        order.is_some()
    }

    /// The names of the block's index.
    fn place(&self) -> &'static [&'static str] {
        &PLACE[..self.tile.len()]
    }

    fn input(&mut self, view: &str, tensor: &TensorType, tile: &[usize], whole: bool) {
        let mut cut = format!("[{}]", list(tile));
        let steps: Vec<usize> = tile.iter().map(|_| 1 + self.choose(6)).collect();
        let strided = !whole && self.choose(3) == 0 && steps != tile;
        if strided {
            cut += &format!(" step [{}]", list(&steps));
        }
        let name = self.name();
        self.line(&format!("{name} = partition {view} {cut} : {}", partition_type(tensor, &cut)));
        let dtype = tensor.elem.known().expect("no kernel is generic");
        self.inputs.push(Input { name, tile: tile.to_vec(), dtype, whole });
    }

    /// A tensor moved a few times, by what fits.
    fn moved(
        &mut self,
        name: &str,
        tensor: TensorType,
        most: usize,
        selected: Selected,
    ) -> (String, TensorType) {
        let (mut name, mut tensor) = (name.to_owned(), tensor);
        for _ in 0..self.choose(most + 1) {
            let movement = self.tensor_movement(&tensor);
            (name, tensor) = self.apply(name, tensor, &movement, selected);
        }
        (name, tensor)
    }

    /// A view that is made behind loops, by indices that may be known there alone, and a tile of it: as large as the own one,
    /// or one row or column of that. In a loop there is none.
    pub(super) fn view(&mut self) {
        if self.viewed.is_empty() || self.depth > 0 {
            self.load();
            return;
        }
        let which = self.choose(self.viewed.len());
        let (name, tensor) = self.viewed[which].clone();
        let (view, moved) = self.moved(&name, tensor, 2, Selected::AtIndices);
        let rank = moved.extents.len();
        if view != name {
            self.viewed.push((view.clone(), moved.clone()));
        }
        // The last axes are those of the own tile, or one element of them.
        let own = [vec![1; rank], self.tile.clone()].concat();
        let own = own[own.len() - rank..].to_vec();
        let tile: Vec<usize> =
            own.into_iter().map(|extent| if self.choose(3) == 0 { 1 } else { extent }).collect();
        self.input(&view, &moved, &tile, false);
        let Input { name, dtype, .. } = self.inputs[self.inputs.len() - 1].clone();
        let loaded = self.load_masked(&name, &tile, dtype);
        let line = [vec![1; self.tile.len()], tile].concat();
        self.reshaped(&loaded, &line[line.len() - self.tile.len()..]);
    }

    /// A tensor moved so that it has as many axes in the end.
    fn moved_alike(&mut self, name: &str, tensor: TensorType, most: usize) -> (String, TensorType) {
        let (mut name, mut tensor, rank) = (name.to_owned(), tensor, self.tile.len());
        for _ in 0..most {
            let movement = self.tensor_movement(&tensor);
            if movement.apply(&tensor).is_ok_and(|(moved, _)| moved.extents.len() == rank) {
                (name, tensor) = self.apply(name, tensor, &movement, Selected::AtNumbers);
            }
        }
        (name, tensor)
    }

    /// The movement, where it fits without a check at the launch.
    fn apply(
        &mut self,
        name: String,
        tensor: TensorType,
        movement: &TensorMovement,
        selected: Selected,
    ) -> (String, TensorType) {
        let moved = match movement.apply(&tensor) {
            Ok((moved, requires)) if requires.is_empty() && (1..=5).contains(&moved.extents.len()) => moved,
            _ => return (name, tensor),
        };
        let mut at = String::new();
        if matches!(movement, TensorMovement::Select { .. }) {
            at = format!(" at {}", self.index_of_select(selected).name);
        }
        let view = self.name();
        self.line(&format!("{view} = view {name} {movement}{at} : {moved}"));
        (view, moved)
    }

    fn index_of_select(&mut self, selected: Selected) -> Entry {
        match selected {
            Selected::AtNumbers => {
                let number = self.choose(5);
                self.define(&format!("constant {number}"), &[], DType::Index)
            }
            Selected::AtIndices => {
                self.pick(|entry| entry.dtype == DType::Index).expect("the block's index is in scope")
            }
        }
    }

    fn tensor_movement(&mut self, tensor: &TensorType) -> TensorMovement {
        let rank = tensor.extents.len();
        let axis = self.choose(rank);
        let extent = tensor.extents[axis].clone();
        let known = extent.as_const().filter(|&extent| extent > 0);
        let (a, b) = (self.choose(5) as i64, self.choose(3) as i64);
        let pairs = |at: (Dim, Dim), other: &dyn Fn(&Dim) -> (Dim, Dim)| -> Vec<(Dim, Dim)> {
            let all = tensor.extents.iter().enumerate();
            all.map(|(i, extent)| if i == axis { at.clone() } else { other(extent) }).collect()
        };
        match self.choose(12) {
            0 => TensorMovement::Permute((0..rank).rev().collect()),
            1 => TensorMovement::Flip(vec![axis]),
            2 => {
                let begin = known.map_or(0, |extent| a.min(extent - 1));
                let end = known.map_or(extent, |extent| Dim::from((extent - b).max(begin)));
                TensorMovement::Shrink(pairs((Dim::from(begin), end), &|whole| (Dim::from(0), whole.clone())))
            }
            3 => TensorMovement::Pad(pairs((Dim::from(a), Dim::from(b)), &|_| (Dim::from(0), Dim::from(0)))),
            4 => TensorMovement::Shift { axis, by: Dim::from(a - 2) },
            5 => TensorMovement::Step { axis, step: Dim::from(1 + b) },
            6 if extent.as_const() == Some(1) => TensorMovement::Squeeze(axis),
            6 => TensorMovement::Unsqueeze(axis),
            7 => {
                let inner = [2, 3, 4, 5, 1][a as usize];
                let outer = known.map_or(extent, |extent| Dim::from(extent / inner));
                TensorMovement::Unflatten { axis, extents: vec![outer, Dim::from(inner)] }
            }
            8 => TensorMovement::Flatten { start: axis.saturating_sub(1), end: axis },
            9 => {
                let repeat = |extent: &Dim| {
                    if extent.as_const() == Some(1) { Dim::from(a + 1) } else { extent.clone() }
                };
                let mut extents: Vec<Dim> = tensor.extents.iter().map(repeat).collect();
                if b == 0 {
                    extents.insert(0, Dim::from(2));
                }
                TensorMovement::Expand(extents)
            }
            10 => TensorMovement::Unfold { axis, size: Dim::from(1 + b), step: Dim::from(1 + a) },
            _ => TensorMovement::Select { axis },
        }
    }

    /// Indices of a tile of an input, which may lie beyond it.
    fn tile_index(&mut self, rank: usize) -> String {
        let is_index = |entry: &Entry| entry.dtype == DType::Index;
        let names: Vec<String> =
            (0..rank).map(|_| self.pick(is_index).expect("the block's index is in scope").name).collect();
        names.join(", ")
    }

    /// One of the inputs. A product whose factors are all made has none.
    fn some_input(&mut self) -> Option<Input> {
        let last = self.inputs.len().checked_sub(1)?;
        let which = self.choose(last + 1);
        Some(self.inputs[which].clone())
    }

    pub(super) fn prefetch(&mut self) {
        if self.choose(3) == 0 {
            let output = self.choose(self.outputs.len());
            let tile = self.own(output, true);
            self.line(&format!("prefetch {tile}"));
            return;
        }
        let Some(Input { name, tile, .. }) = self.some_input() else { return };
        let index = self.tile_index(tile.len());
        self.line(&format!("prefetch {name}[{index}]"));
    }

    /// A tile of an input, or the block's own tile of an output.
    pub(super) fn load(&mut self) {
        let input = if self.choose(3) == 0 { None } else { self.some_input() };
        let Some(Input { name, tile, dtype, whole }) = input else {
            let output = self.choose(self.outputs.len());
            self.load_own(output);
            return;
        };
        if whole && self.outputs[0].whole && self.choose(2) == 0 {
            self.define(&format!("load {name}[{}]", self.place().join(", ")), &tile, dtype);
            return;
        }
        self.load_masked(&name, &tile, dtype);
    }

    /// A tile of a partition, whose index may lie outside.
    fn load_masked(&mut self, partition: &str, tile: &[usize], dtype: DType) -> Entry {
        let index = self.tile_index(tile.len());
        let pad = self.number(dtype, 3);
        self.define(&format!("load_masked {partition}[{index}] pad {}", pad.name), tile, dtype)
    }

    /// The block's own tile of an output.
    pub(super) fn load_own(&mut self, which: usize) {
        let Output { dtype, whole, .. } = self.outputs[which].clone();
        let shape = self.tile.clone();
        if whole && self.choose(2) == 0 {
            let tile = self.own(which, false);
            self.define(&format!("load {tile}"), &shape, dtype);
            return;
        }
        let (pad, tile) = (self.number(dtype, 3), self.own(which, true));
        self.define(&format!("load_masked {tile} pad {}", pad.name), &shape, dtype);
    }

    /// A tile of an output that the block owns: of those along axes that are spanned one that may lie outside, or the first.
    pub(super) fn own(&mut self, which: usize, masked: bool) -> String {
        let Output { name, spanned, .. } = self.outputs[which].clone();
        if spanned == 0 {
            return name;
        }
        if masked {
            let index = self.tile_index(spanned);
            return format!("{name}[{index}]");
        }
        let first = self.number(DType::Index, 0).name;
        format!("{name}[{}]", vec![first; spanned].join(", "))
    }

    pub(super) fn store(&mut self) {
        let which = self.choose(self.outputs.len());
        let Output { dtype, whole, .. } = self.outputs[which].clone();
        let tile = self.fitted(dtype);
        let masked = !whole || self.choose(2) == 1;
        let own = self.own(which, masked);
        let op = if masked { "store_masked" } else { "store" };
        self.line(&format!("{op} {own}, {}", tile.name));
    }

    /// Integer tiles of the shape of some tile, one per axis.
    fn places(&mut self, like: &Entry, rank: usize) -> String {
        let places: Vec<String> = (0..rank)
            .map(|_| {
                let from = self.same_type_as(like);
                let integers = from.dtype.is_int();
                let entry = if integers { from } else { self.cast(&from, DType::I16) };
                entry.name
            })
            .collect();
        places.join(", ")
    }

    /// Integer tiles of the shape of some tile, one per axis: along some axis one counts, and the others stay the same.
    fn places_of_rows(&mut self, like: &Entry, rank: usize) -> String {
        let (along, counted) = (self.choose(like.shape.len()), self.choose(rank));
        let mut places = Vec::new();
        for axis in 0..rank {
            let from = self.same_type_as(like);
            let dtype = if from.dtype.is_int() { from.dtype } else { DType::I16 };
            let numbers = self.cast(&from, dtype);
            let mut line = like.shape.clone();
            line[along] = 1;
            let one = self.define(&format!("reduce max {} axis {along}", numbers.name), &line, dtype);
            let same = self.define(&format!("broadcast {}", one.name), &like.shape, dtype);
            if axis != counted {
                places.push(same.name);
                continue;
            }
            let count = self.define(&format!("iota {along}"), &like.shape, dtype);
            let start = match self.choose(3) {
                0 => same,
                choice => {
                    let start = self.number(dtype, [0, 4][choice - 1]);
                    self.splat(&start, &like.shape)
                }
            };
            let op = if self.choose(3) == 0 { "sub" } else { "add" };
            let body = format!("{op} {}, {}", count.name, start.name);
            let counted = self.define(&body, &like.shape, dtype);
            places.push(self.at_borders(counted).name);
        }
        places.join(", ")
    }

    /// Counted numbers, or what becomes of them beyond a border: the nearest inside, the other side, or the mirror image.
    fn at_borders(&mut self, counted: Entry) -> Entry {
        let (shape, dtype) = (counted.shape.clone(), counted.dtype);
        let with = |writer: &mut Self, op: &str, numbers: &Entry, number: u8| {
            let number = writer.number(dtype, number);
            let number = writer.splat(&number, &shape);
            writer.define(&format!("{op} {}, {}", numbers.name, number.name), &shape, dtype)
        };
        match self.choose(6) {
            0 => {
                let raised = with(self, "max", &counted, 3);
                with(self, "min", &raised, 50)
            }
            1 => with(self, "rem", &counted, 37),
            2 => with(self, "rem_euclid", &counted, 5),
            3 => {
                let lowered = with(self, "sub", &counted, 9);
                let mirrored = if dtype.is_signed() { "abs" } else { "not" };
                self.define(&format!("{mirrored} {}", lowered.name), &shape, dtype)
            }
            _ => counted,
        }
    }

    /// Elements of a tensor at the places that tiles name.
    pub(super) fn look_up(&mut self) {
        if self.tensors.is_empty() {
            return;
        }
        let which = self.choose(self.tensors.len());
        let (name, rank, dtype) = self.tensors[which].clone();
        let like = self.tile();
        let places =
            if self.choose(2) == 0 { self.places(&like, rank) } else { self.places_of_rows(&like, rank) };
        let pad = self.number(dtype, 2);
        self.define(&format!("gather_load {name}[{places}] pad {}", pad.name), &like.shape, dtype);
    }

    /// An atomic operation whose result nobody reads; those of one kernel may come in any order.
    pub(super) fn count(&mut self) {
        let Counters { dtype, kind } = self.counters.clone().expect("the arguments are written");
        let like = self.tile();
        let place = self.places(&like, 1);
        let value = match kind {
            // Whoever writes an element last writes the same.
            AtomicKind::Store => {
                let index =
                    self.scope.iter().find(|entry| entry.name == place).expect("it is in scope").clone();
                self.cast(&index, dtype)
            }
            _ => {
                let value = self.same_type_as(&like);
                let value = self.cast(&value, dtype);
                // Sums are rounded, and beyond the greatest number the order of what is added counts.
                if kind == AtomicKind::Add { self.summable(&value) } else { value }
            }
        };
        let mut mask = String::new();
        if self.choose(2) == 0 {
            let holds = self.define(&format!("ne {}, {}", value.name, value.name), &like.shape, DType::Bool);
            let holds =
                self.pick(|entry| entry.shape == like.shape && entry.dtype == DType::Bool).unwrap_or(holds);
            mask = format!(" mask {}", holds.name);
        }
        let value = value.name;
        let (order, scope) = (self.order(kind), ["device", "device", "system"][self.choose(3)]);
        let operation = format!("atomic {} {order} {scope} %c[{place}], {value}{mask}", kind.name());
        if !kind.has_result() {
            self.line(&operation);
            return;
        }
        let (old, ty) = (self.name(), type_text(&like.shape, dtype));
        self.line(&format!("{old} = {operation} : {ty}"));
    }

    fn order(&mut self, kind: AtomicKind) -> &'static str {
        let orders: Vec<Order> = Order::ALL.iter().copied().filter(|order| kind.accepts(*order)).collect();
        orders[self.choose(orders.len())].name()
    }
}
