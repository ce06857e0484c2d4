//! Inference of element types: unknown formats are placeholders that unification replaces.
//!
//! A placeholder is an [`Elem::Param`] whose name begins with `?`, so that IR can be built before formats
//! are known; [`Elements::resolve`] gives what a format is known to be by now.

use tile_ir::Elem;

/// The placeholders of a kernel.
#[derive(Default)]
pub(crate) struct Elements {
    /// What each placeholder stands for, possibly another placeholder.
    known: Vec<Option<Elem>>,
}

impl Elements {
    /// A format that nothing is known of yet.
    pub(crate) fn unknown(&mut self) -> Elem {
        self.known.push(None);
        Elem::Param(format!("?{}", self.known.len() - 1))
    }

    fn placeholder(elem: &Elem) -> Option<usize> {
        match elem {
            Elem::Param(name) => name.strip_prefix('?')?.parse().ok(),
            Elem::Known(_) => None,
        }
    }

    /// Whether a resolved format is still unknown.
    pub(crate) fn is_unknown(elem: &Elem) -> bool {
        Self::placeholder(elem).is_some()
    }

    /// What a format is known to be.
    pub(crate) fn resolve(&self, elem: &Elem) -> Elem {
        match Self::placeholder(elem).and_then(|i| self.known[i].as_ref()) {
            Some(next) => self.resolve(next),
            None => elem.clone(),
        }
    }

    /// Makes two formats one; `false` where they are known to differ.
    pub(crate) fn unify(&mut self, a: &Elem, b: &Elem) -> bool {
        let (a, b) = (self.resolve(a), self.resolve(b));
        if a == b {
            return true;
        }
        match (Self::placeholder(&a), Self::placeholder(&b)) {
            (Some(i), _) => self.known[i] = Some(b),
            (_, Some(i)) => self.known[i] = Some(a),
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tile_ir::DType;

    #[test]
    fn unification_is_transitive_and_refuses_conflicts() {
        let mut elements = Elements::default();
        let (a, b) = (elements.unknown(), elements.unknown());
        assert!(elements.unify(&a, &b));
        assert!(Elements::is_unknown(&elements.resolve(&a)));
        assert!(elements.unify(&b, &DType::F32.into()));
        assert_eq!(elements.resolve(&a), Elem::Known(DType::F32));
        assert!(!elements.unify(&a, &DType::I32.into()));
        assert!(!elements.unify(&Elem::Param("T".into()), &DType::F32.into()));
    }
}
