//! Input that nobody would write: texts that are no layouts, numbers near the limits. Everything is refused or
//! answered; nothing panics, overflows or runs away. (Overflow checks are on in test builds.)

use super::*;
use tile_layout::linear::{Deal, Distribution, LinearError, LinearLayout};
use tile_layout::{
    Fill, HostTensorDescriptor, Index, Movement, PartitionView, Swizzle, SwizzledLayout, TensorLayout,
    Threads, View, ViewProgram, shape_div,
};

/// Numbers where arithmetic breaks.
fn extreme() -> impl Strategy<Value = i64> {
    prop_oneof![
        3 => -3..9i64,
        1 => prop::sample::select(vec![i64::MIN, i64::MIN + 1, i64::MAX, i64::MAX - 1, 1 << 62, 1 << 32, -(1 << 40)]),
    ]
}

fn extremes() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(extreme(), 0..4)
}

/// Valid layouts that reach as far as they may.
fn far() -> impl Strategy<Value = Layout> {
    prop::collection::vec((extreme(), extreme()), 1..4).prop_filter_map("a layout", |modes| {
        let extents: Vec<i64> = modes.iter().map(|mode| mode.0).collect();
        let strides: Vec<i64> = modes.iter().map(|mode| mode.1).collect();
        Layout::new(IntTuple::flat(&extents), IntTuple::flat(&strides)).ok()
    })
}

/// Extents and numbers of threads: small ones, and those of which no two can be multiplied.
fn count() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..9u64, 1 => prop::sample::select(vec![u64::MAX, 1 << 63, 1 << 40, 300])]
}

fn counts() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(count(), 0..4)
}

/// Texts made of the notation's own pieces.
fn nearly_notation() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "(",
        ")",
        ",",
        ":",
        "1",
        "0",
        "-",
        "_",
        "Sw<",
        ">",
        " o ",
        "12",
        "9223372036854775808",
        "-9223372036854775808",
        "é",
        " ",
        "((2,2),3)",
        " + ",
        " within ",
        " at ",
        " else ",
        "NaN",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, max_local_rejects: 10_000_000, ..ProptestConfig::default() })]

    #[test]
    fn parsers_take_any_text(text in prop_oneof![any::<String>(), nearly_notation()]) {
        if let Ok(layout) = text.parse::<Layout>() {
            prop_assert_eq!(layout.to_string().parse::<Layout>(), Ok(layout));
        }
        if let Ok(tuple) = text.parse::<IntTuple>() {
            prop_assert_eq!(tuple.to_string().parse::<IntTuple>(), Ok(tuple));
        }
        if let Ok(swizzled) = text.parse::<SwizzledLayout>() {
            prop_assert_eq!(swizzled.to_string().parse::<SwizzledLayout>(), Ok(swizzled));
        }
        if let Ok(view) = text.parse::<View>() {
            prop_assert_eq!(view.to_string().parse::<View>(), Ok(view));
        }
        let _ = text.parse::<Swizzle>();
        let _ = View::row_major(&[2, 3]).unwrap().rearrange(&text, &[("a", 2)]);
        let _ = View::row_major(&[2, 3]).unwrap().rearrange(&format!("a b -> {text}"), &[]);
    }

    #[test]
    fn the_algebra_takes_any_layout(a in far(), b in far(), factor in extreme(), sizes in extremes()) {
        let _ = (a.size(), a.cosize(), a.span(), a.is_injective(), a.is_compact(), a.coalesce(), a.filter());
        let _ = (a.get(factor), a.get(a.size() - 1), a.offset(&IntTuple::flat(&sizes)), a.shape().coordinate(factor));
        let _ = (a.right_inverse(), a.left_inverse(), a.nullspace(), a.max_alignment());
        let _ = (a.complement(factor), a.upcast(factor), a.downcast(factor), a.recast(factor, 8));
        let _ = (a.compose(&b), a.compose_extended(&b), a.logical_product(&b), a.blocked_product(&b));
        let _ = (a.zipped_divide(&b), a.logical_divide(IntTuple::flat(&sizes)), a.flat_divide(factor));
        let _ = (a.tile_to_shape(&sizes, &sizes), shape_div(factor, a.size()), a.permute(&[0, 1]));
        let _ = (LinearLayout::try_from(&a), SwizzledLayout::new(Swizzle::new(3, 3, 3).unwrap(), factor, a.clone()));
        let _ = (Swizzle::new(factor, b.size(), b.cosize()), a.max_common_vector(&b));
    }

    #[test]
    fn distributions_take_any_shapes_and_axes(
        shape in counts(),
        places in prop::collection::vec(counts(), 0..4),
        order in prop::collection::vec(0usize..5, 0..4),
        [vector, lanes, warps] in [count(), count(), count()],
    ) {
        Deal::new(&shape).take(70, &order);
        let warp_axes: Vec<Option<usize>> = order.iter().copied().map(Some).collect();
        let fragment = LinearLayout::from_modes(&[(4, 8), (8, 1)]).unwrap();
        let made = [
            Distribution::new(&shape, places.clone(), places, Vec::new()),
            Distribution::blocked(&shape, &order, vector, lanes, warps),
            Distribution::of_fragment(&shape, &fragment, &warp_axes),
        ];
        for tile in made.into_iter().flatten() {
            let first = tile.place(0, 0);
            prop_assert_eq!(first.len(), shape.len());
            prop_assert!(tile.slots() * tile.threads() >= 1 && tile.copies() < tile.threads().max(2));
            for axis in &order {
                prop_assert_eq!(tile.without_axis(*axis).is_ok(), *axis < shape.len());
            }
            let _ = (tile.permuted(&order), tile.reshaped(&[vector, lanes]), tile.linear(), tile.to_string());
        }
    }

    #[test]
    fn views_take_any_numbers(shape in extremes(), numbers in extremes(), pick in extreme(), other in extreme()) {
        let views = [View::row_major(&shape), View::strided(&shape, &numbers, pick), View::filled(&shape, Fill::ZERO)];
        for view in views.into_iter().flatten() {
            let spans: Vec<_> = view.shape().iter().map(|_| Some((pick, other))).collect();
            let _ = (view.get(&numbers), view.reshape(numbers.iter().copied()), view.expand(numbers.iter().copied()));
            let _ = (view.permute(&numbers), view.flip(&numbers), view.shrink(&spans), view.pad(&spans));
            let _ = (view.transpose(pick, other), view.unsqueeze(pick), view.squeeze(Some(pick)), view.t());
            let _ = (view.flatten(pick, other), view.unflatten(pick, numbers.iter().copied()), view.repeat(&numbers));
            let _ = (view.diagonal(pick, other, 0), view.diagonal(pick, 0, 1), view.unfold(0, pick, other));
            let _ = (view.repeat_interleave(pick, Some(other)), view.repeat_interleave(pick, Some(0)));
            let _ = (view.split_at(other, pick), view.split_at(0, pick));
            let _ = view.index(&[Index::At(pick), Index::slice(pick, other, numbers.first().copied())]);
            let _ = (view.tile(&numbers, &numbers), view.split_even(pick, other), view.split_part(0, pick, other, 0));
            let _ = (view.vectorize(&numbers), view.recast(pick, other), view.coalesce(), view.distance(&view));
            let _ = (view.slice(&[(0, pick..other)], &numbers), view.tiled_iterator(&numbers, &numbers, pick).is_ok());
            let _ = PartitionView::new(view.clone(), &numbers).and_then(|tiles| tiles.tile(&[pick, other]));
            let threads = Threads::new(Layout::new((2, 4), (1, 2)).unwrap());
            let _ = view.distribute(&threads, pick);
            let program = ViewProgram::new(0, view.clone());
            let _ = (program.roll(&numbers, &numbers), program.roll(&[pick], &[0]), program.diag());
            let _ = ViewProgram::cat(&[program.clone(), program], pick);
        }
        for layout in [TensorLayout::Default, TensorLayout::RowMajor, TensorLayout::ColumnMajor, TensorLayout::Bypass] {
            if let Ok(descriptor) = HostTensorDescriptor::with_strides(&shape, &numbers, layout) {
                let _ = (descriptor.element_size(), descriptor.element_space_size(), descriptor.offset(&numbers));
                let _ = descriptor.to_view();
            }
        }
    }
}

/// Text may give a view vectors that reach beyond what offsets are added in.
#[test]
fn vectors_beyond_the_limits_are_refused() {
    let far: i64 = 1 << 62;
    for element in [format!("2:{far}"), format!("2:-{far}")] {
        for offset in [far, -far] {
            let text = format!("4:0 + {offset} of {element}");
            match text.parse::<View>() {
                Ok(view) => assert_eq!(view.vector(&[3]), Ok(Some(vec![offset, 0])), "{text}"),
                Err(error) => assert_eq!(error.kind(), tile_layout::ErrorKind::Overflow, "{text}"),
            }
        }
    }
}

/// An axis that repeats an element is as long as one likes; a table of what it holds isn't.
#[test]
fn a_table_larger_than_memory_is_refused() {
    let view = View::row_major(&[1, 3]).and_then(|row| row.expand([1i64 << 58, 3])).unwrap();
    let error = view.index(&[Index::Ellipsis, Index::list(&[0, 2, 1])]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a table of shape (288230376151711744,3) has more positions than there is memory for; index first, and repeat \
         elements behind it"
    );
}

#[test]
fn axes_that_a_tile_lacks_are_named() {
    use tile_layout::linear::Dim;
    let tile = Distribution::blocked(&[4, 8], &[1, 0], 2, 4, 1).unwrap();
    let unknown = |axis| LinearError::UnknownDim { dim: Dim::Axis(axis) };
    assert_eq!(Distribution::blocked(&[4], &[1], 1, 4, 1), Err(unknown(1)));
    let missing = |axis| LinearError::MissingDim { dim: Dim::Axis(axis) };
    assert_eq!(Distribution::new(&[4, 8], vec![vec![1]], vec![], vec![]), Err(missing(1)));
    assert_eq!(Distribution::new(&[4], vec![vec![1, 0]], vec![], vec![]), Err(unknown(1)));
    assert_eq!((tile.without_axis(2), tile.permuted(&[0])), (Err(unknown(2)), Err(missing(1))));
    assert_eq!(tile.permuted(&[0, 1, 0]), Err(LinearError::DuplicateDim { dim: Dim::Axis(0) }));
    let large = Distribution::blocked(&[1 << 40, 1 << 40], &[1, 0], 1, 32, 1);
    assert!(matches!(large, Err(LinearError::TooManyBits { .. })));
}

/// Extents that don't divide each other have no composition, and more elements than can be looked at.
#[test]
fn a_vector_of_most_of_the_numbers_is_found_at_once() {
    let layout = |text: &str| text.parse::<Layout>().unwrap();
    let (less, more) = (layout("4611686018427387903:1"), layout("4611686018427387904:1"));
    assert_eq!(
        (less.max_common_vector(&more), more.max_common_vector(&less)),
        ((1 << 62) - 1, (1 << 62) - 1)
    );
    let rows = |columns: &str| layout(&format!("(8,{columns}):({columns},1)"));
    assert_eq!(rows("1000000000039").max_common_vector(&rows("1000000000061")), 1_000_000_000_039);
    let rows = |count: i64| layout(&format!("(1048576,1048576,{count}):(1048576,1,1099511627776)"));
    assert_eq!(rows(2).max_common_vector(&rows(3)), 1 << 41);
    // Four modes of two elements before the one that differs, in the other order.
    let far = |last: i64| layout(&format!("(2,2,2,2,{last}):(8,4,2,1,16)"));
    assert_eq!(far((1 << 50) + 1).max_common_vector(&far((1 << 50) + 3)), ((1 << 50) + 1) << 4);
}

/// Where sums of digits carry and what they add cancels, a run ends at each carry and the next one is as even: such runs
/// are gone through one by one, which must end.
#[test]
fn runs_that_end_at_carries_are_not_gone_through_for_ever() {
    let layout = |text: &str| text.parse::<Layout>().unwrap();
    let carrying = |count: i64| layout(&format!("(3,4,{count}):(2,-1,3)"));
    let columns = |count: i64| layout(&format!("(4,{count}):({count},1)"));
    assert_eq!(carrying(100).max_common_vector(&columns(301)), 300);
    assert!(carrying(1 << 40).max_common_vector(&columns((3 << 40) + 1)) >= 1 << 16);
}
