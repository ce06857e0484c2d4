//! In which order the blocks of a persistent kernel take the tiles of its outputs.
//!
//! A persistent kernel has a fixed number of blocks, which share all tiles: block `b` of `n` handles those numbered
//! `b`, `b + n`, `b + 2n` and so on, so that what runs at one time is a run of successive numbers. An order says which
//! tile has which number. It is a bijection of `0..tiles` and the index space, of any rank and any extents. Where tiles are
//! numbered by how much there is to do, blocks take every other round of numbers backwards ([`taken`]), so that no block
//! has the most of every round.
//!
//! [`index_of`] is the one formula. It is written over [`Arithmetic`]: the evaluators compute with it, and code
//! generation emits it.

use crate::dim::Dim;
use std::fmt;

/// Which tile has which number. All but the last two axes count row-major, outside of what is said here; so does
/// everything where there is one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TileOrder<Extent = usize> {
    /// The last axis counts fastest.
    RowMajor,
    /// Bands of so many rows, one after the other; in a band, column by column. The last band may be lower. Blocks
    /// that run at one time then need few rows of one factor and few columns of the other.
    Grouped(Extent),
    /// Along a generalised Hilbert curve: successive tiles are neighbours.
    Hilbert,
    /// From the last index along this axis down to the first, for tiles that have the more to do the larger it is: what
    /// takes longest begins first, and what ends last is short. Tiles of the same index come one after the other, of as many
    /// places along the other axes as [`BESIDE`] says.
    Falling(usize),
}

/// Places along the other axes whose tiles a [`TileOrder::Falling`] order goes through together. Each has data of its own,
/// as heads of attention have keys, so that caches hold few of them; but where one band ends and the next begins, some blocks
/// have the least of one and others the most of the other: 132 blocks that share 64 heads of 64 tiles have at most 1.10 times
/// the mean in bands of 16, 1.04 of 32 and 1.002 of 64.
pub const BESIDE: u64 = 64;

impl<Extent> TileOrder<Extent> {
    /// The order with another kind of extent.
    pub fn map<Other>(&self, change: impl FnOnce(&Extent) -> Other) -> TileOrder<Other> {
        match self {
            TileOrder::RowMajor => TileOrder::RowMajor,
            TileOrder::Grouped(rows) => TileOrder::Grouped(change(rows)),
            TileOrder::Hilbert => TileOrder::Hilbert,
            TileOrder::Falling(axis) => TileOrder::Falling(*axis),
        }
    }

    /// Whether every other round of numbers is taken backwards.
    pub const fn turns_back(&self) -> bool {
        matches!(self, TileOrder::Falling(_))
    }
}

impl TileOrder {
    /// The index of the tile with this number. A group of no rows counts as one of one.
    ///
    /// ```
    /// use tile_ir::tile_order::TileOrder;
    /// let first: Vec<_> = (0..5).map(|number| TileOrder::Grouped(2).index_of(&[3, 4], number)).collect();
    /// assert_eq!(first, [[0, 0], [1, 0], [0, 1], [1, 1], [0, 2]]);
    /// ```
    ///
    /// # Panics
    /// If there is no such tile, or no such axis.
    pub fn index_of(&self, extents: &[usize], number: usize) -> Vec<usize> {
        let tiles = extents.iter().product();
        assert!(number < tiles, "tile {number} of {tiles}");
        let extents: Vec<u64> = extents.iter().map(|&extent| extent as u64).collect();
        let index = index_of(&Plain, &self.map(|&rows| rows as u64), &extents, number as u64);
        index.into_iter().map(|i| i as usize).collect()
    }

    /// The number of the tile that a block takes whose turn has this number, of so many blocks and tiles.
    ///
    /// ```
    /// use tile_ir::tile_order::TileOrder;
    /// // Block 0 of 3 has the numbers 0, 5 and 6, block 2 has 2, 3 and, of a round with two tiles, none.
    /// let taken = |number| TileOrder::Falling(0).taken(number, 3, 8);
    /// assert_eq!((0..8).map(taken).collect::<Vec<_>>(), [0, 1, 2, 5, 4, 3, 6, 7]);
    /// ```
    pub fn taken(&self, number: usize, blocks: usize, tiles: usize) -> usize {
        taken(&Plain, self, number as u64, [blocks, tiles].map(|count| count as u64)) as usize
    }
}

impl fmt::Display for TileOrder<Dim> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TileOrder::RowMajor => f.write_str("row_major"),
            TileOrder::Grouped(rows) => write!(f, "grouped({rows})"),
            TileOrder::Hilbert => f.write_str("hilbert"),
            TileOrder::Falling(axis) => write!(f, "falling({axis})"),
        }
    }
}

/// Numbers as the formula needs them: 64 bits that wrap, compared as unsigned.
pub trait Arithmetic {
    /// A number, or code that computes one.
    type Number: Copy;
    /// A truth value.
    type Truth: Copy;
    /// A constant.
    fn number(&self, value: u64) -> Self::Number;
    /// `a + b`.
    fn add(&self, a: Self::Number, b: Self::Number) -> Self::Number;
    /// `a − b`.
    fn sub(&self, a: Self::Number, b: Self::Number) -> Self::Number;
    /// `a · b`.
    fn mul(&self, a: Self::Number, b: Self::Number) -> Self::Number;
    /// `a / b`, where `b` isn't 0.
    fn div(&self, a: Self::Number, b: Self::Number) -> Self::Number;
    /// What `a / b` leaves.
    fn rem(&self, a: Self::Number, b: Self::Number) -> Self::Number;
    /// `a < b`.
    fn below(&self, a: Self::Number, b: Self::Number) -> Self::Truth;
    /// `a` and `b`.
    fn both(&self, a: Self::Truth, b: Self::Truth) -> Self::Truth;
    /// `a` where the condition holds, else `b`.
    fn choose(&self, condition: Self::Truth, a: Self::Number, b: Self::Number) -> Self::Number;
    /// Steps of a state for as long as it says so.
    fn repeat<const N: usize>(
        &self,
        state: [Self::Number; N],
        goes_on: impl Fn(&[Self::Number; N]) -> Self::Truth,
        step: impl Fn(&[Self::Number; N]) -> [Self::Number; N],
    ) -> [Self::Number; N];
}

/// The arithmetic of the evaluators.
struct Plain;

impl Arithmetic for Plain {
    type Number = u64;
    type Truth = bool;

    fn number(&self, value: u64) -> u64 {
        value
    }

    fn add(&self, a: u64, b: u64) -> u64 {
        a.wrapping_add(b)
    }

    fn sub(&self, a: u64, b: u64) -> u64 {
        a.wrapping_sub(b)
    }

    fn mul(&self, a: u64, b: u64) -> u64 {
        a.wrapping_mul(b)
    }

    fn div(&self, a: u64, b: u64) -> u64 {
        a / b
    }

    fn rem(&self, a: u64, b: u64) -> u64 {
        a % b
    }

    fn below(&self, a: u64, b: u64) -> bool {
        a < b
    }

    fn both(&self, a: bool, b: bool) -> bool {
        a && b
    }

    fn choose(&self, condition: bool, a: u64, b: u64) -> u64 {
        if condition { a } else { b }
    }

    fn repeat<const N: usize>(
        &self,
        mut state: [u64; N],
        goes_on: impl Fn(&[u64; N]) -> bool,
        step: impl Fn(&[u64; N]) -> [u64; N],
    ) -> [u64; N] {
        while goes_on(&state) {
            state = step(&state);
        }
        state
    }
}

/// The index of tile `number` of an index space that has such a tile.
pub fn index_of<A: Arithmetic>(
    a: &A,
    order: &TileOrder<A::Number>,
    extents: &[A::Number],
    number: A::Number,
) -> Vec<A::Number> {
    if let TileOrder::Falling(axis) = order {
        return falling(a, *axis, extents, number);
    }
    let [outer @ .., rows, columns] = extents else { return vec![number; extents.len()] };
    let plane = a.mul(*rows, *columns);
    let (mut index, within) = match outer {
        [] => (Vec::new(), number),
        outer => (row_major(a, outer, a.div(number, plane)), a.rem(number, plane)),
    };
    index.extend(match order {
        TileOrder::RowMajor => [a.div(within, *columns), a.rem(within, *columns)],
        TileOrder::Grouped(group) => grouped(a, *group, [*rows, *columns], within),
        TileOrder::Hilbert => hilbert(a, [*rows, *columns], within),
        TileOrder::Falling(_) => unreachable!("it isn't an order of planes"),
    });
    index
}

/// The number of the tile that a block takes whose turn has this number, of so many blocks and tiles: the same, or in every
/// other round of an order that turns back the one as far from the round's other end.
pub fn taken<A: Arithmetic, Extent>(
    a: &A,
    order: &TileOrder<Extent>,
    number: A::Number,
    [blocks, tiles]: [A::Number; 2],
) -> A::Number {
    if !order.turns_back() {
        return number;
    }
    let round = a.div(number, blocks);
    let first = a.mul(round, blocks);
    let last = a.sub(least(a, a.add(first, blocks), tiles), a.number(1));
    let is_forward = a.below(a.rem(round, a.number(2)), a.number(1));
    a.choose(is_forward, number, a.sub(last, a.sub(number, first)))
}

/// Bands of places along the other axes, and in a band index by index along the axis, from the last.
fn falling<A: Arithmetic>(a: &A, axis: usize, extents: &[A::Number], number: A::Number) -> Vec<A::Number> {
    let mut others = extents.to_vec();
    let along = others.remove(axis);
    let places = others.iter().fold(a.number(1), |places, &extent| a.mul(places, extent));
    let [place, back] = grouped(a, a.number(BESIDE), [places, along], number);
    let mut index = if others.is_empty() { Vec::new() } else { row_major(a, &others, place) };
    index.insert(axis, a.sub(a.sub(along, a.number(1)), back));
    index
}

/// The number of the tile that a block takes, where successive blocks go in turn to `parts` of a device, a power of two:
/// so that those of one part have successive tiles. A bijection of `0..blocks`.
pub fn tile_in_part<A: Arithmetic>(
    a: &A,
    parts: A::Number,
    blocks: A::Number,
    block: A::Number,
) -> A::Number {
    let (part, turn) = (a.rem(block, parts), a.div(block, parts));
    // The first parts have one block more where the blocks aren't a multiple.
    let before = a.add(a.mul(part, a.div(blocks, parts)), least(a, part, a.rem(blocks, parts)));
    a.add(before, turn)
}

fn row_major<A: Arithmetic>(a: &A, extents: &[A::Number], number: A::Number) -> Vec<A::Number> {
    let mut rest = number;
    let mut index = vec![number; extents.len()];
    for axis in (1..extents.len()).rev() {
        index[axis] = a.rem(rest, extents[axis]);
        rest = a.div(rest, extents[axis]);
    }
    index[0] = rest;
    index
}

fn least<A: Arithmetic>(a: &A, x: A::Number, y: A::Number) -> A::Number {
    a.choose(a.below(x, y), x, y)
}

fn grouped<A: Arithmetic>(
    a: &A,
    group: A::Number,
    [rows, columns]: [A::Number; 2],
    number: A::Number,
) -> [A::Number; 2] {
    let one = a.number(1);
    let group = a.choose(a.below(group, one), one, least(a, group, rows));
    let band = a.mul(group, columns);
    let first = a.mul(a.div(number, band), group);
    let height = least(a, a.sub(rows, first), group);
    let within = a.rem(number, band);
    [a.add(first, a.rem(within, height)), a.div(within, height)]
}

/// A piece of the curve: a rectangle that it fills from a corner on. `steps` are left to take in it; it begins at
/// (`x`, `y`), extends `width` along the unit vector `along` and `height` along `across`, and ends at the far end of
/// `along`.
struct Piece<N> {
    steps: N,
    x: N,
    y: N,
    width: N,
    height: N,
    along: [N; 2],
    across: [N; 2],
}

impl<N: Copy> Piece<N> {
    fn of(&[steps, x, y, width, height, along_x, along_y, across_x, across_y]: &[N; 9]) -> Self {
        let (along, across) = ([along_x, along_y], [across_x, across_y]);
        Piece { steps, x, y, width, height, along, across }
    }

    fn state(self) -> [N; 9] {
        let Piece { steps, x, y, width, height, along, across } = self;
        [steps, x, y, width, height, along[0], along[1], across[0], across[1]]
    }

    /// The piece's begin moved by so many steps along and across.
    fn moved<A: Arithmetic<Number = N>>(&self, a: &A, along: N, across: N) -> [N; 2] {
        let moved = |start, axis: usize| {
            let start = a.add(start, a.mul(along, self.along[axis]));
            a.add(start, a.mul(across, self.across[axis]))
        };
        [moved(self.x, 0), moved(self.y, 1)]
    }
}

/// The generalised Hilbert curve: a rectangle is cut, into two where it is much wider than high and into three
/// otherwise, at even places where there is a choice, and the piece that holds the number is cut again, until it is a
/// line.
fn hilbert<A: Arithmetic>(a: &A, [rows, columns]: [A::Number; 2], number: A::Number) -> [A::Number; 2] {
    let (zero, one) = (a.number(0), a.number(1));
    let high = a.below(columns, rows);
    let if_high = |x, y| a.choose(high, x, y);
    let whole = Piece {
        steps: number,
        x: zero,
        y: zero,
        width: if_high(rows, columns),
        height: if_high(columns, rows),
        along: [if_high(zero, one), if_high(one, zero)],
        across: [if_high(one, zero), if_high(zero, one)],
    };
    let is_wide = |state: &[A::Number; 9]| {
        let piece = Piece::of(state);
        a.both(a.below(one, piece.width), a.below(one, piece.height))
    };
    let line = a.repeat(whole.state(), is_wide, |state| cut(a, &Piece::of(state)));
    let line = Piece::of(&line);
    let high = a.below(one, line.height);
    let [x, y] = line.moved(a, a.choose(high, zero, line.steps), a.choose(high, line.steps, zero));
    [y, x]
}

/// The part of a piece that holds the step.
fn cut<A: Arithmetic>(a: &A, piece: &Piece<A::Number>) -> [A::Number; 9] {
    let (width, height) = (piece.width, piece.height);
    let (one, two) = (a.number(1), a.number(2));
    let even = |half, whole| a.choose(a.below(two, whole), a.add(half, a.rem(half, two)), half);
    let half_width = a.div(width, two);
    let (even_width, even_height) = (even(half_width, width), even(a.div(height, two), height));
    let much_wider = a.below(a.mul(a.number(3), height), a.mul(two, width));
    let part = |steps, [x, y]: [A::Number; 2], [width, height]: [A::Number; 2], along, across| {
        Piece { steps, x, y, width, height, along, across }.state()
    };
    let (start, along, across) = ([piece.x, piece.y], piece.along, piece.across);

    let left = a.mul(even_width, height);
    let of_two = [
        part(piece.steps, start, [even_width, height], along, across),
        part(
            a.sub(piece.steps, left),
            piece.moved(a, even_width, a.number(0)),
            [a.sub(width, even_width), height],
            along,
            across,
        ),
    ];

    let first = a.mul(even_height, half_width);
    let both = a.add(first, a.mul(width, a.sub(height, even_height)));
    let back = |[x, y]: [A::Number; 2]| [a.sub(a.number(0), x), a.sub(a.number(0), y)];
    let of_three = [
        part(piece.steps, start, [even_height, half_width], across, along),
        part(
            a.sub(piece.steps, first),
            piece.moved(a, a.number(0), even_height),
            [width, a.sub(height, even_height)],
            along,
            across,
        ),
        part(
            a.sub(piece.steps, both),
            piece.moved(a, a.sub(width, one), a.sub(even_height, one)),
            [even_height, a.sub(width, half_width)],
            back(across),
            back(along),
        ),
    ];

    let pick = |condition, x: [A::Number; 9], y: [A::Number; 9]| {
        std::array::from_fn(|i| a.choose(condition, x[i], y[i]))
    };
    let until = |end| a.below(piece.steps, end);
    let two_parts = pick(until(left), of_two[0], of_two[1]);
    let three_parts = pick(until(first), of_three[0], pick(until(both), of_three[1], of_three[2]));
    pick(much_wider, two_parts, three_parts)
}

#[cfg(test)]
mod tests;
