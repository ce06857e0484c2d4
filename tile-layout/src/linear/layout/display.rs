//! Decides how a layout is printed: the sides, then one line for each input bit. Knows nothing else.

use core::fmt;

use super::{Group, LinearLayout, field};

/// The sides with their extents, then the image of every input bit.
///
/// ```
/// use tile_layout::linear::{Dim, LinearLayout};
/// let layout = LinearLayout::new(
///     &[(Dim::Register, &[[0, 1]]), (Dim::Lane, &[[0, 2], [1, 0]])],
///     [(Dim::Axis(0), 2), (Dim::Axis(1), 4)],
/// )?;
/// assert_eq!(layout.to_string(), "\
/// (register 2, lane 4) -> (axis0 2, axis1 4)
///   register=1 -> (0, 1)
///   lane=1 -> (0, 2)
///   lane=2 -> (1, 0)");
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
impl fmt::Display for LinearLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_side(f, &self.inputs)?;
        f.write_str(" -> ")?;
        write_side(f, &self.outputs)?;
        for group in &self.inputs {
            for (bit, &column) in self.columns(group.dim).iter().enumerate() {
                write!(f, "\n  {}={} -> (", group.dim, 1u64 << bit)?;
                for (position, output) in self.outputs.iter().enumerate() {
                    let separator = if position == 0 { "" } else { ", " };
                    write!(f, "{separator}{}", field(&self.outputs, output.dim, column))?;
                }
                f.write_str(")")?;
            }
        }
        Ok(())
    }
}

fn write_side(f: &mut fmt::Formatter<'_>, groups: &[Group]) -> fmt::Result {
    f.write_str("(")?;
    for (position, group) in groups.iter().enumerate() {
        let separator = if position == 0 { "" } else { ", " };
        write!(f, "{separator}{} {}", group.dim, group.extent())?;
    }
    f.write_str(")")
}
