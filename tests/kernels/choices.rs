//! Launches that let the cost model choose their instance.

use super::{compare, devices, numbers, widen};
use tile::prelude::*;

/// C = A·B, of rows that are whole tiles.
#[tile_kernel(where(m % BM == 0, BM * BN < 8192), instances(BM = 16 | 64 | 128, BN = 32 | 64, BK = 32; BM = 48, BN = 32, BK = 16))]
fn matmul<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<bf16, m, k>,
    b: &Tensor<bf16, k, n>,
    c: &mut Tensor<f32, m, n>,
) {
    let a = a.partition_view([BM, BK]);
    let b = b.partition_view([BK, BN]);
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        acc = mma(a.load_masked([i, p]), b.load_masked([p, j]), acc);
    }
    c.store_masked(acc);
}

struct Product {
    a: Tensor<bf16>,
    b: Tensor<bf16>,
    c: Tensor<f32>,
}

impl Product {
    fn on(device: &Device, [m, n, k]: [usize; 3]) -> Product {
        Product {
            a: Tensor::from_vec(device, numbers(m * k, 1), [m, k]).expect("the arguments fit"),
            b: Tensor::from_vec(device, numbers(k * n, 2), [k, n]).expect("the arguments fit"),
            c: Tensor::zeros(device, [m, n]).expect("the arguments fit"),
        }
    }

    fn best(&mut self) -> tile::Launch<'_> {
        matmul::best(&self.a, &self.b, &mut self.c)
    }

    /// The launch that says which instance it takes.
    fn explicit(&mut self, instance: &str) -> tile::Launch<'_> {
        let Product { a, b, c } = self;
        match instance {
            "BM = 16, BN = 32, BK = 32" => matmul::<16, 32, 32>(a, b, c),
            "BM = 16, BN = 64, BK = 32" => matmul::<16, 64, 32>(a, b, c),
            "BM = 64, BN = 32, BK = 32" => matmul::<64, 32, 32>(a, b, c),
            "BM = 64, BN = 64, BK = 32" => matmul::<64, 64, 32>(a, b, c),
            "BM = 128, BN = 32, BK = 32" => matmul::<128, 32, 32>(a, b, c),
            "BM = 48, BN = 32, BK = 16" => matmul::<48, 32, 16>(a, b, c),
            other => panic!("`{other}` isn't an instance of the kernel"),
        }
    }
}

#[test]
fn the_best_instance_gives_what_it_gives_when_named() {
    for (device, label) in devices() {
        for [m, n, k] in [[64, 70, 33], [16, 200, 40], [128, 64, 64]] {
            let mut product = Product::on(&device, [m, n, k]);
            let instance = product.best().instance().unwrap();
            product.best().launch().unwrap();
            let chosen = product.c.to_vec().unwrap();
            product.c = Tensor::zeros(&device, [m, n]).unwrap();
            product.explicit(&instance).launch().unwrap();
            assert_eq!(chosen, product.c.to_vec().unwrap(), "{instance} on {label}");

            let [a, b] = [&product.a, &product.b].map(|tensor| widen(&tensor.to_vec().unwrap()));
            let at = |i: usize, j: usize| (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum();
            let expected: Vec<f64> = (0..m * n).map(|at_| at(at_ / n, at_ % n)).collect();
            compare(&format!("{instance} on {label}"), &widen(&chosen), &expected, 1e-4);
        }
    }
}

#[test]
fn an_instance_whose_condition_fails_is_never_chosen() {
    for (device, label) in devices() {
        for (m, fitting) in
            [(48, vec!["BM = 16", "BM = 48"]), (80, vec!["BM = 16"]), (96, vec!["BM = 16", "BM = 48"])]
        {
            let mut product = Product::on(&device, [m, 64, 64]);
            let choices = product.best().choices().unwrap();
            // 128 × 64 breaks the condition on parameters, and is no instance.
            assert_eq!(choices.rows().len(), 6, "{choices}");
            let rows = |fits: bool| choices.rows().iter().filter(move |row| row.prediction.is_ok() == fits);
            assert!(rows(true).all(|row| fitting.iter().any(|it| row.instance.starts_with(it))), "{choices}");
            for row in rows(false) {
                let reason = row.prediction.as_ref().unwrap_err();
                assert!(
                    reason.contains("needs `m % BM == 0`") && reason.contains(&format!("m = {m}")),
                    "{reason}"
                );
            }
            let chosen = choices.chosen().unwrap();
            let ok = |row: &&tile::Choice| row.prediction.as_ref().unwrap().seconds;
            assert!(rows(true).all(|row| ok(&row) >= ok(&chosen)), "{choices}");
            assert_eq!(product.best().instance().unwrap(), chosen.instance, "{label}");
            assert!(product.explicit(&chosen.instance).choices().unwrap().rows().len() == 1);
        }
    }
}

#[test]
fn where_none_fits_each_is_said_why() {
    let device = Device::reference();
    let message = Product::on(&device, [17, 64, 64]).best().launch().unwrap_err().reason().to_string();
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines[0], "no instance of `matmul` fits this launch on reference:");
    assert!(
        lines[1].starts_with("  BM = 16, BN = 32, BK = 32: kernel `matmul` needs `m % BM == 0`")
            && lines[1].ends_with("which is `m % 16 == 0` here, but m = 17 (axis 0 of `a`)"),
        "{message}"
    );
    assert_eq!(lines.len(), 1 + 6 + 1, "{message}");
    assert_eq!(lines[7], "add one that does to `instances(…)` of its `#[tile_kernel]`");
}

/// What is wrong with every instance is said once, as without a choice.
#[test]
fn wrong_arguments_are_the_error_that_they_always_are() {
    let device = Device::reference();
    let a = Tensor::<bf16>::zeros(&device, [16, 5]).unwrap();
    let b = Tensor::<bf16>::zeros(&device, [6, 3]).unwrap();
    let mut c = Tensor::<f32>::zeros(&device, [16, 3]).unwrap();
    let chosen = matmul::best(&a, &b, &mut c).launch().unwrap_err().reason().to_string();
    let named = matmul::<16, 32, 32>(&a, &b, &mut c).launch().unwrap_err().reason().to_string();
    assert_eq!(chosen, named);
    assert!(chosen.contains("`k` of kernel `matmul` is 5"), "{chosen}");
}

#[test]
fn an_empty_output_launches_nothing() {
    for (device, _) in devices() {
        let mut product = Product::on(&device, [0, 3, 5]);
        product.best().launch().unwrap();
        assert!(product.c.to_vec().unwrap().is_empty());
    }
}

/// Twice a vector. Two formats, in tiles of their own, and a number.
#[tile_kernel(instances(T = f32, B = 64 | 256; T = bf16, B = 128))]
fn scaled<T: Float, const B: usize>(x: &Tensor<T, n>, y: &mut Tensor<T, n>, by: T) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let tile = x.load_masked(y.index());
    y.store_masked(tile * by);
}

fn scale<T: Element + Float>(device: &Device) -> (String, tile::Result<Vec<f64>>) {
    let x = Tensor::from_vec(device, numbers::<T>(300, 3), [300]).expect("the arguments fit");
    let mut y = Tensor::zeros(device, [300]).expect("the arguments fit");
    let by = T::from_float(2.0);
    let table = scaled::best(&x, &mut y, by).choices().expect("the arguments fit").to_string();
    let launched = scaled::best::<T>(&x, &mut y, by).launch();
    (table, launched.map(|()| widen(&y.to_vec().expect("the arguments fit"))))
}

#[test]
fn element_types_are_those_of_the_arguments() {
    for (device, label) in devices() {
        let expected: Vec<f64> = widen(&numbers::<f32>(300, 3)).iter().map(|x| 2.0 * x).collect();
        let (table, result) = scale::<f32>(&device);
        compare(label, &result.unwrap(), &expected, 0.0);
        assert!(table.contains("T = bf16, B = 128") && table.contains("the launch has T = f32"), "{table}");
        let (table, result) = scale::<bf16>(&device);
        compare(label, &result.unwrap(), &expected, 0.0);
        assert!(table.starts_with(&format!("`scaled` on {device}, n = 300\n")), "{table}");
        assert!(table.contains("\n▶ T = bf16, B = 128 "), "{table}");
        let message = scale::<f16>(&device).1.unwrap_err().to_string();
        assert!(message.contains("\n  T = f32, B = 64: the launch has T = f16\n"), "{message}");
    }
}

/// A choice for one shape isn't taken for another: both ways, and again.
#[test]
fn a_choice_is_kept_for_its_shapes() {
    let device = Device::reference();
    let (mut small, mut large) = (Product::on(&device, [16, 32, 32]), Product::on(&device, [64, 64, 32]));
    let [first, second] = [small.best().instance().unwrap(), large.best().instance().unwrap()];
    assert!(first.starts_with("BM = 16"), "{first}");
    assert_ne!(first, second);
    for _ in 0..2 {
        assert_eq!(small.best().instance().unwrap(), first);
        assert_eq!(large.best().instance().unwrap(), second);
    }
}

/// A kernel without parameters is one instance, which nothing has to name.
#[tile_kernel]
fn doubled(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([16]);
    y.store_masked(x.partition_view([16]).load_masked(y.index()) * 2.0);
}

#[test]
fn the_best_of_one_is_that() {
    for (device, name) in devices() {
        let x = Tensor::from_vec(&device, vec![1.0, 2.5, -3.0], [3]).unwrap();
        let mut y = Tensor::<f32>::zeros(&device, [3]).unwrap();
        doubled::best(&x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [2.0, 5.0, -6.0], "{name}");
    }
}

/// Rows by their largest element, each in one tile, which nothing says.
#[tile_kernel(instances(ROWS = 1 | 2, COLUMNS = 4 | 8))]
fn by_largest<const ROWS: usize, const COLUMNS: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let mut y = y.partition_view_mut([ROWS, COLUMNS]);
    let x = x.partition_view([ROWS, COLUMNS]).load_masked(y.index());
    y.store_masked(x / x.max(1));
}

/// The same, in which it is said.
#[tile_kernel(where(n <= COLUMNS), instances(ROWS = 1 | 2, COLUMNS = 4 | 8))]
fn by_largest_of_row<const ROWS: usize, const COLUMNS: usize>(
    x: &Tensor<f32, m, n>,
    y: &mut Tensor<f32, m, n>,
) {
    let mut y = y.partition_view_mut([ROWS, COLUMNS]);
    let x = x.partition_view([ROWS, COLUMNS]).load_masked(y.index());
    y.store_masked(x / x.max(1));
}

/// Where instances compute different things, none is the best; where a tile holds a row, or one is named, all is well.
#[test]
fn instances_that_see_other_parts_of_a_row_are_no_choice() {
    for (device, label) in devices() {
        let row = |n: usize| Tensor::from_vec(&device, (1..=n).map(|x| x as f32).collect(), [1, n]).unwrap();
        let (x, mut y) = (row(6), Tensor::zeros(&device, [1, 6]).unwrap());
        let error = by_largest::best(&x, &mut y).launch().unwrap_err();
        let message = error.reason().to_string();
        let begin = "`best` of `by_largest` has no choice between ROWS = 1, COLUMNS = 4 and ROWS = 1, COLUMNS = 8, which \
                     give different results: `max` at tests/kernels/choices.rs:";
        let end = " is of a block's own tile alone: of 4 and of 6 elements along axis 1 of `x`, which has 6 elements. If it is \
                   meant to be of all of them, say `where(n <= COLUMNS)`, which leaves out instances with shorter tiles, or \
                   go through the tiles of longer lines in a loop; if it is meant to be of a tile, name the instance at the \
                   launch";
        assert!(message.starts_with(begin) && message.ends_with(end), "{label}: {message}");
        assert_eq!(by_largest::best(&x, &mut y).tune().unwrap_err().reason().to_string(), message, "{label}");
        let choices = by_largest::best(&x, &mut y).choices().unwrap();
        assert!(choices.chosen().is_none(), "{label}: {choices}");
        let table = choices.to_string();
        assert!(!table.contains('▶') && table.ends_with(&format!("{message}\n")), "{label}: {table}");
        by_largest::<1, 4>(&x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap()[3..], [1.0, 5.0 / 6.0, 1.0], "{label}");
        by_largest_of_row::best(&x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap()[3..], [4.0 / 6.0, 5.0 / 6.0, 1.0], "{label}");
        let (x, mut y) = (row(3), Tensor::zeros(&device, [1, 3]).unwrap());
        by_largest::best(&x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [1.0 / 3.0, 2.0 / 3.0, 1.0], "{label}");
    }
}

/// Running sums of a row, each of its own tile; and tiles that are divided by their largest element where that is asked for.
#[tile_kernel(instances(COLUMNS = 4 | 8))]
fn running_sums<const COLUMNS: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([COLUMNS]);
    y.store_masked(x.partition_view([COLUMNS]).load_masked(y.index()).cumsum(0));
}

#[tile_kernel(instances(COLUMNS = 4 | 8, NORM = true | false))]
fn by_largest_or_doubled<const COLUMNS: usize, const NORM: bool>(
    x: &Tensor<f32, m, n>,
    y: &mut Tensor<f32, m, n>,
) {
    let mut y = y.partition_view_mut([1, COLUMNS]);
    let x = x.partition_view([1, COLUMNS]).load_masked(y.index());
    y.store_masked(if NORM { x / x.max(1) } else { x * 2.0 });
}

/// What an instance doesn't compute is no difference, and what follows a branch is one.
#[test]
fn instances_are_compared_by_what_they_compute() {
    for (device, label) in devices() {
        let row = Tensor::from_vec(&device, (1..=6).map(|x| x as f32).collect(), [6]).unwrap();
        let mut sums = Tensor::zeros(&device, [6]).unwrap();
        let error = running_sums::best(&row, &mut sums).launch().unwrap_err();
        let said = error.reason().to_string();
        assert!(said.contains("`cumsum` at ") && said.contains("of 4 and of 6 elements"), "{label}: {said}");
        running_sums::<8>(&row, &mut sums).launch().unwrap();
        assert_eq!(sums.to_vec().unwrap(), [1.0, 3.0, 6.0, 10.0, 15.0, 21.0], "{label}");
        let x = row.reshape([1, 6]).unwrap();
        let mut y = Tensor::zeros(&device, [1, 6]).unwrap();
        by_largest_or_doubled::best::<false>(&x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0], "{label}");
        let error = by_largest_or_doubled::best::<true>(&x, &mut y).launch().unwrap_err();
        assert!(error.reason().to_string().contains("`max` at "), "{label}: {error}");
    }
}

/// Rows without their mean over the tile, and without their own.
#[tile_kernel(where(n <= COLUMNS), instances(COLUMNS = 4 | 8))]
fn without_mean_of_tile<const COLUMNS: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let mut y = y.partition_view_mut([1, COLUMNS]);
    let x = x.partition_view([1, COLUMNS]).load_masked(y.index());
    y.store_masked(x - x.mean(1));
}

#[tile_kernel(where(n <= COLUMNS), instances(COLUMNS = 4 | 8))]
fn without_mean_of_row<const COLUMNS: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let mut y = y.partition_view_mut([1, COLUMNS]);
    let x = x.partition_view([1, COLUMNS]).load_masked(y.index());
    y.store_masked(x - x.sum(1) / n as f32);
}

/// Where a tile's extent is a divisor, instances with other tiles compute other means; where one fits, it is taken.
#[test]
fn instances_that_divide_by_their_tiles_extents_are_no_choice() {
    for (device, label) in devices() {
        let row = |n: usize| Tensor::from_vec(&device, (1..=n).map(|x| x as f32).collect(), [1, n]).unwrap();
        let (x, mut y) = (row(3), Tensor::zeros(&device, [1, 3]).unwrap());
        let error = without_mean_of_tile::best(&x, &mut y).launch().unwrap_err();
        let message = error.reason().to_string();
        let begin = "`best` of `without_mean_of_tile` has no choice between COLUMNS = 4 and COLUMNS = 8, which give different \
                     results: the sum along axis 1 of `x`, with 3 elements, is divided at tests/kernels/choices.rs:";
        let end = " by 4 and by 8, what pads the tile among it. Divide it by the length, `x.sum(axis) / n as f32`; if the \
                   tile's extent is meant, name the instance at the launch";
        assert!(message.starts_with(begin) && message.ends_with(end), "{label}: {message}");
        without_mean_of_row::best(&x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [-1.0, 0.0, 1.0], "{label}");
        let (x, mut y) = (row(5), Tensor::zeros(&device, [1, 5]).unwrap());
        without_mean_of_tile::best(&x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap()[..2], [1.0 - 15.0 / 8.0, 2.0 - 15.0 / 8.0], "{label}");
    }
}

/// Dropout by numbers that go by tiles, if there is a seed.
#[tile_kernel(instances(BM = 2 | 4, BN = 4 | 8))]
fn dropout_by_tiles<const BM: usize, const BN: usize>(
    x: &Tensor<f32, m, n>,
    seed: Option<u64>,
    y: &mut Tensor<f32, m, n>,
) {
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let mut x = x.partition_view([BM, BN]).load_masked([i, j]);
    if let Some(seed) = seed {
        let first = (i * n.div_ceil(BN) + j) * (BM * BN);
        x = select(Tile::random_uniform([BM, BN], seed, first) < 0.5, 0.0, x);
    }
    y.store_masked(x);
}

/// The same by places in the tensor.
#[tile_kernel(instances(BM = 2 | 4, BN = 4 | 8))]
fn dropout_by_places<const BM: usize, const BN: usize>(
    x: &Tensor<f32, m, n>,
    seed: u64,
    y: &mut Tensor<f32, m, n>,
) {
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let x = x.partition_view([BM, BN]).load_masked([i, j]);
    let row = Tile::<u64, 2>::iota([BM, 1], 0) + (i * BM) as u64;
    let column = Tile::<u64, 2>::iota([1, BN], 1) + (j * BN) as u64;
    y.store_masked(select(Tile::random_uniform_at(row * n as u64 + column, seed) < 0.5, 0.0, x));
}

/// A stream of numbers, as long as the tensor, in tiles that continue each other.
#[tile_kernel(instances(B = 4 | 8))]
fn drawn<const B: usize>(seed: u64, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    y.store_masked(Tile::random_uniform([B], seed, i * B));
}

/// Where an element's random number depends on the tile, none is the best; where it doesn't, or nothing is drawn, all is well.
#[test]
fn instances_that_draw_other_random_numbers_are_no_choice() {
    for (device, label) in devices() {
        let x = Tensor::from_vec(&device, vec![1f32; 32], [4, 8]).unwrap();
        let mut y = Tensor::<f32>::zeros(&device, [4, 8]).unwrap();
        let error = dropout_by_tiles::best(&x, Some(1), &mut y).launch().unwrap_err();
        let message = error.reason().to_string();
        let begin = "`best` of `dropout_by_tiles` has no choice between BM = 2, BN = 4, seed = true and BM = 2, BN = 8, seed \
                     = true, which give different results: the random numbers at tests/kernels/choices.rs:";
        let end = " go by an element's number in its tile, in row-major order, so that in tiles [2, 4] and [2, 8] an element \
                   of a tensor gets different ones. Draw them by its place in the tensor: give positions such as `row * n as \
                   u64 + column` to `Tile::random_uniform_at`, `random_normal_at`, `random_bits_at` or `philox`; if they are \
                   meant to go by tiles, name the instance at the launch";
        assert!(message.starts_with(begin) && message.ends_with(end), "{label}: {message}");
        dropout_by_tiles::best(&x, None, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [1.0; 32], "{label}");
        dropout_by_places::best(&x, 1, &mut y).launch().unwrap();
        let kept = Tile::<f32, 1>::random_uniform([32], 1, 0).to_vec();
        let kept = kept.into_iter().map(|number| if number < 0.5 { 0.0 } else { 1.0 });
        assert_eq!(y.to_vec().unwrap(), kept.collect::<Vec<f32>>(), "{label}");
        let mut stream = Tensor::<f32>::zeros(&device, [13]).unwrap();
        drawn::best(3, &mut stream).launch().unwrap();
        assert_eq!(stream.to_vec().unwrap(), Tile::<f32, 1>::random_uniform([13], 3, 0).to_vec(), "{label}");
    }
}

/// How often a number fits into another, counted in steps of which no model knows how many there are.
#[tile_kernel(instances(STEP = 1 | 500))]
fn counted_up<const STEP: usize>(to: usize, x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let mut y = y.partition_view_mut([4]);
    let mut t = x.partition_view([4]).load_masked(y.index());
    let mut at = 0;
    while at < to {
        t += STEP as i32;
        at += STEP;
    }
    y.store_masked(t);
}

#[test]
fn a_tuned_launch_is_of_the_fastest_instance() {
    for (device, label) in devices().into_iter().filter(|(_, label)| ["reference", "cpu"].contains(label)) {
        let x = Tensor::from_slice(&device, &[1, 2, 3], [3]).unwrap();
        let mut y = Tensor::zeros(&device, [3]).unwrap();
        let choices = counted_up::best(2000, &x, &mut y).choices().unwrap();
        assert!(choices.rows().iter().all(|row| row.measured.is_none()), "{choices}");
        let tuned = counted_up::best(2000, &x, &mut y).tune().unwrap();
        assert_eq!(tuned.chosen().unwrap().instance, "STEP = 500", "{label}: {tuned}");
        assert!(tuned.rows().iter().all(|row| row.measured.is_some()), "{tuned}");
        assert!(tuned.to_string().lines().nth(1).unwrap().contains("measured  predicted"), "{tuned}");
        assert_eq!(counted_up::best(2000, &x, &mut y).instance().unwrap(), "STEP = 500");
        counted_up::best(2000, &x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [2001, 2002, 2003], "{label}");
        // Other sizes are another choice.
        let x = Tensor::zeros(&device, [5]).unwrap();
        let mut y = Tensor::zeros(&device, [5]).unwrap();
        let others = counted_up::best(2000, &x, &mut y).choices().unwrap();
        assert!(others.rows().iter().all(|row| row.measured.is_none()), "{others}");
        // What a stream was given before has run, and launches on it take the fastest too.
        let stream = tile::Stream::new(&device).unwrap();
        counted_up::<1>(100, &x, &mut y).on(&stream).unwrap().detach();
        let tuned = counted_up::best(2000, &x, &mut y).tune_on(&stream).unwrap();
        assert_eq!(tuned.chosen().unwrap().instance, "STEP = 500", "{label}: {tuned}");
        assert_eq!(y.to_vec().unwrap(), [2000; 5], "{label}");
        let elsewhere = if label == "cpu" { Device::reference() } else { Device::cpu() };
        let elsewhere = tile::Stream::new(&elsewhere).unwrap();
        let refused = counted_up::best(2000, &x, &mut y).tune_on(&elsewhere).unwrap_err().to_string();
        assert!(refused.contains("and the stream is one of"), "{refused}");
        let named = counted_up::<1>(2000, &x, &mut y).tune().unwrap_err().to_string();
        assert!(named.contains("it says which instance it takes; `best(…)`"), "{named}");
    }
}

/// Parameters whose names are those of what the attribute might have in its own code.
#[tile_kernel(instances(INSTANCES = true, arguments = true | false, B = 8 | 16))]
#[allow(non_upper_case_globals)]
fn of_any_names<const INSTANCES: bool, const arguments: bool, const B: usize>(
    x: &Tensor<f32, n>,
    y: &mut Tensor<f32, n>,
) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let tile = x.load_masked(y.index());
    y.store_masked(if INSTANCES && arguments { tile + 1.0 } else { tile });
}

#[test]
fn parameters_have_any_names() {
    for (device, label) in devices() {
        let x = Tensor::from_vec(&device, numbers::<f32>(30, 3), [30]).unwrap();
        let mut y = Tensor::<f32>::zeros(&device, [30]).unwrap();
        of_any_names::best::<true, true>(&x, &mut y).launch().unwrap();
        let expected: Vec<f64> = numbers::<f32>(30, 3).iter().map(|&x| f64::from(x + 1.0)).collect();
        compare(label, &widen(&y.to_vec().unwrap()), &expected, 0.0);
    }
}
