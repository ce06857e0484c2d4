//! Checks conversions by simulating them on a tile whose elements are their own coordinates.

use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::distributed;
use crate::linear::{
    Conversion, Dim, LinearError, LinearLayout, MatrixShape, Operand, Place, Route, mma_sync, vector_width,
    wgmma_accumulator,
};

fn held(layout: &LinearLayout, place: Place) -> Vec<(Dim, u64)> {
    let Place { register, lane, warp, block } = place;
    let indices = [(Dim::Register, register), (Dim::Lane, lane), (Dim::Warp, warp), (Dim::Block, block)];
    let known: Vec<_> = indices
        .into_iter()
        .filter(|(dim, _)| layout.inputs().iter().any(|group| group.dim == *dim))
        .collect();
    layout.apply(&known).unwrap()
}

fn places(layout: &LinearLayout) -> Vec<Place> {
    let extent = |dim| 1u64 << layout.input_bits(dim);
    let mut places = Vec::new();
    for block in 0..extent(Dim::Block) {
        for warp in 0..extent(Dim::Warp) {
            for lane in 0..extent(Dim::Lane) {
                places.extend((0..extent(Dim::Register)).map(|register| Place {
                    register,
                    lane,
                    warp,
                    block,
                }));
            }
        }
    }
    places
}

/// The farthest route that any target needs, by looking at all holders of its element.
fn farthest(source: &LinearLayout, target: &LinearLayout) -> u8 {
    let mut holders: BTreeMap<Vec<(Dim, u64)>, Vec<Place>> = BTreeMap::new();
    for place in places(source) {
        holders.entry(held(source, place)).or_default().push(place);
    }
    let distance = |from: &Place, to: &Place| match () {
        () if from.block != to.block => 4u8,
        () if from.warp != to.warp => 3,
        () if from.lane != to.lane => 2,
        () if from.register != to.register => 1,
        () => 0,
    };
    let nearest =
        |to: &Place| holders[&held(target, *to)].iter().map(|from| distance(from, to)).min().unwrap();
    places(target).iter().map(nearest).max().unwrap()
}

fn rank(route: Route) -> u8 {
    match route {
        Route::Identity => 0,
        Route::Registers => 1,
        Route::Shuffles { .. } => 2,
        Route::SharedMemory => 3,
        Route::Global => 4,
    }
}

/// Simulates a conversion; returns it, or `None` where the source lacks elements.
fn simulate(source: &LinearLayout, target: &LinearLayout) -> Option<Conversion> {
    let conversion = match Conversion::between(source, target) {
        Ok(conversion) => conversion,
        Err(LinearError::ElementNotHeld { .. }) => {
            let all: Vec<_> = places(source).iter().map(|&place| held(source, place)).collect();
            assert!(places(target).iter().any(|&place| !all.contains(&held(target, place))));
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    for place in places(target) {
        let from = conversion.source_of(place).unwrap();
        assert_eq!(held(source, from), held(target, place), "{place:?} reads {from:?}");
    }
    assert_eq!(rank(conversion.route()), farthest(source, target), "{source}\n{target}");
    if let Route::Shuffles { rounds } = conversion.route() {
        shuffle(source, target, &conversion, rounds);
    }
    Some(conversion)
}

/// Performs the rounds: every lane sends one register, and at the end every register that a plan must fill is
/// filled with its element.
fn shuffle(source: &LinearLayout, target: &LinearLayout, conversion: &Conversion, expected_rounds: u64) {
    let plan = conversion.shuffle_plan().unwrap();
    let mut filled = BTreeMap::new();
    let mut rounds = 0;
    for round in plan.rounds() {
        rounds += 1;
        let mut sent = BTreeMap::new();
        for receiver in places(target).into_iter().filter(|place| place.register == 0) {
            let Some(transfer) = plan.transfer(round, receiver).unwrap() else { continue };
            let sender = (receiver.block, receiver.warp, transfer.source_lane);
            let register = *sent.entry(sender).or_insert(transfer.source_register);
            assert_eq!(
                register, transfer.source_register,
                "lane {sender:?} sends two registers\n{source}\n{target}"
            );
            let from = Place { register, lane: transfer.source_lane, ..receiver };
            let to = Place { register: transfer.target_register, ..receiver };
            filled.insert((to.block, to.warp, to.lane, to.register), held(source, from));
        }
    }
    assert_eq!(rounds, expected_rounds);
    assert_eq!(plan.round_count(), expected_rounds);
    for place in places(target) {
        let from = conversion.source_of(place).unwrap();
        let copy = target.free_mask(Dim::Register) & place.register != 0;
        match filled.get(&(place.block, place.warp, place.lane, place.register)) {
            Some(element) => assert_eq!(*element, held(target, place)),
            None => assert!(copy || from.lane == place.lane, "{place:?} stays empty\n{source}\n{target}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn any_conversion(
        source in distributed(2, 2, [0..=3, 0..=3, 0..=2, 0..=1]),
        target in distributed(2, 2, [0..=2, 0..=2, 0..=2, 0..=1]),
    ) {
        simulate(&source, &target);
    }

    #[test]
    fn conversions_within_a_warp(
        source in distributed(2, 2, [1..=4, 1..=4, 0..=0, 0..=0]),
        target in distributed(2, 2, [0..=3, 0..=4, 0..=0, 0..=0]),
    ) {
        simulate(&source, &target);
    }

    #[test]
    fn permutations_of_bits_within_a_warp(order in Just([0usize, 1, 2, 3, 4, 5]).prop_shuffle()) {
        let bases = [[1, 0], [2, 0], [4, 0], [0, 1], [0, 2], [0, 4]];
        let build = |order: [usize; 6]| {
            let moved = order.map(|position| bases[position]);
            LinearLayout::new(
                &[(Dim::Register, &moved[..3]), (Dim::Lane, &moved[3..])],
                [(Dim::Axis(0), 8), (Dim::Axis(1), 8)],
            )
            .unwrap()
        };
        let conversion = simulate(&build([0, 1, 2, 3, 4, 5]), &build(order)).unwrap();
        // A permutation never needs more rounds than there are registers.
        if let Route::Shuffles { rounds } = conversion.route() {
            prop_assert!(rounds <= 8);
        }
    }
}

#[test]
fn accumulator_to_operand_needs_only_registers() {
    // The accumulator of two m16n8 tiles side by side holds what operand A of m16n8k16 wants, in another order of
    // registers: flash attention's trick.
    let shape = MatrixShape { m: 16, n: 8, k: 16 };
    let right = LinearLayout::identity(Dim::Register, Dim::Axis(1), 2).unwrap();
    let wide = mma_sync(shape, 16, Operand::Accumulator).unwrap().product(&right).unwrap();
    let operand = mma_sync(shape, 16, Operand::A).unwrap();
    assert_eq!(simulate(&wide, &operand).unwrap().route(), Route::Identity);
    // Reading the tile by rows instead moves it between lanes.
    let rows = LinearLayout::new(
        &[(Dim::Register, &[[0, 1], [0, 2], [0, 4]]), (Dim::Lane, &[[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]])],
        [(Dim::Axis(0), 16), (Dim::Axis(1), 16)],
    )
    .unwrap();
    let route = simulate(&operand, &rows).unwrap().route();
    assert!(matches!(route, Route::Shuffles { rounds } if rounds <= 8), "{route:?}");
}

#[test]
fn warps_exchange_through_shared_memory() {
    let rows = wgmma_accumulator(16).unwrap();
    let columns = LinearLayout::new(
        &[
            (Dim::Register, &[[1, 0], [2, 0], [4, 0]]),
            (Dim::Lane, &[[8, 0], [16, 0], [32, 0], [0, 1], [0, 2]]),
            (Dim::Warp, &[[0, 4], [0, 8]]),
        ],
        [(Dim::Axis(0), 64), (Dim::Axis(1), 16)],
    )
    .unwrap();
    assert_eq!(simulate(&rows, &columns).unwrap().route(), Route::SharedMemory);
}

#[test]
fn tiles_must_agree() {
    let lanes = LinearLayout::identity(Dim::Lane, Dim::Axis(0), 4).unwrap();
    let other = LinearLayout::identity(Dim::Lane, Dim::Axis(1), 4).unwrap();
    let larger = LinearLayout::identity(Dim::Lane, Dim::Axis(0), 8).unwrap();
    let memory = LinearLayout::identity(Dim::Offset, Dim::Axis(0), 4).unwrap();
    let unmatched = Conversion::between(&lanes, &other).unwrap_err();
    assert_eq!(
        unmatched.to_string(),
        "dimension axis0 exists on one side only; give both sides the same dimensions"
    );
    assert!(matches!(Conversion::between(&lanes, &larger), Err(LinearError::ExtentMismatch { .. })));
    let unknown = Conversion::between(&memory, &lanes).unwrap_err();
    assert_eq!(unknown, LinearError::UnknownDim { dim: Dim::Offset });
    let registers = LinearLayout::zeros(Dim::Register, Dim::Axis(0), 1 << 40).unwrap();
    let warps = LinearLayout::zeros(Dim::Warp, Dim::Axis(0), 1 << 40).unwrap();
    assert!(matches!(Conversion::between(&registers, &warps), Err(LinearError::TooManyBits { .. })));
}

#[test]
fn vector_widths_stop_at_gaps_and_limits() {
    let accumulator = wgmma_accumulator(64).unwrap();
    assert_eq!(vector_width(&accumulator, Dim::Axis(1), 32, 128), Ok(2));
    assert_eq!(vector_width(&accumulator, Dim::Axis(0), 32, 128), Ok(1));
    let row = LinearLayout::identity(Dim::Register, Dim::Axis(0), 64).unwrap();
    let width = |element, most| vector_width(&row, Dim::Axis(0), element, most);
    assert_eq!(
        (width(16, 128), width(16, 4096), width(8, 128), width(32, 96)),
        (Ok(8), Ok(8), Ok(16), Ok(2))
    );
    assert_eq!((width(64, 32), width(16, 0), width(256, u32::MAX)), (Ok(1), Ok(1), Ok(1)));
    assert!(width(0, 128).is_err() && width(12, 128).is_err());
    assert!(vector_width(&row, Dim::Axis(1), 16, 128).is_err());
    let swapped = LinearLayout::new(&[(Dim::Register, &[[2], [1]])], [(Dim::Axis(0), 4)]).unwrap();
    assert_eq!(vector_width(&swapped, Dim::Axis(0), 16, 128), Ok(1));
}

/// All layouts of two registers bits and a lane bit over eight elements: each vector is neighbours in their order, from a
/// multiple of its width on, and no wider ones are.
#[test]
fn vectors_are_whole_and_in_order() {
    let is_vector = |layout: &LinearLayout, width: u64| {
        let start = |place: &Place| place.register.is_multiple_of(width);
        places(layout).iter().filter(|place| start(place)).all(|&place| {
            let element = |register| held(layout, Place { register, ..place })[0].1;
            let first = element(place.register);
            first.is_multiple_of(width)
                && (0..width).all(|next| element(place.register + next) == first + next)
        })
    };
    for bases in 0..8u64.pow(3) {
        let [a, b, lane] = [0, 3, 6].map(|bit| bases >> bit & 7);
        let bases: [(Dim, &[[u64; 1]]); 2] = [(Dim::Register, &[[a], [b]]), (Dim::Lane, &[[lane]])];
        let layout = LinearLayout::new(&bases, [(Dim::Axis(0), 8)]).unwrap();
        let widest = [4, 2, 1].into_iter().find(|&width| is_vector(&layout, width)).unwrap();
        assert_eq!(vector_width(&layout, Dim::Axis(0), 16, 128), Ok(widest as u32), "{layout:?}");
    }
}
