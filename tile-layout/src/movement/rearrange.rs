//! The notation of einops: a formula read into a reshape, a permutation and another reshape.

use crate::error::{ErrorKind, LayoutError, Result};
use crate::tuple::product;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

/// What a formula does to a shape.
pub(super) struct Plan {
    /// Every axis by itself.
    pub(super) split: Vec<i64>,
    /// Where each axis of the result comes from.
    pub(super) order: Vec<i64>,
    /// Axes joined again.
    pub(super) joined: Vec<i64>,
}

/// One place of one side: a name, an axis of extent 1, or the axes without a name.
#[derive(Clone, PartialEq, Eq)]
enum Term {
    Name(String),
    One,
    Ellipsis,
}

/// A side of the formula: each axis of the tensor as a group of terms.
struct Side {
    groups: Vec<Group>,
}

struct Group {
    terms: Vec<Term>,
    bracketed: bool,
}

fn invalid(formula: &str, why: impl core::fmt::Display) -> LayoutError {
    LayoutError::new(ErrorKind::InvalidFormula, format!("formula `{formula}`: {why}"))
}

fn read_side(formula: &str, text: &str) -> Result<Side> {
    let spaced = text.replace("...", " … ").replace('…', " … ").replace('(', " ( ").replace(')', " ) ");
    let mut groups: Vec<Group> = Vec::new();
    let mut open = false;
    for word in spaced.split_whitespace() {
        match (word, open) {
            ("(", false) => {
                open = true;
                groups.push(Group { terms: Vec::new(), bracketed: true });
            }
            (")", true) => open = false,
            ("(" | ")", _) => return Err(invalid(formula, "brackets do not match, or nest")),
            (word, _) => {
                let term = read_term(formula, word)?;
                match groups.last_mut() {
                    Some(group) if open => group.terms.push(term),
                    _ => groups.push(Group { terms: vec![term], bracketed: false }),
                }
            }
        }
    }
    if open {
        return Err(invalid(formula, "brackets do not match, or nest"));
    }
    Ok(Side { groups })
}

fn read_term(formula: &str, word: &str) -> Result<Term> {
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match word {
        "…" => Ok(Term::Ellipsis),
        "1" => Ok(Term::One),
        _ if word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word.chars().all(letters)
            && !word.ends_with('_') =>
        {
            Ok(Term::Name(word.to_string()))
        }
        _ => Err(invalid(
            formula,
            format_args!("`{word}` is no axis: a name begins with a letter and does not end with `_`"),
        )),
    }
}

impl Side {
    fn terms(&self) -> impl Iterator<Item = &Term> {
        self.groups.iter().flat_map(|group| &group.terms)
    }

    fn names(&self) -> Vec<&str> {
        self.terms().filter_map(Term::name).collect()
    }
}

impl Term {
    fn name(&self) -> Option<&str> {
        match self {
            Term::Name(name) => Some(name),
            Term::One | Term::Ellipsis => None,
        }
    }
}

fn read(formula: &str) -> Result<(Side, Side)> {
    let mut sides = formula.split("->");
    let (Some(left), Some(right), None) = (sides.next(), sides.next(), sides.next()) else {
        return Err(invalid(formula, "needs exactly one `->`"));
    };
    let (left, right) = (read_side(formula, left)?, read_side(formula, right)?);
    for side in [&left, &right] {
        let names = side.names();
        if let Some(twice) = (1..names.len()).find(|&at| names[..at].contains(&names[at])) {
            return Err(invalid(formula, format_args!("axis `{}` is named twice on one side", names[twice])));
        }
        if side.terms().filter(|term| **term == Term::Ellipsis).count() > 1 {
            return Err(invalid(formula, "a side has one ellipsis at most"));
        }
    }
    let (mut own, mut other) = (left.names(), right.names());
    own.sort_unstable();
    other.sort_unstable();
    let ellipsis = |side: &Side| side.terms().any(|term| *term == Term::Ellipsis);
    if own != other || ellipsis(&left) != ellipsis(&right) {
        return Err(invalid(formula, "both sides must name the same axes"));
    }
    if left.groups.iter().any(|group| group.bracketed && group.terms.contains(&Term::Ellipsis)) {
        return Err(invalid(formula, "an ellipsis on the left cannot stand in brackets"));
    }
    Ok((left, right))
}

/// One axis of the split tensor.
struct Part {
    term: Term,
    extent: i64,
}

pub(super) fn plan(shape: &[i64], formula: &str, sizes: &[(&str, i64)]) -> Result<Plan> {
    let (left, right) = read(formula)?;
    let names = left.names();
    if let Some((name, _)) = sizes.iter().find(|(name, _)| !names.contains(name)) {
        return Err(invalid(formula, format_args!("a size is given for `{name}`, which is no axis")));
    }
    let parts = split(shape, formula, &left, sizes)?;
    let mut order = Vec::new();
    let mut joined = Vec::new();
    // Axes of extent 1 without a name come anew where the right side has them; those of the left go last, unseen.
    for group in &right.groups {
        let members: Vec<(usize, &Part)> = group
            .terms
            .iter()
            .filter(|term| **term != Term::One)
            .flat_map(|term| with(&parts, term))
            .collect();
        let extents = members.iter().map(|(_, part)| part.extent);
        if !group.bracketed && group.terms == [Term::Ellipsis] {
            joined.extend(extents);
        } else {
            joined.push(product(&extents.collect::<Vec<_>>())?);
        }
        order.extend(members.iter().map(|(place, _)| *place as i64));
    }
    order.extend(with(&parts, &Term::One).map(|(place, _)| place as i64));
    Ok(Plan { split: parts.iter().map(|part| part.extent).collect(), order, joined })
}

/// The parts that stand for a term, with their places.
fn with<'a>(parts: &'a [Part], term: &'a Term) -> impl Iterator<Item = (usize, &'a Part)> {
    parts.iter().enumerate().filter(move |(_, part)| part.term == *term)
}

/// Every group of the left side as its parts.
fn split(shape: &[i64], formula: &str, left: &Side, sizes: &[(&str, i64)]) -> Result<Vec<Part>> {
    let has_ellipsis = left.terms().any(|term| *term == Term::Ellipsis);
    let named = left.groups.len() - usize::from(has_ellipsis);
    let unnamed = match shape.len().checked_sub(named) {
        Some(unnamed) if has_ellipsis || unnamed == 0 => unnamed,
        _ => {
            return Err(LayoutError::new(
                ErrorKind::Rank,
                format!("formula `{formula}` names {named} axes of a tensor of {}", shape.len()),
            ));
        }
    };
    let mut parts = Vec::new();
    let mut place = 0;
    for group in &left.groups {
        if group.terms == [Term::Ellipsis] {
            let own = &shape[place..place + unnamed];
            parts.extend(own.iter().map(|&extent| Part { term: Term::Ellipsis, extent }));
            place += unnamed;
        } else {
            parts.extend(split_axis(formula, place, shape[place], group, sizes)?);
            place += 1;
        }
    }
    Ok(parts)
}

/// One axis as the terms of its group, of which one at most may be without a size.
fn split_axis(
    formula: &str,
    place: usize,
    extent: i64,
    group: &Group,
    sizes: &[(&str, i64)],
) -> Result<Vec<Part>> {
    let given = |term: &Term| match term {
        Term::One => Some(1),
        term => sizes.iter().find(|(name, _)| term.name() == Some(name)).map(|&(_, size)| size),
    };
    let lengths: Vec<Option<i64>> = group.terms.iter().map(given).collect();
    let known: Vec<i64> = lengths.iter().copied().flatten().collect();
    let open = lengths.len() - known.len();
    if let Some(size) = known.iter().find(|&&size| size < 0) {
        return Err(invalid(formula, format_args!("size {size} is negative")));
    }
    let known = product(&known)?;
    let rest = match open {
        0 if known == extent => 1,
        1 if known > 0 && extent % known == 0 => extent / known,
        0 | 1 => {
            return Err(LayoutError::at(
                ErrorKind::SizeMismatch,
                &[place],
                format!(
                    "formula `{formula}`: axis {place} of extent {extent} does not split into sizes of {known}"
                ),
            ));
        }
        _ => {
            return Err(LayoutError::at(
                ErrorKind::AmbiguousExtent,
                &[place],
                format!(
                    "formula `{formula}`: {open} sizes of axis {place} are open, one at most can be inferred"
                ),
            ));
        }
    };
    let part =
        |(term, length): (&Term, Option<i64>)| Part { term: term.clone(), extent: length.unwrap_or(rest) };
    Ok(group.terms.iter().zip(lengths).map(part).collect())
}
