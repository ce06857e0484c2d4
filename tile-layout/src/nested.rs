//! Lists of modes with brackets around them: what static and symbolic layouts have in common.
//!
//! Knows how modes nest, and nothing of what a mode is.

use crate::error::{ErrorKind, LayoutError, Result};
use crate::tuple::IntTuple;
use crate::tuple::{INLINE, Nesting, children, is_leaf, leaf_count, rank};
use alloc::format;
use alloc::string::String;
use smallvec::SmallVec;

/// A borrowed layout or subtree of one.
pub(crate) struct Nested<'a, M> {
    pub(crate) modes: &'a [M],
    pub(crate) tokens: &'a [u32],
}

impl<M> Clone for Nested<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Nested<'_, M> {}

impl<'a, M> Nested<'a, M> {
    pub(crate) fn is_leaf(self) -> bool {
        is_leaf(self.tokens)
    }

    /// Number of top-level modes; a leaf is its own only one.
    pub(crate) fn rank(self) -> usize {
        rank(self.tokens)
    }

    pub(crate) fn children(self) -> impl Iterator<Item = Nested<'a, M>> {
        let mut modes = self.modes;
        children(self.tokens).map(move |tokens| {
            let (own, rest) = modes.split_at(leaf_count(tokens));
            modes = rest;
            Nested { modes: own, tokens }
        })
    }

    pub(crate) fn nesting(self) -> Nesting {
        let mut nesting = Nesting::empty();
        nesting.push(self.tokens);
        nesting
    }
}

/// A layout under construction: modes and brackets are appended, checks wait for the end.
pub(crate) struct NestedBuilder<M> {
    pub(crate) modes: SmallVec<[M; INLINE]>,
    pub(crate) nesting: Nesting,
}

impl<M: Clone> NestedBuilder<M> {
    pub(crate) fn new() -> Self {
        NestedBuilder { modes: SmallVec::new(), nesting: Nesting::empty() }
    }

    /// Begin a tuple of `count` modes, which are appended next.
    pub(crate) fn open(&mut self, count: usize) {
        self.nesting.open(count);
    }

    pub(crate) fn push(&mut self, part: Nested<'_, M>) {
        self.modes.extend(part.modes.iter().cloned());
        self.nesting.push(part.tokens);
    }

    pub(crate) fn push_leaf(&mut self, mode: M) {
        self.modes.push(mode);
        self.nesting.push_leaf();
    }

    /// Append one mode made of `modes`: a leaf where there is one, `unit` where there is none, else a tuple.
    pub(crate) fn push_joined(&mut self, modes: &[M], unit: M) {
        match modes {
            [] => self.push_leaf(unit),
            [one] => self.push_leaf(one.clone()),
            many => {
                self.open(many.len());
                many.iter().for_each(|mode| self.push_leaf(mode.clone()));
            }
        }
    }

    /// What was appended so far; complete once every bracket is.
    pub(crate) fn part(&self) -> Nested<'_, M> {
        Nested { modes: &self.modes, tokens: self.nesting.tokens() }
    }
}

/// Append to `builder` what `join` makes of the modes below each leaf of `profile`; modes beyond the profile as they
/// are. `print` shows a part in the refusal of a profile with more modes than it has.
pub(crate) fn push_by_profile<M: Clone>(
    builder: &mut NestedBuilder<M>,
    part: Nested<'_, M>,
    profile: &IntTuple,
    join: &impl Fn(&mut NestedBuilder<M>, &[M]),
    print: &impl Fn(Nested<'_, M>) -> String,
) -> Result<()> {
    if profile.is_leaf() {
        join(builder, part.modes);
        return Ok(());
    }
    if part.is_leaf() || profile.rank() > part.rank() {
        return Err(LayoutError::new(
            ErrorKind::Rank,
            format!("profile {profile} has more modes than {}", print(part)),
        ));
    }
    builder.open(part.rank());
    let mut profiles = profile.modes();
    part.children().try_for_each(|mode| match profiles.next() {
        Some(profile) => push_by_profile(builder, mode, &profile, join, print),
        None => {
            builder.push(mode);
            Ok(())
        }
    })
}
