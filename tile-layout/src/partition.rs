//! Partition views: a tensor cut into equal tiles, the last of which may stick out.
//!
//! Tile `i` along an axis covers `i*tile .. (i+1)*tile`; the index space has `⌈extent / tile⌉` tiles
//! (CUDA tile C++, `partition_view`).

use alloc::vec::Vec;

/// Extents of a tensor and of the tiles that cut it.
///
/// ```
/// use tile_layout::Partition;
/// let p = Partition::new(&[10, 8], &[4, 8]).unwrap();
/// assert_eq!(p.index_space(), [3, 1]);
/// assert_eq!(p.window(&[2, 0]).unwrap().valid, [2, 8]);
/// assert!(p.window(&[3, 0]).is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    extents: Vec<usize>,
    tile: Vec<usize>,
}

/// Where one tile lies in its tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The tensor index of the tile's first element.
    pub start: Vec<usize>,
    /// How many elements along each axis lie inside the tensor; at least 1.
    pub valid: Vec<usize>,
}

impl Partition {
    /// A partition; `None` where ranks differ or a tile extent is zero.
    pub fn new(extents: &[usize], tile: &[usize]) -> Option<Partition> {
        let fits = extents.len() == tile.len() && tile.iter().all(|&extent| extent > 0);
        fits.then(|| Partition { extents: extents.to_vec(), tile: tile.to_vec() })
    }

    /// Extents of the tensor.
    pub fn extents(&self) -> &[usize] {
        &self.extents
    }

    /// Extents of a tile.
    pub fn tile(&self) -> &[usize] {
        &self.tile
    }

    /// The number of tiles along each axis.
    pub fn index_space(&self) -> Vec<usize> {
        self.extents.iter().zip(&self.tile).map(|(&extent, &tile)| extent.div_ceil(tile)).collect()
    }

    /// Where tile `index` lies; `None` outside the index space.
    pub fn window(&self, index: &[usize]) -> Option<Window> {
        let axes = index.iter().zip(&self.tile).zip(&self.extents);
        let (start, valid) = axes
            .map(|((&i, &tile), &extent)| {
                let start = i.checked_mul(tile).filter(|&start| start < extent)?;
                Some((start, tile.min(extent - start)))
            })
            .collect::<Option<(Vec<_>, Vec<_>)>>()?;
        (index.len() == self.tile.len()).then_some(Window { start, valid })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn windows_cover_every_element_once() {
        let p = Partition::new(&[10, 7], &[4, 3]).unwrap();
        let mut hits = vec![0; 70];
        for i in 0..p.index_space()[0] {
            for j in 0..p.index_space()[1] {
                let w = p.window(&[i, j]).unwrap();
                for r in 0..w.valid[0] {
                    for c in 0..w.valid[1] {
                        hits[(w.start[0] + r) * 7 + w.start[1] + c] += 1;
                    }
                }
            }
        }
        assert!(hits.iter().all(|&h| h == 1));
    }

    #[test]
    fn degenerate_partitions_are_refused_or_empty() {
        assert_eq!(Partition::new(&[4], &[0]), None);
        assert_eq!(Partition::new(&[4], &[2, 2]), None);
        let empty = Partition::new(&[0], &[4]).unwrap();
        assert_eq!(empty.index_space(), [0]);
        assert_eq!(empty.window(&[0]), None);
        assert_eq!(Partition::new(&[4], &[2]).unwrap().window(&[usize::MAX]), None);
    }
}
