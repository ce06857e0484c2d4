//! Decides how a picture becomes a table of text: column widths, lines, colours of a terminal. Knows nothing of
//! layouts. Invariants: all lines of a table have the same width; without colours the text has no escape
//! sequences, whatever the labels say.

use super::{Cell, Header, Paint, Panel, Picture, colour, printable};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Whether a table has colours.
///
/// ```
/// use tile_layout::picture::{Colour, Picture};
/// let picture = Picture::layout(&"(2,3):(3,1)".parse()?)?;
/// assert!(picture.to_terminal(Colour::Ansi256).contains("\u{1b}[48;5;"));
/// assert!(!picture.to_terminal(Colour::Off).contains('\u{1b}'));
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Colour {
    /// Plain text: hatched cells begin with `░`, outlined ones with `▸`.
    Off,
    /// The 256 colours that ANSI terminals have; outlined cells are bold as well.
    Ansi256,
}

impl Picture {
    /// The picture as tables of box-drawing characters, the panels below each other. Lines stand only where the
    /// picture has heavier ones.
    ///
    /// ```
    /// use tile_layout::picture::{Colour, Picture};
    /// let picture = Picture::layout(&"(2,3):(3,1)".parse()?)?;
    /// assert_eq!(picture.to_terminal(Colour::Off), "\
    /// (2,3):(3,1)
    /// ┌───┬─────────┐
    /// │   │ 0  1  2 │
    /// ├───┼─────────┤
    /// │ 0 │ 0  1  2 │
    /// │ 1 │ 3  4  5 │
    /// └───┴─────────┘
    /// cell: offset; colour: offset mod 8
    /// ");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn to_terminal(&self, colour: Colour) -> String {
        let mut text: String = printable(&self.title).collect();
        text.push('\n');
        for panel in &self.panels {
            if !panel.title.is_empty() {
                text.extend(printable(&panel.title).chain(['\n']));
            }
            text += &table(panel, colour);
        }
        for note in &self.legend {
            match note.paint {
                Some(Paint::Hatched) => text += "░ ",
                Some(paint) if colour == Colour::Ansi256 => {
                    text += &painted("  ", paint, false, colour);
                    text.push(' ');
                }
                // Without colours there is nothing to show.
                _ => {}
            }
            text.extend(printable(&note.text).chain(['\n']));
        }
        text
    }
}

/// Widths of a table's columns, and where lines stand between them.
struct Columns<'a> {
    header: usize,
    cell: usize,
    headers: &'a [Header],
}

impl Columns<'_> {
    /// A line across the table.
    fn rule(&self, [left, cross, tee, right]: [&str; 4]) -> String {
        let mut line = format!("{left}{}{cross}", "─".repeat(self.header + 2));
        for (header, column) in self.headers.iter().zip(0..) {
            if column > 0 && header.level > 0 {
                line += tee;
            }
            line += &"─".repeat(self.cell + 2);
        }
        line += right;
        line.push('\n');
        line
    }

    /// A row of cells, each of which has its width already.
    fn row(&self, header: &str, cells: impl Iterator<Item = String>) -> String {
        let mut line = format!("│ {} │", aligned(header, self.header));
        for ((cell, header), column) in cells.zip(self.headers).zip(0..) {
            if column > 0 && header.level > 0 {
                line += "│";
            }
            line += &cell;
        }
        line += "│\n";
        line
    }
}

fn table(panel: &Panel, colour: Colour) -> String {
    let length = |text: &str| text.chars().count();
    let labels: Vec<String> = panel.cells.iter().map(|cell| label(cell, colour)).collect();
    let widest = labels.iter().map(String::as_str).chain(panel.columns()).map(length).max();
    let columns = Columns {
        header: panel.rows().map(length).max().unwrap_or(0),
        cell: widest.unwrap_or(0),
        headers: &panel.columns,
    };
    let padded = |text: &str| format!(" {} ", aligned(text, columns.cell));
    let mut text = columns.rule(["┌", "┬", "┬", "┐"]);
    text += &columns.row("", panel.columns().map(padded));
    text += &columns.rule(["├", "┼", "┼", "┤"]);
    let width = panel.columns.len().max(1);
    for (((header, cells), labels), row) in panel.lines().zip(labels.chunks(width)).zip(0..) {
        if row > 0 && header.level > 0 {
            text += &columns.rule(["├", "┼", "┼", "┤"]);
        }
        let shown = cells
            .iter()
            .zip(labels)
            .map(|(cell, label)| painted(&padded(label), cell.paint, cell.outlined, colour));
        text += &columns.row(&header.label, shown);
    }
    text += &columns.rule(["└", "┴", "┴", "┘"]);
    text
}

/// The text of a cell on one line.
fn label(cell: &Cell, colour: Colour) -> String {
    let mark = match cell.paint {
        _ if cell.outlined => "▸",
        Paint::Hatched => "░",
        Paint::Blank | Paint::Colour(_) => "",
    };
    let mark = if colour == Colour::Off || !cell.outlined { mark } else { "" };
    mark.chars().chain(printable(&cell.labels.join(", "))).collect()
}

/// Right-aligned, as numbers are.
fn aligned(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(text.chars().count());
    format!("{}{text}", " ".repeat(missing))
}

fn painted(text: &str, paint: Paint, outlined: bool, colour: Colour) -> String {
    let (bold, weight) = if outlined { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
    match (colour, paint) {
        (Colour::Off, _) => String::from(text),
        (Colour::Ansi256, Paint::Colour(shade)) => {
            format!("{bold}\u{1b}[48;5;{};38;5;{}m{text}\u{1b}[0m", shade.ansi(), colour::INK.ansi())
        }
        (Colour::Ansi256, Paint::Blank | Paint::Hatched) => format!("{bold}{text}{weight}"),
    }
}
