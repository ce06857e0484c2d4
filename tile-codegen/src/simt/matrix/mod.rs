//! Matrix products that a warp carries out: which element each lane holds, and the sum.

pub(super) mod amd;
pub(super) mod nvidia;
mod operand;
pub(super) mod tcgen05;
pub(super) mod wgmma;

use super::format::Format;
use super::instruction::Call;

/// Where the elements of a matrix are among lanes: for a lane and the number of an element there, its row and column.
pub(super) type Fragment<'f> = dyn Fn(usize, usize) -> [usize; 2] + 'f;

/// A matrix, row by row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Matrix {
    pub(super) columns: usize,
    pub(super) elements: Vec<f64>,
}

impl Matrix {
    pub(super) fn zero(rows: usize, columns: usize) -> Matrix {
        Matrix { columns, elements: vec![0.0; rows * columns] }
    }

    fn map(self, change: impl Fn(f64) -> f64) -> Matrix {
        Matrix { elements: self.elements.into_iter().map(change).collect(), ..self }
    }

    pub(super) fn at(&mut self, [row, column]: [usize; 2]) -> &mut f64 {
        &mut self.elements[row * self.columns + column]
    }

    /// The matrix that lanes hold in these bytes.
    pub(super) fn gather(
        size: [usize; 2],
        format: Format,
        lanes: &[Vec<u8>],
        fragment: &Fragment<'_>,
    ) -> Matrix {
        let mut matrix = Matrix::zero(size[0], size[1]);
        for (lane, bytes) in lanes.iter().enumerate() {
            for (i, element) in bytes.chunks_exact(format.bytes()).enumerate() {
                *matrix.at(fragment(lane, i)) = format.decode(element);
            }
        }
        matrix
    }

    /// Gives lanes what they hold of the matrix.
    pub(super) fn scatter(self, format: Format, calls: &[Call<'_>], fragment: &Fragment<'_>) {
        let held = self.encoded(format, calls, fragment);
        calls.iter().zip(held).for_each(|(call, held)| call.give_all(&held));
    }

    /// What lanes hold of the matrix.
    fn encoded(mut self, format: Format, calls: &[Call<'_>], fragment: &Fragment<'_>) -> Vec<Vec<u8>> {
        let held = |(lane, call): (usize, &Call<'_>)| {
            let bytes: usize = call.instruction.results.iter().map(|slot| slot.bytes).sum();
            let mut held = Vec::with_capacity(bytes);
            (0..bytes / format.bytes()).for_each(|i| format.encode(*self.at(fragment(lane, i)), &mut held));
            held
        };
        calls.iter().enumerate().map(held).collect()
    }
}

/// The number of a byte with eight bits of exponent (OCP Microscaling Formats, "E8M0").
pub(super) fn power_of_two(byte: u8) -> f64 {
    if byte == 0xff { f64::NAN } else { 2f64.powi(i32::from(byte) - 127) }
}

/// How products are added up, in the order of k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sum {
    /// In f32, each product rounded once with its addition.
    F32,
    /// In f32, of products that are beyond its exponents before they are added, as those of scaled factors are.
    F32OfAny,
    F64,
    /// In i32; `saturates`: at its limits rather than around them.
    I32 {
        saturates: bool,
    },
}

/// `a b + c`.
pub(super) fn multiply(a: &Matrix, b: &Matrix, c: &Matrix, sum: Sum) -> Matrix {
    match sum {
        Sum::F32 => multiply_f32(a, b, c),
        Sum::F32OfAny => add_up(a, b, c, |start, products| {
            products.fold(start, |sum, (a, b)| f64::from((a * b + sum) as f32))
        }),
        Sum::F64 => add_up(a, b, c, |start, products| products.fold(start, |sum, (a, b)| a.mul_add(b, sum))),
        Sum::I32 { saturates } => add_up(a, b, c, |start, products| {
            let exact = products.fold(start as i64, |sum, (a, b)| sum + a as i64 * b as i64);
            let limited = exact.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
            f64::from(if saturates { limited } else { exact as i32 })
        }),
    }
}

/// The factors of an element's products, in the order of k.
type Products<'p> = &'p mut dyn Iterator<Item = (f64, f64)>;

/// What becomes of each element of `c`, by itself and its products.
fn add_up(a: &Matrix, b: &Matrix, c: &Matrix, add: impl Fn(f64, Products<'_>) -> f64) -> Matrix {
    let (depth, columns) = (a.columns, b.columns);
    let mut result = c.clone();
    for (i, element) in result.elements.iter_mut().enumerate() {
        let (row, column) = (i / columns, i % columns);
        let products = |k| (a.elements[row * depth + k], b.elements[k * columns + column]);
        *element = add(*element, &mut (0..depth).map(products));
    }
    result
}

/// [`multiply`] with [`Sum::F32`], as most products are: a row of sums at a time.
fn multiply_f32(a: &Matrix, b: &Matrix, c: &Matrix) -> Matrix {
    let narrow = |matrix: &Matrix| matrix.elements.iter().map(|&element| element as f32).collect();
    let [of_a, of_b, mut sums]: [Vec<f32>; 3] = [a, b, c].map(narrow);
    let factors = [(of_a.as_slice(), a.columns), (of_b.as_slice(), b.columns)];
    add_products_at_best(&mut sums, factors);
    Matrix { columns: c.columns, elements: sums.into_iter().map(f64::from).collect() }
}

/// [`add_products`], by an instruction for each where there is one, rather than by a function that looks for it.
fn add_products_at_best(sums: &mut [f32], factors: [(&[f32], usize); 2]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the processor has the instruction.
        return unsafe { add_products_with_fma(sums, factors) };
    }
    add_products(sums, factors);
}

/// Adds products to sums, each element's in the order of k. Of each factor its elements, row by row, and how many a row has.
#[inline(always)]
fn add_products(sums: &mut [f32], [(a, depth), (b, columns)]: [(&[f32], usize); 2]) {
    for (a, sums) in a.chunks_exact(depth).zip(sums.chunks_exact_mut(columns)) {
        for (a, b) in a.iter().zip(b.chunks_exact(columns)) {
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum = a.mul_add(*b, *sum);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "fma")]
fn add_products_with_fma(sums: &mut [f32], factors: [(&[f32], usize); 2]) {
    add_products(sums, factors);
}
