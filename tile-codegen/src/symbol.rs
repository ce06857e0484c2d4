//! Symbols: names of entries in the letters that assemblers, linkers and Rust's `extern` blocks have in common.

use std::fmt::Write;

/// A name with its letters that aren't ASCII written as numbers: `gr_ufc_n` for `grün`. Two names have one symbol only where
/// one of them is written as that of the other.
pub(crate) fn of_name(name: &str) -> String {
    let mut symbol = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            '_' | 'a'..='z' | 'A'..='Z' | '0'..='9' => symbol.push(letter),
            letter => {
                let _ = write!(symbol, "_u{:x}_", u32::from(letter));
            }
        }
    }
    symbol
}

#[cfg(test)]
mod tests {
    use super::of_name;

    #[test]
    fn names_of_ascii_stay_and_others_are_told_apart() {
        assert_eq!(of_name("tile_matmul_BM128"), "tile_matmul_BM128");
        assert_eq!(of_name("grün"), "gr_ufc_n");
        let names = ["größe", "grösse", "große", "groesse", "размер", "尺寸", "寸尺"];
        let symbols: std::collections::HashSet<String> = names.into_iter().map(of_name).collect();
        assert_eq!(symbols.len(), names.len());
        assert!(symbols.iter().all(|symbol| symbol.is_ascii()));
    }
}
