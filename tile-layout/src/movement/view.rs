//! Movement operations on one view: a map of it is a view where composing the two gives one, and else refused.

use super::{Movement, Table};
use crate::error::{ErrorKind, LayoutError, Result};
use crate::view::View;
use alloc::format;

impl Movement for View {
    fn shape(&self) -> &[i64] {
        View::shape(self)
    }

    fn through(&self, map: &View) -> Result<View> {
        check_map(self, map)?;
        map.compose(self).ok_or_else(|| {
            LayoutError::new(
                ErrorKind::Unsupported,
                format!("{map} of {self} is more than one view: use a ViewProgram, or copy first"),
            )
        })
    }

    fn gathered(&self, table: &Table) -> Result<View> {
        table.check(self.size())?;
        let map = table.fit()?.ok_or_else(|| {
            LayoutError::new(
                ErrorKind::Unsupported,
                format!(
                    "{} picked elements of {self} are no view: use a ViewProgram, or copy first",
                    table.size()
                ),
            )
        })?;
        self.through(&map)
    }
}

/// Whether a map names only positions that a tensor has.
pub(crate) fn check_map(tensor: &impl Movement, map: &View) -> Result<()> {
    let size = crate::tuple::product(tensor.shape())?;
    let reach = (map.offset() + map.layout().min_offset(), map.offset() + map.layout().max_offset());
    if !map.is_plain() {
        return Err(LayoutError::new(ErrorKind::Unsupported, format!("{map} is no map of positions")));
    }
    if map.is_nothing() || (reach.0 >= 0 && reach.1 < size) {
        return Ok(());
    }
    Err(LayoutError::new(
        ErrorKind::OutOfBounds,
        format!("{map} names positions {} to {} of a tensor of {size} elements", reach.0, reach.1),
    ))
}
