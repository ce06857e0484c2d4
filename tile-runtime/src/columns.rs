//! Rows of text with their columns one below the other.

/// Lines with each column as wide as its widest cell; the columns that `right` names stand at the right. Every row has as
/// many cells as the first.
///
/// ```
/// # use tile_runtime as tile;
/// use tile::bench::aligned;
/// let rows = [["copy", "29.0 GB/s"], ["multiply-adds", "118 GFLOP/s"]].map(|row| row.map(str::to_owned).to_vec());
/// assert_eq!(aligned(&rows, |column| column == 1), "copy             29.0 GB/s\nmultiply-adds  118 GFLOP/s\n");
/// ```
pub fn aligned(rows: &[Vec<String>], right: impl Fn(usize) -> bool) -> String {
    let count = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if right(column) { format!("{cell:>width$}") } else { format!("{cell:width$}") }
        });
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}
