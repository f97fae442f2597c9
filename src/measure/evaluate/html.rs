//! The report as one HTML page with plots: nothing is fetched, it follows light and dark, and it fits a phone.
//! Formats; computes nothing but the intervals that the plots show.

use crate::measure::page::page;
use crate::measure::stats::score_of_elo;

use super::ladder::Ladder;
use super::markdown::{self, ELO_CAVEAT};
use super::plot::{self, Bar, Point, escape};
use super::policy::{Accuracy, Legality};
use super::puzzles::{Puzzles, Solved};
use super::results::{Rate, Results, Row};
use super::suites::{Scored, SuiteResult};

const STYLE: &str = "\
h2{font-size:1.3rem;margin:2rem 0 .5rem;border-top:1px solid var(--line);padding-top:1rem}
h3{font-size:1rem;margin:0 0 .4rem}code{font-size:.85em}
th:first-child,td:first-child{text-align:left}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:1.5rem}
figure{margin:0;min-width:0}
svg text{font:13px system-ui,sans-serif;fill:var(--soft)}
.grid{stroke:var(--line);stroke-width:1}.s0{fill:var(--a)}.s1{fill:var(--b)}
.whisker{stroke:var(--ink);stroke-width:1.5;fill:none}.curve{stroke:var(--b);stroke-width:2;fill:none}
";

/// The whole of `report.html`.
pub fn report(results: &Results) -> String {
    let mut body = format!(
        "<p>Suite <code>{}</code>, {} UTC, Simurgh {}. Policy moves are sampled at temperature {}, \
         top-k {}; searches take {} nodes a move. Bars and points carry their 95 % intervals.</p>\n",
        escape(&results.suite),
        escape(&results.date),
        escape(&results.simurgh),
        results.sampling.temperature,
        results.sampling.top_k,
        results.nodes
    );
    body.push_str(&headline(results));
    for row in &results.rows {
        body.push_str(&section(row));
    }
    page("Simurgh evaluation", STYLE, &body)
}

fn headline(results: &Results) -> String {
    let rows: Vec<(String, Vec<(&str, String)>)> = results
        .rows
        .iter()
        .map(|row| (row.name.clone(), markdown::figures(row)))
        .collect();
    let Some((_, first)) = rows.first() else {
        return String::new();
    };
    let mut html = String::from("<div class=\"wide\"><table><thead><tr><th>Figure</th>");
    for (name, _) in &rows {
        html.push_str(&format!("<th>{}</th>", escape(name)));
    }
    html.push_str("</tr></thead><tbody>\n");
    for (i, (title, _)) in first.iter().enumerate() {
        html.push_str(&format!("<tr><td>{title}</td>"));
        for (_, figures) in &rows {
            html.push_str(&format!("<td>{}</td>", escape(&figures[i].1)));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    html
}

fn section(row: &Row) -> String {
    let mut html = format!(
        "<section><h2>{}</h2>\n<p>{}, SHA-256 <code>{}</code></p>\n<div class=\"plots\">\n",
        escape(&row.name),
        row.kind,
        escape(&row.sha256)
    );
    if let Some(ladder) = &row.ladder {
        html.push_str(&ladder_figure(ladder));
    }
    if let Some(legality) = &row.legality {
        html.push_str(&legality_figure(legality));
    }
    if let Some(accuracy) = &row.accuracy {
        html.push_str(&accuracy_figure(accuracy));
    }
    if let Some(puzzles) = &row.puzzles {
        html.push_str(&puzzles_figure(puzzles));
    }
    if let Some(suites) = row.suites.as_deref().filter(|suites| !suites.is_empty()) {
        html.push_str(&suites_figure(suites));
    }
    if !row.spent.is_empty() {
        let spent: Vec<(String, f64, String)> = row
            .spent
            .iter()
            .map(|one| (one.measure.clone(), one.seconds, time(one.seconds)))
            .collect();
        let svg = plot::lengths("Seconds by measure", &spent);
        html.push_str(&figure(
            "Where the time went",
            &svg,
            "Over all runs that filled the store.",
        ));
    }
    html.push_str("</div>\n");
    if !row.notes.is_empty() {
        html.push_str("<ul>");
        for note in &row.notes {
            html.push_str(&format!("<li>{}</li>", escape(note)));
        }
        html.push_str("</ul>\n");
    }
    html.push_str("</section>\n");
    html
}

fn figure(title: &str, svg: &str, caption: &str) -> String {
    format!(
        "<figure><h3>{}</h3>{svg}<figcaption><p>{}</p></figcaption></figure>\n",
        escape(title),
        escape(caption)
    )
}

fn ladder_figure(ladder: &Ladder) -> String {
    let points: Vec<Point> = ladder
        .rungs
        .iter()
        .filter_map(|rung| {
            let share = rung.score?;
            let (low, high) = wilson(share, rung.counts.games() as f64);
            Some((f64::from(rung.elo), share, low, high))
        })
        .collect();
    let elo = ladder.rating.and_then(|rating| rating.elo);
    let curve = elo.map(|elo| move |opponent: f64| score_of_elo(elo - opponent));
    let svg = plot::scores(
        "Score by the opponent's Elo",
        &points,
        curve.as_ref().map(|curve| curve as &dyn Fn(f64) -> f64),
    );
    let caption = format!("Elo {}. {ELO_CAVEAT}", ladder.sentence());
    figure(&format!("Score against {}", ladder.engine), &svg, &caption)
}

fn legality_figure(legality: &Legality) -> String {
    let group = |name: &str, argmax, sampled| (name.to_owned(), vec![bar(argmax), bar(sampled)]);
    let mut groups = vec![group("all", Some(legality.argmax), Some(legality.sampled))];
    groups.extend(
        legality
            .phases
            .iter()
            .map(|one| group(one.phase.name(), Some(one.argmax), Some(one.sampled))),
    );
    let svg = plot::bars("Legal moves by phase", &["argmax", "sampled"], &groups);
    let caption = format!("{} positions, no mask.", legality.argmax.of);
    figure("Legal moves without a mask", &svg, &caption)
}

fn accuracy_figure(accuracy: &Accuracy) -> String {
    let groups: Vec<(String, Vec<Bar>)> = accuracy
        .bands
        .iter()
        .map(|one| {
            // Seven bands and more have no room for both ends.
            let name = one.band.split('-').next().unwrap_or_default().to_owned();
            (name, vec![bar(Some(one.top1)), bar(Some(one.top3))])
        })
        .collect();
    let svg = plot::bars("The human's move by rating", &["top-1", "top-3"], &groups);
    let caption = format!(
        "{} positions; each band of 200 points is named by its lower end.",
        accuracy.top1.of
    );
    figure("The human's move found", &svg, &caption)
}

fn puzzles_figure(puzzles: &Puzzles) -> String {
    let (policy, search) = (puzzles.policy.as_ref(), puzzles.search.as_ref());
    let of = |solved: Option<&Solved>, band: &str| {
        let found = solved.and_then(|one| one.bands.iter().find(|one| one.band == band));
        bar(found.map(|one| one.solved))
    };
    let bands = policy.or(search).map_or(&[][..], |one| &one.bands[..]);
    let groups: Vec<(String, Vec<Bar>)> = bands
        .iter()
        .map(|one| {
            let both = vec![of(policy, one.band), of(search, one.band)];
            (one.band.to_owned(), both)
        })
        .collect();
    let searched = puzzles.effort.to_string();
    let svg = plot::bars("Puzzles by rating", &["policy", &searched], &groups);
    let count = policy.or(search).map_or(0, |one| one.all.of);
    let caption = format!("{count} puzzles; solved when every move of the line is right.");
    figure("Puzzles solved", &svg, &caption)
}

fn suites_figure(suites: &[SuiteResult]) -> String {
    let solved = |scored: &Option<Scored>| bar(scored.as_ref().map(|one| one.solved));
    let groups: Vec<(String, Vec<Bar>)> = suites
        .iter()
        .map(|suite| {
            let both = vec![solved(&suite.policy), solved(&suite.search)];
            (suite.name.clone(), both)
        })
        .collect();
    let effort = suites.first().map(|suite| suite.effort.to_string());
    let searched = effort.unwrap_or_default();
    let svg = plot::bars("EPD suites", &["policy", &searched], &groups);
    let points = |suite: &SuiteResult| {
        let scored = suite.search.as_ref()?;
        let (points, most) = (scored.points?, scored.most_points?);
        Some(format!(
            " {}: {points} of {most} points by search.",
            suite.name
        ))
    };
    let points: String = suites.iter().filter_map(points).collect();
    figure(
        "EPD suites solved",
        &svg,
        &format!("Positions solved.{points}"),
    )
}

fn bar(rate: Option<Rate>) -> Bar {
    let share = rate.and_then(Rate::share);
    Bar {
        share,
        interval: share
            .zip(rate)
            .map(|(share, rate)| wilson(share, rate.of as f64)),
    }
}

/// The 95 % score interval of a share of `count` (E. B. Wilson, 1927).
fn wilson(share: f64, count: f64) -> (f64, f64) {
    const Z: f64 = 1.959_964;
    let z2 = Z * Z / count;
    let middle = (share + z2 / 2.0) / (1.0 + z2);
    let half = (share * (1.0 - share) / count + z2 / (4.0 * count))
        .max(0.0)
        .sqrt()
        * Z
        / (1.0 + z2);
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

/// `0.4 s`, `75 s`, `12 min`.
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 300.0 => format!("{s:.0} s"),
        s => format!("{:.0} min", s / 60.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_hold_the_share_and_stay_inside() {
        let (low, high) = wilson(0.5, 100.0);
        assert!((low - 0.404).abs() < 1e-3 && (high - 0.596).abs() < 1e-3);
        let (low, high) = wilson(1.0, 20.0);
        assert!(low > 0.8 && low < 0.9 && high == 1.0);
        let (low, high) = wilson(0.0, 20.0);
        assert!(low == 0.0 && high > 0.1);
    }
}
