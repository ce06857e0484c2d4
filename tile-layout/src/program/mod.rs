//! Programs of views: tensors made of memory by movement operations, however many views that takes.
//!
//! A program is one of four things, and every operation makes another program of it:
//!
//! * a **view** of memory, as long as one view holds it;
//! * a **join**: programs side by side along an axis (cat, stack, roll, the padding modes that repeat elements);
//! * a view **through** which another program is seen, where the two views do not compose;
//! * elements **picked** from another program by a table.
//!
//! Nothing is computed or copied until [`ViewProgram::evaluate`], and each operation ends by looking for a simpler
//! form: views are composed, neighbours that continue each other become one view, a join of which only one part is
//! left becomes that part. [`ViewProgram::as_view`] says whether one view was enough.

mod join;
mod padding;

use crate::error::{ErrorKind, LayoutError, Result};
use crate::movement::{Movement, Table, check_map};
use crate::tuple::{Ints, product};
use crate::view::{Fill, View, check_index, unravel};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;
pub use padding::PadMode;

/// A tensor as a program of views over numbered pieces of memory, its sources.
///
/// ```
/// use tile_layout::{Movement, ViewProgram};
/// let rows = ViewProgram::row_major(0, &[2, 3])?;
/// let rolled = rows.roll(&[1], &[1])?;
/// assert_eq!(rolled.evaluate(&[&[1, 2, 3, 4, 5, 6]], |_| 0)?, [3, 1, 2, 6, 4, 5]);
/// assert_eq!(rolled.view_count(), 2);
/// assert!(rows.transpose(0, 1)?.as_view().is_some());
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ViewProgram {
    shape: Ints,
    body: Body,
}

#[derive(Clone, PartialEq, Eq)]
enum Body {
    View { source: usize, view: View },
    Join { axis: usize, parts: Vec<ViewProgram> },
    Through { outer: View, inner: Box<ViewProgram> },
    Picked { table: Table, inner: Box<ViewProgram> },
}

/// What one element of a program is.
///
/// ```
/// use tile_layout::{Element, Fill, Movement, ViewProgram};
/// let padded = ViewProgram::row_major(3, &[2])?.pad(&[Some((1, 0))])?;
/// assert_eq!(padded.get(&[0])?, Element::Fill(Fill::ZERO));
/// assert_eq!(padded.get(&[2])?, Element::Memory { source: 3, offset: 1 });
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// An element of a source.
    Memory {
        /// Which source.
        source: usize,
        /// Where in it, in elements.
        offset: i64,
    },
    /// A value from no source.
    Fill(Fill),
}

impl ViewProgram {
    /// A view of source number `source`.
    ///
    /// ```
    /// use tile_layout::{View, ViewProgram};
    /// let column = ViewProgram::new(0, View::strided(&[3], &[4], 1)?);
    /// assert_eq!(column.evaluate(&[&(0..12).collect::<Vec<i32>>()], |_| 0)?, [1, 5, 9]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn new(source: usize, view: View) -> ViewProgram {
        ViewProgram { shape: Ints::from_slice(view.shape()), body: Body::View { source, view } }
    }

    /// All of source number `source`, dense, the last axis contiguous.
    ///
    /// # Errors
    /// As [`View::row_major`].
    ///
    /// ```
    /// use tile_layout::{Movement, ViewProgram};
    /// assert_eq!(ViewProgram::row_major(0, &[2, 3])?.shape(), [2, 3]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn row_major(source: usize, shape: &[i64]) -> Result<ViewProgram> {
        View::row_major(shape).map(|view| ViewProgram::new(source, view))
    }

    /// The source and the view of it that this program is; `None` where one view does not hold it.
    ///
    /// ```
    /// use tile_layout::{Movement, ViewProgram};
    /// let flipped = ViewProgram::row_major(0, &[4])?.flip(&[0])?;
    /// assert_eq!(flipped.as_view().map(|(source, view)| (source, view.to_string())), Some((0, "(4):(-1) + 3".into())));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn as_view(&self) -> Option<(usize, &View)> {
        match &self.body {
            Body::View { source, view } => Some((*source, view)),
            _ => None,
        }
    }

    /// How many views the program has, those over other views included.
    ///
    /// ```
    /// use tile_layout::{Movement, ViewProgram};
    /// // A padded row cannot be cut across its end by one view.
    /// let padded = ViewProgram::row_major(0, &[2, 3])?.pad(&[None, Some((0, 1))])?;
    /// assert_eq!((padded.view_count(), padded.reshape([4, 2])?.view_count()), (1, 2));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn view_count(&self) -> usize {
        match &self.body {
            Body::View { .. } => 1,
            Body::Join { parts, .. } => parts.iter().map(ViewProgram::view_count).sum(),
            Body::Through { inner, .. } | Body::Picked { inner, .. } => 1 + inner.view_count(),
        }
    }

    /// What the element at an index is.
    ///
    /// # Errors
    /// As [`View::get`].
    ///
    /// ```
    /// use tile_layout::{Element, Movement, ViewProgram};
    /// let rolled = ViewProgram::row_major(0, &[4])?.roll(&[1], &[0])?;
    /// assert_eq!(rolled.get(&[0])?, Element::Memory { source: 0, offset: 3 });
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn get(&self, index: &[i64]) -> Result<Element> {
        check_index(&self.shape, index)?;
        Ok(self.at(index))
    }

    fn at(&self, index: &[i64]) -> Element {
        let seen = |inner: &ViewProgram, position: i64| inner.at(&unravel(&inner.shape, position));
        match &self.body {
            Body::View { source, view } => match view.offset_at(index) {
                Some(offset) => Element::Memory { source: *source, offset },
                None => Element::Fill(view.fill()),
            },
            Body::Through { outer, inner } => match outer.offset_at(index) {
                Some(position) => seen(inner, position),
                None => Element::Fill(outer.fill()),
            },
            Body::Picked { table, inner } => match table.at(index) {
                Some(position) => seen(inner, position),
                None => Element::Fill(Fill::ZERO),
            },
            Body::Join { axis, parts } => join::at(*axis, parts, index),
        }
    }

    /// All elements in row-major order, `sources[k]` being the memory of source `k` and `fill` making a value of
    /// this type.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfBounds`] where the program reaches beyond its sources.
    ///
    /// ```
    /// use tile_layout::{Fill, Movement, ViewProgram};
    /// let padded = ViewProgram::row_major(0, &[2])?.pad_with(&[Some((1, 0))], Fill::from(0.5))?;
    /// let real = |fill| match fill {
    ///     Fill::Integer(value) => value as f64,
    ///     Fill::Real(value) => value,
    /// };
    /// assert_eq!(padded.evaluate(&[&[1.0, 2.0]], real)?, [0.5, 1.0, 2.0]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn evaluate<T: Copy>(&self, sources: &[&[T]], fill: impl Fn(Fill) -> T) -> Result<Vec<T>> {
        let read = |position| match self.at(&unravel(&self.shape, position)) {
            Element::Fill(value) => Ok(fill(value)),
            Element::Memory { source, offset } => {
                let memory = sources.get(source).copied().unwrap_or(&[]);
                let element = usize::try_from(offset).ok().and_then(|offset| memory.get(offset));
                element.copied().ok_or_else(|| {
                    LayoutError::new(
                        ErrorKind::OutOfBounds,
                        format!("offset {offset} lies outside source {source} of {} elements", memory.len()),
                    )
                })
            }
        };
        (0..product(&self.shape)?).map(read).collect()
    }

    /// This program through a map whose positions were checked.
    fn seen_through(&self, map: &View) -> Result<ViewProgram> {
        let two = |inner: &ViewProgram| ViewProgram {
            shape: Ints::from_slice(map.shape()),
            body: Body::Through { outer: map.clone(), inner: Box::new(inner.clone()) },
        };
        match &self.body {
            // Neither a source nor what lies over it matters to a tensor that is all fill or empty.
            _ if map.is_nothing() => Ok(ViewProgram::new(self.first_source(), map.clone())),
            Body::View { source, view } => {
                Ok(map.compose(view).map_or_else(|| two(self), |view| ViewProgram::new(*source, view)))
            }
            Body::Through { outer, inner } => match map.compose(outer) {
                Some(view) => inner.seen_through(&view),
                None => Ok(two(self)),
            },
            Body::Picked { table, inner } if !map.is_masked() || map.fill() == Fill::ZERO => {
                inner.gathered(&table.through(map)?)
            }
            Body::Picked { .. } => Ok(two(self)),
            Body::Join { axis, parts } => match join::through(map, &self.shape, *axis, parts)? {
                Some(program) => Ok(program),
                None => Ok(two(self)),
            },
        }
    }

    fn first_source(&self) -> usize {
        match &self.body {
            Body::View { source, .. } => *source,
            Body::Through { inner, .. } | Body::Picked { inner, .. } => inner.first_source(),
            Body::Join { parts, .. } => parts.first().map_or(0, ViewProgram::first_source),
        }
    }
}

impl Movement for ViewProgram {
    fn shape(&self) -> &[i64] {
        &self.shape
    }

    fn through(&self, map: &View) -> Result<ViewProgram> {
        check_map(self, map)?;
        self.seen_through(map)
    }

    fn gathered(&self, table: &Table) -> Result<ViewProgram> {
        table.check(product(&self.shape)?)?;
        match table.fit()? {
            Some(map) => self.seen_through(&map),
            None => Ok(ViewProgram {
                shape: Ints::from_slice(table.shape()),
                body: Body::Picked { table: table.clone(), inner: Box::new(self.clone()) },
            }),
        }
    }
}

impl fmt::Display for ViewProgram {
    /// One line per view, those below another indented.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

impl ViewProgram {
    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        let indent = 2 * depth;
        match &self.body {
            Body::View { source, view } => write!(f, "{:indent$}source {source}: {view}", ""),
            Body::Join { axis, parts } => {
                write!(f, "{:indent$}join along axis {axis}", "")?;
                parts.iter().try_for_each(|part| {
                    f.write_str("\n")?;
                    part.write(f, depth + 1)
                })
            }
            Body::Through { outer, inner } => {
                writeln!(f, "{:indent$}{outer} of", "")?;
                inner.write(f, depth + 1)
            }
            Body::Picked { table, inner } => {
                writeln!(f, "{:indent$}{} elements picked of", "", table.size())?;
                inner.write(f, depth + 1)
            }
        }
    }
}

impl fmt::Debug for ViewProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
