use std::time::Instant;
use tile::prelude::*;
#[tile_kernel]
fn matmul<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<f32, m, k>,
    b: &Tensor<f32, k, n>,
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
#[tile_kernel]
fn softmax<const R: usize, const W: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([R, W]);
    let mut y = y.partition_view_mut([R, W]);
    let [i, _j] = y.index();
    let t = x.load([i, 0]);
    let m = t.max(1);
    let e = (t - m.broadcast([R, W])).exp();
    let s = e.sum(1);
    y.store(e / s.broadcast([R, W]));
}
fn time(name: &str, work: f64, mut f: impl FnMut()) {
    f();
    let mut ts: Vec<f64> = (0..7)
        .map(|_| {
            let t = Instant::now();
            f();
            t.elapsed().as_secs_f64()
        })
        .collect();
    ts.sort_by(f64::total_cmp);
    println!("{name}: {:.3} ms, {:.1} G/s", ts[3] * 1e3, work / ts[3] / 1e9);
}
fn main() -> tile::Result<()> {
    let d = Device::cpu();
    for n in [256usize, 512, 1024] {
        let a = Tensor::<f32>::random(&d, [n, n], 1)?;
        let b = Tensor::<f32>::random(&d, [n, n], 2)?;
        let mut c = Tensor::zeros(&d, [n, n])?;
        let w = 2.0 * (n as f64).powi(3);
        for threads in [1usize, 2] {
            tile::cpu::set_threads(threads);
            time(&format!("{n} t{threads} 64x64x64"), w, || {
                matmul::<64, 64, 64>(&a, &b, &mut c).launch().unwrap()
            });
            time(&format!("{n} t{threads} 128x128x64"), w, || {
                matmul::<128, 128, 64>(&a, &b, &mut c).launch().unwrap()
            });
            time(&format!("{n} t{threads} 128x128x256"), w, || {
                matmul::<128, 128, 256>(&a, &b, &mut c).launch().unwrap()
            });
        }
        let (av, bv) = (a.to_vec()?, b.to_vec()?);
        let mut cv = vec![0f32; n * n];
    }
    Ok(())
}
