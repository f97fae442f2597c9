//! The curves of a training run as one self-contained page, report.html, made from its log. Reads no
//! checkpoint and computes nothing but scales.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use plotters::prelude::*;

use super::TrainError;
use super::trainer::{LogLine, read_log};

/// One curve: its name, colour and points.
struct Curve {
    name: &'static str,
    color: RGBColor,
    points: Vec<(f64, f64)>,
}

/// A plot over the positions seen.
struct Plot {
    title: &'static str,
    unit: &'static str,
    curves: Vec<Curve>,
}

const TRAINING: RGBColor = RGBColor(90, 140, 220);
const VALIDATION: RGBColor = RGBColor(220, 120, 40);
const LEAST: RGBColor = RGBColor(130, 130, 130);

/// Where a run's report stands.
pub fn report_path(folder: &Path) -> PathBuf {
    folder.join("report.html")
}

/// Writes a run's report from its log.
///
/// # Errors
/// When the log cannot be read or has no line, or the page cannot be written.
pub fn write_report(folder: &Path) -> Result<PathBuf, TrainError> {
    let log = read_log(folder)?;
    let path = report_path(folder);
    if log.is_empty() {
        return Err(TrainError::Folder {
            path: folder.to_owned(),
            why: "its log has no line yet".to_owned(),
        });
    }
    let name = folder.file_name().unwrap_or(folder.as_os_str());
    let page = page(&name.to_string_lossy(), &log)
        .map_err(|why| TrainError::io("draw", &path, std::io::Error::other(why)))?;
    let partial = path.with_extension("partial");
    fs::write(&partial, page)
        .and_then(|()| fs::rename(&partial, &path))
        .map_err(|e| TrainError::io("write", &path, e))?;
    Ok(path)
}

fn plots(log: &[LogLine]) -> Vec<Plot> {
    let training = |f: fn(&LogLine) -> f64| Curve {
        name: "training",
        color: TRAINING,
        points: log.iter().map(|l| (l.positions as f64, f(l))).collect(),
    };
    let seen = |name, color, f: fn(&super::checkpoint::Validation) -> f64| Curve {
        name,
        color,
        points: log
            .iter()
            .filter_map(|l| Some((l.positions as f64, f(l.validation.as_ref()?))))
            .collect(),
    };
    let plot = |title, unit, curves| Plot {
        title,
        unit,
        curves,
    };
    vec![
        plot(
            "Teacher's move is the network's first",
            "%",
            vec![
                training(|l| 100.0 * l.top1),
                seen("validation", VALIDATION, |v| 100.0 * v.top1),
            ],
        ),
        plot(
            "Policy cross-entropy",
            "nats",
            vec![
                training(|l| l.policy),
                seen("validation", VALIDATION, |v| v.policy),
                seen("least possible", LEAST, |v| v.policy_floor),
            ],
        ),
        plot(
            "Value cross-entropy",
            "nats",
            vec![
                training(|l| l.value),
                seen("validation", VALIDATION, |v| v.value),
            ],
        ),
        plot(
            "Error of Q = W − L (root mean square)",
            "",
            vec![seen("validation", VALIDATION, |v| v.q_error)],
        ),
        plot("Learning rate", "", vec![training(|l| l.learning_rate)]),
        plot(
            "Norm of the gradient before clipping",
            "",
            vec![training(|l| l.gradient_norm)],
        ),
        plot("Speed", "positions/s", vec![training(|l| l.rate)]),
    ]
}

/// One plot as SVG text; None when no curve has a point.
fn draw(plot: &Plot) -> Result<Option<String>, String> {
    let points = || plot.curves.iter().flat_map(|c| &c.points);
    let finite = |&&(_, y): &&(f64, f64)| y.is_finite();
    let Some(last) = points().map(|p| p.0).reduce(f64::max) else {
        return Ok(None);
    };
    let Some(high) = points().filter(finite).map(|p| p.1).reduce(f64::max) else {
        return Ok(None);
    };
    // What a run begins with would flatten all that follows.
    let mut ys: Vec<f64> = points().filter(finite).map(|p| p.1).collect();
    ys.sort_by(f64::total_cmp);
    let low = ys.first().copied().unwrap_or(0.0);
    let common = ys.get(ys.len() * 49 / 50).copied().unwrap_or(high);
    let high = if common > low { common } else { high };
    let room = ((high - low) * 0.06).max(high.abs() * 1e-3).max(1e-9);
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (720, 300)).into_drawing_area();
        let failed = |e: &dyn std::fmt::Display| e.to_string();
        let mut chart = ChartBuilder::on(&area)
            .margin(8)
            .x_label_area_size(34)
            .y_label_area_size(62)
            .build_cartesian_2d(0.0..last.max(1.0), low - room..high + room)
            .map_err(|e| failed(&e))?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(200, 200, 200))
            .x_desc("positions seen")
            .y_desc(plot.unit)
            .x_label_formatter(&|x| short(*x))
            .y_label_formatter(&|y| short(*y))
            .label_style(("sans-serif", 13))
            .draw()
            .map_err(|e| failed(&e))?;
        for curve in &plot.curves {
            let points = curve.points.iter().filter(finite).copied();
            let points = points.map(|(x, y)| (x, y.min(high + room)));
            chart
                .draw_series(LineSeries::new(points, curve.color.stroke_width(2)))
                .map_err(|e| failed(&e))?;
        }
        area.present().map_err(|e| failed(&e))?;
    }
    Ok(Some(text))
}

/// A number in at most five letters or so.
fn short(x: f64) -> String {
    match x.abs() {
        n if n >= 1e6 => format!("{:.1} M", x / 1e6),
        n if n >= 1e4 => format!("{:.0} k", x / 1e3),
        n if n >= 100.0 => format!("{x:.0}"),
        n if n >= 1.0 => format!("{x:.2}"),
        0.0 => "0".to_owned(),
        n if n >= 0.01 => format!("{x:.3}"),
        _ => format!("{x:.1e}"),
    }
}

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #222; --paper: #fff; --rule: #ddd; }
@media (prefers-color-scheme: dark) { :root { --ink: #ddd; --paper: #181a1b; --rule: #3a3d40; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin: 1.6rem 0 0.2rem; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--ink); }
svg [stroke='#C8C8C8'] { stroke: var(--rule); }
svg [stroke='#000000'] { stroke: var(--ink); }
svg rect[fill='#FFFFFF'] { fill: none; }
.key { display: inline-block; width: 1.2em; height: 0.25em; margin: 0 0.4em 0.2em 1em; }
table { border-collapse: collapse; display: block; overflow-x: auto; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 0.15rem 0.7rem; border-bottom: 1px solid var(--rule); white-space: nowrap; }
";

fn page(name: &str, log: &[LogLine]) -> Result<String, String> {
    let name = name.replace('&', "&amp;").replace('<', "&lt;");
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Training run {name}</title><style>{STYLE}</style></head><body>\n\
         <h1>Training run {name}</h1>\n"
    );
    if let Some(last) = log.last() {
        let _ = writeln!(
            out,
            "<p>{} steps, {} positions. Curves of training are means since the line of the log before; \
             validation is of the averaged weights, on positions that are never trained on.</p>",
            last.step, last.positions
        );
    }
    for plot in plots(log) {
        let Some(svg) = draw(&plot)? else { continue };
        let _ = write!(out, "<h2>{}</h2>\n<div>", plot.title);
        for curve in plot.curves.iter().filter(|c| !c.points.is_empty()) {
            let RGBColor(r, g, b) = curve.color;
            let _ = write!(
                out,
                "<span class=\"key\" style=\"background:rgb({r},{g},{b})\"></span>{}",
                curve.name
            );
        }
        let _ = writeln!(out, "</div>\n{svg}");
    }
    out += "<h2>Validations</h2>\n<table><tr><th>step<th>positions<th>top-1 %<th>policy<th>least<th>value<th>Q error</tr>\n";
    for line in log {
        let Some(seen) = &line.validation else {
            continue;
        };
        let _ = writeln!(
            out,
            "<tr><td>{}<td>{}<td>{:.2}<td>{:.4}<td>{:.4}<td>{:.4}<td>{:.3}</tr>",
            line.step,
            line.positions,
            100.0 * seen.top1,
            seen.policy,
            seen.policy_floor,
            seen.value,
            seen.q_error
        );
    }
    out += "</table>\n</body></html>\n";
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::checkpoint::Validation;

    fn line(step: u64, validated: bool) -> LogLine {
        let share = step as f64 / 400.0;
        LogLine {
            step,
            positions: step * 256,
            loss: 4.0 - share,
            policy: 3.0 - share,
            value: 1.0 - share,
            top1: share,
            learning_rate: 1e-3,
            gradient_norm: 2.0,
            rate: 300.0,
            validation: validated.then_some(Validation {
                positions: 100,
                loss: 3.0,
                policy: 2.5,
                policy_floor: 0.9,
                value: 0.5,
                top1: 0.2375,
                q_error: 0.4,
            }),
        }
    }

    #[test]
    fn the_page_stands_alone_and_shows_every_curve() {
        let log: Vec<LogLine> = (1..=100).map(|i| line(i, i % 50 == 0)).collect();
        let page = page("a<b", &log).unwrap();
        assert_eq!(page.matches("<svg").count(), 7);
        assert_eq!(page.matches("</svg>").count(), 7);
        assert!(page.contains("Training run a&lt;b") && page.contains("23.75"));
        assert!(page.contains("100 steps, 25600 positions"));
        for elsewhere in ["<script src", "<link", "http://", "https://", "NaN"] {
            let found = page.replace("http://www.w3.org/2000/svg", "");
            assert!(!found.contains(elsewhere), "{elsewhere}");
        }
        // A run without a validation has no curve of its own for it.
        let short: Vec<LogLine> = (1..4).map(|i| line(i, false)).collect();
        assert_eq!(super::page("x", &short).unwrap().matches("<svg").count(), 6);
    }

    #[test]
    fn a_folder_without_a_log_is_named() {
        let folder = std::env::temp_dir().join(format!("simurgh-report-{}", std::process::id()));
        let error = write_report(&folder).unwrap_err().to_string();
        assert!(error.contains("log.jsonl"), "{error}");
    }
}
