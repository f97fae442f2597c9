//! A training run played back: figures of its checkpoints, as JSON and as a page with a slider. Knows no
//! training; the figures come in.

use std::fmt::Write as _;

use serde::Serialize;

use super::evaluate::elo::Rating;
use super::page;

/// What is known of a run at one step; what was not measured is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Moment {
    /// Optimiser steps.
    pub step: u64,
    /// Positions (or tokens) seen.
    pub positions: u64,
    /// The loss on the validation positions.
    pub loss: Option<f64>,
    /// Cross-entropy of the policy there, in nats.
    pub policy: Option<f64>,
    /// Cross-entropy of the value there, in nats.
    pub value: Option<f64>,
    /// Share of positions whose highest policy output is the teacher's choice.
    pub top1: Option<f64>,
    /// Share of positions whose highest output of all, legal or not, is legal.
    pub legality: Option<f64>,
    /// From games against a ladder of opponents.
    pub elo: Option<Rating>,
}

struct Curve {
    title: &'static str,
    of: fn(&Moment) -> Option<f64>,
    percent: bool,
}

const CURVES: [Curve; 6] = [
    Curve {
        title: "Teacher's move first",
        of: |m| m.top1,
        percent: true,
    },
    Curve {
        title: "Legal without a mask",
        of: |m| m.legality,
        percent: true,
    },
    Curve {
        title: "Loss",
        of: |m| m.loss,
        percent: false,
    },
    Curve {
        title: "Policy cross-entropy, nats",
        of: |m| m.policy,
        percent: false,
    },
    Curve {
        title: "Value cross-entropy, nats",
        of: |m| m.value,
        percent: false,
    },
    Curve {
        title: "Elo",
        of: |m| m.elo.as_ref().and_then(|rating| rating.elo),
        percent: false,
    },
];

/// The moments as a JSON list.
///
/// # Errors
/// When a figure is no number.
pub fn to_json(moments: &[Moment]) -> serde_json::Result<String> {
    serde_json::to_string_pretty(moments)
}

const STYLE: &str = "\
h2{font-size:1rem;margin:.2rem 0}.bar{position:sticky;top:0;background:var(--page);padding:.5rem 0}input{width:100%}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr));gap:1.2rem}
figure{margin:0;min-width:0}svg text{font:12px system-ui,sans-serif;fill:var(--soft)}.frame{stroke:var(--line);fill:none}
.curve{stroke:var(--a);stroke-width:2;fill:none}.dot{fill:var(--a)}.now{stroke:var(--b);stroke-width:1.5}
b{font-variant-numeric:tabular-nums}
";

const SCRIPT: &str = "\
const M=JSON.parse(document.getElementById('data').textContent),s=document.getElementById('at');
function show(){const m=M[s.value];document.getElementById('step').textContent='step '+m.step+', '+m.positions.toLocaleString('en')+' seen';
document.querySelectorAll('figure').forEach(f=>{const l=f.querySelector('.now'),x=f.dataset.xs.split(' ')[s.value];l.setAttribute('x1',x);l.setAttribute('x2',x);
f.querySelector('b').textContent=f.dataset.texts.split('|')[s.value]})}
s.oninput=show;s.value=M.length-1;show();
";

/// The page: curves over what was seen, and a slider that goes through the moments.
pub fn page(name: &str, moments: &[Moment]) -> String {
    let mut plots = String::new();
    let mut missing = Vec::new();
    for curve in &CURVES {
        match draw(curve, moments) {
            Some(text) => plots += &text,
            None => missing.push(curve.title),
        }
    }
    let missing = match missing.is_empty() {
        true => String::new(),
        false => format!("<p>Not measured: {}.</p>\n", missing.join(", ")),
    };
    let data: Vec<_> = moments
        .iter()
        .map(|m| serde_json::json!({ "step": m.step, "positions": m.positions }))
        .collect();
    let body = format!(
        "<div class=\"bar\"><span id=\"step\"></span>\
         <input id=\"at\" type=\"range\" min=\"0\" max=\"{last}\" aria-label=\"checkpoint\"></div>\n{missing}\
         <div class=\"plots\">\n{plots}</div>\n<script id=\"data\" type=\"application/json\">{data}</script>\n\
         <script>\n{SCRIPT}</script>\n",
        last = moments.len().saturating_sub(1),
        data = serde_json::Value::from(data),
    );
    page::page(&format!("Replay of {name}"), STYLE, &body)
}

/// A figure of one curve; None when nothing of it was measured.
fn draw(curve: &Curve, moments: &[Moment]) -> Option<String> {
    let (width, height, left, foot) = (520.0, 190.0, 52.0, 22.0);
    let values: Vec<Option<f64>> = moments
        .iter()
        .map(|m| (curve.of)(m).filter(|v| v.is_finite()))
        .collect();
    let known = || values.iter().flatten().copied();
    let (low, high) = (known().reduce(f64::min)?, known().reduce(f64::max)?);
    let room = ((high - low) * 0.08).max(high.abs() * 1e-3).max(1e-9);
    let (low, high) = (low - room, high + room);
    let most = moments
        .iter()
        .map(|m| m.positions)
        .max()
        .unwrap_or(0)
        .max(1);
    let x = |m: &Moment| left + (width - left - 8.0) * m.positions as f64 / most as f64;
    let y = |v: f64| 6.0 + (height - foot - 6.0) * (high - v) / (high - low);
    let text = |v: f64| match curve.percent {
        true => format!("{:.2} %", 100.0 * v),
        false if v.abs() >= 100.0 => format!("{v:.0}"),
        false => format!("{v:.4}"),
    };
    let mut points = String::new();
    let mut dots = String::new();
    for (moment, value) in moments.iter().zip(&values) {
        if let Some(v) = value {
            let (x, y) = (x(moment), y(*v));
            let _ = write!(points, "{x:.1},{y:.1} ");
            let _ = write!(
                dots,
                "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\"/>"
            );
        }
    }
    let xs: Vec<String> = moments.iter().map(|m| format!("{:.1}", x(m))).collect();
    let texts: Vec<String> = values
        .iter()
        .map(|v| v.map_or("not measured".to_owned(), text))
        .collect();
    Some(format!(
        "<figure data-xs=\"{}\" data-texts=\"{}\"><h2>{} <b></b></h2>\
         <svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">\
         <rect class=\"frame\" x=\"{left}\" y=\"6\" width=\"{}\" height=\"{}\"/>\
         <text x=\"{}\" y=\"16\" text-anchor=\"end\">{}</text><text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"end\">{most} seen</text>\
         <polyline class=\"curve\" points=\"{}\"/>{dots}<line class=\"now\" y1=\"6\" y2=\"{}\"/></svg></figure>\n",
        xs.join(" "),
        texts.join("|"),
        curve.title,
        curve.title,
        width - left - 8.0,
        height - foot - 6.0,
        left - 4.0,
        text(high),
        left - 4.0,
        height - foot,
        text(low),
        width - 8.0,
        height - 6.0,
        points.trim_end(),
        height - foot,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(step: u64, legality: Option<f64>) -> Moment {
        Moment {
            step,
            positions: 100 * step,
            loss: Some(3.0 - step as f64 / 10.0),
            top1: Some(0.25),
            legality,
            ..Moment::default()
        }
    }

    #[test]
    fn what_was_not_measured_is_null_and_said() {
        let moments = [moment(1, None), moment(2, Some(0.5))];
        let json: serde_json::Value = serde_json::from_str(&to_json(&moments).unwrap()).unwrap();
        assert_eq!(json[0]["legality"], serde_json::Value::Null);
        assert_eq!(
            (&json[1]["legality"], &json[1]["elo"]),
            (&0.5.into(), &serde_json::Value::Null)
        );
        let page = page("a<b", &moments);
        assert_eq!(page.matches("<figure").count(), 3);
        assert!(
            page.contains(
                "Not measured: Policy cross-entropy, nats, Value cross-entropy, nats, Elo."
            )
        );
        assert!(page.contains("data-texts=\"not measured|50.00 %\""));
        assert!(page.contains("a&lt;b") && !page.contains("http"));
        assert!(page.contains("max=\"1\""));
    }
}
