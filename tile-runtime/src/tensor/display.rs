//! Tensors as text: nested brackets with aligned columns.

use super::HostTensor;
use std::fmt;

/// How many entries a long axis shows at each end.
const EDGE: usize = 3;
/// The number of elements from which on axes are abbreviated.
const ABBREVIATE: usize = 1000;

impl<T: fmt::Display> fmt::Display for HostTensor<T> {
    /// Nested brackets with aligned columns; large tensors show the ends of each axis.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let precision = f.precision();
        let text = |element: &T| match precision {
            Some(precision) => format!("{element:.precision$}"),
            None => element.to_string(),
        };
        let short = self.elements.len() >= ABBREVIATE;
        let mut texts: Vec<Option<String>> = vec![None; self.elements.len()];
        self.visit(short, 0, 0, &mut |i| texts[i] = Some(text(&self.elements[i])));
        let width = texts.iter().flatten().map(String::len).max().unwrap_or(0);
        self.write(f, short, &texts, width, 0, 0)
    }
}

impl<T> HostTensor<T> {
    /// The entries of an axis that are shown; `None` stands for those left out.
    fn shown(&self, short: bool, axis: usize) -> Vec<Option<usize>> {
        let extent = self.shape[axis];
        if !short || extent <= 2 * EDGE {
            return (0..extent).map(Some).collect();
        }
        (0..EDGE).map(Some).chain([None]).chain((extent - EDGE..extent).map(Some)).collect()
    }

    fn visit(&self, short: bool, axis: usize, start: usize, show: &mut dyn FnMut(usize)) {
        if axis == self.shape.len() {
            return show(start);
        }
        let stride: usize = self.shape[axis + 1..].iter().product();
        for i in self.shown(short, axis).into_iter().flatten() {
            self.visit(short, axis + 1, start + i * stride, show);
        }
    }

    fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        short: bool,
        texts: &[Option<String>],
        width: usize,
        axis: usize,
        start: usize,
    ) -> fmt::Result {
        if axis == self.shape.len() {
            return write!(f, "{:>width$}", texts[start].as_deref().unwrap_or("…"));
        }
        let stride: usize = self.shape[axis + 1..].iter().product();
        let innermost = axis + 1 == self.shape.len();
        let separator = if innermost {
            ", ".to_owned()
        } else {
            format!(",{}", "\n".repeat(self.shape.len() - 1 - axis))
        };
        f.write_str("[")?;
        for (position, entry) in self.shown(short, axis).into_iter().enumerate() {
            if position > 0 {
                f.write_str(&separator)?;
                if !innermost {
                    f.write_str(&" ".repeat(axis + 1))?;
                }
            }
            match entry {
                Some(i) => self.write(f, short, texts, width, axis + 1, start + i * stride)?,
                None => f.write_str("…")?,
            }
        }
        f.write_str("]")
    }
}
