//! Tables of counts: one row per instance and target, one column per thing that is counted. Printed as Markdown, read
//! back from it, and compared.

use std::fmt::Write;

/// Which change of a count is for the worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The fewer the better.
    Few,
    /// At least one, if there was one before: how many there are says little.
    Present,
    /// Any number.
    Any,
}

/// A column: how it is called, what it counts, and how it is read off what was measured.
pub(super) struct Column<M> {
    pub(super) head: &'static str,
    pub(super) meaning: &'static str,
    pub(super) wanted: Wanted,
    pub(super) of: fn(&M) -> u64,
}

impl<M> Column<M> {
    /// A column, of a table that is constant.
    pub(super) const fn new(
        head: &'static str,
        meaning: &'static str,
        wanted: Wanted,
        of: fn(&M) -> u64,
    ) -> Column<M> {
        Column { head, meaning, wanted, of }
    }
}

/// One instance on one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) instance: String,
    pub(super) target: String,
    pub(super) counts: Vec<u64>,
}

/// What a column is to a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) name: &'static str,
    pub(super) meaning: &'static str,
    pub(super) wanted: Wanted,
}

/// A table of one vendor's GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) title: &'static str,
    pub(super) heads: Vec<Head>,
    pub(super) rows: Vec<Row>,
}

/// What differs between two tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) worse: Vec<String>,
    pub(super) better: Vec<String>,
    pub(super) other: Vec<String>,
}

impl Table {
    /// A table without rows.
    pub(super) fn new<M>(title: &'static str, columns: &[Column<M>]) -> Table {
        let head =
            |column: &Column<M>| Head { name: column.head, meaning: column.meaning, wanted: column.wanted };
        Table { title, heads: columns.iter().map(head).collect(), rows: Vec::new() }
    }

    /// The rows of the table with this title in a page, in place of this table's own.
    ///
    /// # Errors
    /// Where a row isn't one of this table's: it has other columns, or a cell that is no number.
    pub(super) fn recorded(&self, page: &str) -> Result<Table, String> {
        let section = page.split("\n## ").find(|section| section.starts_with(self.title)).unwrap_or("");
        let lines = section.lines().filter(|line| line.starts_with("| `"));
        let rows: Result<Vec<Row>, String> = lines.map(|line| self.row(line)).collect();
        Ok(Table { rows: rows?, ..self.clone() })
    }

    fn row(&self, line: &str) -> Result<Row, String> {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let wrong = || format!("this row doesn't have the columns of the table:\n{line}");
        let [instance, target, counts @ ..] = cells.as_slice() else { return Err(wrong()) };
        let counts: Result<Vec<u64>, _> = counts.iter().map(|count| count.parse::<u64>()).collect();
        let counts = counts.ok().filter(|counts| counts.len() == self.heads.len()).ok_or_else(wrong)?;
        Ok(Row { instance: instance.trim_matches('`').to_owned(), target: (*target).to_owned(), counts })
    }

    /// The table in Markdown.
    pub(super) fn markdown(&self) -> String {
        let heads: Vec<&str> = self.heads.iter().map(|head| head.name).collect();
        let mut text = format!("| kernel | target | {} |\n|---|---|", heads.join(" | "));
        text += &"---:|".repeat(heads.len());
        text.push('\n');
        for Row { instance, target, counts } in &self.rows {
            let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
            let _ = writeln!(text, "| `{instance}` | {target} | {} |", counts.join(" | "));
        }
        text
    }

    /// What is different from a recorded table.
    pub(super) fn changes_since(&self, recorded: &Table) -> Changes {
        let mut changes = Changes::default();
        for row in &self.rows {
            match recorded.rows.iter().find(|old| old.place() == row.place()) {
                Some(old) => self.compare(old, row, &mut changes),
                None => changes.other.push(format!("{} is not recorded", row.place())),
            }
        }
        let gone = recorded.rows.iter().filter(|old| self.rows.iter().all(|row| row.place() != old.place()));
        changes.worse.extend(gone.map(|old| format!("{} has no code any more", old.place())));
        changes
    }

    fn compare(&self, old: &Row, new: &Row, changes: &mut Changes) {
        for (head, (old_count, new_count)) in self.heads.iter().zip(old.counts.iter().zip(&new.counts)) {
            if old_count == new_count {
                continue;
            }
            let list = match head.wanted {
                Wanted::Few if new_count > old_count => &mut changes.worse,
                Wanted::Present if *new_count == 0 => &mut changes.worse,
                Wanted::Few => &mut changes.better,
                Wanted::Present if *old_count == 0 => &mut changes.better,
                Wanted::Present | Wanted::Any => &mut changes.other,
            };
            list.push(format!("{}: {} {old_count} → {new_count}", new.place(), head.name));
        }
    }
}

impl Row {
    fn place(&self) -> String {
        format!("{} on {}", self.instance, self.target)
    }
}

impl Changes {
    pub(super) fn extend(&mut self, more: Changes) {
        self.worse.extend(more.worse);
        self.better.extend(more.better);
        self.other.extend(more.other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column<[u64; 3]>; 3] = [
        Column { head: "registers", meaning: "", wanted: Wanted::Few, of: |counts| counts[0] },
        Column { head: "MMA", meaning: "", wanted: Wanted::Present, of: |counts| counts[1] },
        Column { head: "SHFL", meaning: "", wanted: Wanted::Any, of: |counts| counts[2] },
    ];

    fn table(rows: &[(&str, [u64; 3])]) -> Table {
        let row = |&(instance, counts): &(&str, [u64; 3])| Row {
            instance: instance.to_owned(),
            target: "sm_80".to_owned(),
            counts: COLUMNS.iter().map(|column| (column.of)(&counts)).collect(),
        };
        Table { rows: rows.iter().map(row).collect(), ..Table::new("NVIDIA", &COLUMNS) }
    }

    #[test]
    fn a_table_is_read_back_as_it_was_written() {
        let table = table(&[("add(B=4)", [10, 0, 5]), ("gemm(T=f16, BM=64)", [255, 128, 0])]);
        let page = format!("# Page\n\n## AMD\n\n| `x` | y | 1 |\n\n## NVIDIA\n\n{}", table.markdown());
        assert_eq!(table.recorded(&page), Ok(table.clone()));
        let wrong = page.replace("| 255 |", "|");
        let error = table.recorded(&wrong).unwrap_err();
        assert!(error.ends_with("| `gemm(T=f16, BM=64)` | sm_80 | 128 | 0 |"), "{error}");
    }

    #[test]
    fn a_change_is_for_the_worse_or_the_better_by_its_column() {
        let old = table(&[("a", [10, 8, 5]), ("b", [10, 8, 5]), ("c", [9, 0, 5]), ("gone", [1, 1, 1])]);
        let new = table(&[("a", [12, 0, 6]), ("b", [9, 4, 5]), ("c", [9, 1, 5]), ("new", [1, 1, 1])]);
        let changes = new.changes_since(&old);
        let worse =
            ["a on sm_80: registers 10 → 12", "a on sm_80: MMA 8 → 0", "gone on sm_80 has no code any more"];
        assert_eq!(changes.worse, worse);
        assert_eq!(changes.better, ["b on sm_80: registers 10 → 9", "c on sm_80: MMA 0 → 1"]);
        let other = ["a on sm_80: SHFL 5 → 6", "b on sm_80: MMA 8 → 4", "new on sm_80 is not recorded"];
        assert_eq!(changes.other, other);
        assert_eq!(new.changes_since(&new), Changes::default());
    }
}
