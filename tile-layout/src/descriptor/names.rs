//! The layouts that a host tensor descriptor may be given, by name. What strides they mean is not known here.

use crate::error::{ErrorKind, LayoutError, Result};
use alloc::format;
use core::fmt;
use core::str::FromStr;

/// How the last two axes lie in memory, and how much is checked.
///
/// ```
/// use tile_layout::{ConvolutionLayout, TensorLayout};
/// assert_eq!("row".parse(), Ok(TensorLayout::RowMajor));
/// assert_eq!("NHWC".parse(), Ok(TensorLayout::Convolution(ConvolutionLayout::Nhwc)));
/// assert_eq!(TensorLayout::Bypass.to_string(), "bypass");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TensorLayout {
    /// To be chosen: row-major without strides, else by the stride that is 1.
    #[default]
    Default,
    /// The last axis contiguous; higher axes are batches.
    RowMajor,
    /// The last but one axis contiguous; higher axes are batches.
    ColumnMajor,
    /// A named convolution layout: missing strides are packed, given ones are taken as they are.
    Convolution(ConvolutionLayout),
    /// Strides are taken as they are, and nothing is checked.
    Bypass,
}

macro_rules! convolution_layouts {
    ($($variant:ident = $name:literal: $what:literal,)+) => {
        /// Convolution layouts by name: axes from the slowest to the fastest, `G` groups, `N` images, `C` and `K`
        /// channels in and out, `D H W` and `Z Y X` positions in images and filters.
        ///
        /// ```
        /// use tile_layout::ConvolutionLayout;
        /// assert_eq!("GKYXC".parse::<ConvolutionLayout>()?.to_string(), "GKYXC");
        /// # Ok::<(), tile_layout::LayoutError>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ConvolutionLayout {
            $(#[doc = $what] $variant,)+
        }

        impl ConvolutionLayout {
            /// All of them.
            ///
            /// ```
            /// assert!(tile_layout::ConvolutionLayout::ALL.len() > 30);
            /// ```
            pub const ALL: &'static [ConvolutionLayout] = &[$(ConvolutionLayout::$variant),+];

            fn name(self) -> &'static str {
                match self {
                    $(ConvolutionLayout::$variant => $name,)+
                }
            }
        }
    };
}

// The names of `ck/tensor_operation/gpu/device/tensor_layout.hpp`, namespace `convolution`.
convolution_layouts! {
    Nwc = "NWC": "Images of one dimension, channels last.",
    Nhwc = "NHWC": "Images of two dimensions, channels last.",
    Ndhwc = "NDHWC": "Images of three dimensions, channels last.",
    Ncw = "NCW": "Images of one dimension, channels first.",
    Nchw = "NCHW": "Images of two dimensions, channels first.",
    Ncdhw = "NCDHW": "Images of three dimensions, channels first.",
    Gnwc = "GNWC": "Grouped images of one dimension, channels last.",
    Gnhwc = "GNHWC": "Grouped images of two dimensions, channels last.",
    Gndhwc = "GNDHWC": "Grouped images of three dimensions, channels last.",
    Gncw = "GNCW": "Grouped images of one dimension, channels first.",
    Gnchw = "GNCHW": "Grouped images of two dimensions, channels first.",
    Gncdhw = "GNCDHW": "Grouped images of three dimensions, channels first.",
    Nwgc = "NWGC": "Images of one dimension, groups beside channels.",
    Nhwgc = "NHWGC": "Images of two dimensions, groups beside channels.",
    Ndhwgc = "NDHWGC": "Images of three dimensions, groups beside channels.",
    Ngchw = "NGCHW": "Images of two dimensions, groups before channels.",
    Ngcdhw = "NGCDHW": "Images of three dimensions, groups before channels.",
    Kxc = "KXC": "Filters of one dimension, channels last.",
    Kyxc = "KYXC": "Filters of two dimensions, channels last.",
    Kzyxc = "KZYXC": "Filters of three dimensions, channels last.",
    Kcx = "KCX": "Filters of one dimension, channels first.",
    Kcyx = "KCYX": "Filters of two dimensions, channels first.",
    Kczyx = "KCZYX": "Filters of three dimensions, channels first.",
    Gkxc = "GKXC": "Grouped filters of one dimension, channels last.",
    Gkyxc = "GKYXC": "Grouped filters of two dimensions, channels last.",
    Gkzyxc = "GKZYXC": "Grouped filters of three dimensions, channels last.",
    Gkcx = "GKCX": "Grouped filters of one dimension, channels first.",
    Gkcyx = "GKCYX": "Grouped filters of two dimensions, channels first.",
    Gkczyx = "GKCZYX": "Grouped filters of three dimensions, channels first.",
    Kxgc = "KXGC": "Filters of one dimension, groups beside channels.",
    Kyxgc = "KYXGC": "Filters of two dimensions, groups beside channels.",
    Kzyxgc = "KZYXGC": "Filters of three dimensions, groups beside channels.",
    Nwk = "NWK": "Results of one dimension, channels last.",
    Nhwk = "NHWK": "Results of two dimensions, channels last.",
    Ndhwk = "NDHWK": "Results of three dimensions, channels last.",
    Nkw = "NKW": "Results of one dimension, channels first.",
    Nkhw = "NKHW": "Results of two dimensions, channels first.",
    Nkdhw = "NKDHW": "Results of three dimensions, channels first.",
    Gnwk = "GNWK": "Grouped results of one dimension, channels last.",
    Gnhwk = "GNHWK": "Grouped results of two dimensions, channels last.",
    Gndhwk = "GNDHWK": "Grouped results of three dimensions, channels last.",
    Nwgk = "NWGK": "Results of one dimension, groups beside channels.",
    Nhwgk = "NHWGK": "Results of two dimensions, groups beside channels.",
    Ndhwgk = "NDHWGK": "Results of three dimensions, groups beside channels.",
    Ngkhw = "NGKHW": "Results of two dimensions, groups before channels.",
    Ngkdhw = "NGKDHW": "Results of three dimensions, groups before channels.",
}

impl fmt::Display for ConvolutionLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ConvolutionLayout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<ConvolutionLayout> {
        let named = ConvolutionLayout::ALL.iter().find(|layout| layout.name() == text);
        named.copied().ok_or_else(|| {
            LayoutError::new(
                ErrorKind::Syntax,
                format!("`{text}` is no convolution layout; NHWC and GKYXC are"),
            )
        })
    }
}

impl fmt::Display for TensorLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TensorLayout::Default => f.write_str("default"),
            TensorLayout::RowMajor => f.write_str("row"),
            TensorLayout::ColumnMajor => f.write_str("col"),
            TensorLayout::Convolution(layout) => layout.fmt(f),
            TensorLayout::Bypass => f.write_str("bypass"),
        }
    }
}

impl FromStr for TensorLayout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<TensorLayout> {
        match text {
            "default" => Ok(TensorLayout::Default),
            "row" => Ok(TensorLayout::RowMajor),
            "col" => Ok(TensorLayout::ColumnMajor),
            "bypass" => Ok(TensorLayout::Bypass),
            name => name.parse().map(TensorLayout::Convolution),
        }
    }
}
