//! Elements of a tensor dealt out to threads.
//!
//! Thread layouts send a coordinate to a thread number, as `(8,4):(4,1)` does for 32 threads in rows. Elements
//! are dealt out cyclically: along an axis with `T` threads, thread coordinate `t` owns indices `t, t + T, …`.

use super::View;
use crate::algebra::gcd;
use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::{Layout, Mode, Part};
use crate::movement::maps::Run;
use crate::swizzle::Swizzle;
use crate::tuple::Ints;
use alloc::format;
use alloc::vec::Vec;

/// Threads arranged over the axes of a tensor.
///
/// ```
/// use tile_layout::{Layout, Threads, View};
/// let quads = Threads::new(Layout::row_major([2, 2])?);
/// let own = View::row_major(&[4, 4])?.distribute(&quads, 0)?;
/// // Cyclic: thread 0 of 2×2 owns every second row and column, not the top left quarter.
/// assert_eq!(own.offsets().flatten().collect::<Vec<_>>(), [0, 2, 8, 10]);
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threads {
    layout: Layout,
    axis: Option<usize>,
    submode: Option<usize>,
    swizzle: Swizzle,
}

impl Threads {
    /// Threads over all axes: mode `k` of the layout over axis `k`.
    ///
    /// ```
    /// use tile_layout::{Layout, Threads};
    /// assert_eq!(Threads::new(Layout::row_major([8, 4])?).layout().size(), 32);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn new(layout: Layout) -> Threads {
        Threads { layout, axis: None, submode: None, swizzle: Swizzle::IDENTITY }
    }

    /// Only axis `axis` is dealt out, by the threads' coordinate along it; threads with the same coordinate share
    /// what they own.
    ///
    /// ```
    /// use tile_layout::{Layout, Threads, View};
    /// let rows = Threads::new(Layout::row_major([2, 2])?).along(0);
    /// let matrix = View::row_major(&[4, 4])?;
    /// assert_eq!(matrix.distribute(&rows, 0)?, matrix.distribute(&rows, 1)?);
    /// assert_eq!(matrix.distribute(&rows, 2)?.offset(), 4);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn along(mut self, axis: usize) -> Threads {
        self.axis = Some(axis);
        self
    }

    /// Of a mode that is a tuple, only its mode `submode` counts.
    ///
    /// ```
    /// use tile_layout::{Threads, View};
    /// let threads = Threads::new("((2,4),1):((1,2),0)".parse()?).along(0).submode(1);
    /// assert_eq!(View::row_major(&[8, 2])?.distribute(&threads, 6)?.offset(), 6);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn submode(mut self, submode: usize) -> Threads {
        self.submode = Some(submode);
        self
    }

    /// The offset at which each thread's elements begin, in units of a vector, goes through a swizzle.
    ///
    /// ```
    /// use tile_layout::{Layout, Swizzle, Threads, View};
    /// let threads = Threads::new(Layout::row_major([4, 2])?).swizzled(Swizzle::new(1, 0, 1)?);
    /// assert_eq!(View::row_major(&[4, 2])?.distribute(&threads, 2)?.offset(), 3);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn swizzled(mut self, swizzle: Swizzle) -> Threads {
        self.swizzle = swizzle;
        self
    }

    /// The layout of the threads.
    ///
    /// ```
    /// use tile_layout::{Layout, Threads};
    /// assert_eq!(Threads::new(Layout::row_major([8, 4])?).layout().to_string(), "(8,4):(4,1)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Number of threads along each axis of a tensor, and the coordinate of one of them.
    fn shares(&self, rank: usize, thread: i64) -> Result<Vec<(i64, i64)>> {
        let fits = match self.axis {
            Some(axis) => axis < rank && axis < self.layout.rank(),
            None => self.layout.rank() == rank,
        };
        if !fits {
            return Err(LayoutError::new(
                ErrorKind::Rank,
                format!("threads {} do not lie over {rank} axes", self.layout),
            ));
        }
        let coordinate = self.coordinate(thread)?;
        let mut rest = &coordinate[..];
        let share = |(axis, mode): (usize, Part<'_>)| {
            let (own, after) = rest.split_at(mode.modes.len());
            rest = after;
            match self.axis {
                Some(dealt) if dealt != axis => Ok((1, 0)),
                _ => self.share(mode, own),
            }
        };
        let shares = self.layout.part().children().enumerate().map(share).collect::<Result<Vec<_>>>()?;
        // Threads along one axis may have fewer modes than the tensor has axes, or more.
        Ok(shares.into_iter().chain(core::iter::repeat((1, 0))).take(rank).collect())
    }

    /// The coordinate of a thread, leaf by leaf; along a mode of stride 0, whose threads are one, 0.
    fn coordinate(&self, thread: i64) -> Result<Ints> {
        let leaves = self.layout.leaves();
        if leaves.iter().any(|mode| mode.stride < 0 || mode.extent < 1) {
            return Err(LayoutError::new(
                ErrorKind::NegativeStride,
                format!("threads are counted upwards and not from {}", self.layout),
            ));
        }
        let mut coordinate: Ints = leaves.iter().map(|_| 0).collect();
        let mut moving: Vec<(usize, Mode)> = leaves.iter().copied().enumerate().collect();
        moving.retain(|(_, mode)| mode.extent > 1 && mode.stride > 0);
        moving.sort_by_key(|(_, mode)| mode.stride);
        if thread >= 0 && find(&moving, thread, &mut coordinate) {
            return Ok(coordinate);
        }
        Err(LayoutError::new(
            ErrorKind::OutOfBounds,
            format!("thread {thread} is none of those of {}", self.layout),
        ))
    }

    /// Number of threads in a mode, and the coordinate there that its leaves have.
    fn share(&self, mode: Part<'_>, coordinate: &[i64]) -> Result<(i64, i64)> {
        let (own, before) = match self.submode {
            Some(submode) => {
                let own = mode.children().nth(submode).ok_or_else(|| {
                    let mode = mode.to_layout();
                    let message = format!("mode {mode} of the threads has no mode {submode}");
                    LayoutError::new(ErrorKind::Rank, message)
                })?;
                (own, mode.children().take(submode).map(|mode| mode.modes.len()).sum())
            }
            None => (mode, 0),
        };
        let digits = own.modes.iter().zip(&coordinate[before..]);
        let (size, coordinate) = digits.fold((1, 0), |(unit, coordinate), (mode, digit)| {
            (unit * mode.extent, coordinate + digit * unit)
        });
        Ok((size, coordinate))
    }
}

/// Whether some coordinate of modes, the smallest stride first, adds up to a number; if so, the one that goes furthest along
/// the largest stride is entered at their places. Strides of which each spans the smaller ones leave one choice each.
fn find(modes: &[(usize, Mode)], sum: i64, coordinate: &mut Ints) -> bool {
    let Some((&(leaf, Mode { extent, stride }), smaller)) = modes.split_last() else { return sum == 0 };
    if sum % smaller.iter().fold(stride, |divisor, (_, mode)| gcd(divisor, mode.stride)) != 0 {
        return false;
    }
    let reach: i64 = smaller.iter().map(|(_, mode)| (mode.extent - 1) * mode.stride).sum();
    let least = if sum > reach { (sum - reach - 1) / stride + 1 } else { 0 };
    (least..=(sum / stride).min(extent - 1)).rev().any(|steps| {
        coordinate[leaf] = steps;
        find(smaller, sum - steps * stride, coordinate)
    })
}

impl View {
    /// What `thread` owns. The shape is the same for all threads, `⌈extent / threads⌉` along each axis; where the
    /// threads do not divide an axis, those that own less are masked.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`] where threads and axes do not match, [`ErrorKind::OutOfBounds`] for a thread that is not
    /// there, and where a swizzle moves a share of a swizzled view below offset 0, [`ErrorKind::Overflow`] where it moves one
    /// beyond 2^62, [`ErrorKind::NegativeStride`] for threads that are counted downwards or are none,
    /// [`ErrorKind::Unsupported`] for a swizzle on a masked view.
    ///
    /// ```
    /// use tile_layout::{Layout, Threads, View};
    /// let threads = Threads::new(Layout::column_major([4])?);
    /// let own = |thread| View::row_major(&[9])?.distribute(&threads, thread);
    /// assert_eq!(own(0)?.to_string(), "(3):(4) + 0");
    /// assert_eq!(own(1)?.to_string(), "(2):(4) + 1 within (3) at (0)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn distribute(&self, threads: &Threads, thread: i64) -> Result<View> {
        let shares = threads.shares(self.rank(), thread)?;
        let run = |(&(count, coordinate), &extent): (&(i64, i64), &i64)| Run {
            start: coordinate,
            extent: if extent == 0 { 0 } else { (extent - 1) / count + 1 },
            step: count,
        };
        let own = self.runs(&shares.iter().zip(self.shape()).map(run).collect::<Vec<_>>())?;
        if threads.swizzle == Swizzle::IDENTITY {
            return Ok(own);
        }
        let vector = self.element().size().max(1);
        if own.is_masked() || own.offset() < 0 || own.offset() % vector != 0 {
            return Err(LayoutError::new(
                ErrorKind::Unsupported,
                format!("{own} cannot begin at a swizzled offset: it is masked or begins inside a vector"),
            ));
        }
        let Some(offset) = threads.swizzle.apply(own.offset() / vector).checked_mul(vector) else {
            return Err(LayoutError::new(
                ErrorKind::Overflow,
                format!("{own} would begin at a swizzled offset beyond 2^62"),
            ));
        };
        let moved = View::assemble(own.shape().into(), own.windows().into(), own.axes(), offset, own.fill())?;
        moved.on_memory_of(&own)
    }
}
