//! The cells of a run of bytes, made page by page when one is first asked for: most kernels touch a part of the shared
//! memory that they ask for, and what isn't touched costs a block nothing to begin with nor to end.

use super::shadow::Cell;

/// Bytes whose cells are made together.
const PAGE_BYTES: usize = 1024;

/// A cell for each of so many bytes.
#[derive(Default)]
pub(super) struct Cells {
    pages: Vec<Option<Box<[Cell]>>>,
}

impl Cells {
    /// Cells of bytes that nobody has touched.
    pub(super) fn new(bytes: usize) -> Cells {
        Cells { pages: vec![None; bytes.div_ceil(PAGE_BYTES)] }
    }

    /// The cell of a byte.
    ///
    /// # Panics
    /// If there are fewer bytes.
    pub(super) fn at(&mut self, byte: usize) -> &mut Cell {
        let page =
            self.pages[byte / PAGE_BYTES].get_or_insert_with(|| vec![Cell::default(); PAGE_BYTES].into());
        &mut page[byte % PAGE_BYTES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_a_cell_of_its_own() {
        let mut cells = Cells::new(2 * PAGE_BYTES + 1);
        let last = 2 * PAGE_BYTES;
        let ends = [0, PAGE_BYTES - 1, PAGE_BYTES, last];
        ends.into_iter().for_each(|byte| cells.at(byte).begin_write(byte as u32 + 1));
        for byte in 0..=last {
            let mut expected = Cell::default();
            expected.begin_write(if ends.contains(&byte) { byte as u32 + 1 } else { 0 });
            assert_eq!(format!("{:?}", cells.at(byte)), format!("{expected:?}"), "byte {byte}");
        }
    }
}
