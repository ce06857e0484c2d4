//! The defining equation of every operation of the algebra.

use super::*;
use std::collections::BTreeSet;
use tile_layout::{ErrorKind, Mode};

/// The function of a layout whose last mode goes on without end, whatever its extent.
fn extended(layout: &Layout, index: i64) -> i64 {
    let (last, first) = layout.leaves().split_last().unwrap();
    let (mut rest, mut offset) = (index, 0);
    for mode in first {
        offset += rest % mode.extent * mode.stride;
        rest /= mode.extent;
    }
    offset + rest * last.stride
}

/// Whether some layout with a mode for each leaf of `right`, or several, is `index ↦ table[index]`. Each leaf is
/// split where its offsets stop being even, which is the only way there is, and then all must add up.
fn representable(right: &Layout, table: &[i64]) -> bool {
    let mut unit = 1;
    let mut modes: Vec<Mode> = Vec::new();
    for leaf in right.leaves() {
        let mut steps = leaf.extent;
        let mut step = unit;
        while steps > 1 {
            let at = |count: i64| table[(count * step) as usize];
            let even = (2..steps).find(|&count| at(count) != count * at(1)).unwrap_or(steps);
            if steps % even != 0 {
                return false;
            }
            modes.push(Mode { extent: even, stride: at(1) });
            (steps, step) = (steps / even, step * even);
        }
        unit *= leaf.extent;
    }
    let sum = |index: usize| {
        let mut rest = index as i64;
        modes
            .iter()
            .map(|mode| {
                let digit = rest % mode.extent;
                rest /= mode.extent;
                digit * mode.stride
            })
            .sum::<i64>()
    };
    (0..table.len()).all(|index| sum(index) == table[index])
}

/// Any layout and a regular one: unrelated, or alike but for the extent of a mode, so that they have much in common.
fn comparable() -> impl Strategy<Value = (Layout, Layout)> {
    let alike = (regular(), any::<prop::sample::Index>(), 1..9i64).prop_map(|(layout, place, extent)| {
        let mut extents: Vec<i64> = layout.leaves().iter().map(|mode| mode.extent).collect();
        let place = place.index(extents.len());
        extents[place] = extent;
        (Layout::new(IntTuple::flat(&extents), layout.stride()).unwrap(), layout)
    });
    prop_oneof![(layouts(), regular()), alike]
}

proptest! {
    #[test]
    fn coalesce_keeps_the_function(layout in layouts()) {
        let coalesced = layout.coalesce();
        prop_assert_eq!(offsets(&coalesced), offsets(&layout));
        prop_assert!(coalesced.depth() <= 1);
        prop_assert_eq!(&coalesced.coalesce(), &coalesced);
        let by_mode = layout.coalesce_modes();
        prop_assert_eq!(offsets(&by_mode), offsets(&layout));
        prop_assert_eq!(by_mode.rank(), layout.rank());
        prop_assert!(layout.is_same_function(&coalesced));
    }

    #[test]
    fn filter_keeps_the_offsets(layout in layouts()) {
        let all: BTreeSet<i64> = layout.offsets().collect();
        let kept: BTreeSet<i64> = layout.filter().offsets().collect();
        prop_assert_eq!(kept, all);
    }

    #[test]
    fn sizes_and_spans_are_those_of_the_table(layout in layouts()) {
        let table = offsets(&layout);
        prop_assert_eq!(table.len() as i64, layout.size());
        prop_assert_eq!(table.iter().min(), Some(&layout.min_offset()));
        prop_assert_eq!(table.iter().max(), Some(&layout.max_offset()));
        let distinct: BTreeSet<i64> = table.iter().copied().collect();
        prop_assert_eq!(layout.is_injective(), distinct.len() == table.len());
        let compact = distinct.len() == table.len() && distinct.iter().copied().eq(0..layout.size());
        prop_assert_eq!(layout.is_compact(), compact);
    }

    #[test]
    fn coordinates_and_indices_agree(layout in layouts()) {
        let shape = layout.shape();
        for (index, offset) in layout.offsets().enumerate() {
            let coordinate = shape.coordinate(index as i64).unwrap();
            prop_assert_eq!(layout.offset(&coordinate).unwrap(), offset);
            prop_assert_eq!(layout.offset(&IntTuple::leaf(index as i64)).unwrap(), offset);
        }
        prop_assert!(shape.coordinate(layout.size()).is_err());
    }

    #[test]
    fn composition_is_pointwise_or_impossible(left in upward(), right in upward()) {
        let table: Vec<i64> = right.offsets().map(|index| extended(&left, index)).collect();
        match left.compose_extended(&right) {
            Ok(composed) => {
                prop_assert_eq!(offsets(&composed), table);
                prop_assert!(right.shape().is_compatible(&composed.shape()), "{} ∘ {} = {}", left, right, composed);
            }
            Err(error) => {
                prop_assert_eq!(error.kind(), ErrorKind::NotComposable);
                prop_assert!(!representable(&right, &table), "{} ∘ {} was refused: {}", left, right, error);
            }
        }
        let strict = left.compose(&right);
        if right.max_offset() < left.size() {
            prop_assert_eq!(strict, left.compose_extended(&right));
        } else {
            prop_assert_eq!(strict.unwrap_err().kind(), ErrorKind::OutOfBounds);
        }
    }

    #[test]
    fn a_complement_counts_what_is_skipped(layout in upward(), cotarget in 1..200i64) {
        let Ok(complement) = layout.complement(cotarget) else {
            // Refused only where a stride is no multiple of the span below it.
            let mut modes: Vec<Mode> =
                layout.leaves().iter().copied().filter(|mode| mode.extent > 1 && mode.stride > 0).collect();
            modes.sort_by_key(|mode| (mode.stride, mode.extent));
            let broken = modes.windows(2).any(|pair| pair[1].stride % (pair[0].stride * pair[0].extent) != 0);
            prop_assert!(broken);
            return Ok(());
        };
        let own: BTreeSet<i64> = layout.offsets().collect();
        let skipped = offsets(&complement);
        prop_assert!(skipped.windows(2).all(|pair| pair[0] < pair[1]), "{} is not ordered", complement);
        let sums: BTreeSet<i64> = own.iter().flat_map(|a| skipped.iter().map(move |b| a + b)).collect();
        prop_assert_eq!(sums.len(), own.len() * skipped.len(), "{} and {} overlap", layout, complement);
        let reach = Layout::concat(&[layout.clone(), complement.clone()]).unwrap().cosize();
        prop_assert!(reach >= cotarget);
    }

    #[test]
    fn divides_hold_the_same_elements(layout in regular(), tiles in prop::collection::vec(1..5i64, 1..4)) {
        let sizes = IntTuple::flat(&tiles[..tiles.len().min(layout.rank())]);
        let extents: Vec<i64> = layout.modes().map(|mode| mode.size()).collect();
        let even = sizes.leaves().iter().zip(&extents).all(|(tile, extent)| extent % tile == 0);
        let zipped = match layout.zipped_divide(sizes.clone()) {
            Ok(zipped) => zipped,
            Err(error) => {
                prop_assert!(!even, "{} by {}: {}", layout, sizes, error);
                return Ok(());
            }
        };
        let inside = zipped.mode(0).unwrap();
        prop_assert_eq!(inside.size(), sizes.product().unwrap());
        let sorted = |layout: &Layout| {
            let mut table = offsets(layout);
            table.sort_unstable();
            table
        };
        if even {
            prop_assert_eq!(sorted(&zipped), sorted(&layout));
        }
        // The offset of element `within` of tile `number` of the first axis, with 0 elsewhere.
        let (tile, first) = (sizes.leaves()[0], layout.mode(0).unwrap());
        for index in 0..first.size() {
            let (number, within) = (index / tile, index % tile);
            let at = inside.mode(0).unwrap().get(within).unwrap()
                + zipped.mode(1).unwrap().mode(0).unwrap().get(number).unwrap();
            prop_assert_eq!(at, first.get(index).unwrap());
        }
        let logical = layout.logical_divide(sizes.clone()).unwrap();
        prop_assert_eq!(sorted(&logical), sorted(&zipped));
        prop_assert_eq!(offsets(&layout.tiled_divide(sizes.clone()).unwrap()), offsets(&zipped));
        prop_assert_eq!(offsets(&layout.flat_divide(sizes).unwrap()), offsets(&zipped));
    }

    #[test]
    fn a_product_repeats_without_overlap(tile in regular(), copies in regular()) {
        let product = match tile.logical_product(&copies) {
            Ok(product) => product,
            Err(error) => {
                // What a tile without gaps leaves out is one mode, which composes with everything.
                prop_assert!(!tile.is_compact(), "{} times {}: {}", tile, copies, error);
                return Ok(());
            }
        };
        prop_assert_eq!(product.mode(0), Some(tile.clone()));
        let walk = product.mode(1).unwrap();
        prop_assert!(copies.shape().is_compatible(&walk.shape()));
        prop_assert!(product.is_injective());
        // The walk visits copies in the order of `copies`: equal offsets there, equal offsets here.
        let complement = tile.complement(tile.size() * copies.cosize()).unwrap();
        for (index, number) in copies.offsets().enumerate() {
            prop_assert_eq!(walk.get(index as i64), complement.get(number));
        }
        if let (Ok(blocked), Ok(raked)) = (tile.blocked_product(&copies), tile.raked_product(&copies)) {
            let set = |layout: &Layout| layout.offsets().collect::<BTreeSet<i64>>();
            prop_assert_eq!(set(&blocked), set(&product));
            prop_assert_eq!(set(&raked), set(&product));
            prop_assert_eq!(blocked.rank(), tile.rank().max(copies.rank()));
        }
    }

    #[test]
    fn tiles_fill_a_shape(rows in 1..4i64, columns in 1..4i64, across in 1..4i64, down in 1..4i64, swap: bool) {
        let atom = Layout::row_major([rows, columns]).unwrap();
        let order = if swap { [1, 0] } else { [0, 1] };
        let whole = atom.tile_to_shape(&[rows * down, columns * across], &order).unwrap();
        prop_assert!(whole.is_compact());
        for row in 0..rows {
            for column in 0..columns {
                let corner = IntTuple::from([row, column]);
                prop_assert_eq!(whole.offset(&corner).unwrap(), atom.offset(&corner).unwrap());
            }
        }
    }

    #[test]
    fn inverses_undo(layout in upward()) {
        let right = layout.right_inverse();
        for (expected, index) in right.offsets().enumerate() {
            prop_assert_eq!(layout.get(index), Some(expected as i64));
        }
        // It is as long as it can be: the next offset is not the begin of a mode.
        prop_assert!(!layout.leaves().iter().any(|mode| mode.extent > 1 && mode.stride == right.size()));
        match layout.left_inverse() {
            Ok(left) => {
                for (index, offset) in layout.offsets().enumerate() {
                    prop_assert_eq!(left.get(offset), Some(index as i64));
                }
            }
            Err(error) if error.kind() == ErrorKind::NotDivisible => {
                let mut strides: Vec<i64> =
                    layout.leaves().iter().filter(|mode| mode.extent > 1).map(|mode| mode.stride).collect();
                strides.sort_unstable();
                prop_assert!(strides.windows(2).any(|pair| pair[1] % pair[0] != 0), "{}: {}", layout, error);
            }
            Err(error) => {
                prop_assert_eq!(error.kind(), ErrorKind::NotInjective);
                let distinct: BTreeSet<i64> = layout.offsets().collect();
                prop_assert!((distinct.len() as i64) < layout.size(), "{}: {}", layout, error);
            }
        }
        for index in layout.nullspace().offsets() {
            prop_assert_eq!(layout.get(index), Some(0));
        }
        let still: i64 = layout.leaves().iter().filter(|mode| mode.stride == 0).map(|mode| mode.extent).product();
        prop_assert_eq!(layout.nullspace().size(), still);
    }

    #[test]
    fn a_common_vector_is_as_wide_as_it_can_be((a, b) in comparable()) {
        let places = offsets(&b);
        let is_common = |offset: &i64| {
            let index = places.iter().position(|place| place == offset);
            index.is_some_and(|index| a.get(index as i64) == Some(*offset))
        };
        let widest = (0..).take_while(is_common).count() as i64;
        // A single element can always be copied.
        prop_assert_eq!(a.max_common_vector(&b), widest.max(1), "{} and {}", a, b);
    }

    #[test]
    fn upcast_counts_units(layout in upward(), factor in 1..17i64) {
        match layout.upcast(factor) {
            Ok(units) => {
                // Modes inside a unit shrink: index by index the layouts differ, their sets of units do not.
                let found: BTreeSet<i64> = units.offsets().collect();
                let expected: BTreeSet<i64> = layout.offsets().map(|offset| offset / factor).collect();
                prop_assert_eq!(found, expected);
            }
            Err(error) => prop_assert_eq!(error.kind(), ErrorKind::NotDivisible),
        }
        if let Ok(parts) = layout.downcast(factor) {
            let found: BTreeSet<i64> = parts.offsets().collect();
            let expected: BTreeSet<i64> =
                layout.offsets().flat_map(|offset| (0..factor).map(move |part| offset * factor + part)).collect();
            prop_assert_eq!(parts.size(), layout.size() * factor);
            prop_assert_eq!(found, expected, "{} in parts of 1/{} is {}", layout, factor, parts);
            if layout.is_injective() {
                prop_assert_eq!(parts.upcast(factor).map(|back| offsets(&back)), Ok(offsets(&layout)));
            }
        }
    }

    #[test]
    fn the_alignment_is_the_largest(layout in upward()) {
        let Some(alignment) = layout.max_alignment() else {
            prop_assert!(layout.leaves().iter().all(|mode| mode.stride == 0 || mode.extent == 1));
            return Ok(());
        };
        prop_assert!(layout.upcast(alignment).is_ok());
        for factor in alignment + 1..=layout.cosize().max(layout.max_offset() + 1) * 2 {
            prop_assert!(layout.upcast(factor).is_err(), "{} also upcasts by {}", layout, factor);
        }
    }

    #[test]
    fn text_round_trips(layout in layouts()) {
        prop_assert_eq!(layout.to_string().parse::<Layout>(), Ok(layout));
    }
}

/// Without elements no offset is reached, so none can be sent back.
#[test]
fn what_is_empty_has_an_empty_inverse() {
    for text in ["0:0", "0:1", "(2,0):(1,0)", "(4,0):(1,4)", "(0,4):(1,1)", "((),(2,0)):((),(1,2))"] {
        let empty: Layout = text.parse().unwrap();
        assert_eq!(empty.right_inverse().to_string(), "0:0", "{text}");
        assert_eq!((empty.filter().size(), empty.nullspace().size()), (0, 0), "{text}");
        assert_eq!(empty.max_common_vector(&empty), 1, "{text}");
    }
}

/// Without elements there is nothing to repeat: copies of it have none.
#[test]
fn what_is_empty_is_repeated() {
    let layout = |text: &str| text.parse::<Layout>().unwrap();
    for (tile, copies) in
        [("0:1", "4:1"), ("(2,0):(1,2)", "(3,2):(2,1)"), ("0:0", "4:3"), ("4:1", "0:1"), ("0:1", "0:1")]
    {
        let (tile, copies) = (layout(tile), layout(copies));
        let product = tile.logical_product(&copies).unwrap();
        assert_eq!((product.mode(0), product.size()), (Some(tile.clone()), 0));
        assert!(copies.shape().is_compatible(&product.mode(1).unwrap().shape()), "{product}");
        for product in [tile.blocked_product(&copies), tile.raked_product(&copies)] {
            assert_eq!(product.map(|product| product.size()), Ok(0), "{tile} by {copies}");
        }
    }
}

/// Nothing limits the alignment of what has no elements, although not every factor divides its modes.
#[test]
fn what_is_empty_is_aligned_to_everything() {
    for text in ["0:8", "(0,4):(8,1)", "(4,0):(1,4)", "((),(2,0)):((),(1,2))", "0:0"] {
        assert_eq!(text.parse::<Layout>().unwrap().max_alignment(), None, "{text}");
    }
}

/// The inverse of offsets 0 and 2^62 would have an element for each number up to 2^62, one more than fits.
#[test]
fn an_inverse_that_does_not_fit_overflows() {
    let far = Layout::leaf(2, 1 << 62).unwrap();
    assert_eq!(far.left_inverse().map_err(|error| error.kind()), Err(ErrorKind::Overflow));
    let near = Layout::leaf(2, 1 << 61).unwrap();
    assert_eq!(near.left_inverse().unwrap().get(1 << 61), Some(1));
}

/// What goes on beyond the end goes on along the last mode, also one of one element; one that continues the mode before it
/// is that mode.
#[test]
fn a_last_mode_of_one_element_goes_on() {
    let layout = |text: &str| text.parse::<Layout>().unwrap();
    for (left, right, composed) in [
        ("(4,1):(1,8)", "16:1", "(4,4):(1,8)"),
        ("(4,1):(1,4)", "16:1", "16:1"),
        ("(4,(2,1)):(1,(4,100))", "16:1", "(8,2):(1,100)"),
        ("(4,1):(1,0)", "16:1", "(4,4):(1,0)"),
        ("1:5", "4:1", "4:5"),
        ("(1,1):(7,5)", "(2,2):(1,2)", "(2,2):(5,10)"),
        ("(4,1):(1,8)", "(3,4):(4,1)", "(3,4):(8,1)"),
    ] {
        assert_eq!(layout(left).compose_extended(layout(right)).unwrap().to_string(), composed, "{left}");
    }
    let divided = layout("(1,64):(100,1)").zipped_divide([4, 8]).unwrap();
    assert_eq!(divided.to_string(), "((4,8),(1,8)):((100,1),(0,8))");
    let divided = layout("(6,1):(1,100)").logical_divide(Layout::leaf(4, 3).unwrap()).unwrap();
    assert_eq!(divided.to_string(), "((2,2),3):((3,100),1)");
}

/// Elements that no two of share an offset may lie so that no digits tell them apart.
#[test]
fn an_inverse_that_is_not_found_is_not_called_impossible() {
    let refusal = |text: &str| {
        let error = text.parse::<Layout>().unwrap().left_inverse().unwrap_err();
        (error.kind(), error.modes().to_vec(), error.to_string())
    };
    assert_eq!(
        refusal("(2,3):(3,2)"),
        (
            ErrorKind::NotDivisible,
            vec![0],
            String::from(
                "no left inverse of (2,3):(3,2) is known: stride 3 of mode 0 is not a multiple of the next smaller stride 2"
            )
        )
    );
    assert_eq!(
        refusal("(4,2):(1,2)"),
        (
            ErrorKind::NotInjective,
            vec![1],
            String::from(
                "(4,2):(1,2) has no left inverse: stride 2 of mode 1 is an offset of the modes below it"
            )
        )
    );
    assert_eq!(
        refusal("(4,2):(1,0)"),
        (
            ErrorKind::NotInjective,
            vec![1],
            String::from("(4,2):(1,0) has no left inverse: stride of mode 1 is 0")
        )
    );
}

/// A divide names the tile that is wrong; the rank is checked before anything else.
#[test]
fn refusals_name_modes() {
    let rows: Layout = "(8,6):(6,1)".parse().unwrap();
    let error = rows.zipped_divide([2, 3, 2]).unwrap_err();
    assert_eq!(error.to_string(), "a tiler of 3 modes is too long for a layout of 2");
    let error = "(4,2,3):(1,4,12)".parse::<Layout>().unwrap().complement(24).unwrap_err();
    assert_eq!((error.kind(), error.modes()), (ErrorKind::NotComplementable, &[2][..]));
    let error = rows.compose("(2,5):(1,2)".parse::<Layout>().unwrap()).unwrap_err();
    assert_eq!((error.kind(), error.modes()), (ErrorKind::NotComposable, &[1][..]));
    assert_eq!(
        error.to_string(),
        "mode 1 (5:2) of (2,5):(1,2) does not compose with (8,6):(6,1): its first boundary comes after 4 steps, \
         which do not divide its extent 5"
    );
}

/// What carries may still add up to a layout. Where there are too many elements to try them all, the refusal says that it
/// isn't known, unless one element shows that it can't.
#[test]
fn a_composition_that_is_not_decided_is_not_called_impossible() {
    let layout = |text: &str| text.parse::<Layout>().unwrap();
    let compose = |left: &str, right: &str| layout(left).compose_extended(layout(right));
    let cancels = "(2,2,1048576):(1,3,5)";
    assert_eq!(compose(cancels, "(3,16384):(3,12)").unwrap().to_string(), "(3,16384):(4,15)");
    let message = |left: &str, right: &str| {
        let error = compose(left, right).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotComposable);
        error.to_string()
    };
    assert_eq!(
        message(cancels, "(3,65536):(3,12)"),
        "(3,65536):(3,12) may or may not compose with (2,2,1048576):(1,3,5): its modes carry across a boundary, and \
         what that adds may cancel out; only up to 65536 elements are tried, and it has 196608"
    );
    assert_eq!(
        message(cancels, "196608:3"),
        "mode 0 (196608:3) of 196608:3 may or may not compose with (2,2,1048576):(1,3,5): it crosses a boundary after 2 \
         steps, and what that adds may cancel out; only up to 65536 elements are tried, and it has 196608"
    );
    // Sizes don't matter where the first element past a boundary is not where an even step leads.
    assert_eq!(
        message("(5,400000):(1,10)", "600000:2"),
        "mode 0 (600000:2) of 600000:2 does not compose with (5,400000):(1,10): past a boundary, which comes after 3 \
         steps, it goes on unevenly"
    );
    assert_eq!(
        message("(8,600000):(600000,1)", "(2,500001):(1,2)"),
        "mode 1 (500001:2) of (2,500001):(1,2) does not compose with (8,600000):(600000,1): its first boundary comes \
         after 4 steps, which do not divide its extent 500001"
    );
    assert_eq!(
        message("(4,100000):(1,8)", "(4,100000):(1,1)"),
        "(4,100000):(1,1) does not compose with (4,100000):(1,8): its modes carry into each other across a boundary"
    );
}

/// An offset beyond the limits is not a boundary.
#[test]
fn a_composition_that_does_not_fit_overflows() {
    let far: Layout = "2:4611686018427387904".parse().unwrap();
    for right in ["4:2", "3:1", "2:4"] {
        let error = far.compose_extended(right.parse::<Layout>().unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Overflow, "{right}: {error}");
        assert!(error.to_string().ends_with("exceeds 2^62"), "{error}");
    }
}
