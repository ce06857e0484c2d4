//! Outcomes as text: the table that a person reads, and the CSV.

use crate::contest::Role;
use crate::effort::QUIET;
use crate::verdict::{Outcome, Verdict};
use tile::bench::aligned;

/// Columns of the table that stand at the left.
const LEFT: [usize; 3] = [0, 4, 8];

/// The table: a line for each row.
pub(crate) fn table(outcomes: &[Outcome]) -> String {
    let head = ["", "threads", "ours", "best peer", "", "ours ÷ peer", "limit", "of limit", "bar", "met"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(outcomes.iter().map(line));
    aligned(&rows, |column| !LEFT.contains(&column))
}

fn line(outcome: &Outcome) -> Vec<String> {
    let rate = |seconds| outcome.work.rate(seconds);
    let (peer, limit) = (outcome.best(Role::Peer), outcome.best(Role::Limit));
    let ratio = outcome.ratios(Role::Peer);
    let share = outcome.ratios(Role::Limit);
    vec![
        outcome.title.clone(),
        outcome.threads.to_string(),
        rate(outcome.ours().median()),
        peer.map_or(String::new(), |peer| rate(peer.median())),
        peer.map_or(String::new(), |peer| peer.name.clone()),
        ratio.map_or(String::new(), |[middle, least, most]| format!("{middle:.2} ({least:.2}–{most:.2})")),
        limit.map_or(String::new(), |limit| rate(limit.median())),
        share.map_or(String::new(), |[middle, ..]| format!("{:.0} %", middle * 100.0)),
        outcome.bars.text(),
        outcome.verdict().text().to_owned(),
    ]
}

/// The rates of all, and the tiles that the library chose: a line for each row.
pub(crate) fn everyone(outcomes: &[Outcome]) -> String {
    let line = |outcome: &Outcome| {
        let lanes = outcome.lanes.iter();
        let rates = lanes.map(|lane| format!("{} {}", lane.name, outcome.work.rate(lane.median())));
        let note = Some(outcome.note.clone()).filter(|note| !note.is_empty());
        let threads =
            if outcome.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", outcome.threads) };
        format!("  {}, {threads}: {}\n", outcome.title, rates.chain(note).collect::<Vec<_>>().join(" · "))
    };
    outcomes.iter().map(line).collect()
}

/// How many bars are met, and how quiet the machine was.
pub(crate) fn summary(outcomes: &[Outcome]) -> String {
    let count = |verdict| outcomes.iter().filter(|outcome| outcome.verdict() == verdict).count();
    let (met, missed, unknown) = (count(Verdict::Met), count(Verdict::Missed), count(Verdict::Unknown));
    let unknown =
        if unknown == 0 { String::new() } else { format!(", {unknown} without whom they are about") };
    let repeated: usize = outcomes.iter().map(|outcome| outcome.repeated).sum();
    let rounds: usize = outcomes.iter().map(|outcome| outcome.lanes[0].seconds.len()).sum();
    let disturbed: usize = outcomes.iter().map(|outcome| outcome.disturbed).sum();
    format!(
        "{met} of {} rows with bars meet them{unknown}.\n{repeated} rounds were repeated because the rate of \
         multiply-adds fell below {:.0} % of its best: somebody else ran. {disturbed} of the {rounds} rounds that count \
         were disturbed nevertheless.\n",
        met + missed,
        QUIET * 100.0
    )
}

/// Lines of comma-separated values, one for each contestant of each row.
pub(crate) fn csv(outcomes: &[Outcome]) -> String {
    let mut text = "row,threads,contestant,role,seconds,least_seconds,most_seconds,rate,unit,ours_by_it,\
                    ours_by_it_least,ours_by_it_most,rounds,repeated,disturbed,bar,met,note\n"
        .to_owned();
    for outcome in outcomes {
        for lane in &outcome.lanes {
            let seconds = lane.median();
            let bound =
                |pick: fn(f64, f64) -> f64| lane.seconds.iter().copied().reduce(pick).unwrap_or(seconds);
            let (amount, unit) = match outcome.work.amount() {
                Some(amount) => (format!("{:.6e}", amount / seconds), unit(outcome)),
                None => (String::new(), ""),
            };
            let [ratio, least, most] = lane.ratios(outcome.ours());
            let cells = [
                quoted(&outcome.title),
                outcome.threads.to_string(),
                quoted(&lane.name),
                lane.role.name().to_owned(),
                format!("{seconds:.6e}"),
                format!("{:.6e}", bound(f64::min)),
                format!("{:.6e}", bound(f64::max)),
                amount,
                unit.to_owned(),
                format!("{ratio:.4}"),
                format!("{least:.4}"),
                format!("{most:.4}"),
                lane.seconds.len().to_string(),
                outcome.repeated.to_string(),
                outcome.disturbed.to_string(),
                quoted(&outcome.bars.text()),
                quoted(outcome.verdict().text()),
                quoted(&outcome.note),
            ];
            text += &cells.join(",");
            text.push('\n');
        }
    }
    text
}

fn unit(outcome: &Outcome) -> &'static str {
    use crate::verdict::Work;
    match outcome.work {
        Work::Floats(_) => "FLOP/s",
        Work::Integers(_) => "OP/s",
        Work::Bytes(_) => "B/s",
        Work::Once => "",
    }
}

/// A cell as RFC 4180 has it: in quotes where it contains what separates cells.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::tests::{lane, outcome};
    use crate::verdict::{Bars, Work};

    fn outcomes() -> Vec<Outcome> {
        let bars = Bars { peer: Some(0.95), limit: Some(0.9), seconds: None };
        let matmul = outcome(
            bars,
            vec![
                lane("ours", Role::Ours, &[0.01, 0.0101, 0.0102]),
                lane("OpenBLAS", Role::Peer, &[0.0099, 0.0099, 0.0099]),
                lane("FMA", Role::Limit, &[0.009, 0.009, 0.009]),
            ],
        );
        let launch = Outcome {
            title: "launch, small".to_owned(),
            threads: 1,
            work: Work::Once,
            note: String::new(),
            repeated: 0,
            disturbed: 0,
            ..outcome(
                Bars { seconds: Some(2e-6), ..Bars::default() },
                vec![lane("ours", Role::Ours, &[4.8e-7])],
            )
        };
        vec![matmul, launch]
    }

    #[test]
    fn a_row_is_read_at_once() {
        let expected = "                  threads         ours    best peer                 ours ÷ peer        limit  of limit  bar             met
matmul f32 1024³        2  198 GFLOP/s  202 GFLOP/s  OpenBLAS  0.98 (0.97–0.99)  222 GFLOP/s      89 %  ≥ 0.95, ≥ 90 %   NO
launch, small           1      0.48 µs                                                                  ≤ 2.00 µs       yes
";
        assert_eq!(table(&outcomes()), expected);
    }

    #[test]
    fn everyone_is_listed() {
        let expected = "  matmul f32 1024³, 2 threads: ours 198 GFLOP/s · OpenBLAS 202 GFLOP/s · FMA 222 GFLOP/s · BM = 64\n  \
                        launch, small, 1 thread: ours 0.48 µs\n";
        assert_eq!(everyone(&outcomes()), expected);
    }

    #[test]
    fn the_summary_says_how_quiet_it_was() {
        let text = summary(&outcomes());
        assert!(text.starts_with("1 of 2 rows with bars meet them.\n3 rounds were repeated"), "{text}");
        assert!(text.contains("90 % of its best") && text.contains("1 of the 4 rounds"), "{text}");
    }

    #[test]
    fn csv_has_a_line_for_each_contestant() {
        let text = csv(&outcomes());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        assert_eq!(
            lines[2],
            "matmul f32 1024³,2,OpenBLAS,peer,9.900000e-3,9.900000e-3,9.900000e-3,2.020202e11,FLOP/s,0.9802,0.9706,\
             0.9900,3,3,1,\"≥ 0.95, ≥ 90 %\",NO,BM = 64"
        );
        assert_eq!(
            lines[4],
            "\"launch, small\",1,ours,ours,4.800000e-7,4.800000e-7,4.800000e-7,,,1.0000,1.0000,1.0000,1,0,0,\
             ≤ 2.00 µs,yes,"
        );
        // Cells in quotes have commas of their own.
        let plain = |line: &&&str| !line.contains('"');
        let commas: Vec<usize> = lines.iter().filter(plain).map(|line| line.matches(',').count()).collect();
        assert_eq!(commas, [17]);
        assert_eq!(quoted("a \"b\""), "\"a \"\"b\"\"\"");
    }
}
