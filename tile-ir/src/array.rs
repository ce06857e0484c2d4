//! Dense arrays and the reference meaning of every data op, written for clarity.
//!
//! Floats of every format are held as `f64`, which represents each exactly; an op computes in `f64` and
//! rounds once. Shapes and formats are the caller's duty (verified IR, or the kernel-side types): a
//! violation is a panic that names the invariant.

mod accesses;
mod elementwise;
mod lines;
mod memory;
mod movement;
mod numbers;
mod product;

pub use lines::Combine;
pub use numbers::{int_to_float, round_float, wrap_int};

use crate::dtype::DType;
use crate::ops::Literal;
use numbers::literal_to_float;
use tile_layout::{element_count, multi_index};

/// Elements as numbers. Invariant: each is representable in the array's format.
#[derive(Clone, Debug, PartialEq)]
pub enum Elements {
    /// Integers, and `bool` as 0 and 1.
    Int(Vec<i128>),
    /// Floats of any format; each format's values are exact in f64.
    Float(Vec<f64>),
}

/// A dense row-major array. Rank 0 is a scalar.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    dtype: DType,
    shape: Vec<usize>,
    elements: Elements,
}

impl Array {
    /// An array of these elements.
    ///
    /// # Panics
    /// If the number or kind of the elements doesn't fit the shape or the format.
    pub fn new(dtype: DType, shape: Vec<usize>, elements: Elements) -> Array {
        let count = match &elements {
            Elements::Int(values) => values.len(),
            Elements::Float(values) => values.len(),
        };
        assert_eq!(element_count(&shape), Some(count), "an array has as many elements as its shape says");
        assert_eq!(
            matches!(elements, Elements::Float(_)),
            dtype.is_float(),
            "elements are of the format's class"
        );
        Array { dtype, shape, elements }
    }

    /// A number of rank 0, rounded or wrapped to the format.
    pub fn scalar(dtype: DType, value: Literal) -> Array {
        Array::full(dtype, &[], value)
    }

    /// An array with every element equal to `value`, rounded or wrapped to the format.
    pub fn full(dtype: DType, shape: &[usize], value: Literal) -> Array {
        let count = element_count(shape).expect("the element count fits usize");
        let elements = match value {
            Literal::Int(value) if !dtype.is_float() => Elements::Int(vec![wrap_int(dtype, value); count]),
            value => Elements::Float(vec![literal_to_float(dtype, value); count]),
        };
        Array::new(dtype, shape.to_vec(), elements)
    }

    /// An array of these numbers along one axis, each rounded or wrapped to the format.
    ///
    /// # Panics
    /// If the format isn't of floats and a number is.
    pub fn of_literals(dtype: DType, numbers: &[Literal]) -> Array {
        let integer = |number: &Literal| match *number {
            Literal::Int(value) => wrap_int(dtype, value),
            Literal::Float(_) => panic!("verified: a float literal isn't {dtype}"),
        };
        let elements = if dtype.is_float() {
            Elements::Float(numbers.iter().map(|&number| literal_to_float(dtype, number)).collect())
        } else {
            Elements::Int(numbers.iter().map(integer).collect())
        };
        Array::new(dtype, vec![numbers.len()], elements)
    }

    /// An array whose element is its position along `axis`.
    pub fn iota(dtype: DType, shape: &[usize], axis: usize) -> Array {
        let count = element_count(shape).expect("the element count fits usize");
        let positions = (0..count).map(|i| multi_index(i, shape)[axis] as i128);
        let elements = if dtype.is_float() {
            Elements::Float(positions.map(|p| int_to_float(dtype, p)).collect())
        } else {
            Elements::Int(positions.map(|p| wrap_int(dtype, p)).collect())
        };
        Array::new(dtype, shape.to_vec(), elements)
    }

    /// Element format.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Extents, outermost axis first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The elements in row-major order.
    pub fn elements(&self) -> &Elements {
        &self.elements
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        match &self.elements {
            Elements::Int(values) => values.len(),
            Elements::Float(values) => values.len(),
        }
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Element `i` in row-major order, as the number it is.
    pub fn get(&self, i: usize) -> Literal {
        match &self.elements {
            Elements::Int(values) => Literal::Int(values[i]),
            Elements::Float(values) => Literal::Float(values[i]),
        }
    }

    /// Element `i` as a float; integers are converted.
    pub fn get_f64(&self, i: usize) -> f64 {
        match &self.elements {
            Elements::Int(values) => values[i] as f64,
            Elements::Float(values) => values[i],
        }
    }

    /// Element `i` of an integer or bool array.
    ///
    /// # Panics
    /// If the elements are floats.
    pub fn get_int(&self, i: usize) -> i128 {
        self.ints()[i]
    }

    fn ints(&self) -> &[i128] {
        match &self.elements {
            Elements::Int(values) => values,
            Elements::Float(_) => panic!("verified: the elements are integers"),
        }
    }
}
