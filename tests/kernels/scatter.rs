//! Atomic stores as scatters to memory, of every format; additions of halves; hints of views.

use super::devices;
use tile::kernel::Element;
use tile::prelude::*;

/// Writes values where the indices say; those outside go nowhere.
#[tile_kernel(grid = [k.div_ceil(B)])]
fn scatter<T: Number, const B: usize>(at: &Tensor<i32, k>, x: &Tensor<T, k>, y: &mut Tensor<T, n>) {
    let at = at.partition_view([B]).load_masked_or(-1, [block_id(0)]);
    let x = x.partition_view([B]).load_masked([block_id(0)]);
    let y = y.atomic_view();
    y.store([at], x, Relaxed, DeviceScope);
}

fn scatters<T: Number + Element + PartialEq + std::fmt::Debug>() -> tile::Result<()> {
    let n = 50;
    // Each index twice, and some on either side.
    let at: Vec<i32> = (0..130).map(|i| if i % 13 == 12 { n + i } else { (i * 7) % 60 - 5 }).collect();
    let x: Vec<T> = (0..130).map(|i| T::of(f64::from(i % 31))).collect();
    for (device, label) in devices() {
        let at_tensor = Tensor::from_slice(&device, &at, [130])?;
        let x_tensor = Tensor::from_slice(&device, &x, [130])?;
        let mut y = Tensor::from_slice(&device, &vec![T::of(40.0); n as usize], [n as usize])?;
        scatter::<T, 32>(&at_tensor, &x_tensor, &mut y).launch()?;
        for (i, found) in y.to_vec()?.into_iter().enumerate() {
            let candidates: Vec<T> =
                at.iter().zip(&x).filter(|&(&at, _)| at == i as i32).map(|(_, &x)| x).collect();
            // One of the values stays; where there is none, what was there.
            let fine = if candidates.is_empty() { found == T::of(40.0) } else { candidates.contains(&found) };
            assert!(fine, "{label}: element {i} is {found:?}, not one of {candidates:?}");
        }
    }
    Ok(())
}

#[test]
fn one_of_the_values_stays_and_outside_is_nothing() {
    scatters::<i8>().unwrap();
    scatters::<u8>().unwrap();
    scatters::<i16>().unwrap();
    scatters::<u16>().unwrap();
    scatters::<i32>().unwrap();
    scatters::<u32>().unwrap();
    scatters::<i64>().unwrap();
    scatters::<u64>().unwrap();
    scatters::<f8e4m3fn>().unwrap();
    scatters::<f8e5m2>().unwrap();
    scatters::<f16>().unwrap();
    scatters::<bf16>().unwrap();
    scatters::<f32>().unwrap();
    scatters::<f64>().unwrap();
}

/// Marks the odd nodes that edges lead to, and edges that lead to even ones.
#[tile_kernel(grid = [e.div_ceil(B)])]
fn visit<const B: usize>(edges: &Tensor<i32, e>, visited: &mut Tensor<bool, n>, even: &mut Tensor<bool, e>) {
    let at = Tile::<i32, 1>::iota([B], 0) + (block_id(0) * B) as i32;
    let to = edges.partition_view([B]).load_masked_or(-1, [block_id(0)]);
    let even = even.atomic_view();
    // Each edge has an element of its own.
    even.store([at], to % 2 == 0, Relaxed, DeviceScope);
    let odd = !even.load([at], Relaxed, DeviceScope);
    let visited = visited.atomic_view();
    visited.store_masked(odd, [to], true, Relaxed, DeviceScope);
    visited.store([0], true, Relaxed, DeviceScope);
}

#[test]
fn masks_are_scattered() {
    let (e, n) = (300, 90);
    let edges: Vec<i32> = (0..e).map(|i| (i * 37 % 101) - 5).collect();
    let mut visited = vec![false; n as usize];
    visited[0] = true;
    for &to in edges.iter().filter(|&&to| to % 2 != 0 && (0..n).contains(&to)) {
        visited[to as usize] = true;
    }
    let even: Vec<bool> = edges.iter().map(|to| to % 2 == 0).collect();
    for (device, label) in devices() {
        let edges = Tensor::from_slice(&device, &edges, [e as usize]).unwrap();
        let mut found = Tensor::<bool>::zeros(&device, [n as usize]).unwrap();
        let mut fresh = Tensor::<bool>::zeros(&device, [e as usize]).unwrap();
        visit::<64>(&edges, &mut found, &mut fresh).launch().unwrap();
        assert_eq!(found.to_vec().unwrap(), visited, "{label}");
        assert_eq!(fresh.to_vec().unwrap(), even, "{label}");
    }
}

/// Scales of rows go where the rows go; what is loaded outside is the format's 0.
#[tile_kernel(grid = [1])]
fn scatter_scales<T: Element, const M: usize, const N: usize>(
    to: &Tensor<i32, M>,
    x: &Tensor<T, M, N>,
    y: &mut Tensor<T, m, N>,
    outside: &mut Tensor<T, 1>,
) {
    let to = to.partition_view([M]).load([0]).unsqueeze(1);
    let x = x.partition_view([M, N]).load([0, 0]);
    let (y, outside) = (y.atomic_view(), outside.atomic_view());
    y.store((to, Tile::<i32, 2>::iota([1, N], 1)), x, Relaxed, DeviceScope);
    let none = y.load([-1, 0], Relaxed, DeviceScope);
    outside.store([0], none, Relaxed, DeviceScope);
}

fn scatters_rows<T: Element + PartialEq>(x: &[T]) -> tile::Result<()> {
    let (m, n) = (6, 8);
    let to = [4, 9, 0, 2];
    let mut expected = vec![T::default(); m * n];
    for (row, &to) in x.chunks(n).zip(&to).filter(|(_, to)| **to < m as i32) {
        expected[to as usize * n..][..n].copy_from_slice(row);
    }
    for (device, label) in devices() {
        let (to, x) = (Tensor::from_slice(&device, &to, [4])?, Tensor::from_slice(&device, x, [4, n])?);
        let mut y = Tensor::from_slice(&device, &vec![T::default(); m * n], [m, n])?;
        let mut outside = Tensor::from_slice(&device, &[T::from_int(1)], [1])?;
        scatter_scales::<T, 4, 8>(&to, &x, &mut y, &mut outside).launch()?;
        assert!(y.to_vec()? == expected, "{} on {label}", T::DTYPE);
        assert!(outside.to_vec()? == [T::from_int(0)], "{} on {label}", T::DTYPE);
    }
    Ok(())
}

#[test]
fn elements_without_arithmetic_are_scattered_by_rows() {
    scatters_rows::<bool>(&std::array::from_fn::<bool, 32, _>(|i| i % 3 == 0)).unwrap();
    scatters_rows::<f8e8m0fnu>(&std::array::from_fn::<_, 32, _>(|i| f8e8m0fnu::from_bits((i * 7) as u8)))
        .unwrap();
    scatters_rows::<f16>(&std::array::from_fn::<_, 32, _>(|i| f16::of(i as f64))).unwrap();
}

/// Every block adds to every element.
#[tile_kernel(grid = [BLOCKS])]
fn pile<T: Number, const BLOCKS: usize>(y: &mut Tensor<T, 7>) {
    let i = Tile::<i32, 1>::iota([8], 0);
    y.atomic_view().fetch_add([i], Tile::ones([8]), Relaxed, DeviceScope);
}

#[test]
fn no_addition_of_halves_is_lost() {
    for (device, label) in devices() {
        let mut y = Tensor::<f16>::zeros(&device, [7]).unwrap();
        pile::<f16, 200>(&mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [f16::from_f32(200.0); 7], "{label}");
        let mut y = Tensor::<bf16>::zeros(&device, [7]).unwrap();
        pile::<bf16, 200>(&mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [bf16::from_f32(200.0); 7], "{label}");
    }
}

#[test]
fn an_instance_without_the_operation_is_refused() {
    for (device, label) in devices() {
        let mut y = Tensor::<f8e5m2>::zeros(&device, [7]).unwrap();
        let error = pile::<f8e5m2, 2>(&mut y).launch().unwrap_err().to_string();
        assert!(error.contains("a tensor of f8e5m2 has no atomic `fetch_add`"), "{label}: {error}");
    }
}

/// Sums of rows, with every hint there is; the last prefetches are beyond the tensor.
#[tile_kernel]
fn hinted<const B: usize, const AHEAD: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, 1>) {
    let x = x.partition_view([1, B]).latency(AHEAD).bulk_copy(true);
    let mut y = y.partition_view_mut([1, 1]);
    let [i, _] = y.index();
    y.prefetch();
    let mut sum = Tile::zeros([1, 1]);
    for p in (0..x.tiles(1)).rev() {
        x.prefetch([i + 1, p + 1000]);
        sum += x.load_masked([i, p]).sum(1);
    }
    y.store(sum);
}

#[test]
fn hints_change_nothing() {
    let ir = hinted::ir().to_string();
    assert!(ir.contains("latency AHEAD bulk_copy true"), "{ir}");
    let (m, n) = (5, 77);
    let x: Vec<f32> = (0..m * n).map(|i| (i % 17) as f32).collect();
    let expected: Vec<f32> = x.chunks(n).map(|row| row.iter().sum()).collect();
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &x, [m, n]).unwrap();
        let mut y = Tensor::zeros(&device, [m, 1]).unwrap();
        hinted::<16, 2>(&x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), expected, "{label}");
        let error = hinted::<16, 65>(&x, &mut y).launch().unwrap_err().to_string();
        assert!(error.contains("a latency of 65 is too far ahead to be of use"), "{label}: {error}");
    }
}
