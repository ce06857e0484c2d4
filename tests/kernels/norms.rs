//! Norms of groups of channels, whose views are split by a const parameter.

use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

/// Group norm of images: the channels and pixels of a group are a long row, whose mean and squares are joined tile by tile
/// (Chan), so that a large mean hides no variance.
#[tile_kernel]
fn group_norm<const G: usize, const B: usize>(
    x: &Tensor<f32, n, c, h, w>,
    gamma: &Tensor<f32, c>,
    beta: &Tensor<f32, c>,
    epsilon: f32,
    y: &mut Tensor<f32, n, c, h, w>,
    mean: &mut Tensor<f32, n, G>,
    rstd: &mut Tensor<f32, n, G>,
) {
    let length = c / G * h * w;
    let x = x.flatten(1, 3).unflatten(1, [G, c / G * h * w]).partition_view([1, 1, B]);
    let mut y = y.flatten(1, 3).unflatten(1, [G, c / G * h * w]).partition_view_mut([1, 1, B]).spanning([2]);
    let mut mean = mean.unsqueeze(2).partition_view_mut([1, 1, 1]);
    let mut rstd = rstd.unsqueeze(2).partition_view_mut([1, 1, 1]);
    let [i, g, _] = y.index();
    let (mut average, mut squares, mut seen) = (Tile::zeros([1, 1, 1]), Tile::zeros([1, 1, 1]), 0.0);
    for p in 0..x.tiles(2) {
        let tile = x.load_masked([i, g, p]);
        let count = (length - p * B).min(B);
        let inside = Tile::<i32, 3>::iota([1, 1, B], 2).lt(count as i32);
        let (count, total) = (count as f32, seen + count as f32);
        let here = tile.sum(2) / count;
        let centered = select(inside, tile - here, 0.0);
        let apart = here - average;
        squares += (centered * centered).sum(2) + apart * apart * (seen * count / total);
        average += apart * (count / total);
        seen = total;
    }
    let scale = rsqrt(squares / length as f32 + epsilon);
    mean.store(average);
    rstd.store(scale);
    for p in 0..y.tiles(2) {
        let place = Tile::<i32, 3>::iota([1, 1, B], 2) + (p * B) as i32;
        let channel = place / (h * w) as i32 + (g * (c / G)) as i32;
        let normal = (x.load_masked([i, g, p]) - average) * scale;
        y.at([p]).store_masked(normal * gamma.gather([channel]) + beta.gather([channel]));
    }
}

/// With one group, and with one for each channel, views have axes of extent 1.
#[test]
fn groups_of_channels_are_normalised() {
    let [n, c, h, w] = [2usize, 6, 3, 7];
    let x: Vec<f32> = numbers::<f32>(n * c * h * w, 1).iter().map(|x| x + 30.0).collect();
    let [gamma, beta] = [2, 3].map(|seed| numbers::<f32>(c, seed));
    let expected = |groups: usize| {
        let length = c / groups * h * w;
        let (mut y, mut means, mut rstds) = (Vec::new(), Vec::new(), Vec::new());
        for (row, group) in x.chunks(length).enumerate() {
            let mean = group.iter().map(|&x| f64::from(x)).sum::<f64>() / length as f64;
            let variance = group.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / length as f64;
            let rstd = (variance + 1e-5).sqrt().recip();
            for (place, &x) in group.iter().enumerate() {
                let channel = row % groups * (c / groups) + place / (h * w);
                y.push((f64::from(x) - mean) * rstd * f64::from(gamma[channel]) + f64::from(beta[channel]));
            }
            means.push(mean);
            rstds.push(rstd);
        }
        (y, means, rstds)
    };
    macro_rules! check {
        ($groups:literal) => {{
            let (y, means, rstds) = expected($groups);
            check_kernel!(group_norm<G = $groups, B = 16>(
                input x: (x, [n, c, h, w]), input gamma: (gamma, [c]), input beta: (beta, [c]), number epsilon: (1e-5f32),
                output y: (vec![0f32; x.len()], [n, c, h, w] => y, 1e-4),
                output mean: (vec![0f32; means.len()], [n, $groups] => means, 1e-6),
                output rstd: (vec![0f32; rstds.len()], [n, $groups] => rstds, 1e-5),
            ));
        }};
    }
    check!(1);
    check!(3);
    check!(6);
}
