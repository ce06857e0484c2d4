//! Ops that move elements of tiles or join them.

use super::products::products;
use super::writer::{Entry, Writer, list, names, type_text};
use tile_ir::DType;
use tile_ir::ops::{BinaryOp, ReduceOp};

impl Writer<'_> {
    pub(super) fn broadcast(&mut self) {
        let tile = self.tile();
        let ones = tile.shape.iter().filter(|&&extent| extent == 1).count();
        let one = 1 + self.choose(if ones > 2 { 2 } else { 5 });
        let shape: Vec<usize> =
            tile.shape.iter().map(|&extent| if extent == 1 { one } else { extent }).collect();
        self.define(&format!("broadcast {}", tile.name), &shape, tile.dtype);
    }

    /// Elements of tiles in other places.
    pub(super) fn movement(&mut self) {
        let tile = self.tile();
        let axis = self.choose(tile.shape.len());
        let (name, mut shape) = (tile.name, tile.shape);
        let body = match self.choose(8) {
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
            4 if shape[axis] <= 40 => {
                let fill = self.number(tile.dtype, 1);
                let mut padding = [vec![0; shape.len()], vec![0; shape.len()]];
                padding[0][axis] = self.choose(4);
                padding[1][axis] = self.choose(4);
                shape[axis] += padding[0][axis] + padding[1][axis];
                format!("pad {name}, {} {:?} {:?}", fill.name, padding[0], padding[1])
            }
            5 if shape.iter().product::<usize>() <= 1024 => {
                let mut counts = vec![1; shape.len()];
                counts[axis] = 1 + self.choose(3);
                shape[axis] *= counts[axis];
                format!("repeat {name} {counts:?}")
            }
            6 if shape[axis] <= 64 && shape.iter().product::<usize>() <= 2048 => {
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

    /// Neighbours along the last axis, apart, computed with, and beside each other again.
    pub(super) fn pairs(&mut self) {
        let Some(tile) = self.pick(|entry| entry.shape.last().is_some_and(|extent| extent % 2 == 0)) else {
            return;
        };
        let (mut pairs, dtype) = (tile.shape.clone(), tile.dtype);
        if let Some(last) = pairs.last_mut() {
            *last /= 2;
        }
        pairs.push(2);
        let axis = pairs.len() - 1;
        let both = self.define(&format!("reshape {}", tile.name), &pairs, dtype);
        let mut half = pairs.clone();
        half[axis] = 1;
        let [a, b] = [0, 1].map(|side| {
            let mut starts = vec![0; pairs.len()];
            starts[axis] = side;
            self.define(&format!("extract {} {starts:?}", both.name), &half, dtype)
        });
        let [one, other] = if dtype == DType::Bool { ["xor", "or"] } else { ["sub", "add"] };
        let c = self.define(&format!("{one} {}, {}", a.name, b.name), &half, dtype);
        let like = self.same_type_as(&a);
        let d = self.define(&format!("{other} {}, {}", b.name, like.name), &half, dtype);
        let turned = self.define(&format!("cat {}, {} axis {axis}", c.name, d.name), &pairs, dtype);
        self.define(&format!("reshape {}", turned.name), &tile.shape, dtype);
    }

    /// Elements of tiles at places that other tiles name, which may be longer or shorter along the axis.
    pub(super) fn indexed(&mut self) {
        let tile = self.tile();
        let axis = self.choose(tile.shape.len());
        if tile.shape[axis] > LONGEST_LINE {
            return;
        }
        let fits = |entry: &Entry| {
            let mut axes = entry.shape.iter().zip(&tile.shape).enumerate();
            entry.shape.len() == tile.shape.len()
                && axes.all(|(i, (a, b))| a == b || i == axis && *a <= LONGEST_LINE)
        };
        let from = self.pick(fits).expect("the tile itself fits");
        let values = self.cast(&from, tile.dtype);
        let indices = if from.dtype.is_int() { from } else { self.cast(&from, DType::I16) };
        let (x, indices, values) = (tile.name.clone(), indices, values.name);
        let i = &indices.name;
        match self.choose(3) {
            0 => {
                let fill = self.number(tile.dtype, 1);
                let body = format!("gather {x}, {i}, {} axis {axis}", fill.name);
                self.define(&body, &indices.shape, tile.dtype);
            }
            1 if tile.dtype != DType::Bool => {
                self.define(&format!("scatter_add {x}, {i}, {values} axis {axis}"), &tile.shape, tile.dtype);
            }
            _ => {
                self.define(&format!("scatter {x}, {i}, {values} axis {axis}"), &tile.shape, tile.dtype);
            }
        }
    }

    pub(super) fn reshape(&mut self) {
        let tile = self.tile();
        let count: usize = tile.shape.iter().product();
        let rank = tile.shape.len();
        let mut shape = tile.shape.clone();
        match self.choose(4) {
            0 => shape = vec![count],
            1 => shape.reverse(),
            2 if rank < 5 => {
                let axis = self.choose(rank);
                let divisor = [2, 3, 4, 5, 1][self.choose(5)];
                if shape[axis].is_multiple_of(divisor) {
                    shape[axis] /= divisor;
                    shape.insert(axis + self.choose(2), divisor);
                }
            }
            _ if rank > 1 => {
                let axis = self.choose(rank - 1);
                shape[axis] *= shape.remove(axis + 1);
            }
            _ => shape.insert(0, 1),
        }
        self.define(&format!("reshape {}", tile.name), &shape, tile.dtype);
    }

    pub(super) fn permute(&mut self) {
        let tile = self.tile();
        let mut order: Vec<usize> = (0..tile.shape.len()).collect();
        match self.choose(3) {
            0 => order.reverse(),
            1 => order.rotate_left(1),
            _ => {
                let last = order.len() - 1;
                order.swap(last, last.saturating_sub(1));
            }
        }
        let shape: Vec<usize> = order.iter().map(|&axis| tile.shape[axis]).collect();
        self.define(&format!("permute {} [{}]", tile.name, list(&order)), &shape, tile.dtype);
    }

    pub(super) fn reduce(&mut self) {
        let mut from = self.tile();
        let ops: Vec<ReduceOp> =
            ReduceOp::ALL.iter().copied().filter(|op| op.domain().accepts(from.dtype)).collect();
        let op = ops[self.choose(ops.len())];
        if op == ReduceOp::Sum {
            from = self.wide(&from);
            from = self.summable(&from);
        }
        if op == ReduceOp::Prod && from.dtype.is_float() {
            from = self.summable(&from);
            from = self.define(&format!("signum {}", from.name), &from.shape.clone(), from.dtype);
        }
        let axis = self.choose(from.shape.len());
        let mut shape = from.shape.clone();
        shape[axis] = 1;
        self.define(&format!("reduce {} {} axis {axis}", op.name(), from.name), &shape, from.dtype);
    }

    /// The order of a scan is defined, so that its sums round alike.
    pub(super) fn scan(&mut self) {
        let tile = self.tile();
        if tile.dtype == DType::Bool {
            return;
        }
        let axis = self.choose(tile.shape.len());
        let op = ["sum", "prod", "max", "min"][self.choose(4)];
        let mode = ["", " reverse", " exclusive", " reverse exclusive"][self.choose(4)];
        self.define(&format!("scan {op} {} axis {axis}{mode}", tile.name), &tile.shape, tile.dtype);
    }

    /// A fold of up to three tiles of any formats, whose closure also uses scalars from outside.
    pub(super) fn fold(&mut self) {
        let first = self.tile();
        let axis = self.choose(first.shape.len());
        let mut tiles = vec![first.clone()];
        for _ in 0..self.choose(3) {
            tiles.extend(self.pick(|entry| entry.shape == first.shape));
        }
        let starts: Vec<Entry> = tiles.iter().map(|tile| self.number(tile.dtype, 1)).collect();
        let mut shape = first.shape.clone();
        let (head, mode) = if self.choose(2) == 0 {
            shape[axis] = 1;
            ("reduce_with", "")
        } else {
            ("scan_with", ["", " reverse", " exclusive", " reverse exclusive"][self.choose(4)])
        };
        let folded: Vec<Entry> =
            starts.iter().map(|start| Entry { name: self.name(), ..start.clone() }).collect();
        let element: Vec<Entry> =
            starts.iter().map(|start| Entry { name: self.name(), ..start.clone() }).collect();
        let results: Vec<Entry> = tiles
            .iter()
            .map(|tile| Entry { name: self.name(), shape: shape.clone(), ..tile.clone() })
            .collect();
        let types: Vec<String> = results.iter().map(Entry::ty).collect();
        let params = [folded.as_slice(), &element].concat();
        self.line(&format!(
            "{} = {head} {} from {} axis {axis}{mode} with ({}) : {} {{",
            names(&results),
            names(&tiles),
            names(&starts),
            names(&params),
            types.join(", ")
        ));
        let outside = self.enter();
        let mut yielded: Vec<Entry> = Vec::new();
        for (folded, element) in folded.iter().zip(&element) {
            let mut next = self.joined(folded, element);
            let joins = self.choose(2) == 0;
            if let Some(before) = yielded.last().filter(|_| joins).cloned() {
                let before = self.cast(&before, next.dtype);
                next = self.joined(&next, &before);
            }
            yielded.push(next);
        }
        self.line(&format!("yield {}", names(&yielded)));
        self.leave(outside);
        self.line("}");
        self.scope.extend(results);
    }

    /// Two values of one type joined by an op whose result is defined bit by bit.
    pub(super) fn joined(&mut self, a: &Entry, b: &Entry) -> Entry {
        let fits =
            |op: &BinaryOp| op.domain().accepts(a.dtype) && op.ulps().is_none() && *op != BinaryOp::CopySign;
        let ops: Vec<BinaryOp> = BinaryOp::ALL.iter().copied().filter(fits).collect();
        let op = ops[self.choose(ops.len())].name();
        self.define(&format!("{op} {}, {}", a.name, b.name), &a.shape, a.dtype)
    }

    pub(super) fn sort(&mut self) {
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
        if tile.shape[axis] > LONGEST_LINE {
            return;
        }
        let mut shape = tile.shape.clone();
        shape[axis] = 1 + self.choose(shape[axis]);
        let word = ["", " descending"][self.choose(2)];
        let (values, places) = (self.name(), self.name());
        let types = [type_text(&shape, tile.dtype), type_text(&shape, DType::I32)].join(", ");
        self.line(&format!("{values}, {places} = sort {} axis {axis}{word} : {types}", tile.name));
        self.scope.push(Entry { name: values, shape: shape.clone(), dtype: tile.dtype });
        self.scope.push(Entry { name: places, shape, dtype: DType::I32 });
    }

    pub(super) fn mma(&mut self) {
        let Some(a) = self.pick(|entry| entry.shape.len() >= 2) else { return };
        let rank = a.shape.len();
        let (batch, m, k) = (a.shape[..rank - 2].to_vec(), a.shape[rank - 2], a.shape[rank - 1]);
        let all = products();
        let (left, right, total) = all[self.choose(all.len())];
        // Every partial sum of products of −4 to 4 is a number of f16.
        if total == DType::F16 && k > 100 {
            return;
        }
        let fits = |entry: &Entry| {
            entry.shape.len() == batch.len() + 2
                && entry.shape.starts_with(&batch)
                && entry.shape[batch.len()] == k
        };
        let b = match self.pick(fits) {
            Some(b) => b,
            None => {
                let order: Vec<usize> = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
                let shape = [batch.as_slice(), &[k, m]].concat();
                self.define(&format!("permute {} {order:?}", a.name), &shape, a.dtype)
            }
        };
        let (a, b) = (self.cast(&a, left), self.cast(&b, right));
        let (mut a, mut b) = (self.summable(&a), self.summable(&b));
        if left == DType::F32 && self.choose(3) == 0 {
            a = self.define(&format!("round_tf32 {}", a.name), &a.shape.clone(), left);
            b = self.define(&format!("round_tf32 {}", b.name), &b.shape.clone(), right);
        }
        let n = b.shape[batch.len() + 1];
        let shape = [batch.as_slice(), &[m, n]].concat();
        if shape.iter().product::<usize>() * k > 60_000 {
            return;
        }
        let c = match self.pick(|entry| entry.shape == shape && entry.dtype == total) {
            Some(c) => self.summable(&c),
            None => {
                let zero = self.number(total, 0);
                self.splat(&zero, &shape)
            }
        };
        self.define(&format!("mma {}, {}, {}", a.name, b.name, c.name), &shape, total);
    }
}

/// Sorts and scatters look at each line once per element.
const LONGEST_LINE: usize = 160;
