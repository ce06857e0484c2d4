//! Tensors as text: nested brackets with aligned columns, as NumPy prints them. Of large tensors the ends of each axis
//! are shown, and only they are read.
//!
//! Floats get as many digits after the point as any of them needs, at most 8; an exponent where one of them is 10⁸ or
//! more, is below 10⁻⁴, or is a thousand times another. `{:.2}` asks for two digits.

use super::{HostTensor, Tensor, TensorRef, TensorView, TensorViewMut};
use crate::element::Element;
use crate::error::Result;
use std::fmt;

/// How many entries a long axis shows at each end.
const EDGE: usize = 3;
/// The number of elements, or of entries without elements, from which on axes are abbreviated.
const ABBREVIATE: usize = 1000;
/// The most digits after the point.
const DIGITS: usize = 8;

impl<T: Element> fmt::Display for HostTensor<T> {
    /// Nested brackets with aligned columns; large tensors show the ends of each axis.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |index: &[usize]| Ok(self.elements[tile_layout::linear_index(index, &self.shape)]);
        show(f, &self.shape, at)
    }
}

impl<T: Element> fmt::Display for TensorRef<T> {
    /// As [`HostTensor`], of elements that are read now; only those that are shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.len() < ABBREVIATE {
            return match self.to_host() {
                Ok(host) => host.fmt(f),
                Err(error) => write!(f, "<{error}>"),
            };
        }
        let element = |index: &[usize]| {
            let one: Vec<tile_layout::Index> = index.iter().map(|&i| i.into()).collect();
            Ok(self.slice(one.as_slice())?.to_vec()?[0])
        };
        show(f, self.shape(), element)
    }
}

impl<T: Element> fmt::Display for Tensor<T> {
    /// As [`TensorRef`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Element> fmt::Display for TensorView<'_, T> {
    /// As [`TensorRef`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Element> fmt::Display for TensorViewMut<'_, T> {
    /// As [`TensorRef`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// The entries of an axis that are shown; `None` stands for those left out.
fn shown(extent: usize, short: bool) -> Vec<Option<usize>> {
    if !short || extent <= 2 * EDGE {
        return (0..extent).map(Some).collect();
    }
    (0..EDGE).map(Some).chain([None]).chain((extent - EDGE..extent).map(Some)).collect()
}

fn show<T: Element>(
    f: &mut fmt::Formatter<'_>,
    shape: &[usize],
    element: impl Fn(&[usize]) -> Result<T>,
) -> fmt::Result {
    // An axis of an empty tensor can be as long as any, and its entries are written all the same.
    let entries = shape.iter().fold(1usize, |all, &extent| all.saturating_mul(extent.max(1)));
    let short = entries >= ABBREVIATE;
    let axes: Vec<_> = shape.iter().map(|&extent| shown(extent, short)).collect();
    let mut elements = Vec::new();
    if let Err(error) = collect(&axes, &mut Vec::new(), &element, &mut elements) {
        return write!(f, "<{error}>");
    }
    let texts = texts(&elements, f.precision());
    let width = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    Shown { axes: &axes, width }.write(f, 0, &mut texts.iter())
}

/// The elements that are shown, in row-major order.
fn collect<T>(
    axes: &[Vec<Option<usize>>],
    index: &mut Vec<usize>,
    element: &impl Fn(&[usize]) -> Result<T>,
    elements: &mut Vec<T>,
) -> Result<()> {
    let Some(axis) = axes.get(index.len()) else {
        elements.push(element(index)?);
        return Ok(());
    };
    for entry in axis.iter().flatten() {
        index.push(*entry);
        collect(axes, index, element, elements)?;
        index.pop();
    }
    Ok(())
}

/// The elements as texts.
fn texts<T: Element>(elements: &[T], precision: Option<usize>) -> Vec<String> {
    if !T::DTYPE.is_float() {
        return elements.iter().map(ToString::to_string).collect();
    }
    let values: Vec<f64> = elements.iter().map(|element| element.to_float()).collect();
    if let Some(digits) = precision {
        return values.iter().map(|value| format!("{value:.digits$}")).collect();
    }
    let sizes = || values.iter().map(|value| value.abs()).filter(|&size| size > 0.0 && size.is_finite());
    let (least, most) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
    let is_whole = values.iter().all(|value| !value.is_finite() || value.fract() == 0.0);
    if most >= 1e8 || !is_whole && (least < 1e-4 || most / least > 1e3) {
        let shortest = |element: &T| element.to_string().parse::<f64>().unwrap_or(f64::NAN);
        let digits = elements.iter().map(|element| digits_of(&format!("{:e}", shortest(element)))).max();
        let digits = digits.unwrap_or(0);
        return values.iter().map(|value| with_exponent(*value, digits.min(DIGITS))).collect();
    }
    let digits = elements.iter().map(|element| digits_of(&element.to_string())).max().unwrap_or(0);
    values.iter().map(|value| format!("{value:.*}", digits.min(DIGITS))).collect()
}

fn with_exponent(value: f64, digits: usize) -> String {
    if value.is_finite() { format!("{value:.digits$e}") } else { value.to_string() }
}

/// Digits between the point and the exponent.
fn digits_of(text: &str) -> usize {
    let mantissa = text.split('e').next().unwrap_or(text);
    mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len())
}

/// Writes the texts of what is shown of each axis, all as wide.
struct Shown<'a> {
    axes: &'a [Vec<Option<usize>>],
    width: usize,
}

impl Shown<'_> {
    fn write<'t>(
        &self,
        f: &mut fmt::Formatter<'_>,
        axis: usize,
        texts: &mut impl Iterator<Item = &'t String>,
    ) -> fmt::Result {
        let width = self.width;
        let Some(entries) = self.axes.get(axis) else {
            return write!(f, "{:>width$}", texts.next().map_or("", String::as_str));
        };
        let inner_axes = self.axes.len() - 1 - axis;
        f.write_str("[")?;
        for (position, entry) in entries.iter().enumerate() {
            match (position, inner_axes) {
                (0, _) => {}
                (_, 0) => f.write_str(", ")?,
                _ => write!(f, ",{}{}", "\n".repeat(inner_axes), " ".repeat(axis + 1))?,
            }
            match entry {
                Some(_) => self.write(f, axis + 1, texts)?,
                None => f.write_str("…")?,
            }
        }
        f.write_str("]")
    }
}
