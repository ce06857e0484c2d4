//! What gathers from a tensor do: indices that repeat, and those outside of it.

use super::behaviour_views::ramp;
use super::whole::check_kernel;
use super::{Case, array, devices, numbers, widen};
use tile::ir::Binding;
use tile::prelude::*;

/// y[i, j] = x[rows[i], 3 + j], and 7 where there is none.
#[tile_kernel]
fn gather_rows<const B: usize>(x: &Tensor<f32, m, n>, rows: &Tensor<i32, k>, y: &mut Tensor<f32, k, 4>) {
    let rows = rows.partition_view([B]);
    let mut y = y.partition_view_mut([B, 4]);
    let [i, _] = y.index();
    let rows = rows.load_masked([i]).reshape([B, 1]);
    let columns = Tile::<i64, 2>::iota([1, 4], 1) + 3;
    y.store_masked(x.gather_or(7.0, (rows, columns)));
}

fn check_rows(rows: &[i32], expected: &[[f64; 4]]) {
    let x: Vec<f32> = (0..80).map(|i| (i / 10 * 10 + i % 10) as f32).collect();
    let k = rows.len();
    Case {
        ir: gather_rows::ir(),
        bindings: &[("B", Binding::Const(4))],
        arguments: vec![array(&x, &[8, 10]), array(rows, &[k]), array(&vec![0.0f32; 4 * k], &[k, 4])],
        output: 2,
        expected: expected.concat(),
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [8, 10])?;
            let rows = Tensor::from_slice(device, rows, [k])?;
            let mut y = Tensor::zeros(device, [k, 4])?;
            gather_rows::<4>(&x, &rows, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

#[test]
fn case_08_gathered_rows_repeat() {
    let row = |r: i32| [3, 4, 5, 6].map(|c| f64::from(10 * r + c));
    check_rows(&[5, 0, 5, 2], &[row(5), row(0), row(5), row(2)]);
    check_rows(&[7, 8, -1, i32::MIN, i32::MAX], &[row(7), [7.0; 4], [7.0; 4], [7.0; 4], [7.0; 4]]);
}

/// y = x[idx], 7 outside.
#[tile_kernel]
fn masked_gather(x: &Tensor<f32, n>, at: &Tensor<i64, k>, y: &mut Tensor<f32, k>) {
    let at = at.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    y.store_masked(x.gather_or(7.0, [at.load_masked(y.index())]));
}

/// A 2×2 tile of places in a vector.
#[tile_kernel]
fn gather_table(x: &Tensor<f32, n>, y: &mut Tensor<f32, 2, 2>) {
    let mut y = y.partition_view_mut([2, 2]);
    let place = Tile::<u32, 2>::iota([2, 2], 0) * 2 + Tile::iota([2, 2], 1);
    y.store(x.gather([(place * 9 + 2) % 16]));
}

#[test]
fn case_09_masked_gather() {
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &[10.0, 11.0, 12.0, 13.0], [4]).unwrap();
        let at = Tensor::from_slice(&device, &[-1, 0, 3, 4], [4]).unwrap();
        let mut y = Tensor::zeros(&device, [4]).unwrap();
        masked_gather(&x, &at, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [7.0, 10.0, 13.0, 7.0], "{label}");
        let x = Tensor::from_slice(&device, &ramp(16), [16]).unwrap();
        let mut y = Tensor::zeros(&device, [2, 2]).unwrap();
        gather_table(&x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [2.0, 11.0, 4.0, 13.0], "{label}");
    }
}

/// Rows of x so many places on, of x between its first and last element as well, and what is made of one that is used twice.
#[tile_kernel]
fn shifted_rows<const B: usize>(
    x: &Tensor<f32, m, n>,
    by: i64,
    narrow: u8,
    y: &mut Tensor<f32, m, k>,
    z: &mut Tensor<f32, m, k>,
) {
    let mut y = y.partition_view_mut([2, B]);
    let mut z = z.partition_view_mut([2, B]);
    let [i, j] = y.index();
    let rows = Tile::<i64, 2>::iota([2, 1], 0) + (2 * i) as i64;
    let places = Tile::<i64, 2>::iota([1, B], 1) + (j * B) as i64 + by;
    // Of bytes that wrap.
    let wrapping = Tile::<u8, 2>::iota([1, B], 1) + narrow;
    let here = x.gather_or(-1.0, [rows, places]);
    y.store_masked(here + x.shrink([(0, m), (1, n - 1)]).gather_or(-2.0, [rows, places]) * 100.0);
    let twice = here.roll(1, 1) + here;
    z.store_masked(twice + x.gather_or(-3.0, (rows, wrapping)));
}

#[test]
fn parts_of_rows_exist() {
    const B: usize = 64;
    let (m, n, k) = (3, 150, 150);
    let x: Vec<f32> = (0..m * n).map(|i| (i * 7 % 97) as f32).collect();
    for (device, label) in devices() {
        let tensor = Tensor::from_slice(&device, &x, [m, n]).unwrap();
        for by in [0, -1, 1, 5, -70, 70, 149, -149, 150, -150, 1 << 40, i64::MIN, i64::MAX - 20] {
            let narrow = (by.rem_euclid(251)) as u8;
            let [mut y, mut z] = [0; 2].map(|_| Tensor::<f32>::zeros(&device, [m, k]).unwrap());
            shifted_rows::<B>(&tensor, by, narrow, &mut y, &mut z).launch().unwrap();
            let at = |row: usize, place: i64, begin: i64, end: i64, pad: f32| match row < m
                && (begin..end).contains(&place)
            {
                true => x[row * n + place as usize],
                false => pad,
            };
            let place = |c: usize| (c as i64).wrapping_add(by);
            let here = |row: usize, c: usize| at(row, place(c), 0, n as i64, -1.0);
            let [mut first, mut second] = [0; 2].map(|_| Vec::new());
            for (row, c) in (0..m).flat_map(|row| (0..k).map(move |c| (row, c))) {
                let part = at(row, place(c).wrapping_add(1), 1, n as i64 - 1, -2.0);
                first.push(here(row, c) + 100.0 * part);
                let (tile, lane) = (c / B * B, c % B);
                let wrapped = i64::from((lane as u8).wrapping_add(narrow));
                let rolled = here(row, tile + (lane + B - 1) % B);
                second.push(rolled + here(row, c) + at(row, wrapped, 0, n as i64, -3.0));
            }
            assert_eq!(y.to_vec().unwrap(), first, "{label}, by {by}");
            assert_eq!(z.to_vec().unwrap(), second, "{label}, by {by}");
        }
    }
}

/// An element of a matrix, of its transpose and of windows over a margin, at places that are numbers: those of the block,
/// of a counter, of an argument and literals, inside and outside.
#[tile_kernel]
fn named(x: &Tensor<i16, m, n>, at: i64, y: &mut Tensor<i16, k, 6>) {
    let mut y = y.partition_view_mut([1, 1]).spanning([1]);
    let [i, _] = y.index();
    let windows = x.pad([(1, 1), (0, 0)]).unfold(0, 3, 1);
    let mut sum = 0;
    for p in 0..i {
        sum += x.gather([p, 1]);
    }
    let found = [
        x.gather([i, 2]),
        x.gather_or(-7, (i, at)),
        x.t().gather((at, i)),
        windows.gather_or(-9, (i, 1, 0)),
        x.gather_or(-5, [0, -1]),
        sum,
    ];
    for j in 0..6 {
        y.at([j]).store(Tile::full([1, 1], found[j]));
    }
}

#[test]
fn numbers_name_one_element() {
    let (m, n, k) = (4usize, 5usize, 6usize);
    let x: Vec<i16> = (0..20).map(|i| i * 7 % 23 - 3).collect();
    let element = |i: usize, j: i64, pad: i16| match usize::try_from(j) {
        Ok(j) if i < m && j < n => x[i * n + j],
        _ => pad,
    };
    for column in [3, -1, 5, i64::MIN] {
        // Windows begin a row before the first, where there is no element, and there are as many as rows.
        let above = |i: usize| if (1..m).contains(&i) { element(i - 1, 1, -9) } else { -9 };
        let sum = |i: usize| (0..i).map(|p| element(p, 1, 0)).sum();
        let row = |i: usize| {
            [element(i, 2, 0), element(i, column, -7), element(i, column, 0), above(i), -5, sum(i)]
        };
        let expected: Vec<i16> = (0..k).flat_map(row).collect();
        check_kernel!(named<>(
            input x: (x, [m, n]), number at: (column),
            output y: (vec![0i16; k * 6], [k, 6] => expected, 0.0),
        ));
    }
}

/// Tokens' keys go to their slots in a cache of all layers, in pages of `P` slots; a token without a slot has a negative one.
#[tile_kernel(grid = [t])]
fn remember<const P: usize, const H: usize, const D: usize>(
    keys: &Tensor<f16, t, H, D>,
    slots: &Tensor<i32, t>,
    layer: i32,
    cache: &mut Tensor<f16, layers, 2, pages, P, H, D>,
) {
    let slot = slots.gather((block_id(0),));
    let heads = Tile::<i32, 2>::iota([H, 1], 0);
    let columns = Tile::<i32, 2>::iota([1, D], 1);
    let keys = keys.gather((block_id(0), heads, columns));
    cache.atomic_view().store(
        (layer, 0, slot / P as i32, slot % P as i32, heads, columns),
        keys,
        Relaxed,
        DeviceScope,
    );
}

/// Keys come back from there, also without the axis of keys and values.
#[tile_kernel]
fn recall<const P: usize, const D: usize>(
    cache: &Tensor<f16, layers, 2, pages, P, h, D>,
    slots: &Tensor<i32, t>,
    layer: i32,
    keys: &mut Tensor<f16, t, h, D>,
    halves: &mut Tensor<f16, t, h, D>,
) {
    let mut keys = keys.partition_view_mut([1, 1, D]);
    let mut halves = halves.partition_view_mut([1, 1, D]);
    let [i, head, _] = keys.index();
    let slot = slots.gather((i,));
    let columns = Tile::<i32, 3>::iota([1, 1, D], 2);
    let (page, place) = (slot / P as i32, slot % P as i32);
    keys.store(cache.gather((layer, 0, page, place, head, columns)));
    halves.store(cache.select(1, 0).gather_or(-1.0, (layer, page, place, head, columns)) * 0.5);
}

#[test]
fn tensors_of_many_axes_are_named_by_tiles_and_numbers() {
    let (layers, pages, wide, heads, depth) = (3, 4, 2, 2, 8);
    let slots = [5, -1, 0, 7, 2];
    let t = slots.len();
    let keys = numbers::<f16>(t * heads * depth, 1);
    let mut cache = vec![0.0; layers * 2 * pages * wide * heads * depth];
    let (mut found, mut halves) = (vec![], vec![]);
    for (row, &slot) in keys.chunks(heads * depth).zip(&slots) {
        let row: Vec<f64> = row.iter().map(|x| x.to_f64()).collect();
        if let Ok(slot) = usize::try_from(slot) {
            // The keys of layer 1.
            let begin = (2 * pages * wide + slot) * heads * depth;
            cache[begin..begin + row.len()].copy_from_slice(&row);
        }
        found.extend(row.iter().map(|&x| if slot < 0 { 0.0 } else { x }));
        halves.extend(row.iter().map(|&x| if slot < 0 { -0.5 } else { x * 0.5 }));
    }
    let held: Vec<f16> = cache.iter().map(|&x| f16::from_f64(x)).collect();
    let shape = [layers, 2, pages, wide, heads, depth];
    check_kernel!(remember<P = 2, H = 2, D = 8>(
        input keys: (keys, [t, heads, depth]), input slots: (slots, [t]), number layer: (1i32),
        output cache: (vec![f16::ZERO; cache.len()], shape => cache, 0.0),
    ));
    check_kernel!(recall<P = 2, D = 8>(
        input cache: (held, shape), input slots: (slots, [t]), number layer: (1i32),
        output keys: (vec![f16::ZERO; found.len()], [t, heads, depth] => found, 0.0),
        output halves: (vec![f16::ZERO; halves.len()], [t, heads, depth] => halves, 0.0),
    ));
}

/// Elements of a table, and a pad beyond it.
#[tile_kernel]
fn looked_up<T: Element, const B: usize>(
    x: &Tensor<i16, n>,
    table: &Tensor<T, k>,
    pad: T,
    y: &mut Tensor<T, n>,
) {
    let mut y = y.partition_view_mut([B]);
    y.store_masked(table.gather_or(pad, [x.partition_view([B]).load_masked(y.index())]));
}

/// A table of so many elements, looked up at places of which some are before or behind it.
fn look_up<T: tile::kernel::Element + PartialEq + std::fmt::Debug>(
    name: &str,
    number: fn(usize) -> T,
) -> tile::Result<()> {
    let n = 300;
    let pad = number(1);
    for k in [0, 1, 40] {
        let table: Vec<T> = (0..k).map(|i| number(i * 7 % 5)).collect();
        let x: Vec<i16> = (0..n as i16).map(|i| (i * 37) % (k as i16 + 20) - 10).collect();
        let at = |&x: &i16| usize::try_from(x).ok().and_then(|i| table.get(i)).copied().unwrap_or(pad);
        let expected: Vec<T> = x.iter().map(at).collect();
        for (device, label) in devices() {
            let x = Tensor::from_slice(&device, &x, [n])?;
            let table = Tensor::from_slice(&device, &table, [k])?;
            let mut y = Tensor::full(&device, [n], number(0))?;
            looked_up::<T, 128>(&x, &table, pad, &mut y).launch()?;
            assert_eq!(y.to_vec()?, expected, "{label}: {k} of {name}");
        }
    }
    Ok(())
}

#[test]
fn short_elements_are_looked_up_in_tables() {
    look_up::<u8>("u8", |i| i as u8).unwrap();
    look_up::<i8>("i8", |i| -(i as i8)).unwrap();
    look_up::<u16>("u16", |i| 300 * i as u16).unwrap();
    look_up::<f8e4m3fn>("f8e4m3fn", |i| f8e4m3fn::from_f32(i as f32)).unwrap();
    look_up::<f16>("f16", |i| f16::from_f32(i as f32)).unwrap();
    look_up::<bf16>("bf16", |i| bf16::from_f32(i as f32)).unwrap();
    look_up::<bool>("bool", |i| i % 2 == 1).unwrap();
    look_up::<u64>("u64", |i| i as u64).unwrap();
}
