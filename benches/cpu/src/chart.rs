//! The outcomes as a picture: for each row our rate by that of the best peer, and by the limit, with the bars as lines.
//!
//! The font is part of the program, so that the picture is the same on every machine.

use crate::Result;
use crate::contest::Role;
use crate::verdict::{Outcome, Verdict};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, register_font};
use std::path::Path;

const FONT: &str = "sans-serif";

/// Pixels.
const WIDTH: i32 = 1500;
const LEFT: i32 = 330;
const RIGHT: i32 = 260;
const TOP: i32 = 110;
const BOTTOM: i32 = 30;
const STROKE: i32 = 15;
const GAP: i32 = 14;

/// What is drawn of a row: bars of its own from 0 on.
#[derive(Debug, PartialEq)]
struct Stroke {
    value: f64,
    /// What is asked for.
    bar: Option<f64>,
    /// What stands behind it.
    text: String,
    /// Beside what it is.
    role: Role,
}

/// The strokes of a row: beside the best peer, beside the limit, or the time that is allowed by the time that it takes.
fn strokes(outcome: &Outcome) -> Vec<Stroke> {
    let mut strokes = Vec::new();
    for (role, bar) in [(Role::Peer, outcome.bars.peer), (Role::Limit, outcome.bars.limit)] {
        if let (Some(lane), Some([value, ..])) = (outcome.best(role), outcome.ratios(role)) {
            strokes.push(Stroke { value, bar, text: format!("{value:.2} of {}", lane.name), role });
        }
    }
    if let Some(most) = outcome.bars.seconds {
        let seconds = outcome.ours().median();
        let text = format!("{}, {}", outcome.work.rate(seconds), outcome.bars.text());
        strokes.push(Stroke { value: most / seconds, bar: Some(1.0), text, role: Role::Ours });
    }
    strokes
}

/// What the axis ends with: room for most, but not for one that is many times as fast.
fn end(outcomes: &[Outcome]) -> f64 {
    let values =
        outcomes.iter().flat_map(strokes).flat_map(|stroke| [stroke.value, stroke.bar.unwrap_or(0.0)]);
    values.fold(1.2, f64::max).min(2.5)
}

/// Where a value lies on the axis.
fn place(value: f64, end: f64) -> i32 {
    LEFT + (value.min(end) / end * f64::from(WIDTH - LEFT - RIGHT)).round() as i32
}

/// The height of a row.
fn height(outcome: &Outcome) -> i32 {
    GAP + STROKE * strokes(outcome).len().max(1) as i32
}

/// Draws the outcomes into a PNG.
pub(crate) fn draw(path: &Path, outcomes: &[Outcome]) -> Result<()> {
    register_font(FONT, FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT)
        .map_err(|_| "the chart's font can't be read")?;
    let total = TOP + outcomes.iter().map(height).sum::<i32>() + BOTTOM;
    let area = BitMapBackend::new(path, (WIDTH as u32, total as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    let end = end(outcomes);
    draw_axis(&area, end, total)?;
    let mut y = TOP;
    for outcome in outcomes {
        draw_row(&area, outcome, end, y)?;
        y += height(outcome);
    }
    area.present().map_err(|error| format!("{}: {error}", path.display()).into())
}

type Area<'a> = DrawingArea<BitMapBackend<'a>, Shift>;

fn write(
    area: &Area<'_>,
    text: &str,
    at: (i32, i32),
    size: i32,
    (colour, side): (RGBColor, HPos),
) -> Result<()> {
    let style = (FONT, size).into_font().color(&colour).pos(Pos::new(side, VPos::Center));
    Ok(area.draw(&Text::new(text.to_owned(), at, style))?)
}

fn line(area: &Area<'_>, from: (i32, i32), to: (i32, i32), style: ShapeStyle) -> Result<()> {
    Ok(area.draw(&PathElement::new(vec![from, to], style))?)
}

const GREY: RGBColor = RGBColor(120, 120, 120);
const MET: RGBColor = RGBColor(38, 120, 178);
const MISSED: RGBColor = RGBColor(204, 88, 40);
const NO_BAR: RGBColor = RGBColor(160, 170, 180);

fn draw_axis(area: &Area<'_>, end: f64, total: i32) -> Result<()> {
    write(area, "Our rate by that of others, in the same run", (20, 28), 26, (BLACK, HPos::Left))?;
    let legend = [(MET, "reaches its bar"), (MISSED, "doesn't"), (NO_BAR, "has no bar")];
    let mut x = 20;
    for (colour, text) in legend {
        area.draw(&Rectangle::new([(x, 56), (x + 22, 56 + STROKE)], colour.filled()))?;
        write(area, text, (x + 30, 62), 17, (BLACK, HPos::Left))?;
        x += 190;
    }
    line(area, (x + 4, 54), (x + 4, 72), BLACK.stroke_width(2))?;
    write(area, "the bar", (x + 14, 62), 17, (BLACK, HPos::Left))?;
    for tenth in (0..=(end * 10.0) as i32).step_by(2) {
        let at = place(f64::from(tenth) / 10.0, end);
        let colour = if tenth == 10 { GREY } else { RGBColor(225, 225, 225) };
        line(area, (at, TOP - 8), (at, total - BOTTOM), colour.stroke_width(1))?;
        write(area, &format!("{:.1}", f64::from(tenth) / 10.0), (at, TOP - 18), 16, (GREY, HPos::Center))?;
    }
    Ok(())
}

fn draw_row(area: &Area<'_>, outcome: &Outcome, end: f64, y: i32) -> Result<()> {
    let threads =
        if outcome.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", outcome.threads) };
    let strokes = strokes(outcome);
    let middle = y + STROKE * strokes.len().max(1) as i32 / 2;
    let colour = if outcome.verdict() == Verdict::Missed { MISSED } else { BLACK };
    write(area, &outcome.title, (LEFT - 90, middle), 17, (colour, HPos::Right))?;
    write(area, &threads, (LEFT - 10, middle), 15, (GREY, HPos::Right))?;
    for (number, stroke) in strokes.iter().enumerate() {
        let top = y + number as i32 * STROKE;
        let right = place(stroke.value, end);
        let colour = match stroke.bar {
            None => NO_BAR,
            Some(bar) if stroke.value >= bar => MET,
            Some(_) => MISSED,
        };
        // The limit is the paler of the two.
        let strength = if stroke.role == Role::Limit { 0.55 } else { 1.0 };
        area.draw(&Rectangle::new([(LEFT, top), (right, top + STROKE - 2)], colour.mix(strength).filled()))?;
        if let Some(bar) = stroke.bar {
            let at = place(bar, end);
            line(area, (at, top - 1), (at, top + STROKE - 1), BLACK.stroke_width(2))?;
        }
        let at = (WIDTH - RIGHT + 20, top + STROKE / 2 - 3);
        write(area, &stroke.text, at, 15, (BLACK, HPos::Left))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::tests::{lane, outcome};
    use crate::verdict::{Bars, Work};

    fn matmul(peer: f64) -> Outcome {
        let bars = Bars { peer: Some(0.95), limit: None, seconds: None };
        outcome(
            bars,
            vec![
                lane("ours", Role::Ours, &[1.0]),
                lane("OpenBLAS", Role::Peer, &[peer]),
                lane("FMA", Role::Limit, &[0.9]),
            ],
        )
    }

    #[test]
    fn a_row_has_a_stroke_for_each_that_it_is_beside() {
        let strokes = strokes(&matmul(0.5));
        assert_eq!(strokes.len(), 2);
        assert_eq!(
            (strokes[0].value, strokes[0].bar, strokes[0].text.as_str()),
            (0.5, Some(0.95), "0.50 of OpenBLAS")
        );
        assert_eq!((strokes[1].value, strokes[1].bar, strokes[1].role), (0.9, None, Role::Limit));
    }

    #[test]
    fn times_are_beside_what_is_allowed() {
        let bars = Bars { seconds: Some(0.06), ..Bars::default() };
        let compile = Outcome { work: Work::Once, ..outcome(bars, vec![lane("ours", Role::Ours, &[0.03])]) };
        let stroke = strokes(&compile).remove(0);
        assert_eq!((stroke.value, stroke.bar, stroke.text.as_str()), (2.0, Some(1.0), "30.0 ms, ≤ 60.0 ms"));
    }

    #[test]
    fn what_is_many_times_as_fast_ends_with_the_axis() {
        assert_eq!(end(&[matmul(0.5)]), 1.2);
        assert_eq!(end(&[matmul(1.7)]), 1.7);
        assert_eq!(end(&[matmul(40.0)]), 2.5);
        assert_eq!(
            (place(0.0, 2.5), place(2.5, 2.5), place(40.0, 2.5)),
            (LEFT, WIDTH - RIGHT, WIDTH - RIGHT)
        );
    }

    #[test]
    fn the_picture_is_a_png() {
        let path = std::env::temp_dir().join(format!("bench-cpu-{}.png", std::process::id()));
        draw(&path, &[matmul(0.5), matmul(40.0)]).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 5000, "{} bytes", bytes.len());
    }
}
