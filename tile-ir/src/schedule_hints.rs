//! What a kernel's author says of how GPUs schedule it, where the schedule would choose by itself. Like those of views
//! ([`crate::ops::Hints`]) these hints change how long a kernel takes, never a result: a CPU has no use for them, and a GPU
//! goes as far as it can.
//!
//! A hint is a number of an instance: a literal, or made of const parameters, so that instances which differ in nothing else
//! can be compared.

use crate::dim::Dim;
use crate::ops::TypeError;
use std::collections::BTreeMap;
use std::fmt;

/// What there is a hint for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScheduleHint {
    /// The threads of a block that hold its tiles, without those that only copy.
    Threads,
    /// The turns of a loop whose tiles shared memory has room for, where they are copied ahead: as many as fit.
    Stages,
    /// The blocks that are to run on a multiprocessor at once: registers and shared memory are shared out by that.
    Occupancy,
}

/// A hint in words: how it is written, and which numbers it may be.
struct Wording {
    name: &'static str,
    least: i64,
    most: i64,
    powers_of_two: bool,
}

/// The fewest stages: one is read while another is filled.
pub(crate) const LEAST_STAGES: u64 = 2;

/// The most stages.
pub(crate) const MOST_STAGES: u64 = 8;

impl ScheduleHint {
    /// All, in the order in which text has them.
    pub const ALL: [ScheduleHint; 3] = [ScheduleHint::Threads, ScheduleHint::Stages, ScheduleHint::Occupancy];

    const fn wording(self) -> Wording {
        let (name, least, most, powers_of_two) = match self {
            ScheduleHint::Threads => ("threads", 32, 1024, true),
            ScheduleHint::Stages => ("stages", LEAST_STAGES as i64, MOST_STAGES as i64, false),
            ScheduleHint::Occupancy => ("occupancy", 1, 32, false),
        };
        Wording { name, least, most, powers_of_two }
    }

    /// As attributes and IR text have it: `threads`.
    ///
    /// ```
    /// use tile_ir::ScheduleHint;
    /// assert_eq!(ScheduleHint::Occupancy.name(), "occupancy");
    /// assert_eq!(ScheduleHint::named("stages"), Some(ScheduleHint::Stages));
    /// ```
    pub const fn name(self) -> &'static str {
        self.wording().name
    }

    /// The hint of a name.
    pub fn named(name: &str) -> Option<ScheduleHint> {
        ScheduleHint::ALL.into_iter().find(|hint| hint.name() == name)
    }

    /// Refuses a number that it can't be, and one that is known at run time only.
    ///
    /// ```
    /// use tile_ir::{Dim, ScheduleHint};
    /// let refused = ScheduleHint::Threads.check(&Dim::from(100)).unwrap_err();
    /// assert_eq!(refused.message, "`threads` can't be 100");
    /// assert_eq!(refused.help.as_deref(), Some("it is a power of two from 32 to 1024"));
    /// ```
    ///
    /// # Errors
    /// [`TypeError`], which says what it may be.
    pub fn check(self, value: &Dim) -> Result<(), TypeError> {
        let Wording { name, least, most, powers_of_two } = self.wording();
        if !value.is_static() {
            let message = format!("`{name} = {value}` is known only at run time");
            return Err(TypeError::new(message).help("use a literal or const parameters"));
        }
        let is_allowed = |number: i64| {
            (least..=most).contains(&number) && (!powers_of_two || number.cast_unsigned().is_power_of_two())
        };
        if value.as_const().is_none_or(is_allowed) {
            return Ok(());
        }
        let kind = if powers_of_two { "a power of two from" } else { "a number from" };
        Err(TypeError::new(format!("`{name}` can't be {value}"))
            .help(format!("it is {kind} {least} to {most}")))
    }
}

/// The hints of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduleHints(BTreeMap<ScheduleHint, Dim>);

impl ScheduleHints {
    /// Says one; what was said of it before is given back.
    pub fn say(&mut self, hint: ScheduleHint, value: Dim) -> Option<Dim> {
        self.0.insert(hint, value)
    }

    /// Those that are said, in the order of [`ScheduleHint::ALL`].
    pub fn said(&self) -> impl Iterator<Item = (ScheduleHint, &Dim)> {
        self.0.iter().map(|(&hint, value)| (hint, value))
    }

    /// What an instance says; `None` where the schedule chooses.
    pub fn of(&self, hint: ScheduleHint) -> Option<u64> {
        self.0.get(&hint)?.as_const().map(i64::cast_unsigned)
    }

    /// The hints with parameters substituted.
    pub fn map(&self, dim: impl Fn(&Dim) -> Dim) -> ScheduleHints {
        ScheduleHints(self.said().map(|(hint, value)| (hint, dim(value))).collect())
    }
}

/// As in IR text, each with a space before it: ` threads 256 stages S`.
impl fmt::Display for ScheduleHints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.said().try_for_each(|(hint, value)| write!(f, " {} {value}", hint.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_range() {
        let allowed = |hint: ScheduleHint| {
            let numbers = [0, 1, 2, 8, 9, 32, 48, 1024, 2048, -32];
            numbers.into_iter().filter(|&number| hint.check(&Dim::from(number)).is_ok()).collect::<Vec<_>>()
        };
        assert_eq!(allowed(ScheduleHint::Threads), [32, 1024]);
        assert_eq!(allowed(ScheduleHint::Stages), [2, 8]);
        assert_eq!(allowed(ScheduleHint::Occupancy), [1, 2, 8, 9, 32]);
    }

    #[test]
    fn the_last_word_counts() {
        let mut hints = ScheduleHints::default();
        assert_eq!(hints.say(ScheduleHint::Stages, Dim::from(3)), None);
        assert_eq!(hints.say(ScheduleHint::Stages, Dim::from(4)), Some(Dim::from(3)));
        hints.say(ScheduleHint::Threads, Dim::from(128));
        assert_eq!(hints.to_string(), " threads 128 stages 4");
        assert_eq!(ScheduleHint::ALL.map(|hint| hints.of(hint)), [Some(128), Some(4), None]);
    }
}
