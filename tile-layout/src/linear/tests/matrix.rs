//! Checks the algebra of matrices and subspaces against enumeration of small spaces.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use proptest::prelude::*;

use crate::linear::{BitMatrix, LinearError, Subspace};

fn matrix(rows: u32, columns: core::ops::RangeInclusive<usize>) -> impl Strategy<Value = BitMatrix> {
    prop::collection::vec(0..1u64 << rows, columns)
        .prop_map(move |columns| BitMatrix::new(rows, &columns).unwrap())
}

/// Any matrix of up to 7 rows and 8 columns.
fn any_matrix() -> impl Strategy<Value = BitMatrix> {
    (0u32..=7).prop_flat_map(|rows| matrix(rows, 0..=8))
}

fn inputs(matrix: &BitMatrix) -> core::ops::Range<u64> {
    0..1 << matrix.columns().len()
}

fn image(matrix: &BitMatrix) -> BTreeSet<u64> {
    inputs(matrix).map(|x| matrix.apply(x)).collect()
}

fn members(space: &Subspace) -> BTreeSet<u64> {
    (0..256).filter(|&vector| space.contains(vector)).collect()
}

proptest! {
    #[test]
    fn apply_is_linear(matrix in any_matrix(), x in 0u64..256, y in 0u64..256) {
        prop_assert_eq!(matrix.apply(x ^ y), matrix.apply(x) ^ matrix.apply(y));
    }

    #[test]
    fn multiply_is_pointwise(
        (left, right) in (0u32..7, 0u32..7).prop_flat_map(|(rows, inner)| {
            (matrix(rows, inner as usize..=inner as usize), matrix(inner, 0..=7))
        })
    ) {
        let product = left.multiply(&right).unwrap();
        for x in inputs(&right) {
            prop_assert_eq!(product.apply(x), left.apply(right.apply(x)));
        }
    }

    #[test]
    fn rank_and_kernel_count_the_image(matrix in any_matrix()) {
        let kernel: BTreeSet<u64> = inputs(&matrix).filter(|&x| matrix.apply(x) == 0).collect();
        prop_assert_eq!(1 << matrix.rank(), image(&matrix).len());
        prop_assert_eq!(1 << matrix.kernel().dimension(), kernel.len());
        prop_assert!(kernel.iter().all(|&x| matrix.kernel().contains(x)));
        prop_assert_eq!(members(&matrix.image()), image(&matrix));
    }

    #[test]
    fn inverse_round_trips(matrix in (0u32..7).prop_flat_map(|n| matrix(n, n as usize..=n as usize))) {
        match matrix.inverse() {
            Ok(inverse) => {
                let identity = BitMatrix::identity(matrix.rows()).unwrap();
                prop_assert_eq!(matrix.multiply(&inverse).unwrap(), identity.clone());
                prop_assert_eq!(inverse.multiply(&matrix).unwrap(), identity);
            }
            Err(_) => prop_assert!(image(&matrix).len() < 1 << matrix.rows()),
        }
    }

    #[test]
    fn pseudo_inverse_finds_members_of_the_image(matrix in any_matrix()) {
        let inverse = matrix.pseudo_inverse();
        for y in image(&matrix) {
            prop_assert_eq!(matrix.apply(inverse.apply(y)), y);
            prop_assert_eq!(inverse.apply(y) & matrix.free_columns(), 0);
            prop_assert_eq!(matrix.solve(y), Some(inverse.apply(y)));
        }
        for y in (0..1 << matrix.rows()).filter(|y| !image(&matrix).contains(y)) {
            prop_assert_eq!(matrix.solve(y), None);
        }
    }

    #[test]
    fn row_echelon_keeps_the_relations_of_columns(matrix in any_matrix()) {
        let reduced = matrix.row_echelon();
        prop_assert_eq!(reduced.rows(), matrix.rank());
        prop_assert_eq!(reduced.kernel(), matrix.kernel());
        // Independent columns are the units in order.
        let pivots: Vec<u64> = (0..reduced.columns().len())
            .filter(|column| matrix.free_columns() >> column & 1 == 0)
            .map(|column| reduced.columns()[column])
            .collect();
        prop_assert!(pivots.iter().enumerate().all(|(row, &pivot)| pivot == 1 << row));
    }

    #[test]
    fn subspaces_are_sets(
        a in prop::collection::vec(0u64..256, 0..6),
        b in prop::collection::vec(0u64..256, 0..6),
        vector in 0u64..256,
    ) {
        let (a, b) = (Subspace::span(a), Subspace::span(b));
        let both: BTreeSet<u64> = members(&a).intersection(&members(&b)).copied().collect();
        prop_assert_eq!(members(&a.intersection(&b)), both);
        let sums: BTreeSet<u64> =
            members(&a).iter().flat_map(|x| members(&b).into_iter().map(move |y| x ^ y)).collect();
        prop_assert_eq!(members(&a.sum(&b)), sums);
        prop_assert_eq!(members(&a) == members(&b), a == b);
        let smallest = members(&a).iter().map(|member| member ^ vector).min();
        prop_assert_eq!(Some(a.reduce(vector)), smallest);
    }
}

#[test]
fn sixty_four_bits_fit_and_more_are_refused() {
    let identity = BitMatrix::identity(64).unwrap();
    assert_eq!(identity.apply(u64::MAX), u64::MAX);
    assert_eq!(identity.inverse().unwrap(), identity);
    assert_eq!(identity.row_echelon(), identity);
    assert_eq!(identity.free_columns(), 0);
    assert_eq!(BitMatrix::new(64, &[u64::MAX; 64]).unwrap().kernel().dimension(), 63);
    assert_eq!(BitMatrix::identity(65), Err(LinearError::TooManyBits { bits: 65, limit: 64 }));
    assert!(BitMatrix::new(1, &[0; 65]).is_err());
    assert!(BitMatrix::zeros(0, u64::MAX).is_err());
}

#[test]
fn sizes_must_agree() {
    let tall = BitMatrix::new(3, &[1, 2]).unwrap();
    assert_eq!(tall.multiply(&tall), Err(LinearError::SizeMismatch { left_columns: 2, right_rows: 3 }));
    assert_eq!(tall.inverse(), Err(LinearError::NotInvertible { rows: 3, columns: 2, rank: 2 }));
    let empty = BitMatrix::identity(0).unwrap();
    assert_eq!(empty.inverse().unwrap(), empty);
    assert_eq!(empty.apply(u64::MAX), 0);
}
