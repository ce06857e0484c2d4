//! Patterns that bind a name in one of several alternatives: `(1, x) | (x, 1)`, of which the first that fits says what `x` is.

use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{Ident, Pat, PatIdent, PatOr};

/// A pattern as alternatives none of which binds a name in one of several, in the order in which Rust tries them.
pub(super) fn of(pattern: &Pat, is_constant: &dyn Fn(&Ident) -> bool) -> Vec<Pat> {
    let taken = |case| {
        let (mut pattern, mut take) = (pattern.clone(), Take { case, of: None, is_constant });
        take.visit_pat_mut(&mut pattern);
        (pattern, take.of)
    };
    let (first, count) = taken(0);
    match count {
        None => vec![first],
        Some(count) => (0..count).flat_map(|case| of(&taken(case).0, is_constant)).collect(),
    }
}

/// Puts one of the cases in place of the first `a | b` that binds a name.
struct Take<'c> {
    case: usize,
    /// How many there are, once they are found.
    of: Option<usize>,
    is_constant: &'c dyn Fn(&Ident) -> bool,
}

impl Take<'_> {
    fn binds(&self, either: &PatOr) -> bool {
        struct Names<'c>(&'c dyn Fn(&Ident) -> bool, bool);
        impl Visit<'_> for Names<'_> {
            fn visit_pat_ident(&mut self, pattern: &PatIdent) {
                self.1 |= !(self.0)(&pattern.ident);
                visit::visit_pat_ident(self, pattern);
            }
        }
        let mut names = Names(self.is_constant, false);
        names.visit_pat_or(either);
        names.1
    }
}

impl VisitMut for Take<'_> {
    fn visit_pat_mut(&mut self, pattern: &mut Pat) {
        if self.of.is_some() {
            return;
        }
        let Pat::Or(either) = pattern else { return visit_mut::visit_pat_mut(self, pattern) };
        if !self.binds(either) {
            return;
        }
        self.of = Some(either.cases.len());
        let case = either.cases.iter().nth(self.case).cloned();
        case.into_iter().for_each(|case| *pattern = case);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::ToTokens;
    use syn::parse::Parser;

    fn alternatives(pattern: &str) -> Vec<String> {
        let pattern = Pat::parse_multi_with_leading_vert.parse_str(pattern).unwrap();
        let all = of(&pattern, &|name| name == "N");
        all.iter().map(|pattern| pattern.to_token_stream().to_string().replace(' ', "")).collect()
    }

    #[test]
    fn a_pattern_that_binds_in_its_alternatives_is_several() {
        assert_eq!(alternatives("(1 | N, x @ (2 | 3))"), ["(1|N,x@(2|3))"]);
        assert_eq!(alternatives("(1, x) | (x, 1 | N)"), ["(1,x)", "(x,1|N)"]);
        assert_eq!(
            alternatives("(S { a: (1, x) | (x, 1) }, [y, ..] | [.., y])"),
            ["(S{a:(1,x)},[y,..])", "(S{a:(1,x)},[..,y])", "(S{a:(x,1)},[y,..])", "(S{a:(x,1)},[..,y])"]
        );
    }
}
