//! Random layouts and views against what defines them. Every expected value is computed from the definition, by
//! going through all elements.

mod algebra;
mod hostile;
mod linear;
mod movement;
mod views;

use proptest::prelude::*;
use tile_layout::{IntTuple, Layout};

/// A random nesting of some leaves: shapes of up to `leaves` modes, at most two levels deep.
fn nested(leaf: impl Strategy<Value = (i64, i64)> + Clone + 'static) -> impl Strategy<Value = Layout> {
    let mode = prop::collection::vec(leaf.clone(), 1..4);
    let modes = prop::collection::vec((mode, any::<bool>()), 1..4);
    modes.prop_map(|modes| {
        let part = |value: fn(&(i64, i64)) -> i64| {
            let mode = |(leaves, bracketed): &(Vec<(i64, i64)>, bool)| match &leaves[..] {
                [one] if !bracketed => IntTuple::leaf(value(one)),
                many => IntTuple::flat(&many.iter().map(value).collect::<Vec<_>>()),
            };
            IntTuple::tuple(&modes.iter().map(mode).collect::<Vec<_>>())
        };
        Layout::new(part(|leaf| leaf.0), part(|leaf| leaf.1)).unwrap()
    })
}

/// Layouts of up to a few hundred elements with strides of any kind, negative ones among them.
fn layouts() -> impl Strategy<Value = Layout> {
    let extent = prop_oneof![4 => 1..5i64, 1 => Just(6)];
    let stride =
        prop_oneof![3 => prop::sample::select(vec![0, 1, 2, 3, 4, 6, 8, 12, 16, 24]), 1 => -9..40i64];
    nested((extent, stride)).prop_filter("small", |layout| layout.size() <= 600)
}

/// Layouts whose strides are products of extents, as real ones are: most of the algebra accepts them.
fn regular() -> impl Strategy<Value = Layout> {
    let extents = prop::collection::vec(prop::sample::select(vec![1, 2, 3, 4, 5, 8]), 1..5);
    (extents, any::<u64>(), prop::sample::select(vec![1, 1, 1, 2, 3]))
        .prop_map(|(extents, order, gap)| {
            let mut places: Vec<usize> = (0..extents.len()).collect();
            places.sort_by_key(|&place| order.rotate_left(7 * place as u32) % 97);
            let mut strides = vec![0; extents.len()];
            let mut stride = gap;
            for place in places {
                strides[place] = stride;
                stride *= extents[place];
            }
            Layout::new(IntTuple::flat(&extents), IntTuple::flat(&strides)).unwrap()
        })
        .prop_filter("small", |layout| layout.size() <= 600)
}

/// Layouts with no stride below 0.
fn upward() -> impl Strategy<Value = Layout> {
    prop_oneof![
        2 => regular(),
        1 => layouts().prop_filter("upward", |layout| layout.leaves().iter().all(|mode| mode.stride >= 0)),
    ]
}

fn offsets(layout: &Layout) -> Vec<i64> {
    layout.offsets().collect()
}
