//! Turns of loops: what a turn made and no variable holds is freed when the next begins. `#[tile_kernel]` and
//! `#[tile_fn]` write the calls; there is no other reason to.
//!
//! ```
//! use tile::kernel::turns::{HasTiles, Kept, UnknownTiles, Turns};
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
use super::arena::{self, Place};

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
            Some(first) => {
                let kept: Option<Vec<_>> = kept.iter().map(|tiles| tiles.0.as_deref()).collect();
                if let Some(kept) = kept {
                    arena::free(first, kept.into_iter().flatten().copied());
                }
            }
        }
    }
}

/// The values that a loop runs over, which are made before its first turn.
pub fn made<V>(values: impl IntoIterator<Item = V>) -> Vec<V> {
    values.into_iter().collect()
}

/// The tiles that a variable holds, if they are known.
pub struct Tiles(Option<Vec<Place>>);

impl Tiles {
    pub(super) fn add(&mut self, tile: Place) {
        self.0.get_or_insert_default().push(tile);
    }
}

/// A variable whose tiles live on. In code that is generic over `V` it need not be known to be a [`TileValue`]:
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
        let mut tiles = Tiles(Some(Vec::new()));
        self.0.add_tiles(&mut tiles);
        tiles
    }
}

/// What may hold any tiles: a loop that assigns it frees nothing.
pub trait UnknownTiles {
    /// Any.
    fn tiles(&self) -> Tiles;
}

impl<V> UnknownTiles for &Kept<'_, V> {
    fn tiles(&self) -> Tiles {
        Tiles(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Tile;

    /// A loop whose state isn't known to be a value of a kernel.
    fn often<V>(mut state: V, step: impl Fn(&V) -> V) -> V {
        let mut turns = Turns::new();
        for _ in 0..4 {
            turns.begin(&[(&Kept(&state)).tiles()]);
            state = step(&state);
        }
        state
    }

    #[test]
    fn what_may_hold_any_tiles_keeps_all() {
        let (factor, sum) =
            often((1.0, Tile::<f32, 1>::full([2], 1.0)), |state| (state.0 * 2.0, state.1 + 1.0));
        assert_eq!((factor, sum.to_vec()), (16.0, vec![5.0; 2]));
    }

    #[test]
    fn what_a_turn_made_is_gone_and_what_is_kept_is_not() {
        let mut sum = Tile::<f32, 1>::full([2], 1.0);
        let mut last = Vec::new();
        let mut turns = Turns::new();
        for _ in 0..4 {
            turns.begin(&[Kept(&sum).tiles()]);
            last.push(sum * 2.0);
            sum += 1.0;
        }
        assert_eq!(sum.to_vec(), [5.0; 2]);
        assert_eq!(last[3].to_vec(), [8.0; 2]);
        assert!(std::panic::catch_unwind(|| last[2].to_vec()).is_err());
    }
}
