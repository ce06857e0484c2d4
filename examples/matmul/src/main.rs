//! `C = A·B` of bf16 matrices, summed in f32. `cargo run -p matmul [-- DEVICE]`

use tile::prelude::*;

/// C = A·B. Lower-case extents are run-time sizes, unified by name and checked at launch.
#[tile_kernel(instances(BM = 64, BN = 64, BK = 32; BM = 128, BN = 128, BK = 64))]
fn matmul<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<bf16, m, k>,
    b: &Tensor<bf16, k, n>,
    c: &mut Tensor<f32, m, n>,
) {
    let a = a.partition_view([BM, BK]);
    let b = b.partition_view([BK, BN]);
    let mut c = c.partition_view_mut([BM, BN]); // declares the grid: one block per tile of c
    let [i, j] = c.index();
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        acc = mma(a.load_masked([i, p]), b.load_masked([p, j]), acc);
    }
    c.store_masked(acc);
}

const M: usize = 500;
const N: usize = 300;
const K: usize = 700;

/// The product on a device, and how long the kernel took in milliseconds.
fn multiply_on(device: &Device, a: &[bf16], b: &[bf16]) -> tile::Result<(Vec<f32>, f64)> {
    let (a, b) = (Tensor::from_slice(device, a, [M, K])?, Tensor::from_slice(device, b, [K, N])?);
    let mut c = Tensor::zeros(device, [M, N])?;
    print!("{}", matmul::best(&a, &b, &mut c).choices()?);
    let time = matmul::best(&a, &b, &mut c).launch_timed()?;
    Ok((c.to_vec()?, time.as_secs_f64() * 1e3))
}

/// A plain loop in f64.
fn product(a: &[bf16], b: &[bf16]) -> Vec<f64> {
    let mut c = vec![0.0; M * N];
    for (row, c) in c.chunks_mut(N).enumerate() {
        for p in 0..K {
            let x = a[row * K + p].to_f64();
            c.iter_mut().zip(&b[p * N..]).for_each(|(sum, y)| *sum += x * y.to_f64());
        }
    }
    c
}

fn largest_error(actual: &[f32], expected: &[f64]) -> f64 {
    actual.iter().zip(expected).map(|(&a, &e)| (f64::from(a) - e).abs()).fold(0.0, f64::max)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = match std::env::args().nth(1) {
        Some(name) => Device::named(&name)?,
        None => Device::best()?,
    };
    let matrix = |count: usize, step: usize| -> Vec<bf16> {
        (0..count).map(|i| bf16::from_f32(((i * step) % 257) as f32 / 128.0 - 1.0)).collect()
    };
    let (a, b) = (matrix(M * K, 37), matrix(K * N, 101));
    let (c, time) = multiply_on(&device, &a, &b)?;
    let gigaflops = 2.0 * (M * N * K) as f64 / time / 1e6;
    println!("matmul [{M}, {K}]·[{K}, {N}] of bf16 on {device}: {time:.3} ms, {gigaflops:.1} GFLOP/s");

    let expected = product(&a, &b);
    let error = largest_error(&c, &expected);
    let reference_error = largest_error(&multiply_on(&Device::reference(), &a, &b)?.0, &expected);
    println!("largest error {error:.1e}, of the reference device {reference_error:.1e}");
    // 700 products of at most 1, summed in f32 in any order.
    if error > 1e-3 || reference_error > 1e-3 {
        return Err("the result differs from a plain loop in f64".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn ir() {
        insta::assert_snapshot!(super::matmul::ir());
    }
}
