//! The cells of a run of bytes, made page by page when one is first asked for: most kernels touch a part of the shared
//! memory that they ask for, and what isn't touched costs a block nothing to begin with nor to end.
//!
//! Bytes of a word to which all was done together have one cell in common, until something is done to some of them alone: most
//! accesses are of whole words.

use super::shadow::Cell;
use std::convert::Infallible;
use std::ops::Range;

/// Bytes whose cells are made together.
const PAGE_BYTES: usize = 1024;
/// Bytes that may have one cell in common.
const WORD_BYTES: usize = 4;

/// What is known of a word's bytes.
#[derive(Clone)]
enum Word {
    Alike(Cell),
    Apart(Box<[Cell; WORD_BYTES]>),
}

impl Word {
    /// Does something to some of its bytes, which are told by their numbers in it; where one cell is several bytes', by the
    /// first.
    fn change<E>(
        &mut self,
        bytes: Range<usize>,
        mut action: impl FnMut(usize, &mut Cell) -> Result<(), E>,
    ) -> Result<(), E> {
        let whole = bytes.len() == WORD_BYTES;
        match self {
            Word::Alike(cell) if whole => return action(0, cell),
            Word::Alike(cell) => {
                let cells = std::array::from_fn(|_| cell.clone());
                *self = Word::Apart(Box::new(cells));
            }
            Word::Apart(_) => {}
        }
        let Word::Apart(cells) = self else { unreachable!("it was taken apart") };
        bytes.clone().zip(&mut cells[bytes]).try_for_each(|(byte, cell)| action(byte, cell))?;
        if whole && cells[1..].iter().all(|cell| cell.is_simply(&cells[0])) {
            *self = Word::Alike(std::mem::take(&mut cells[0]));
        }
        Ok(())
    }
}

/// A cell for each of so many bytes.
#[derive(Default)]
pub(super) struct Cells {
    pages: Vec<Option<Box<[Word]>>>,
}

impl Cells {
    /// Cells of bytes that nobody has touched.
    pub(super) fn new(bytes: usize) -> Cells {
        Cells { pages: vec![None; bytes.div_ceil(PAGE_BYTES)] }
    }

    /// Does something to the cells of some bytes, in their order, each told by the first of its bytes; the first error ends
    /// it.
    ///
    /// # Errors
    /// That of the action.
    ///
    /// # Panics
    /// If there are fewer bytes.
    pub(super) fn change<E>(
        &mut self,
        bytes: Range<usize>,
        mut action: impl FnMut(usize, &mut Cell) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut from = bytes.start;
        while from < bytes.end {
            let start = from - from % WORD_BYTES;
            let to = bytes.end.min(start + WORD_BYTES);
            let page = self.pages[from / PAGE_BYTES]
                .get_or_insert_with(|| vec![Word::Alike(Cell::default()); PAGE_BYTES / WORD_BYTES].into());
            let word = &mut page[from % PAGE_BYTES / WORD_BYTES];
            word.change(from - start..to - start, |byte, cell| action(start + byte, cell))?;
            from = to;
        }
        Ok(())
    }

    /// Does something that can't be wrong to the cells of some bytes, each told by how far it is from the first.
    ///
    /// # Panics
    /// As [`Cells::change`].
    pub(super) fn each(&mut self, bytes: Range<usize>, mut action: impl FnMut(usize, &mut Cell)) {
        let first = bytes.start;
        let Ok(()) = self.change(bytes, |byte, cell| {
            action(byte - first, cell);
            Ok::<(), Infallible>(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cell of one byte, found by itself.
    fn cell(cells: &Cells, byte: usize) -> Cell {
        let words = cells.pages[byte / PAGE_BYTES].as_ref();
        match words.map(|words| &words[byte % PAGE_BYTES / WORD_BYTES]) {
            None => Cell::default(),
            Some(Word::Alike(cell)) => cell.clone(),
            Some(Word::Apart(cells)) => cells[byte % WORD_BYTES].clone(),
        }
    }

    fn begin_writes(cells: &mut Cells, bytes: Range<usize>, flight: u32) {
        cells.each(bytes, |_, cell| cell.begin_write(flight));
    }

    /// Accesses of every length from every byte of a word on, one after the other, as bytes with a cell each would have them.
    #[test]
    fn every_byte_has_what_was_done_to_it() {
        let (mut cells, last) = (Cells::new(2 * PAGE_BYTES + 1), 2 * PAGE_BYTES);
        let mut expected = vec![0; last + 1];
        let starts = (0..6).chain(PAGE_BYTES - 6..PAGE_BYTES + 2);
        let ranges = starts.flat_map(|start| (1..=9).map(move |bytes| start..start + bytes));
        for (number, range) in ranges.chain(std::iter::once(last..last + 1)).enumerate() {
            begin_writes(&mut cells, range.clone(), number as u32 + 1);
            expected[range].fill(number as u32 + 1);
        }
        for (byte, &flight) in expected.iter().enumerate() {
            assert_eq!(cell(&cells, byte).flight(), flight, "byte {byte}");
        }
    }

    /// What is done to a whole word is done once, also after something was done to one of its bytes and then to all.
    #[test]
    fn a_word_has_one_cell_while_its_bytes_are_alike() {
        let mut cells = Cells::new(64);
        let mut told = |range: Range<usize>, flight| {
            let mut told = Vec::new();
            let Ok(()) = cells.change(range, |byte, cell| {
                told.push(byte);
                cell.begin_write(flight);
                Ok::<(), Infallible>(())
            });
            told
        };
        assert_eq!(told(6..17, 1), [6, 7, 8, 12, 16]);
        assert_eq!(told(4..8, 2), [4, 5, 6, 7], "they were apart");
        assert_eq!(told(4..8, 3), [4], "and are alike again");
        assert_eq!(told(0..64, 4).len(), 16 + 3, "but for those of the word at 16");
    }

    #[test]
    fn an_error_ends_it() {
        let mut cells = Cells::new(16);
        let result = cells.change(0..16, |byte, _| if byte < 8 { Ok(()) } else { Err(byte) });
        assert_eq!(result, Err(8));
    }
}
