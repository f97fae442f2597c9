//! The report as Markdown: a row for each network or engine, then the details of each. Formats; computes nothing.

use super::ladder::Ladder;
use super::results::{Rate, Results, Row};
use super::suites::Scored;

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
pub fn figures(row: &Row) -> Vec<(&'static str, String)> {
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
        (
            "Cp loss, policy",
            number(
                row.losses.as_ref().and_then(|one| Some(one.policy?.mean)),
                1,
            ),
        ),
        (
            "Cp loss, search",
            number(
                row.losses.as_ref().and_then(|one| Some(one.search?.mean)),
                1,
            ),
        ),
        (
            "Diversity, bits",
            number(row.diversity.as_ref().map(|one| one.entropy_bits), 2),
        ),
        (
            "Agreement",
            rate(row.agreement.as_ref().map(|one| one.top1)),
        ),
        (
            "Elo",
            row.ladder
                .as_ref()
                .map_or(NONE.to_owned(), Ladder::sentence),
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
        let searched = puzzles.effort.to_string();
        text.push_str(&table(&["Rating", "Puzzles", "Policy", &searched], &lines));
    }
    if let Some(suites) = &row.suites {
        text.push_str("### EPD suites\n\n");
        let mut lines = Vec::new();
        for suite in suites {
            let searched = suite.effort.to_string();
            let ways = [("policy", &suite.policy), (&*searched, &suite.search)];
            for (way, scored) in ways {
                let of = |get: fn(&Scored) -> String| scored.as_ref().map_or(NONE.to_owned(), get);
                lines.push(vec![
                    suite.name.clone(),
                    way.to_owned(),
                    of(|one| format!("{} of {}", one.solved.hits, one.solved.of)),
                    of(|one| match (one.points, one.most_points) {
                        (Some(points), Some(most)) => format!("{points} of {most}"),
                        _ => NONE.to_owned(),
                    }),
                    of(|one| number(one.median_nodes, 0)),
                    of(|one| number(one.median_ms, 1)),
                ]);
            }
        }
        let titles = ["Suite", "By", "Solved", "Points", "Nodes to it", "ms to it"];
        text.push_str(&table(&titles, &lines));
        text.push_str(
            "Nodes and time to the solution: the median over solved positions of the moment from which the search \
             held on to it.\n\n",
        );
    }
    if let Some(losses) = &row.losses {
        text.push_str(&format!(
            "### Centipawns lost a move\n\nJudged by {} at depth {}; scores are cut at ±1000.\n\n",
            losses.judge, losses.depth
        ));
        let searched = losses.effort.to_string();
        let ways = [("policy", losses.policy), (&*searched, losses.search)];
        let lines: Vec<Vec<String>> = ways
            .iter()
            .map(|(way, loss)| {
                vec![
                    (*way).to_owned(),
                    loss.map_or(NONE.to_owned(), |one| one.positions.to_string()),
                    loss.map_or(NONE.to_owned(), |one| {
                        format!("{:.1} ± {:.1}", one.mean, one.error)
                    }),
                ]
            })
            .collect();
        text.push_str(&table(&["By", "Positions", "Mean ± its error"], &lines));
    }
    if let Some(diversity) = &row.diversity {
        let how = match diversity.sampled {
            true => "sampled from the policy",
            false => "chosen by search",
        };
        text.push_str(&format!(
            "### Openings of its own\n\n{} games of {} plies, moves {how}: {} different, entropy {:.2} bits of {:.2} \
             possible. The most frequent one, in {} of them: {}.\n\n",
            diversity.games,
            diversity.plies,
            diversity.distinct,
            diversity.entropy_bits,
            (diversity.games.max(1) as f64).log2(),
            diversity.most_frequent.1,
            diversity.most_frequent.0
        ));
    }
    if let Some(agreement) = &row.agreement {
        text.push_str(&format!(
            "### Agreement with a search of {} nodes\n\n\
             Over {} positions the search's move is the policy's first choice in {} and among its first three in {}. \
             Mean |Q of the network − Q of the search|: {}; correlation: {}.\n\n",
            agreement.nodes,
            agreement.top1.of,
            rate(Some(agreement.top1)),
            rate(Some(agreement.top3)),
            number(agreement.value_error, 3),
            number(agreement.value_correlation, 3)
        ));
    }
    if let Some(ladder) = &row.ladder {
        text.push_str(&ladder_text(ladder));
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

/// What an Elo means, and what it does not.
pub const ELO_CAVEAT: &str = "Sampling noise is all that the interval covers: the skill rungs are nominal, nobody has \
    measured them, and UCI_Elo is calibrated for far more time than a move has here.";

fn ladder_text(ladder: &Ladder) -> String {
    let mut text = format!(
        "### Games against {}\n\nElo {}; {}.\n\n{ELO_CAVEAT}\n\n",
        ladder.engine,
        ladder.sentence(),
        ladder.rules
    );
    let lines: Vec<Vec<String>> = ladder
        .rungs
        .iter()
        .map(|one| {
            vec![
                one.rung.clone(),
                one.elo.to_string(),
                one.counts.games().to_string(),
                one.counts.wins.to_string(),
                one.counts.draws.to_string(),
                one.counts.losses.to_string(),
                number(one.score, 3),
                one.cut.to_string(),
                one.adjudicated.to_string(),
                one.faults.to_string(),
            ]
        })
        .collect();
    text.push_str(&table(
        &[
            "Rung",
            "Elo",
            "Games",
            "W",
            "D",
            "L",
            "Score",
            "Cut",
            "Adjudicated",
            "Faults",
        ],
        &lines,
    ));
    text
}

/// A number with so many decimals.
fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or(NONE.to_owned(), |value| format!("{value:.decimals$}"))
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
