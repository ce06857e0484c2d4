//! GF(2) layouts against the integer model.

use super::*;
use tile_layout::linear::{
    Dim, LinearLayout, MatrixShape, Operand, mma_sync, wgmma_accumulator, wgmma_register_operand,
};
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

/// A fragment as CuTe writes it: `((threads),(values)) -> row + rows·column` (`cute/atom/mma_traits_sm80.hpp` and
/// `mma_traits_sm90_gmma.hpp`). The two models were written from different sources: CuTe's atoms and the PTX manual.
#[test]
fn fragments_are_the_atoms_of_cute() {
    let shape = |k| MatrixShape { m: 16, n: 8, k };
    let mma = |k, bits, operand| mma_sync(shape(k), bits, operand).unwrap();
    let atoms = [
        ("m16n8k16 A", mma(16, 16, Operand::A), "((4,8),(2,2,2)):((32,1),(16,8,128))", 16),
        ("m16n8k16 D", mma(16, 16, Operand::Accumulator), "((4,8),(2,2)):((32,1),(16,8))", 16),
        ("m16n8k8 A", mma(8, 16, Operand::A), "((4,8),(2,2)):((32,1),(16,8))", 16),
        ("m16n8k32 A", mma(32, 8, Operand::A), "((4,8),(4,2,2)):((64,1),(16,8,256))", 16),
        ("wgmma m64n16 D", wgmma_accumulator(16).unwrap(), "((4,8,4),(2,2,2)):((128,1,16),(64,8,512))", 64),
        (
            "wgmma m64k16 A",
            wgmma_register_operand(16).unwrap(),
            "((4,8,4),(2,2,2)):((128,1,16),(64,8,512))",
            64,
        ),
    ];
    for (name, fragment, atom, rows) in atoms {
        let place = |index: i64| (index % rows, index / rows);
        check_atom(name, &fragment, &atom.parse().unwrap(), place);
    }
    // CuTe sees B as columns by depth, the instruction as depth by columns.
    let transposed = [
        ("m16n8k16 B", mma(16, 16, Operand::B), "((4,8),(2,2)):((16,1),(8,64))"),
        ("m16n8k8 B", mma(8, 16, Operand::B), "((4,8),2):((16,1),8)"),
        ("m16n8k32 B", mma(32, 8, Operand::B), "((4,8),(4,2)):((32,1),(8,128))"),
    ];
    for (name, fragment, atom) in transposed {
        check_atom(name, &fragment, &atom.parse().unwrap(), |index| (index / 8, index % 8));
    }
}

fn check_atom(name: &str, fragment: &LinearLayout, atom: &Layout, place: impl Fn(i64) -> (i64, i64)) {
    let (threads, values) = (atom.mode(0).unwrap().size(), atom.mode(1).unwrap().size());
    assert_eq!(1i64 << fragment.input_bits(Dim::Register), values, "{name}");
    for thread in 0..threads {
        for value in 0..values {
            let (row, column) = place(atom.offset(&(thread, value).into()).unwrap());
            let mut holder = vec![(Dim::Register, value as u64), (Dim::Lane, thread as u64 % 32)];
            if threads > 32 {
                holder.push((Dim::Warp, thread as u64 / 32));
            }
            let expected = [(Dim::Axis(0), row as u64), (Dim::Axis(1), column as u64)];
            assert_eq!(fragment.apply(&holder).unwrap(), expected, "{name}: thread {thread}, value {value}");
        }
    }
}
