//! Functions that other modules can't be given: because what they call themselves isn't known yet, or because they are
//! refused. Where rustc finds the function of none of them, messages say so of them rather than that they aren't there.
//!
//! Macros of one crate run in one process, which is what remembers. A path may mean something else elsewhere, and only
//! its last name is compared: nothing but the words of an error depends on it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tile_frontend::path_text;

/// What each of these functions waits for, by its name: the function at a path, or nothing, where it is refused.
static WAITING: Mutex<BTreeMap<String, Option<String>>> = Mutex::new(BTreeMap::new());

fn waiting() -> MutexGuard<'static, BTreeMap<String, Option<String>>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that a function waits for the one at a path, or that it waits no longer.
pub(crate) fn note(function: &syn::Ident, path: Option<&syn::Path>) {
    match path {
        Some(path) => waiting().insert(function.to_string(), Some(path_text(path))),
        None => waiting().remove(&function.to_string()),
    };
}

/// Notes that a function is refused.
pub(crate) fn note_refused(function: &syn::Ident) {
    waiting().insert(function.to_string(), None);
}

/// What isn't right of the function of this path.
pub(crate) fn of(path: &syn::Path) -> Option<String> {
    let waits_for = waiting().get(last_name(&path_text(path))).cloned()?;
    Some(waits_for.map_or("its definition".to_owned(), |called| format!("its own call of `{called}`")))
}

/// The names of the functions that a function calls itself by, from the one at this path on, if it does.
pub(crate) fn circle(function: &syn::Ident, path: &syn::Path) -> Option<Vec<String>> {
    let (start, waiting) = (function.to_string(), waiting());
    let mut next = last_name(&path_text(path)).to_owned();
    let mut names = Vec::new();
    while next != start {
        if names.contains(&next) {
            return None;
        }
        let after = last_name(waiting.get(&next)?.as_ref()?).to_owned();
        names.push(std::mem::replace(&mut next, after));
    }
    Some(names)
}

fn last_name(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}
