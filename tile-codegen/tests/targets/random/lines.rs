//! Random kernels of lines: tiles, and rows and columns of these, that are read in loops and of views that are made behind
//! loops, joined by repeating the rows and columns, reduced along, kept from loop to loop, and written in loops. Programs are
//! mostly so, and targets have ways of their own for them; of kernels of any ops in any shapes few are.

use super::memory::Layout;
use super::writer::{Entry, Writer, is_spread_to};
use proptest::prelude::*;
use tile_ir::DType;

/// Tensors of two and three axes, of one format or two, with lines that fill registers and such that don't.
pub(super) fn layouts() -> impl Strategy<Value = Layout> {
    let usual = prop::sample::select(vec![DType::F32, DType::F32, DType::F64, DType::I32, DType::BF16]);
    let one = prop::sample::select(super::formats());
    let format = prop_oneof![2 => usual.boxed(), 1 => one.clone().boxed()];
    let rows = prop::sample::select(vec![1usize, 1, 2, 4, 5, 8, 16]);
    let columns = prop::sample::select(vec![1usize, 3, 4, 8, 16, 16, 17, 32, 33, 40, 64, 128]);
    let tiles = [0usize..3, 0usize..3];
    let rest = ([0usize..3, 0usize..9], 0usize..4, 0usize..9);
    (format, one, [rows, columns], tiles, rest, any::<[bool; 5]>()).prop_map(
        |(dtype, one, own, tiles, (rest, matrices, counters), [fixed, two, mixed, whole, flat])| {
            let other = if mixed { one } else { dtype };
            let rest = if whole { [0; 2] } else { rest };
            let mut tile = own.to_vec();
            let mut extents: Vec<usize> = (0..2).map(|axis| own[axis] * tiles[axis] + rest[axis]).collect();
            if !flat {
                tile.insert(0, 1);
                extents.insert(0, matrices);
            }
            Layout { dtype, other, tile, extents, fixed, two, counters, extreme: false }
        },
    )
}

impl Writer<'_> {
    /// An op as kernels of lines have it.
    pub(super) fn line_op(&mut self) {
        match self.choose(36) {
            0..=8 => self.join(),
            9..=12 => self.view(),
            13 | 14 => self.load(),
            15..=17 => self.reduce(),
            18..=20 if self.depth < 3 => self.for_loop(),
            21 if self.depth < 3 => self.while_loop(),
            22 if self.depth < 3 => self.branch(),
            23 | 24 => self.store(),
            25 => self.unary(),
            26 => self.index(),
            27 => self.index_in_memory(),
            28 => self.scan(),
            29 => self.fold(),
            30 => self.look_up(),
            31 => self.convert(),
            32 => self.mma(),
            33 => self.count(),
            34 => self.permute(),
            _ => self.scalar(),
        }
    }

    /// Two tiles, rows, columns or elements, repeated as far as one is longer, by an op or by which one is greater.
    fn join(&mut self) {
        let whole = self.tile.clone();
        let [a, b] = [(); 2].map(|()| self.pick(|entry| is_spread_to(&entry.shape, &whole)));
        let (Some(a), Some(b)) = (a, b) else { return };
        let shape: Vec<usize> = a.shape.iter().zip(&b.shape).map(|(a, b)| *a.max(b)).collect();
        let b = self.cast(&b, a.dtype);
        let [a, b] = [a, b].map(|entry: Entry| self.spread(&entry, &shape));
        if self.choose(5) == 4 {
            let holds = self.compared(&a, &b);
            let other = self.same_type_as(&a);
            self.define(&format!("select {}, {}, {}", holds.name, other.name, b.name), &shape, a.dtype);
            return;
        }
        self.joined(&a, &b);
    }

    /// An index that an element of a tile is.
    fn index_in_memory(&mut self) {
        let item = self.largest();
        let number = self.number(DType::I32, 7);
        let inside = self.define(&format!("rem_euclid {}, {}", item.name, number.name), &[], DType::I32);
        self.cast(&inside, DType::Index);
    }
}
