//! Decides how a picture becomes SVG: sizes in pixels, lines, fonts. Knows nothing of layouts. Invariants: the
//! text is well-formed XML, stands alone (no scripts, fonts or links) and depends on the picture alone; cells and
//! their text have fixed colours, the surroundings follow the reader's light or dark mode, with a background of
//! their own in both.

use super::{Cell, Header, Note, Paint, Panel, Picture, colour, printable};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

const MARGIN: usize = 16;
/// Advance of a character of the fixed-width font at 12 pixels, in tenths of a pixel.
const ADVANCE_TENTHS: usize = 73;
/// The same for the title, at 15 pixels.
const TITLE_ADVANCE_TENTHS: usize = 91;
const TITLE_HEIGHT: usize = 30;
const PANEL_TITLE_HEIGHT: usize = 20;
const HEADER_HEIGHT: usize = 20;
const LINE_HEIGHT: usize = 14;
const NOTE_HEIGHT: usize = 20;
const SMALLEST_CELL: usize = 28;
/// From the top of a line of text to its baseline.
const ASCENT: usize = 11;

const STYLE: &str = "\
.tile-picture .page{fill:#ffffff}.tile-picture .title{fill:#1f2328}.tile-picture .note{fill:#59636e}\
@media (prefers-color-scheme:dark){.tile-picture .page{fill:#0d1117}.tile-picture .title{fill:#f0f6fc}\
.tile-picture .note{fill:#9198a1}}";

const FONT: &str = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace";

/// What all panels of a picture share.
struct Sizes {
    cell_width: usize,
    cell_height: usize,
    header_width: usize,
    top: usize,
}

impl Picture {
    /// The picture as an SVG document.
    ///
    /// ```
    /// use tile_layout::picture::Picture;
    /// let svg = Picture::layout(&"(2,3):(3,1)".parse()?)?.to_svg();
    /// assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && svg.ends_with("</svg>\n"));
    /// assert_eq!(svg.matches("<rect class=\"cell\"").count(), 6);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn to_svg(&self) -> String {
        let sizes = Sizes::of(self);
        let mut body = String::new();
        let (mut left, mut below) = (MARGIN, sizes.top);
        for panel in &self.panels {
            body += &sizes.panel(panel, left);
            left += sizes.panel_width(panel) + MARGIN;
            below = below.max(sizes.top + HEADER_HEIGHT + panel.rows.len() * sizes.cell_height);
        }
        let mut width = left.max(text_width(&self.title, TITLE_ADVANCE_TENTHS) + 2 * MARGIN);
        for note in &self.legend {
            below += NOTE_HEIGHT;
            let indent = if note.paint.is_some() { NOTE_HEIGHT } else { 0 };
            width = width.max(text_width(&note.text, ADVANCE_TENTHS) + indent + 2 * MARGIN);
            body += &note_at(note, MARGIN, below);
        }
        let height = below + MARGIN;
        let title = escape(&self.title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"tile-picture\" role=\"img\" width=\"{width}\" \
             height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-family=\"{FONT}\" font-size=\"12\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n\
             <defs><pattern id=\"tile-picture-hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
             <rect width=\"6\" height=\"6\" fill=\"#eff1f3\"/>\
             <path d=\"M-1 1l2 -2M0 6l6 -6M5 7l2 -2\" stroke=\"#c8cdd3\"/></pattern></defs>\n\
             <rect class=\"page\" width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"#ffffff\"/>\n\
             <text class=\"title\" x=\"{MARGIN}\" y=\"{}\" font-size=\"15\" font-weight=\"600\">{title}</text>\n\
             {body}</svg>\n",
            MARGIN + 14,
        )
    }
}

impl Sizes {
    fn of(picture: &Picture) -> Sizes {
        let panels = || picture.panels.iter();
        let cells = || panels().flat_map(|panel| &panel.cells);
        let widest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
        let text = widest(&mut cells().flat_map(|cell| lines_of(cell)).map(|line| line.chars().count()));
        let header =
            widest(&mut panels().flat_map(|panel| panel.columns()).map(|label| label.chars().count()));
        let row = widest(&mut panels().flat_map(|panel| panel.rows()).map(|label| label.chars().count()));
        let lines = widest(&mut cells().map(|cell| lines_of(cell).len()));
        let titled = panels().any(|panel| !panel.title.is_empty());
        let width = |characters: usize| (characters * ADVANCE_TENTHS).div_ceil(10);
        Sizes {
            // Even, so that the middle of a cell lies on a pixel.
            cell_width: (width(text) + 12).max(width(header) + 8).max(SMALLEST_CELL).next_multiple_of(2),
            cell_height: (lines * LINE_HEIGHT + 8).max(SMALLEST_CELL),
            header_width: width(row) + 8,
            top: MARGIN + TITLE_HEIGHT + if titled { PANEL_TITLE_HEIGHT } else { 0 },
        }
    }

    fn panel_width(&self, panel: &Panel) -> usize {
        self.header_width + panel.columns.len() * self.cell_width
    }

    /// A panel whose row headers begin at `left`.
    fn panel(&self, panel: &Panel, left: usize) -> String {
        let Sizes { cell_width, cell_height, .. } = *self;
        let (x, y) = (left + self.header_width, self.top + HEADER_HEIGHT);
        let (width, height) = (panel.columns.len() * cell_width, panel.rows.len() * cell_height);
        let mut headers = String::new();
        if !panel.title.is_empty() {
            headers += &text("title", x + width / 2, self.top - 8, &panel.title);
        }
        for (header, column) in panel.columns.iter().zip(0..) {
            headers += &text("note", x + column * cell_width + cell_width / 2, y - 6, &header.label);
        }
        let (mut fields, mut labels, mut outlines) = (String::new(), String::new(), String::new());
        for ((header, cells), row) in panel.lines().zip(0..) {
            let y = y + row * cell_height;
            let middle = left + (self.header_width - 4) / 2;
            headers += &text("note", middle, y + cell_height / 2 + 4, &header.label);
            for (cell, column) in cells.iter().zip(0..) {
                let x = x + column * cell_width;
                fields += &format!(
                    "<rect class=\"cell\" x=\"{x}\" y=\"{y}\" width=\"{cell_width}\" height=\"{cell_height}\" fill=\"{}\"/>\n",
                    fill(cell.paint)
                );
                if cell.outlined {
                    outlines += &format!("M{} {}h{}v{}h-{2}z", x + 2, y + 2, cell_width - 4, cell_height - 4);
                }
                labels += &self.label(cell, x + cell_width / 2, y);
            }
        }
        let ink = colour::INK;
        let lines = grid_lines(panel, x, y, width, height, cell_width, cell_height);
        let outlines = if outlines.is_empty() {
            outlines
        } else {
            format!("<path d=\"{outlines}\" fill=\"none\" stroke=\"{ink}\" stroke-width=\"2\"/>\n")
        };
        format!(
            "<g fill=\"#59636e\" text-anchor=\"middle\">\n{headers}</g>\n{fields}{lines}{outlines}\
             <g fill=\"{ink}\" text-anchor=\"middle\">\n{labels}</g>\n"
        )
    }

    /// The lines of a cell, in the middle of it.
    fn label(&self, cell: &Cell, middle: usize, top: usize) -> String {
        let lines = lines_of(cell);
        let first = top + (self.cell_height - lines.len() * LINE_HEIGHT) / 2 + ASCENT;
        let place = |(line, number): (&&str, usize)| {
            format!("<text x=\"{middle}\" y=\"{}\">{}</text>\n", first + number * LINE_HEIGHT, escape(line))
        };
        lines.iter().zip(0..).map(place).collect()
    }
}

/// The lines of text of a cell: one for each label; a single one is broken at its last space.
fn lines_of(cell: &Cell) -> Vec<&str> {
    match cell.labels.as_slice() {
        [label] => match label.rsplit_once(' ') {
            Some((first, second)) => alloc::vec![first, second],
            None => alloc::vec![label],
        },
        labels => labels.iter().map(String::as_str).collect(),
    }
}

/// The lines between the cells of a panel, the heavier ones later, so that they lie on top.
fn grid_lines(
    panel: &Panel,
    x: usize,
    y: usize,
    width: usize,
    height: usize,
    cell_width: usize,
    cell_height: usize,
) -> String {
    let most = |headers: &[Header]| headers.iter().map(|header| header.level).max().unwrap_or(0);
    let mut lines = String::new();
    for level in 0..=most(&panel.rows).max(most(&panel.columns)) {
        let mut path = String::new();
        let of_level = |headers: &[Header]| -> Vec<usize> {
            let inner = headers.iter().zip(0..).skip(1);
            inner.filter(|(header, _)| header.level == level).map(|(_, place)| place).collect()
        };
        for row in of_level(&panel.rows) {
            path += &format!("M{x} {}h{width}", y + row * cell_height);
        }
        for column in of_level(&panel.columns) {
            path += &format!("M{} {y}v{height}", x + column * cell_width);
        }
        if !path.is_empty() {
            let (weight, opacity) = if level == 0 { (1, "0.18") } else { (2 * level.min(3), "0.75") };
            lines += &format!(
                "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{weight}\" stroke-opacity=\"{opacity}\"/>\n",
                colour::INK
            );
        }
    }
    lines += &format!(
        "<path d=\"M{x} {y}h{width}v{height}h-{width}z\" fill=\"none\" stroke=\"#8c959f\" stroke-width=\"1.5\"/>\n"
    );
    lines
}

fn note_at(note: &Note, left: usize, baseline: usize) -> String {
    let (swatch, indent) = match note.paint {
        None => (String::new(), 0),
        Some(paint) => {
            let (y, fill) = (baseline - ASCENT, fill(paint));
            let rectangle = format!(
                "<rect class=\"swatch\" x=\"{left}\" y=\"{y}\" width=\"14\" height=\"14\" fill=\"{fill}\" stroke=\"#8c959f\"/>\n"
            );
            (rectangle, NOTE_HEIGHT)
        }
    };
    let x = left + indent;
    format!(
        "{swatch}<text class=\"note\" x=\"{x}\" y=\"{baseline}\" fill=\"#59636e\">{}</text>\n",
        escape(&note.text)
    )
}

fn text(class: &str, x: usize, y: usize, content: &str) -> String {
    format!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>\n", escape(content))
}

fn text_width(text: &str, advance_tenths: usize) -> usize {
    (text.chars().count() * advance_tenths).div_ceil(10)
}

fn fill(paint: Paint) -> String {
    match paint {
        Paint::Blank => "#ffffff".into(),
        Paint::Hatched => "url(#tile-picture-hatch)".into(),
        Paint::Colour(colour) => format!("{colour}"),
    }
}

/// Text as XML takes it.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in printable(text) {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&apos;",
            other => escaped.push(other),
        }
    }
    escaped
}
