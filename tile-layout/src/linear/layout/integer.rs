//! Decides how layouts of this crate's integer model become linear ones and back. Invariant: a conversion is exact
//! or refused.

use alloc::vec::Vec;

use super::{Dim, LinearLayout};
use crate::linear::LinearError;
use crate::{IntTuple, Layout, Swizzle, SwizzledLayout};

impl TryFrom<&Layout> for LinearLayout {
    type Error = LinearError;

    /// Top-level mode `k` becomes `Axis(k)`, counted through first mode fastest; the output is the `Offset`.
    ///
    /// ```
    /// use tile_layout::{Layout, linear::{Dim, LinearLayout}};
    /// let layout: Layout = "((2,2),4):((1,8),2)".parse()?;
    /// let linear = LinearLayout::try_from(&layout)?;
    /// assert_eq!(linear.apply(&[(Dim::Axis(0), 3), (Dim::Axis(1), 2)])?, [(Dim::Offset, 13)]);
    /// assert!(LinearLayout::try_from(&"(4,4):(5,1)".parse::<Layout>()?).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn try_from(layout: &Layout) -> Result<LinearLayout, LinearError> {
        let modes: Vec<(u64, i64)> =
            layout.leaves().iter().map(|mode| (mode.extent.unsigned_abs(), mode.stride)).collect();
        let flat = LinearLayout::from_modes(&modes)?;
        let axis = |(axis, mode): (usize, Layout)| match u8::try_from(axis) {
            Ok(axis) => Ok((Dim::Axis(axis), mode.size().unsigned_abs())),
            Err(_) => Err(LinearError::TooManyBits { bits: axis as u64, limit: u32::from(u8::MAX) + 1 }),
        };
        let axes = layout.modes().enumerate().map(axis).collect::<Result<Vec<_>, _>>()?;
        flat.reshape_inputs(&axes)
    }
}

impl TryFrom<&SwizzledLayout> for LinearLayout {
    type Error = LinearError;

    /// As for a layout, its offset followed by the swizzle. A swizzled layout that does not begin at offset 0 sends
    /// index 0 elsewhere, which no linear layout does.
    ///
    /// ```
    /// use tile_layout::{SwizzledLayout, linear::LinearLayout};
    /// let swizzled: SwizzledLayout = "Sw<2,0,2> o 0 o (4,4):(4,1)".parse()?;
    /// let linear = LinearLayout::try_from(&swizzled)?;
    /// assert!((0..16).all(|i| linear.apply_flat(i as u64).ok() == swizzled.get(i).map(|offset| offset as u64)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn try_from(swizzled: &SwizzledLayout) -> Result<LinearLayout, LinearError> {
        if swizzled.offset() != 0 {
            return Err(LinearError::StartsElsewhere { offset: swizzled.offset() });
        }
        let layout = LinearLayout::try_from(swizzled.layout())?;
        let swizzle = swizzled.swizzle();
        if swizzle == Swizzle::IDENTITY {
            return Ok(layout);
        }
        let width = swizzle.period().ilog2().max(layout.output_bits(Dim::Offset));
        LinearLayout::from_swizzle(swizzle, width)?.compose(&layout)
    }
}

impl LinearLayout {
    /// The integer layout with the same flat function, coalesced; `None` where there is none, as for a swizzle.
    ///
    /// ```
    /// use tile_layout::{Layout, linear::LinearLayout};
    /// let layout: Layout = "(2,(2,4)):(1,(16,2))".parse()?;
    /// let same = LinearLayout::try_from(&layout)?.to_layout();
    /// assert_eq!(same.map(|layout| layout.to_string()), Some("(2,2,4):(1,16,2)".to_owned()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_layout(&self) -> Option<Layout> {
        let modes = self.to_modes()?;
        let extents: Option<Vec<i64>> = modes.iter().map(|&(extent, _)| i64::try_from(extent).ok()).collect();
        let strides: Vec<i64> = modes.iter().map(|&(_, stride)| stride).collect();
        Layout::new(IntTuple::flat(&extents?), IntTuple::flat(&strides)).ok().map(|layout| layout.coalesce())
    }
}
