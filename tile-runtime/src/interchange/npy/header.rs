//! The header of an array in NumPy's format: a Python dictionary of three entries, which `numpy.lib.format` writes as text.
//!
//! It is read as what NumPy writes and nothing else: a file comes from anywhere, and a parser of Python's literals takes
//! as long as they are nested.

use std::io::{self, Read};

/// The most bytes of a header. Version 1 has no longer one, and NumPy reads none of more than 10000.
const MOST_BYTES: u64 = 1 << 16;

/// How many characters are shown of a header that isn't one.
const SHOWN: usize = 100;

/// What a header says of the array behind it.
#[derive(Debug, PartialEq)]
pub(super) struct Header {
    /// The format of the elements: byte order, kind and bytes.
    pub(super) format: String,
    /// Whether the first index changes fastest.
    pub(super) is_fortran: bool,
    /// Extents, outermost axis first.
    pub(super) shape: Vec<u64>,
    /// How many elements that is.
    pub(super) count: u64,
}

impl Header {
    /// Reads a header up to its end.
    pub(super) fn read(file: &mut impl Read) -> io::Result<Header> {
        // The magic string, and a version, of which the first has two bytes for the length of the text and others four.
        let mut begin = [0; 8];
        file.read_exact(&mut begin)?;
        let counted = match &begin {
            b"\x93NUMPY\x01\x00" => 2,
            b"\x93NUMPY\x02\x00" | b"\x93NUMPY\x03\x00" => 4,
            _ => return Err(problem("it isn't an array in NumPy's format of version 1, 2 or 3")),
        };
        let mut length = [0; 8];
        file.read_exact(&mut length[..counted])?;
        let length = u64::from_le_bytes(length);
        if length > MOST_BYTES {
            let text = format!("its header has {length} bytes, and one of an array has at most {MOST_BYTES}");
            return Err(problem(text));
        }
        let mut text = String::new();
        if (file.take(length).read_to_string(&mut text)? as u64) < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Header::parse(&text)
    }

    fn parse(text: &str) -> io::Result<Header> {
        let shown = || text.trim().chars().take(SHOWN).collect::<String>();
        let unknown = || problem(format!("its header isn't one that NumPy writes: {}", shown()));
        let (mut format, mut is_fortran, mut shape) = (None, None, None);
        let mut rest = Rest(text);
        rest.take("{").ok_or_else(unknown)?;
        while rest.take("}").is_none() {
            let key = rest.quoted().ok_or_else(unknown)?;
            rest.take(":").ok_or_else(unknown)?;
            let is_twice = match key {
                "descr" if rest.take("[").is_some() => return Err(problem("its elements are records")),
                "descr" => format.replace(rest.quoted().ok_or_else(unknown)?).is_some(),
                "fortran_order" => is_fortran.replace(rest.truth().ok_or_else(unknown)?).is_some(),
                "shape" => shape.replace(rest.tuple().ok_or_else(unknown)?).is_some(),
                _ => true,
            };
            if is_twice || (rest.take(",").is_none() && !rest.begins_with("}")) {
                return Err(unknown());
            }
        }
        let (Some(format), Some(is_fortran), Some(tuple), true) =
            (format, is_fortran, shape, rest.0.trim().is_empty())
        else {
            return Err(unknown());
        };
        let shape = extents(tuple).ok_or_else(unknown)?;
        // Whichever factor is 0, the others are multiplied.
        let count = |count: u64, &extent: &u64| count.checked_mul(extent.max(1));
        let Some(count) = shape.iter().try_fold(1, count) else {
            return Err(problem(format!("its shape ({tuple}) has more elements than can be counted")));
        };
        let count = if shape.contains(&0) { 0 } else { count };
        Ok(Header { format: format.to_owned(), is_fortran, shape, count })
    }
}

/// The extents in a tuple, whose parentheses are gone; that of a single one ends with a comma.
fn extents(tuple: &str) -> Option<Vec<u64>> {
    let tuple = tuple.trim();
    if tuple.is_empty() {
        return Some(Vec::new());
    }
    let numbers = tuple.strip_suffix(',');
    if numbers.is_none() && !tuple.contains(',') {
        return None;
    }
    let extent = |number: &str| {
        let digits = number.trim();
        // A number that begins with a sign is parsed as well.
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    numbers.unwrap_or(tuple).split(',').map(extent).collect()
}

/// What is left of a text; whitespace between its parts means nothing.
struct Rest<'t>(&'t str);

impl<'t> Rest<'t> {
    fn begins_with(&self, word: &str) -> bool {
        self.0.trim_start().starts_with(word)
    }

    /// Goes on behind a word.
    fn take(&mut self, word: &str) -> Option<()> {
        self.0 = self.0.trim_start().strip_prefix(word)?;
        Some(())
    }

    /// What stands before a word, behind which it goes on.
    fn until(&mut self, word: &str) -> Option<&'t str> {
        let (before, behind) = self.0.split_once(word)?;
        self.0 = behind;
        Some(before)
    }

    /// A string, between quotes of either kind. One with a `\` is nothing that a header has.
    fn quoted(&mut self) -> Option<&'t str> {
        let quote = ["'", "\""].into_iter().find(|quote| self.take(quote).is_some())?;
        self.until(quote).filter(|text| !text.contains('\\'))
    }

    fn truth(&mut self) -> Option<bool> {
        let is_true = self.take("True").map(|()| true);
        is_true.or_else(|| self.take("False").map(|()| false))
    }

    /// What stands between parentheses.
    fn tuple(&mut self) -> Option<&'t str> {
        self.take("(")?;
        self.until(")")
    }
}

fn problem(text: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Option<Vec<u64>> {
        Header::parse(text).ok().map(|header| header.shape)
    }

    #[test]
    fn headers_of_other_libraries_are_read() {
        let numpy = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 40), }            \n";
        let expected = Header { format: "<f4".to_owned(), is_fortran: false, shape: vec![3, 40], count: 120 };
        assert_eq!(Header::parse(numpy).unwrap(), expected);
        // cnpy's, and one in another order.
        assert_eq!(
            shape("{'descr': '<f4', 'fortran_order': False, 'shape': (3,40), }      \n"),
            Some(vec![3, 40])
        );
        let other = Header::parse("{\"shape\":(7,),\"fortran_order\":True,\"descr\":\"|u1\"}").unwrap();
        assert_eq!(
            (other.format.as_str(), other.is_fortran, other.shape, other.count),
            ("|u1", true, vec![7], 7)
        );
        let scalar = Header::parse("{'descr': '<f8', 'fortran_order': False, 'shape': ()}").unwrap();
        assert_eq!((scalar.shape, scalar.count), (vec![], 1));
        let empty = Header::parse("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 0, 5)}").unwrap();
        assert_eq!(empty.count, 0);
    }

    #[test]
    fn other_texts_are_refused() {
        let with = |shape: &str| format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
        for shape in
            ["(3)", "(3, 4,,)", "(, 3)", "(+3,)", "(-3,)", "(3L,)", "[3, 4]", "((3,),)", "3", "(,)", "(3 4,)"]
        {
            assert!(Header::parse(&with(shape)).is_err(), "{shape}");
        }
        let words = |text: &str| Header::parse(text).unwrap_err().to_string();
        assert_eq!(words("{'a': 1}"), "its header isn't one that NumPy writes: {'a': 1}");
        assert_eq!(words("{'descr': [('x', '<f4')], 'fortran_order': False}"), "its elements are records");
        let missing = ["", "{", "{}", "{'descr': '<f4', 'shape': (1,)}", "{'descr': '<f4'"];
        assert!(missing.iter().all(|text| Header::parse(text).is_err()));
        assert!(Header::parse(&format!("{} 1", with("(1,)"))).is_err());
        assert!(Header::parse(&with("(1,) 'x'")).is_err());
    }
}
