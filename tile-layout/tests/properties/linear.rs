//! GF(2) layouts against the integer model.

use super::*;
use tile_layout::linear::LinearLayout;
use tile_layout::{Swizzle, SwizzledLayout};

/// Layouts with extents that are powers of two.
fn binary() -> impl Strategy<Value = Layout> {
    let stride = prop_oneof![4 => prop::sample::select(vec![0, 1, 2, 4, 8, 16, 32, 64]), 1 => 0..40i64];
    nested((prop::sample::select(vec![1, 2, 2, 4, 8]), stride))
        .prop_filter("small", |layout| layout.size() <= 1024)
}

proptest! {
    #[test]
    fn a_layout_is_linear_exactly_when_its_table_is(layout in binary()) {
        let table = offsets(&layout);
        let xors = |x: usize, y: usize| table[x ^ y] == table[x] ^ table[y];
        let bits = || (0..table.len().ilog2()).map(|bit| 1usize << bit);
        let linear = (0..table.len()).all(|x| bits().all(|bit| xors(x, bit)));
        match LinearLayout::try_from(&layout) {
            Ok(found) => {
                prop_assert!(linear, "{} is not linear", layout);
                for (index, &offset) in table.iter().enumerate() {
                    prop_assert_eq!(found.apply_flat(index as u64), Ok(offset as u64));
                }
                prop_assert_eq!(found.is_injective(), layout.is_injective());
                prop_assert!(found.to_layout().is_some_and(|back| back.is_same_function(&layout)));
            }
            // Zero columns of several modes overlap in nothing; only bits that both set are refused.
            Err(error) => prop_assert!(!linear, "{} was refused: {}", layout, error),
        }
    }

    #[test]
    fn a_swizzled_layout_is_linear(bits in 0..4i64, base in 0..4i64, extra in 0..3i64, rows in 0..4u32, columns in 0..4u32) {
        let swizzle = Swizzle::new(bits, base, bits + extra).unwrap();
        let layout = Layout::row_major([1i64 << rows, 1 << columns]).unwrap();
        let swizzled = SwizzledLayout::new(swizzle, 0, layout).unwrap();
        let linear = LinearLayout::try_from(&swizzled).unwrap();
        for (index, offset) in swizzled.offsets().enumerate() {
            prop_assert_eq!(linear.apply_flat(index as u64), Ok(offset as u64));
        }
        prop_assert!(linear.is_injective());
    }
}
