//! Updates that a block may do otherwise than one after the other: of tensors that are only updated, of one element by a whole
//! tile, and behind masks that have few places.

use super::devices;
use tile::prelude::*;

/// Numbers that go up and down, some of them negative or beyond any bin.
fn bins(n: usize, most: i32) -> Vec<i32> {
    (0..n as i32).map(|i| (i * 7919) % (most + 40) - 20).collect()
}

/// Every update whose order nobody sees, each of its own tensor.
#[tile_kernel(grid = [n.div_ceil(B)])]
fn tallies<T: Int, const B: usize>(
    at: &Tensor<i32, n>,
    x: &Tensor<T, n>,
    added: &mut Tensor<T, k>,
    taken: &mut Tensor<T, 50>,
    least: &mut Tensor<T, k>,
    most: &mut Tensor<T, 2, 25>,
    bits: &mut Tensor<T, 3, k>,
) {
    let at = at.partition_view([B]).load_masked_or(-1, [block_id(0)]);
    let x = x.partition_view([B]).load_masked([block_id(0)]);
    let (added, taken) = (added.atomic_view(), taken.atomic_view());
    added.fetch_add([at], x, Relaxed, DeviceScope);
    added.fetch_add_masked(at % 3 == 0, [at], T::of(5.0), Relaxed, DeviceScope);
    taken.fetch_sub([at], x, Relaxed, DeviceScope);
    least.atomic_view().fetch_min([at], x, Relaxed, DeviceScope);
    most.atomic_view().fetch_max([at / 25, at % 25], x, Relaxed, DeviceScope);
    let bits = bits.atomic_view();
    bits.fetch_xor((2, at), x, Relaxed, DeviceScope);
}

fn tally<T: Int + tile::kernel::Element + PartialEq + std::fmt::Debug>(
    as_wide: fn(T) -> i64,
    narrowed: fn(i64) -> T,
) -> tile::Result<()> {
    let (n, k) = (3000, 50);
    let at = bins(n, k);
    let x: Vec<T> = (0..n as i64).map(|i| narrowed(i * 31 % 97 - 20)).collect();
    let start: Vec<T> = (0..i64::from(k)).map(|i| narrowed(i * 3)).collect();
    let mut expected: [Vec<T>; 5] = std::array::from_fn(|_| start.clone());
    for (&at, &x) in at.iter().zip(&x) {
        // The indices along both axes of a negative number are negative, or both exist.
        if (0..k).contains(&at) {
            let i = at as usize;
            let change = |to: &mut T, by: &dyn Fn(i64) -> i64| *to = narrowed(by(as_wide(*to)));
            change(&mut expected[0][i], &|to| to + as_wide(x) + if at % 3 == 0 { 5 } else { 0 });
            change(&mut expected[1][i], &|to| to - as_wide(x));
            change(&mut expected[2][i], &|to| to.min(as_wide(x)));
            change(&mut expected[3][i], &|to| to.max(as_wide(x)));
            change(&mut expected[4][i], &|to| to ^ as_wide(x));
        }
    }
    for (device, label) in devices() {
        let at = Tensor::from_slice(&device, &at, [n])?;
        let x = Tensor::from_slice(&device, &x, [n])?;
        let bin = || Tensor::from_slice(&device, &start, [50]);
        let (mut added, mut taken, mut least) = (bin()?, bin()?, bin()?);
        let mut most = Tensor::from_slice(&device, &start, [2, 25])?;
        let mut bits = Tensor::from_slice(&device, &[&start[..]; 3].concat(), [3, 50])?;
        tallies::<T, 64>(&at, &x, &mut added, &mut taken, &mut least, &mut most, &mut bits).launch()?;
        let found = [added.to_vec()?, taken.to_vec()?, least.to_vec()?, most.to_vec()?];
        assert_eq!(found[..], expected[..4], "{label}");
        assert_eq!(bits.to_vec()?[100..], expected[4], "{label}");
    }
    Ok(())
}

#[test]
fn tensors_that_are_only_updated_have_every_update() {
    tally::<i32>(i64::from, |x| x as i32).unwrap();
    tally::<i64>(|x| x, |x| x).unwrap();
    // Differences are taken of wrapped numbers, and the least and the most are those without a sign.
    tally::<u32>(i64::from, |x| x as u32).unwrap();
}

/// Counts in bins of which there may be more than a block's numbers pay for.
#[tile_kernel(grid = [n.div_ceil(16)])]
fn count(x: &Tensor<i32, n>, counts: &mut Tensor<u64, bins>) {
    let x = x.partition_view([16]).load_masked_or(-1, [block_id(0)]);
    counts.atomic_view().fetch_add([x], 1, Relaxed, DeviceScope);
}

#[test]
fn bins_may_be_many_or_none() {
    for (device, label) in devices() {
        for (n, most) in [(300, 7), (300, 40_000), (300, 0), (1, 3)] {
            let x = bins(n, most);
            let mut expected = vec![9; most as usize];
            x.iter().filter(|x| (0..most).contains(x)).for_each(|&x| expected[x as usize] += 1);
            let x = Tensor::from_slice(&device, &x, [n]).unwrap();
            let mut counts = Tensor::from_slice(&device, &vec![9; most as usize], [most as usize]).unwrap();
            count(&x, &mut counts).launch().unwrap();
            assert_eq!(counts.to_vec().unwrap(), expected, "{label}: {n} numbers, {most} bins");
        }
    }
}

/// What is kept of a tile by a mask, from the place on that the counter gives it, and what was there before each.
#[tile_kernel]
fn kept<const R: usize, const W: usize>(
    x: &Tensor<i32, m, n>,
    at: i32,
    counter: &mut Tensor<i32, 2>,
    least: &mut Tensor<i32, 1>,
    before: &mut Tensor<i32, m, n>,
    lower: &mut Tensor<i32, m, n>,
) {
    let mut before = before.partition_view_mut([R, W]);
    let mut lower = lower.partition_view_mut([R, W]);
    let x = x.partition_view([R, W]).load_masked(before.index());
    let index = Tile::full([R, W], at);
    before.store_masked(counter.atomic_view().fetch_add_masked(x > 10, [index], x, AcqRel, DeviceScope));
    lower.store_masked(least.atomic_view().fetch_min([0], x, Relaxed, DeviceScope));
}

fn keep<const R: usize, const W: usize>(below: i32) -> tile::Result<()> {
    let x: Vec<i32> = (0..(R * W) as i32).map(|i| (i * 37) % below).collect();
    for (device, label) in devices().into_iter().filter(|(_, label)| ["reference", "cpu"].contains(label)) {
        for at in [1, 2] {
            let (mut sum, mut smallest) = (7, 5);
            let expected: Vec<(i32, i32)> = x
                .iter()
                .map(|&x| {
                    let on = x > 10 && at < 2;
                    let there = (if on { sum } else { 0 }, smallest);
                    sum += if on { x } else { 0 };
                    smallest = smallest.min(x);
                    there
                })
                .collect();
            let input = Tensor::from_slice(&device, &x, [R, W])?;
            let mut counter = Tensor::from_slice(&device, &[3, 7], [2])?;
            let mut least = Tensor::from_slice(&device, &[5], [1])?;
            let mut before = Tensor::zeros(&device, [R, W])?;
            let mut lower = Tensor::zeros(&device, [R, W])?;
            kept::<R, W>(&input, at, &mut counter, &mut least, &mut before, &mut lower).launch()?;
            let found: Vec<(i32, i32)> = before.to_vec()?.into_iter().zip(lower.to_vec()?).collect();
            assert_eq!(found, expected, "{label}: {R} × {W}, element {at}");
            assert_eq!(counter.to_vec()?, [3, sum], "{label}");
            assert_eq!(least.to_vec()?, [smallest], "{label}");
        }
    }
    Ok(())
}

/// Where updates have an order, what each finds is what those before it have left.
#[test]
fn a_tile_that_updates_one_element_finds_each_partial_result() {
    keep::<1, 64>(40).unwrap();
    keep::<3, 20>(40).unwrap();
    keep::<2, 8>(40).unwrap();
    keep::<4, 32>(11).unwrap();
    keep::<1, 1>(40).unwrap();
}

/// What was exchanged behind a mask.
#[tile_kernel]
fn exchanged<const R: usize, const W: usize>(
    mask: &Tensor<bool, R, W>,
    slots: &mut Tensor<i32, n>,
    found: &mut Tensor<i32, R, W>,
) {
    let mut found = found.partition_view_mut([R, W]);
    let mask = mask.partition_view([R, W]).load([0, 0]);
    let place = Tile::<i32, 2>::iota([R, W], 0) * (W as i32) + Tile::<i32, 2>::iota([R, W], 1);
    found.store(slots.atomic_view().compare_exchange_masked(
        mask,
        [place / 2],
        -1,
        place,
        AcqRel,
        DeviceScope,
    ));
}

fn exchange<const R: usize, const W: usize>(has: fn(usize) -> bool) -> tile::Result<()> {
    let n = R * W / 2 - 1;
    let mask: Vec<bool> = (0..R * W).map(has).collect();
    let start: Vec<i32> = (0..n as i32).map(|i| if i % 3 == 0 { i } else { -1 }).collect();
    let (mut slots, mut expected) = (start.clone(), vec![0; R * W]);
    for place in (0..R * W).filter(|&place| mask[place] && place / 2 < n) {
        expected[place] = slots[place / 2];
        if slots[place / 2] == -1 {
            slots[place / 2] = place as i32;
        }
    }
    for (device, label) in devices().into_iter().filter(|(_, label)| ["reference", "cpu"].contains(label)) {
        let mask = Tensor::from_slice(&device, &mask, [R, W])?;
        let mut tensor = Tensor::from_slice(&device, &start, [n])?;
        let mut found = Tensor::from_slice(&device, &vec![77; R * W], [R, W])?;
        exchanged::<R, W>(&mask, &mut tensor, &mut found).launch()?;
        assert_eq!(found.to_vec()?, expected, "{label}: {R} × {W}");
        assert_eq!(tensor.to_vec()?, slots, "{label}: {R} × {W}");
    }
    Ok(())
}

#[test]
fn places_that_a_mask_has_are_gone_through_in_order() {
    fn check<const R: usize, const W: usize>() -> tile::Result<()> {
        for has in
            [|_: usize| true, |_| false, |place| place % 7 == 3, |place| place % 5 != 1, |place| place > 2]
        {
            exchange::<R, W>(has)?;
        }
        Ok(())
    }
    check::<1, 64>().unwrap();
    check::<2, 128>().unwrap();
    check::<3, 96>().unwrap();
    check::<2, 16>().unwrap();
    check::<5, 12>().unwrap();
    check::<7, 7>().unwrap();
}
