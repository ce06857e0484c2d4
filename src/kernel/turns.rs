//! Turns of loops: what a turn made and no variable holds is freed when the next begins. `#[tile_kernel]` and
//! `#[tile_fn]` write the calls; there is no other reason to.
//!
//! ```
//! use tile::kernel::turns::{HasTiles, Kept, NoTiles, Turns};
//! use tile::prelude::*;
//!
//! let mut sum = Tile::<f32, 1>::zeros([4]);
//! let mut turns = Turns::new();
//! for i in 0..1000 {
//!     turns.begin(&[(&Kept(&sum)).tiles(), (&Kept(&i)).tiles()]);
//!     sum += Tile::full([4], i as f32) * 2.0;
//! }
//! assert_eq!(sum.to_vec(), [999_000.0; 4]);
//! ```

use super::TileValue;
use super::arena::{self, Handle};

/// The turns of a loop.
#[derive(Debug, Default)]
pub struct Turns {
    /// How many values there were when the first turn began.
    first: Option<usize>,
}

impl Turns {
    /// Those of a loop that hasn't begun.
    pub fn new() -> Turns {
        Turns::default()
    }

    /// Begins a turn: frees what those before it made, but for the tiles that variables hold.
    pub fn begin(&mut self, kept: &[Tiles]) {
        match self.first {
            None => self.first = Some(arena::made()),
            Some(first) => arena::free(first, kept.iter().flat_map(|tiles| tiles.0.iter().copied())),
        }
    }
}

/// The tiles that a variable holds.
#[derive(Default)]
pub struct Tiles(Vec<Handle>);

impl Tiles {
    pub(super) fn add(&mut self, tile: Handle) {
        self.0.push(tile);
    }
}

/// A variable whose tiles live on. A scalar of a type parameter isn't known to be a [`TileValue`], and holds none:
/// method resolution tries [`HasTiles`] first.
#[derive(Debug)]
pub struct Kept<'v, V>(pub &'v V);

/// What holds tiles.
pub trait HasTiles {
    /// The tiles.
    fn tiles(&self) -> Tiles;
}

impl<V: TileValue> HasTiles for Kept<'_, V> {
    fn tiles(&self) -> Tiles {
        let mut tiles = Tiles::default();
        self.0.add_tiles(&mut tiles);
        tiles
    }
}

/// What holds no tiles.
pub trait NoTiles {
    /// None.
    fn tiles(&self) -> Tiles;
}

impl<V> NoTiles for &Kept<'_, V> {
    fn tiles(&self) -> Tiles {
        Tiles::default()
    }
}
