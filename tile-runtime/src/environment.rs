//! Environment variables: what they say, and that they say nothing sensible.

use crate::journal;
use std::sync::{Mutex, PoisonError};

/// What a variable says, if it is set. What nobody can understand counts as not set, and is told of, once.
pub(crate) fn said<T>(
    variable: &'static str,
    expected: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    static TOLD: Mutex<Vec<&str>> = Mutex::new(Vec::new());
    let text = std::env::var_os(variable)?;
    let understood = understood(variable, &text.to_string_lossy(), expected, parse);
    understood
        .map_err(|problem| {
            let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
            let is_new = !told.contains(&variable);
            if is_new {
                told.push(variable);
            }
            // Who is told may ask for a variable.
            drop(told);
            if is_new {
                journal::notice(&problem);
            }
        })
        .ok()
}

fn understood<T>(
    variable: &str,
    text: &str,
    expected: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, String> {
    parse(text).ok_or_else(|| format!("{variable} is `{text}`, which isn't {expected}; it counts as not set"))
}

/// A whole number from 1 on.
pub(crate) fn count(text: &str) -> Option<usize> {
    text.trim().parse().ok().filter(|&count| count > 0)
}

/// Bytes: a whole number, alone or of KiB, MiB, GiB or TiB as in `512M`.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let unit =
        "KMGT".chars().zip(1..).find_map(|(letter, power)| Some((text.strip_suffix(letter)?, 10 * power)));
    let (number, shift) = unit.unwrap_or((text, 0));
    number.trim_end().parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// `on` or `off`.
pub(crate) fn switch(text: &str) -> Option<bool> {
    match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_variable_cannot_mean_is_told() {
        let threads = |text: &str| understood("TILE_THREADS", text, "a number of threads", count);
        assert_eq!((threads("3"), threads(" 12")), (Ok(3), Ok(12)));
        let message = "TILE_THREADS is `many`, which isn't a number of threads; it counts as not set";
        assert_eq!(threads("many"), Err(message.to_owned()));
        assert!(threads("0").is_err() && threads("").is_err() && threads("-1").is_err());
        assert_eq!(
            ["17", " 3K", "512M", "8 G", "1T"].map(bytes),
            [17, 3 << 10, 512 << 20, 8 << 30, 1 << 40].map(Some)
        );
        assert_eq!(["", "G", "-1", "1.5G", "8GB", "99999999999T"].map(bytes), [None; 6]);
        assert_eq!(["on", "off", "yes"].map(switch), [Some(true), Some(false), None]);
    }
}
