//! Plots over the time of a bag, as SVG inside a page. The page's style gives ink and grid their colours, light or dark.

use super::super::curve::{COLOURS, Drawn, FONT, GRID, INK, number, padded};
use crate::analysis::options::OptionUse;
use crate::analysis::trace::{COLUMNS, Moment, Trace};
use crate::error::{Error, Result};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use std::fmt::Write as _;
use std::ops::Range;

const WIDTH: u32 = 760;
const HEIGHT: u32 = 220;
/// So few values are drawn as points, too.
const FEW: usize = 40;
/// Room at the left: on a phone letters are larger beside the plot (style.css), and the axis' name is not to be written over.
const LEFT: u32 = 112;
/// Where the numbers of options end.
const LABELS: i32 = LEFT as i32 - 2;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// One quantity of a plot: its name, and its values.
pub(super) type Line<'a> = (&'a str, &'a Trace);

/// Quantities over time: bands from lowest to highest, lines of means. Moments are vertical lines named `<name>-<number>`.
pub(super) fn lines(secs: f64, title: &str, lines: &[Line<'_>], moments: (&str, &[Moment])) -> Result<String> {
    let columns = || lines.iter().flat_map(|(_, trace)| trace.columns());
    let y_range = padded(columns().flat_map(|(_, column)| [column.low, column.high]));
    draw(HEIGHT, |area| {
        let mut chart = frame(area, secs, y_range, title, 5)?;
        for (index, (_, trace)) in lines.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let high = trace.columns().map(|(at, column)| (at, column.high));
            let low: Vec<_> = trace.columns().map(|(at, column)| (at, column.low)).collect();
            let band: Vec<_> = high.chain(low.into_iter().rev()).collect();
            chart.draw_series([Polygon::new(band, colour.mix(0.35).filled())])?;
            let means = trace.columns().map(|(at, column)| (at, column.mean()));
            if trace.columns().count() <= FEW {
                let points = trace.columns().map(|(at, column)| Circle::new((at, column.mean()), 3, colour.filled()));
                chart.draw_series(points)?;
            }
            chart.draw_series(LineSeries::new(means, colour.stroke_width(1)))?;
        }
        Ok(places(&chart, moments))
    })
}

/// Which option ran when: a row an option.
pub(super) fn timeline(secs: f64, options: &OptionUse, moments: (&str, &[Moment])) -> Result<String> {
    let count = options.timeline.len();
    let mut labels = String::new();
    draw(70 + 22 * count as u32, |area| {
        let mut chart = frame(area, secs, 0.0..count as f64, "option", 0)?;
        for (option, ran) in options.timeline.iter().enumerate() {
            let colour = COLOURS[option % COLOURS.len()];
            let (bottom, at) = ((count - 1 - option) as f64, |column: usize| column as f64 / COLUMNS as f64 * secs);
            for (first, last) in runs(ran) {
                let corners = [(at(first), bottom + 0.15), (at(last + 1), bottom + 0.85)];
                chart.draw_series([Rectangle::new(corners, colour.filled())])?;
            }
            let (_, y) = chart.backend_coord(&(0.0, bottom + 0.5));
            let _ =
                write!(labels, "<text x=\"{LABELS}\" y=\"{}\" fill=\"#3C3C3C\" class=\"label\">{option}</text>", y + 5);
        }
        Ok(labels + &places(&chart, moments))
    })
}

/// How long runs of each option were: a line an option.
pub(super) fn durations(options: &OptionUse) -> Result<String> {
    let runs =
        |option: usize| options.options[option].durations.iter().map(|(&steps, &runs)| (f64::from(steps), runs as f64));
    let all = || (0..options.options.len()).flat_map(runs);
    let longest = all().map(|(steps, _)| steps).fold(1.0, f64::max);
    let most = all().map(|(_, runs)| runs).fold(1.0, f64::max);
    draw(HEIGHT, |area| {
        let mut chart = frame(area, longest, 0.0..1.05 * most, "runs", 5)?;
        for option in 0..options.options.len() {
            let colour = COLOURS[option % COLOURS.len()];
            chart.draw_series(LineSeries::new(runs(option), colour.stroke_width(2)))?;
            chart.draw_series(runs(option).map(|point| Circle::new(point, 2, colour.filled())))?;
        }
        Ok(String::new())
    })
}

/// The colour of a line, for legends.
pub(super) fn colour(index: usize) -> String {
    let RGBColor(red, green, blue) = COLOURS[index % COLOURS.len()];
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// First and last column of each stretch in which something ran.
fn runs(ran: &[bool]) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (column, _) in ran.iter().enumerate().filter(|(_, ran)| **ran) {
        match found.last_mut() {
            Some((_, last)) if *last + 1 == column => *last = column,
            _ => found.push((column, column)),
        }
    }
    found
}

fn draw<'a>(height: u32, fill: impl FnOnce(&Area<'_>) -> Result<String, Failure> + 'a) -> Result<String> {
    let (mut text, mut overlay) = (String::new(), String::new());
    let attempt = |text: &mut String| -> Result<String, Failure> {
        let area = SVGBackend::with_string(text, (WIDTH, height)).into_drawing_area();
        let overlay = fill(&area)?;
        area.present()?;
        Ok(overlay)
    };
    match attempt(&mut text) {
        Ok(found) => overlay += &found,
        Err(error) => return Err(Error::invalid(format!("a plot cannot be drawn: {error}"))),
    }
    let end = text.rfind("</svg>").unwrap_or(text.len());
    text.insert_str(end, &overlay);
    Ok(text.replace(" xmlns=\"http://www.w3.org/2000/svg\"", "")) // inside HTML it needs no name
}

type Failure = DrawingAreaErrorKind<std::io::Error>;

/// Axes from 0 to `x_max`.
fn frame<'a, 'b>(
    area: &Area<'b>,
    x_max: f64,
    y_range: Range<f64>,
    title: &str,
    y_labels: usize,
) -> Result<Chart<'a, 'b>, Failure> {
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .margin_right(20)
        .x_label_area_size(34)
        .y_label_area_size(LEFT)
        .build_cartesian_2d(0.0..x_max.max(f64::MIN_POSITIVE), y_range)?;
    let drawn: Drawn = chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(GRID)
        .label_style((FONT, 13).into_font().color(&INK))
        .axis_desc_style((FONT, 13).into_font().color(&INK))
        .x_labels(8)
        .y_labels(y_labels)
        .x_label_formatter(&|&x| number(x))
        .y_label_formatter(&|&y| number(y))
        .y_desc(title)
        .draw();
    drawn.map(|()| chart)
}

/// Vertical lines that links lead to.
fn places(chart: &Chart<'_, '_>, (name, moments): (&str, &[Moment])) -> String {
    let range = chart.plotting_area().get_pixel_range().1;
    let mut text = String::new();
    for (index, moment) in moments.iter().enumerate() {
        let (x, _) = chart.backend_coord(&(moment.at_secs, 0.0));
        let (top, bottom) = (range.start, range.end);
        let _ = write!(
            text,
            "<line id=\"{name}-{}\" class=\"moment\" x1=\"{x}\" x2=\"{x}\" y1=\"{top}\" y2=\"{bottom}\"/>",
            index + 1
        );
    }
    text
}
