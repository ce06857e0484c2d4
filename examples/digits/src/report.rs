//! The result in the terminal.

use std::io::IsTerminal;

/// The share of equal labels.
pub(crate) fn accuracy(actual: &[i32], predicted: &[i32]) -> f64 {
    let correct = actual.iter().zip(predicted).filter(|(a, p)| a == p).count();
    correct as f64 / actual.len() as f64
}

/// Prints the confusion matrix: a row per digit, a column per prediction; coloured on a terminal.
pub(crate) fn print_confusion(confusion: &[[usize; 10]; 10]) {
    let colour = std::io::stdout().is_terminal();
    println!("\n          predicted");
    println!("          {}", (0..10).map(|digit| format!("{digit:>4}")).collect::<String>());
    for (digit, row) in confusion.iter().enumerate() {
        let cells: String = row
            .iter()
            .enumerate()
            .map(|(predicted, &count)| cell(count, digit == predicted, colour))
            .collect();
        println!("{} {digit} {cells}", if digit == 4 { " actual" } else { "       " });
    }
    println!();
}

fn cell(count: usize, correct: bool, colour: bool) -> String {
    let text = if count == 0 { "   ·".to_owned() } else { format!("{count:>4}") };
    match (colour, count, correct) {
        (false, ..) | (_, 0, _) => text,
        (_, _, true) => format!("\x1b[32m{text}\x1b[0m"),
        (_, _, false) => format!("\x1b[31m{text}\x1b[0m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracy_counts_equal_labels() {
        assert_eq!(accuracy(&[1, 2, 3, 4], &[1, 2, 0, 4]), 0.75);
    }
}
