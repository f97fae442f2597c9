//! Plots as SVG text whose colours are the page's (`var(--…)`), so that they follow light and dark. Draws numbers;
//! knows no measure.

use std::fmt::Write;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 44.0;

/// A bar with its share and how far that is from certain, or nothing where nothing was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// 0..=1.
    pub share: Option<f64>,
    /// The 95 % interval.
    pub interval: Option<(f64, f64)>,
}

/// Bars of several series side by side in groups, with an axis of 0 to 100 %. `groups` hold a title and a bar for
/// each series.
pub fn bars(title: &str, series: &[&str], groups: &[(String, Vec<Bar>)]) -> String {
    let mut svg = begin(title, HEIGHT);
    share_axis(&mut svg);
    let plot = WIDTH - LEFT - RIGHT;
    let slot = plot / groups.len().max(1) as f64;
    let width = (slot * 0.8 / series.len().max(1) as f64).min(48.0);
    for (g, (name, bars)) in groups.iter().enumerate() {
        let middle = LEFT + slot * (g as f64 + 0.5);
        let left = middle - width * bars.len() as f64 / 2.0;
        for (s, bar) in bars.iter().enumerate() {
            let x = left + width * s as f64;
            let centre = x + width / 2.0;
            let Some(share) = bar.share else {
                text(&mut svg, centre, y_of(0.0) - 4.0, "middle", "n/a");
                continue;
            };
            let y = y_of(share);
            let _ = write!(
                svg,
                "<rect class=\"s{s}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{}: {:.1} %</title></rect>",
                width * 0.92,
                y_of(0.0) - y,
                escape(&format!("{name}, {}", series[s])),
                100.0 * share
            );
            if let Some((low, high)) = bar.interval {
                whisker(&mut svg, centre, y_of(low), y_of(high));
            }
        }
        let name = fitted(name, slot);
        text(&mut svg, middle, HEIGHT - BOTTOM + 16.0, "middle", &name);
    }
    legend(&mut svg, series);
    svg.push_str("</svg>");
    svg
}

/// As much of a name as fits into so wide a slot.
fn fitted(name: &str, width: f64) -> String {
    let most = (width / 7.5) as usize;
    match name.chars().count() > most {
        true => name.chars().take(most.max(2) - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

/// A point with its 95 % interval: x, share, low, high.
pub type Point = (f64, f64, f64, f64);

/// Scores by rating, and the curve that the logistic model draws through them.
pub fn scores(title: &str, points: &[Point], curve: Option<&dyn Fn(f64) -> f64>) -> String {
    let mut svg = begin(title, HEIGHT);
    share_axis(&mut svg);
    let least = points.iter().map(|p| p.0).fold(f64::INFINITY, f64::min) - 100.0;
    let most = points.iter().map(|p| p.0).fold(f64::NEG_INFINITY, f64::max) + 100.0;
    if least.is_finite() && most > least {
        let x_of = |x: f64| LEFT + (x - least) / (most - least) * (WIDTH - LEFT - RIGHT);
        let step = if most - least > 1600.0 { 400.0 } else { 200.0 };
        let mut tick = (least / step).ceil() * step;
        while tick <= most {
            text(
                &mut svg,
                x_of(tick),
                HEIGHT - BOTTOM + 16.0,
                "middle",
                &format!("{tick:.0}"),
            );
            tick += step;
        }
        if let Some(curve) = curve {
            let line: Vec<String> = (0..=60)
                .map(|i| {
                    let x = least + (most - least) * f64::from(i) / 60.0;
                    format!("{:.1},{:.1}", x_of(x), y_of(curve(x)))
                })
                .collect();
            let _ = write!(
                svg,
                "<polyline class=\"curve\" points=\"{}\"/>",
                line.join(" ")
            );
        }
        for &(x, share, low, high) in points {
            whisker(&mut svg, x_of(x), y_of(low), y_of(high));
            let _ = write!(
                svg,
                "<circle class=\"s0\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"4.5\"><title>{x:.0}: {:.1} %</title></circle>",
                x_of(x),
                y_of(share),
                100.0 * share
            );
        }
    }
    text(
        &mut svg,
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 8.0,
        "middle",
        "opponent's nominal Elo",
    );
    svg.push_str("</svg>");
    svg
}

/// Lengths one below the other, each with its name and its value in words.
pub fn lengths(title: &str, rows: &[(String, f64, String)]) -> String {
    const ROW: f64 = 34.0;
    let height = ROW * rows.len() as f64 + 8.0;
    let mut svg = begin(title, height);
    let most = rows.iter().map(|row| row.1).fold(0.0, f64::max);
    for (i, (name, value, words)) in rows.iter().enumerate() {
        let y = ROW * i as f64 + 14.0;
        text(&mut svg, 4.0, y, "start", name);
        text(&mut svg, WIDTH - 4.0, y, "end", words);
        let width = if most > 0.0 {
            value / most * (WIDTH - 8.0)
        } else {
            0.0
        };
        let _ = write!(
            svg,
            "<rect class=\"s0\" x=\"4\" y=\"{:.1}\" width=\"{width:.1}\" height=\"10\"/>",
            y + 4.0
        );
    }
    svg.push_str("</svg>");
    svg
}

fn begin(title: &str, height: f64) -> String {
    let title = escape(title);
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\"><title>{title}</title>"
    )
}

fn y_of(share: f64) -> f64 {
    TOP + (1.0 - share) * (HEIGHT - TOP - BOTTOM)
}

fn share_axis(svg: &mut String) {
    for percent in [0, 25, 50, 75, 100] {
        let y = y_of(f64::from(percent) / 100.0);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
            WIDTH - RIGHT
        );
        text(svg, LEFT - 6.0, y + 4.0, "end", &format!("{percent} %"));
    }
}

fn whisker(svg: &mut String, x: f64, low: f64, high: f64) {
    let _ = write!(
        svg,
        "<path class=\"whisker\" d=\"M{x:.1} {low:.1}V{high:.1}M{0:.1} {low:.1}H{1:.1}M{0:.1} {high:.1}H{1:.1}\"/>",
        x - 4.0,
        x + 4.0
    );
}

fn legend(svg: &mut String, series: &[&str]) {
    if series.len() < 2 {
        return;
    }
    let slot = (WIDTH - LEFT - RIGHT) / series.len() as f64;
    for (s, name) in series.iter().enumerate() {
        let x = LEFT + slot * s as f64;
        let y = HEIGHT - 16.0;
        let _ = write!(
            svg,
            "<rect class=\"s{s}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"10\" height=\"10\"/>"
        );
        text(svg, x + 15.0, y + 9.5, "start", name);
    }
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let _ = write!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
        escape(words)
    );
}

/// Text that means itself inside HTML and SVG.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_has_no_bar() {
        let bar = |share| Bar {
            share,
            interval: None,
        };
        let svg = bars(
            "a <title>",
            &["x", "y"],
            &[("g".to_owned(), vec![bar(Some(0.5)), bar(None)])],
        );
        assert_eq!(svg.matches("n/a").count(), 1);
        assert_eq!(svg.matches("class=\"s1\"").count(), 1, "only in the legend");
        assert!(svg.contains("a &lt;title&gt;") && svg.ends_with("</svg>"));
        assert!(!scores("none", &[], None).contains("circle"));
        assert_eq!(fitted("1800", 60.0), "1800");
        assert_eq!(fitted("a long name of a suite", 60.0), "a long …");
    }
}
