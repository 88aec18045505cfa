//! Learning curves as one SVG: success and return against environment steps and against wall time.

use super::metrics::{Row, names, read};
use crate::error::{Error, Result};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::fs;
use std::ops::Range;
use std::path::Path;

/// One run in the picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// What the legend calls it.
    pub label: String,
    /// Its records.
    pub rows: Vec<Row>,
}

impl Curve {
    /// Of a run folder (or its `metrics.jsonl`), labelled by the folder's name.
    pub fn read(path: &Path) -> Result<Self> {
        let rows = read(path)?;
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
        let label = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned();
        Ok(Self { label, rows })
    }

    /// Finite points of a scalar, thinned to means of equal numbers of records where there are many.
    fn points(&self, axis: Axis, name: &str, scale: f64) -> Vec<(f64, f64)> {
        let all: Vec<(f64, f64)> =
            self.rows.iter().filter_map(|row| Some((axis.of(row), scale * row.values.get(name)?))).collect();
        let mean = |chunk: &[(f64, f64)]| {
            let sum = chunk.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
            (sum.0 / chunk.len() as f64, sum.1 / chunk.len() as f64)
        };
        all.chunks(all.len().div_ceil(MOST_POINTS).max(1)).map(mean).collect()
    }
}

/// Points of a line.
const MOST_POINTS: usize = 600;
const SIZE: (u32, u32) = (1200, 760);
const HEADER: u32 = 64;
const LEGEND_LINE: u32 = 24;
const LEFT: i32 = 76;
pub(super) const INK: RGBColor = RGBColor(60, 60, 60);
pub(super) const GRID: RGBColor = RGBColor(228, 228, 228);
pub(super) const FONT: &str = "sans-serif";
/// Okabe and Ito (2008): told apart by colour-blind readers.
pub(super) const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
];

#[derive(Clone, Copy)]
enum Axis {
    EnvSteps,
    WallTime { unit_secs: f64, unit: &'static str },
}

impl Axis {
    /// Wall time in the unit that suits its length.
    fn wall_time(longest_secs: f64) -> Self {
        let (unit_secs, unit) = match longest_secs {
            ..180.0 => (1.0, "s"),
            ..10_800.0 => (60.0, "min"),
            _ => (3600.0, "h"),
        };
        Self::WallTime { unit_secs, unit }
    }

    fn of(self, row: &Row) -> f64 {
        match self {
            Self::EnvSteps => row.clock.env_steps as f64,
            Self::WallTime { unit_secs, .. } => row.clock.wall_secs / unit_secs,
        }
    }

    fn title(self) -> String {
        match self {
            Self::EnvSteps => "environment steps".into(),
            Self::WallTime { unit, .. } => format!("wall time [{unit}]"),
        }
    }
}

/// One line of a panel: a scalar, how it is scaled, whether it is drawn strongly.
struct Line {
    name: &'static str,
    scale: f64,
    strong: bool,
}

const SUCCESS: [Line; 2] = [
    Line { name: names::SUCCESS, scale: 100.0, strong: true },
    Line { name: names::SUCCESS_STRICT, scale: 100.0, strong: false },
];
const RETURN: [Line; 1] = [Line { name: names::RETURN, scale: 1.0, strong: true }];

/// Draws the curves into an SVG file. Refuses runs without a record of success or return.
pub fn draw(curves: &[Curve], path: &Path) -> Result<()> {
    fs::write(path, svg(curves)?).map_err(Error::io(path))
}

fn svg(curves: &[Curve]) -> Result<String> {
    let drawn =
        |curve: &Curve| RETURN.iter().chain(&SUCCESS).any(|line| !points(curve, Axis::EnvSteps, line).is_empty());
    if let Some(empty) = curves.iter().find(|curve| !drawn(curve)) {
        return Err(Error::invalid(format!("the run {} has no record of success or return yet", empty.label)));
    }
    let longest =
        curves.iter().filter_map(|curve| curve.rows.last()).map(|row| row.clock.wall_secs).fold(0.0, f64::max);
    let header = HEADER + LEGEND_LINE * (curves.len() as u32).saturating_sub(1);
    let mut text = String::new();
    let mut attempt = || -> Drawn {
        let root = SVGBackend::with_string(&mut text, (SIZE.0, SIZE.1 + header - HEADER)).into_drawing_area();
        root.fill(&WHITE)?;
        let (top, below) = root.split_vertically(header);
        legend(&top, curves)?;
        let panels = below.split_evenly((2, 2));
        let axes = [Axis::EnvSteps, Axis::wall_time(longest)];
        for (index, panel) in panels.iter().enumerate() {
            let axis = axes[index % 2];
            match index / 2 {
                0 => chart(panel, curves, axis, "success [%]", &SUCCESS, Some(0.0..100.0))?,
                _ => chart(panel, curves, axis, "return", &RETURN, None)?,
            }
        }
        root.present()
    };
    attempt().map_err(|error| Error::invalid(format!("the learning curve cannot be drawn: {error}")))?;
    Ok(text)
}

fn points(curve: &Curve, axis: Axis, line: &Line) -> Vec<(f64, f64)> {
    curve.points(axis, line.name, line.scale)
}

pub(super) type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// One line a run: its name, its colour strong for success and return, pale for the stricter success.
fn legend(area: &DrawingArea<SVGBackend<'_>, Shift>, curves: &[Curve]) -> Drawn {
    let font = (FONT, 15).into_font().color(&INK);
    let longest = curves.iter().map(|curve| curve.label.chars().count()).max().unwrap_or(0);
    let lines = LEFT + 24 + 8 * longest as i32;
    for (index, curve) in curves.iter().enumerate() {
        let (colour, y) = (COLOURS[index % COLOURS.len()], 28 + (LEGEND_LINE * index as u32) as i32);
        area.draw(&Text::new(curve.label.clone(), (LEFT, y - 7), font.clone()))?;
        for (strong, label, x) in [(true, "within 5 cm", lines), (false, "within 1 cm", lines + 130)] {
            area.draw(&PathElement::new([(x, y), (x + 26, y)], style(colour, strong)))?;
            area.draw(&Text::new(label, (x + 34, y - 7), font.clone()))?;
        }
    }
    Ok(())
}

fn style(colour: RGBColor, strong: bool) -> ShapeStyle {
    if strong { colour.stroke_width(2) } else { colour.mix(0.45).stroke_width(2) }
}

fn chart(
    panel: &DrawingArea<SVGBackend<'_>, Shift>,
    curves: &[Curve],
    axis: Axis,
    y_title: &str,
    lines: &[Line],
    y_range: Option<Range<f64>>,
) -> Drawn {
    let all: Vec<(f64, f64)> =
        curves.iter().flat_map(|curve| lines.iter().flat_map(|line| points(curve, axis, line))).collect();
    let x_max = all.iter().map(|point| point.0).fold(f64::MIN_POSITIVE, f64::max);
    let y_range = y_range.unwrap_or_else(|| padded(all.iter().map(|point| point.1)));
    let mut chart = ChartBuilder::on(panel)
        .margin(12)
        .margin_right(28)
        .x_label_area_size(46)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..x_max, y_range)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(GRID)
        .label_style((FONT, 14).into_font().color(&INK))
        .axis_desc_style((FONT, 15).into_font().color(&INK))
        .x_labels(6)
        .y_labels(6)
        .x_label_formatter(&|&x| number(x))
        .y_label_formatter(&|&y| number(y))
        .x_desc(axis.title())
        .y_desc(y_title)
        .draw()?;
    for (index, curve) in curves.iter().enumerate() {
        for line in lines.iter().rev() {
            let style = style(COLOURS[index % COLOURS.len()], line.strong);
            chart.draw_series(LineSeries::new(points(curve, axis, line), style))?;
        }
    }
    Ok(())
}

/// The values' range and 5 % more on either side; half of a single value, or 1 about zero.
pub(super) fn padded(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
    match (high - low) * 0.05 {
        margin if 0.0 < margin => low - margin..high + margin,
        _ if low <= high => {
            let margin = if low == 0.0 { 1.0 } else { 0.5 * low.abs() };
            low - margin..high + margin
        }
        _ => 0.0..1.0,
    }
}

/// A label of an axis: 250k, 1.5M, -12, 0.25, 0.0015.
pub(super) fn number(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        1e6.. => (value / 1e6, "M"),
        1e4.. => (value / 1e3, "k"),
        _ => (value, ""),
    };
    // three digits that count, behind the point three at least
    let places = (2.0 - scaled.abs().log10().floor()).clamp(3.0, 9.0) as usize;
    let text = format!("{scaled:.places$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{}{unit}", if text == "-0" { "0" } else { text })
}

#[cfg(test)]
mod tests {
    use super::super::metrics::Clock;
    use super::*;

    fn curve(label: &str, rows: u64, speed: f64) -> Curve {
        let row = |update: u64| {
            let x = update as f64 / rows as f64 * speed;
            let noise = 0.02 * (update as f64 * 1.7).sin();
            let success = (1.0 / (1.0 + (-12.0 * (x - 0.4)).exp()) + noise).clamp(0.0, 1.0);
            let values = [
                (names::SUCCESS.into(), success),
                (names::SUCCESS_STRICT.into(), success.powi(3) * 0.8),
                (names::RETURN.into(), -25.0 * (1.0 - success) - 3.0),
            ];
            Row {
                clock: Clock { updates: update, env_steps: update * 2048, wall_secs: update as f64 * 0.48 },
                values: values.into(),
            }
        };
        Curve { label: label.into(), rows: (1..=rows).map(row).collect() }
    }

    #[test]
    fn the_picture_names_its_axes_units_and_runs() {
        let text = svg(&[curve("reach__hs_ppo__1", 750, 1.0), curve("reach__ppo__1", 700, 0.8)]).unwrap();
        let words = ["environment steps", "wall time [min]", "success [%]", "return", "within 5 cm", "within 1 cm"];
        for word in words.into_iter().chain(["reach__hs_ppo__1", "reach__ppo__1"]) {
            assert!(text.contains(&format!("\n{word}\n")), "{word}");
        }
        // 2 runs x (2 success + 1 return) x 2 axes, and no more points than asked for
        let lines: Vec<usize> = text
            .lines()
            .filter(|line| line.starts_with("<polyline") && line.contains("stroke-width=\"2\""))
            .map(|line| line.matches(',').count())
            .filter(|&points| 3 < points)
            .collect();
        assert_eq!(lines.len(), 12);
        assert!(lines.iter().all(|&points| points <= MOST_POINTS + 1), "{lines:?}");
    }

    #[test]
    fn many_records_are_averaged_and_few_are_kept() {
        let mut few = curve("", 5, 1.0);
        few.rows[2].values.clear();
        let points = few.points(Axis::EnvSteps, names::RETURN, 1.0);
        assert_eq!(points.iter().map(|point| point.0).collect::<Vec<_>>(), [2048.0, 4096.0, 8192.0, 10240.0]);
        let many = curve("", 1200, 1.0).points(Axis::wall_time(576.0), names::RETURN, 1.0);
        assert_eq!(many.len(), 600);
        assert!((many[0].0 - 1.5 * 0.48 / 60.0).abs() < 1e-12);
    }

    #[test]
    fn a_run_without_records_is_named() {
        let told = svg(&[Curve { label: "empty".into(), rows: Vec::new() }]).unwrap_err().to_string();
        assert_eq!(told, "the run empty has no record of success or return yet");
    }

    #[test]
    fn labels_are_short() {
        let large = [(1_500_000.0, "1.5M"), (250_000.0, "250k"), (-12.0, "-12"), (100.0, "100")];
        let small = [(0.25, "0.25"), (0.1 + 0.2, "0.3"), (-0.0015, "-0.0015"), (-0.0, "0"), (1e-17, "0")];
        for (value, text) in large.into_iter().chain(small) {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn ranges_are_never_empty() {
        assert_eq!(padded([1.0, 3.0].into_iter()), 0.9..3.1);
        assert_eq!(padded([2.0].into_iter()), 1.0..3.0);
        assert_eq!(padded([-0.5].into_iter()), -0.75..-0.25);
        assert_eq!(padded([0.0].into_iter()), -1.0..1.0);
        assert_eq!(padded([].into_iter()), 0.0..1.0);
    }
}
