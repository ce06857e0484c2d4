//! When tests that try as much as there is time for begin nothing more. Without the environment variable [`UNTIL`] they try
//! what they always do.

use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The environment variable with that moment, in seconds since 1970; `cargo xtask fuzz` sets it.
const UNTIL: &str = "TILE_FUZZ_UNTIL";

static DEADLINE: LazyLock<Option<SystemTime>> = LazyLock::new(|| {
    let seconds = std::env::var(UNTIL).ok()?;
    let seconds =
        seconds.parse().unwrap_or_else(|_| panic!("{UNTIL} is `{seconds}`, which isn't a number of seconds"));
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
});

/// Whether nothing more is to be begun.
pub(crate) fn is_past() -> bool {
    DEADLINE.is_some_and(|deadline| SystemTime::now() >= deadline)
}
