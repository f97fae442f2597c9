//! The report as Markdown: a row for each network or engine, then the details of each. Formats; computes nothing.

use super::results::{Rate, Results, Row};

/// What stands where nothing was measured.
const NONE: &str = "n/a";

/// The whole of `report.md`.
pub fn report(results: &Results) -> String {
    let mut text = format!(
        "# Evaluation\n\n\
         * Suite: `{}`\n* Date: {} UTC\n* Simurgh {}\n* Policy moves are sampled at temperature {}, top-k {}\n* Searches: {} nodes a move\n\n",
        results.suite,
        results.date,
        results.simurgh,
        results.sampling.temperature,
        results.sampling.top_k,
        results.nodes
    );
    text.push_str(&headline(results));
    for row in &results.rows {
        text.push_str(&details(row));
    }
    text
}

/// Figures of the headline: title and value of a row.
fn figures(row: &Row) -> Vec<(&'static str, String)> {
    let legality = row.legality.as_ref();
    let accuracy = row.accuracy.as_ref();
    let puzzles = row.puzzles.as_ref();
    vec![
        ("Legal, argmax", rate(legality.map(|one| one.argmax))),
        ("Legal, sampled", rate(legality.map(|one| one.sampled))),
        ("Top-1", rate(accuracy.map(|one| one.top1))),
        ("Top-3", rate(accuracy.map(|one| one.top3))),
        (
            "Puzzles, policy",
            rate(puzzles.and_then(|one| Some(one.policy.as_ref()?.all))),
        ),
        (
            "Puzzles, search",
            rate(puzzles.and_then(|one| Some(one.search.as_ref()?.all))),
        ),
    ]
}

fn headline(results: &Results) -> String {
    let mut titles = vec!["Name"];
    let mut lines = Vec::new();
    for row in &results.rows {
        let figures = figures(row);
        titles.truncate(1);
        titles.extend(figures.iter().map(|(title, _)| *title));
        let mut line = vec![row.name.clone()];
        line.extend(figures.into_iter().map(|(_, value)| value));
        lines.push(line);
    }
    table(&titles, &lines)
}

fn details(row: &Row) -> String {
    let mut text = format!(
        "## {}\n\n* {}, SHA-256 `{}`\n* Settings: {}\n\n",
        row.name, row.kind, row.sha256, row.settings
    );
    if let Some(legality) = &row.legality {
        text.push_str("### Legal moves without a mask\n\n");
        let mut lines = vec![vec![
            "all".to_owned(),
            legality.argmax.of.to_string(),
            rate(Some(legality.argmax)),
            rate(Some(legality.sampled)),
        ]];
        lines.extend(legality.phases.iter().map(|one| {
            vec![
                one.phase.name().to_owned(),
                one.argmax.of.to_string(),
                rate(Some(one.argmax)),
                rate(Some(one.sampled)),
            ]
        }));
        text.push_str(&table(&["Phase", "Positions", "Argmax", "Sampled"], &lines));
    }
    if let Some(accuracy) = &row.accuracy {
        text.push_str("### The human's move, by rating\n\n");
        let lines: Vec<Vec<String>> = accuracy
            .bands
            .iter()
            .map(|one| {
                vec![
                    one.band.clone(),
                    one.top1.of.to_string(),
                    rate(Some(one.top1)),
                    rate(Some(one.top3)),
                ]
            })
            .collect();
        text.push_str(&table(&["Rating", "Positions", "Top-1", "Top-3"], &lines));
    }
    if let Some(puzzles) = &row.puzzles {
        text.push_str("### Puzzles solved, by rating\n\n");
        let (policy, search) = (puzzles.policy.as_ref(), puzzles.search.as_ref());
        let some = policy.or(search);
        let bands = some.map_or(&[][..], |one| &one.bands[..]);
        let of = |solved: Option<&super::puzzles::Solved>, band: &str| {
            let band = solved.and_then(|one| one.bands.iter().find(|one| one.band == band));
            rate(band.map(|one| one.solved))
        };
        let mut lines: Vec<Vec<String>> = bands
            .iter()
            .map(|one| {
                vec![
                    one.band.to_owned(),
                    one.solved.of.to_string(),
                    of(policy, one.band),
                    of(search, one.band),
                ]
            })
            .collect();
        lines.push(vec![
            "all".to_owned(),
            some.map_or(0, |one| one.all.of).to_string(),
            rate(policy.map(|one| one.all)),
            rate(search.map(|one| one.all)),
        ]);
        let searched = format!("{} nodes", puzzles.nodes);
        text.push_str(&table(&["Rating", "Puzzles", "Policy", &searched], &lines));
    }
    if !row.notes.is_empty() {
        text.push_str("### Notes\n\n");
        for note in &row.notes {
            text.push_str(&format!("* {note}\n"));
        }
        text.push('\n');
    }
    text.push_str("### Where the time went\n\n");
    let lines: Vec<Vec<String>> = row
        .spent
        .iter()
        .map(|one| {
            vec![
                one.measure.clone(),
                format!("{:.1} s", one.seconds),
                format!("{:.1} s", one.this_run),
            ]
        })
        .collect();
    text.push_str(&table(&["Measure", "All runs", "This run"], &lines));
    text
}

/// `94.5 %`.
pub fn rate(rate: Option<Rate>) -> String {
    rate.and_then(Rate::share)
        .map_or(NONE.to_owned(), |share| format!("{:.1} %", 100.0 * share))
}

/// A table with its columns as wide as they need; all but the first are set to the right.
fn table(titles: &[&str], lines: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells
            .map(|cell| cell.chars().count())
            .chain([titles[column].chars().count(), 3])
            .max()
            .unwrap_or(3)
    };
    let widths: Vec<usize> = (0..titles.len()).map(width).collect();
    let line = |cells: &[&str]| {
        let cells = cells
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(i, (cell, &width))| match i {
                0 => format!(" {cell:<width$} |"),
                _ => format!(" {cell:>width$} |"),
            });
        format!("|{}\n", cells.collect::<String>())
    };
    let mut text = line(titles);
    let rules = widths.iter().enumerate().map(|(i, width)| match i {
        0 => format!(" {} |", "-".repeat(*width)),
        _ => format!(" {}: |", "-".repeat(width - 1)),
    });
    text.push_str(&format!("|{}\n", rules.collect::<String>()));
    for cells in lines {
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        text.push_str(&line(&cells));
    }
    text.push('\n');
    text
}
