//! Classifies handwritten digits by their nearest neighbours, with two kernels and five-fold cross-validation.
//! `cargo run --release -p digits [-- DEVICE]`

mod data;
mod kernels;
mod neighbours;
mod picture;
mod report;

use neighbours::Predictions;
use std::path::PathBuf;
use tile::prelude::*;

const FOLDS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = match std::env::args().nth(1) {
        Some(name) => Device::named(&name)?,
        None => Device::best()?,
    };
    let digits = data::load()?;
    println!(
        "{} handwritten digits, {FOLDS}-fold cross-validation, {} nearest neighbours",
        digits.len(),
        neighbours::K
    );
    println!("device: {device}");

    let mut confusion = [[0usize; 10]; 10];
    let mut times = [0.0; 2];
    for fold in 0..FOLDS {
        let (train, test) = digits.split(fold, FOLDS);
        let predictions = neighbours::classify(&device, &train, &test)?;
        for (&actual, &predicted) in test.labels.iter().zip(&predictions.labels) {
            confusion[actual as usize][predicted as usize] += 1;
        }
        let [distances, vote] = predictions.milliseconds;
        times = [times[0] + distances, times[1] + vote];
        let accuracy = report::accuracy(&test.labels, &predictions.labels);
        println!("fold {}: accuracy {accuracy:.4}, distances {distances:.2} ms, vote {vote:.2} ms", fold + 1);
        if device != Device::reference() {
            check_against_reference(&train, &test, &predictions)?;
        }
    }
    if device != Device::reference() {
        println!("all predictions are equal to those of the reference device");
    }
    println!("kernel times over all folds: distances {:.2} ms, vote {:.2} ms", times[0], times[1]);
    report::print_confusion(&confusion);
    let path = picture_path();
    picture::write(&path, &confusion)?;
    println!("picture: {}", path.display());
    let correct: usize = (0..10).map(|digit| confusion[digit][digit]).sum();
    println!("accuracy: {:.4}", correct as f64 / digits.len() as f64);
    Ok(())
}

/// Pixels are small integers, so every distance is exact and the predictions must be equal.
fn check_against_reference(
    train: &data::Digits,
    test: &data::Digits,
    predictions: &Predictions,
) -> Result<(), Box<dyn std::error::Error>> {
    let reference = neighbours::classify(&Device::reference(), train, test)?;
    if reference.labels != predictions.labels {
        return Err("the predictions differ from those of the reference device".into());
    }
    Ok(())
}

/// In cargo's target folder, where this program is.
fn picture_path() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let target = program.ancestors().nth(2).map_or_else(|| PathBuf::from("target"), PathBuf::from);
    target.join("digits-confusion.png")
}
