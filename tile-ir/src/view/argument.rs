//! How the elements of a tensor argument may lie, as far as a kernel's code depends on it: an instance of a kernel is
//! made for one such layout of each tensor.
//!
//! What code is told at compile time are strides of 1 and of 0, and directions; other strides are run-time sizes of the
//! instance, `x.stride_0` of argument `x`, and so are elements before the first one, `x.offset`. Rust names have no `.`,
//! so these never meet a kernel's own sizes. The address that a kernel receives is a multiple of
//! [`TENSOR_ALIGNMENT`](crate::gpu::TENSOR_ALIGNMENT) whatever the layout, and no position is negative: it lies at or
//! before the element that lies first.

use super::Strided;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::types::TensorType;
use smallvec::SmallVec;

/// Axes that a layout has room for without allocating.
const AXES: usize = 6;

/// Strides of a tensor, in elements.
pub type Strides = SmallVec<[i64; AXES]>;

/// The stride of an axis with one element where that must be some number: elements that begin so far apart have equal
/// alignment, whatever their format.
const IDLE_STRIDE: i64 = 16;

/// What code knows of the stride of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AxisStride {
    /// 1: neighbours lie next to each other.
    Unit,
    /// 0: one element is repeated. Of a tensor that is only read.
    Repeated,
    /// A run-time size.
    Forward,
    /// A run-time size, downwards in memory.
    Backward,
}

/// How the elements of a tensor argument lie.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArgumentLayout {
    /// The stride of each axis; `None` where elements lie one after the other in row-major order.
    strides: Option<SmallVec<[AxisStride; AXES]>>,
    /// Whether the element that lies first begins at a multiple of 16 bytes.
    is_aligned: bool,
}

/// A tensor as a launch gives it to a kernel.
#[derive(Clone, Copy, Debug)]
pub struct GivenTensor<'a> {
    /// Extents, outermost axis first.
    pub extents: &'a [usize],
    /// Elements from one index to the next along each axis, as [`canonical`] gives them; `None` where elements lie one
    /// after the other in row-major order.
    pub strides: Option<&'a [i64]>,
    /// Elements between the address that the kernel receives and the element that lies first.
    pub offset: usize,
}

impl<'a> GivenTensor<'a> {
    /// Elements one after the other in row-major order, from the address on.
    pub fn dense(extents: &'a [usize]) -> GivenTensor<'a> {
        GivenTensor { extents, strides: None, offset: 0 }
    }

    /// Its type in numbers.
    pub fn ty(&self, dtype: DType, mutable: bool) -> TensorType {
        let extents = self.extents.iter().map(|&extent| Dim::from(extent as i64)).collect();
        let dense = TensorType::dense(extents, dtype, mutable);
        let Some(strides) = self.strides.filter(|_| !self.extents.contains(&0)) else { return dense };
        let behind = |(&stride, &extent): (&i64, &usize)| stride.min(0) * (extent as i64 - 1);
        let before: i64 = strides.iter().zip(self.extents).map(behind).sum();
        let layout = Strided {
            strides: strides.iter().map(|&stride| Dim::from(stride)).collect(),
            offset: Dim::from(self.offset as i64 - before),
            windows: vec![Vec::new(); strides.len()],
        };
        TensorType { layout: Some(Box::new(layout)), ..dense }
    }
}

/// Strides with those of axes of one element, where any would do, as the ones that leave most alike: 1 of the last such
/// axis where no other axis has it.
pub fn canonical(extents: &[usize], strides: &[i64]) -> Strides {
    let mut canonical: Strides = strides.into();
    let is_idle = |axis: &usize| extents[*axis] == 1;
    let has_unit = (0..extents.len()).any(|axis| !is_idle(&axis) && strides[axis] == 1);
    let last = (0..extents.len()).rev().find(is_idle).filter(|_| !has_unit);
    for axis in (0..extents.len()).filter(is_idle) {
        canonical[axis] = if Some(axis) == last { 1 } else { IDLE_STRIDE };
    }
    canonical
}

impl ArgumentLayout {
    /// The layout of a tensor of a launch; `None` where it is that of kernels as they are written: dense, and aligned.
    pub fn of(tensor: &GivenTensor<'_>) -> Option<ArgumentLayout> {
        if tensor.strides.is_none() && tensor.offset == 0 {
            return None;
        }
        let stride = |&stride: &i64| match stride {
            1 => AxisStride::Unit,
            0 => AxisStride::Repeated,
            2.. => AxisStride::Forward,
            _ => AxisStride::Backward,
        };
        Some(ArgumentLayout {
            strides: tensor.strides.map(|strides| strides.iter().map(stride).collect()),
            is_aligned: tensor.offset == 0,
        })
    }

    /// What a message says of a tensor that lies so.
    pub fn describe(&self) -> &'static str {
        match self.strides {
            Some(_) => "has elements that don't lie one after the other in row-major order",
            None => "begins at no multiple of 16 bytes",
        }
    }

    fn is_plain(&self) -> bool {
        self.strides.is_none() && self.is_aligned
    }

    /// The number of axes, where it says something of them.
    pub fn rank(&self) -> Option<usize> {
        self.strides.as_ref().map(SmallVec::len)
    }

    /// The type of an argument that lies so; `None` where it has another number of axes, or would be written through
    /// elements that repeat.
    pub fn apply(&self, name: &str, dense: &TensorType) -> Option<TensorType> {
        let mut layout = match &self.strides {
            None => Strided::row_major(&dense.extents),
            Some(strides) => {
                let repeats = strides.contains(&AxisStride::Repeated);
                if strides.len() != dense.extents.len() || (repeats && dense.mutable) {
                    return None;
                }
                strided(name, &dense.extents, strides)
            }
        };
        if !self.is_aligned {
            layout.offset = layout.offset + Dim::size(offset_name(name));
        }
        let layout = (!self.is_plain()).then(|| Box::new(layout));
        Some(TensorType { layout, ..dense.clone() })
    }

    /// The layout of an argument of this type; `None` where the type is of no argument, only of a view.
    pub fn read(name: &str, ty: &TensorType) -> Option<ArgumentLayout> {
        let dense = TensorType { layout: None, ..ty.clone() };
        let place = ty.strided();
        let stride = |(axis, stride): (usize, &Dim)| match stride.as_const() {
            Some(1) => Some(AxisStride::Unit),
            Some(0) => Some(AxisStride::Repeated),
            Some(_) => None,
            None if stride.as_size() == Some(&stride_name(name, axis)) => Some(AxisStride::Forward),
            None => Some(AxisStride::Backward),
        };
        let strides = place.strides.iter().enumerate().map(stride).collect::<Option<_>>();
        let layouts = [None, strides].into_iter().flat_map(|strides| {
            [true, false].map(|is_aligned| ArgumentLayout { strides: strides.clone(), is_aligned })
        });
        // What a layout is made of again is one; a view's isn't.
        layouts.into_iter().find(|layout| layout.apply(name, &dense).as_ref() == Some(ty))
    }

    /// The run-time sizes that an argument of this layout binds besides its extents: names, and where a launch has them.
    pub fn sizes<'l>(&'l self, name: &'l str) -> impl Iterator<Item = (String, LayoutSize)> + 'l {
        let axes = self.strides.iter().flatten().enumerate();
        let own = axes
            .filter(|(_, stride)| matches!(stride, AxisStride::Forward | AxisStride::Backward))
            .map(|(axis, _)| (stride_name(name, axis), LayoutSize::Stride(axis)));
        own.chain((!self.is_aligned).then(|| (offset_name(name), LayoutSize::Offset)))
    }
}

/// Where a launch has the value of a run-time size that isn't an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutSize {
    /// The stride of an axis, without its sign.
    Stride(usize),
    /// [`GivenTensor::offset`].
    Offset,
}

impl LayoutSize {
    /// Its value for a tensor of a launch.
    pub fn value(self, tensor: &GivenTensor<'_>) -> usize {
        match self {
            LayoutSize::Offset => tensor.offset,
            LayoutSize::Stride(axis) => {
                let stride = tensor.strides.and_then(|strides| strides.get(axis));
                stride.map_or(0, |stride| stride.unsigned_abs() as usize)
            }
        }
    }
}

fn stride_name(argument: &str, axis: usize) -> String {
    format!("{argument}.stride_{axis}")
}

fn offset_name(argument: &str) -> String {
    format!("{argument}.offset")
}

/// Positions count from the element that lies first, so an axis that goes downwards begins at its end.
fn strided(name: &str, extents: &[Dim], strides: &[AxisStride]) -> Strided {
    let mut offset = Dim::from(0);
    let mut stride = |(axis, stride): (usize, &AxisStride)| {
        let size = || Dim::size(stride_name(name, axis));
        match stride {
            AxisStride::Unit => Dim::from(1),
            AxisStride::Repeated => Dim::from(0),
            AxisStride::Forward => size(),
            AxisStride::Backward => {
                offset = offset.clone() + (extents[axis].clone() - Dim::from(1)) * size();
                -size()
            }
        }
    };
    let strides = strides.iter().enumerate().map(&mut stride).collect();
    Strided { strides, offset, windows: vec![Vec::new(); extents.len()] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given<'a>(extents: &'a [usize], strides: &'a [i64], offset: usize) -> GivenTensor<'a> {
        GivenTensor { extents, strides: Some(strides), offset }
    }

    fn matrix(mutable: bool) -> TensorType {
        TensorType::dense(vec![Dim::size("m"), Dim::size("n")], DType::F32, mutable)
    }

    #[test]
    fn a_type_says_how_its_argument_lies() {
        let cases: [(&[i64], usize, &str); 6] = [
            (&[1, 7], 0, "tensor<m x n x f32, strided [1, x.stride_1]>"),
            (&[9, 1], 0, "tensor<m x n x f32, strided [x.stride_0, 1]>"),
            (&[0, 1], 2, "tensor<m x n x f32, strided [0, 1] offset x.offset>"),
            (&[9, 2], 0, "tensor<m x n x f32, strided [x.stride_0, x.stride_1]>"),
            (&[-9, 1], 0, "tensor<m x n x f32, strided [-x.stride_0, 1] offset m*x.stride_0 - x.stride_0>"),
            (
                &[-9, -1],
                3,
                "tensor<m x n x f32, strided [-x.stride_0, -x.stride_1] offset m*x.stride_0 + n*x.stride_1 + x.offset \
                 - x.stride_0 - x.stride_1>",
            ),
        ];
        for (strides, offset, text) in cases {
            let layout = ArgumentLayout::of(&given(&[4, 5], strides, offset)).unwrap();
            let ty = layout.apply("x", &matrix(false)).unwrap();
            assert_eq!(ty.to_string(), text);
            assert_eq!(ArgumentLayout::read("x", &ty), Some(layout));
            assert_eq!(ArgumentLayout::read("y", &ty).is_some(), text.find("x.").is_none());
        }
        let shifted = GivenTensor { offset: 3, ..GivenTensor::dense(&[4, 5]) };
        let shifted = ArgumentLayout::of(&shifted).unwrap();
        let ty = shifted.apply("x", &matrix(true)).unwrap();
        assert_eq!(ty.to_string(), "mut tensor<m x n x f32, strided [n, 1] offset x.offset>");
        assert_eq!(ArgumentLayout::read("x", &ty), Some(shifted));
        assert_eq!(ArgumentLayout::of(&GivenTensor::dense(&[4, 5])), None);
    }

    /// A matrix of 2 rows, upside down, from the third of its elements on.
    #[test]
    fn numbers_make_a_type() {
        let ty = given(&[2, 3], &[-5, 1], 2).ty(DType::F32, false);
        assert_eq!(ty.to_string(), "tensor<2 x 3 x f32, strided [-5, 1] offset 7>");
        assert_eq!(GivenTensor::dense(&[2, 3]).ty(DType::I8, true).to_string(), "mut tensor<2 x 3 x i8>");
    }

    #[test]
    fn what_is_no_argument_is_refused() {
        let repeated = ArgumentLayout::of(&given(&[4, 5], &[0, 1], 0)).unwrap();
        assert!(repeated.apply("x", &matrix(true)).is_none());
        let vector = ArgumentLayout::of(&given(&[4], &[2], 0)).unwrap();
        assert!(vector.apply("x", &matrix(false)).is_none());
        let view = |strides: [Dim; 2], offset| TensorType {
            layout: Some(Box::new(Strided { strides: strides.into(), offset, windows: vec![Vec::new(); 2] })),
            ..matrix(false)
        };
        let stride = || Dim::size("x.stride_0");
        assert!(ArgumentLayout::read("x", &view([stride(), 1.into()], 0.into())).is_some());
        assert!(ArgumentLayout::read("x", &view([stride(), 1.into()], 1.into())).is_none());
        assert!(ArgumentLayout::read("x", &view([stride(), stride()], 0.into())).is_none());
        assert!(ArgumentLayout::read("x", &view([Dim::size("n"), 2.into()], 0.into())).is_none());
        assert!(ArgumentLayout::read("x", &view([-stride(), 1.into()], 0.into())).is_none());
    }

    #[test]
    fn axes_of_one_element_have_the_stride_that_helps() {
        assert_eq!(canonical(&[1, 5], &[0, 1])[..], [16, 1]);
        assert_eq!(canonical(&[5, 1], &[1, 9])[..], [1, 16]);
        assert_eq!(canonical(&[5, 1], &[7, 0])[..], [7, 1]);
        assert_eq!(canonical(&[1, 1, 3], &[0, 4, -2])[..], [16, 1, -2]);
        assert_eq!(canonical(&[2, 3], &[0, -1])[..], [0, -1]);
    }
}
