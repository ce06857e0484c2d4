//! temporary
use std::time::{Duration, Instant};
use tile::cpu;
use tile::prelude::*;

#[tile_kernel]
fn scale_add<const B: usize>(x: &Tensor<f32, n>, w: &Tensor<f32, n>, factor: f32, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let w = w.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    y.store(x.load([i]) + w.load([i]) * factor);
}

fn main() -> tile::Result<()> {
    let d = Device::cpu();
    let rounds: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let callers: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    let cases: [(usize, usize, u64); 5] =
        [(64 * 32, 1001, 0), (64 * 512, 501, 0), (64 * 512, 201, 200), (1 << 20, 201, 0), (1 << 22, 51, 0)];
    let mut all = vec![vec![vec![]; 2]; cases.len()];
    for round in 0..rounds {
        for pinned in if round % 2 == 0 { [false, true] } else { [true, false] } {
            cpu::set_pinned(pinned);
            for (c, &(n, launches, pause)) in cases.iter().enumerate() {
                let barrier = std::sync::Barrier::new(callers);
                let one = || -> tile::Result<f64> {
                    let x = Tensor::<f32>::ones(&d, [n])?;
                    let w = Tensor::<f32>::ones(&d, [n])?;
                    let mut y = Tensor::<f32>::zeros(&d, [n])?;
                    for _ in 0..launches / 4 {
                        scale_add::<64>(&x, &w, 3.0, &mut y).launch()?;
                    }
                    barrier.wait();
                    let mut times = vec![];
                    for _ in 0..launches {
                        if pause > 0 {
                            std::thread::sleep(Duration::from_micros(pause));
                        }
                        let t = Instant::now();
                        scale_add::<64>(&x, &w, 3.0, &mut y).launch()?;
                        times.push(t.elapsed().as_secs_f64() * 1e6);
                    }
                    times.sort_by(f64::total_cmp);
                    Ok(times[times.len() / 2])
                };
                let t = std::thread::scope(|s| {
                    let others: Vec<_> = (1..callers).map(|_| s.spawn(one)).collect();
                    let t = one();
                    for o in others {
                        o.join().unwrap().unwrap();
                    }
                    t
                })?;
                all[c][pinned as usize].push(t);
            }
        }
    }
    for (c, case) in cases.iter().enumerate() {
        let [a, b] = [0, 1].map(|p| {
            let mut v = all[c][p].clone();
            v.sort_by(f64::total_cmp);
            (v[0], v[v.len() / 4], v[v.len() / 2], v[v.len() * 3 / 4])
        });
        println!("{case:?} free least/q1/median/q3 {:.2?}  pinned {:.2?}", a, b);
    }
    Ok(())
}
