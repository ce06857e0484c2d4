//! Inference of element types: unknown formats are placeholders that unification replaces.
//!
//! A placeholder is an [`Elem::Param`] whose name begins with `?`, so that IR can be built before formats
//! are known; [`Elements::resolve`] gives what a format is known to be by now. What makes a tile may leave it a
//! choice of formats, as a product does with its sums: another one is refused where it is asked for.

use tile_ir::Elem;

/// The formats that elements may have, for messages.
pub(crate) const FORMATS: &str = "bool, i8 … u64, f8e4m3fn, f8e5m2, f8e8m0fnu, f16, bf16, f32, f64";

/// The placeholders of a kernel.
#[derive(Default)]
pub(crate) struct Elements {
    known: Vec<Known>,
}

/// What is known of a placeholder.
enum Known {
    Nothing,
    /// It is one of these; the first is the usual one. There is at least one.
    OneOf(Vec<Elem>),
    /// What it stands for, possibly another placeholder.
    Is(Elem),
}

impl Elements {
    /// A format that nothing is known of yet.
    pub(crate) fn unknown(&mut self) -> Elem {
        self.placed(Known::Nothing)
    }

    /// A format that is one of these, the usual one first, or a type parameter that may be; of none nothing is known.
    pub(crate) fn one_of(&mut self, formats: Vec<Elem>) -> Elem {
        self.placed(if formats.is_empty() { Known::Nothing } else { Known::OneOf(formats) })
    }

    fn placed(&mut self, known: Known) -> Elem {
        self.known.push(known);
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

    /// The formats that an unknown one may be, where it is known that it is one of several.
    pub(crate) fn choices(&self, elem: &Elem) -> &[Elem] {
        match Self::placeholder(&self.resolve(elem)).map(|i| &self.known[i]) {
            Some(Known::OneOf(formats)) => formats,
            _ => &[],
        }
    }

    /// What a format is known to be.
    pub(crate) fn resolve(&self, elem: &Elem) -> Elem {
        match Self::placeholder(elem).map(|i| &self.known[i]) {
            Some(Known::Is(next)) => self.resolve(next),
            _ => elem.clone(),
        }
    }

    /// Makes two formats one; `false` where they are known to differ. One that had a choice is then the usual one of it,
    /// so that messages can say what it is.
    pub(crate) fn unify(&mut self, a: &Elem, b: &Elem) -> bool {
        let (a, b) = (self.resolve(a), self.resolve(b));
        if a == b {
            return true;
        }
        match (Self::placeholder(&a), Self::placeholder(&b)) {
            (Some(i), None) => self.decide(i, b),
            (None, Some(i)) => self.decide(i, a),
            (Some(i), Some(j)) => self.join(i, j, b),
            (None, None) => false,
        }
    }

    fn decide(&mut self, placeholder: usize, elem: Elem) -> bool {
        let known = &mut self.known[placeholder];
        let usual = match known {
            Known::OneOf(formats) if elem.known().is_some() && !formats.contains(&elem) => {
                Some(formats[0].clone())
            }
            _ => None,
        };
        let fits = usual.is_none();
        *known = Known::Is(usual.unwrap_or(elem));
        fits
    }

    /// Makes two placeholders one, of which the second is `elem`.
    fn join(&mut self, first: usize, second: usize, elem: Elem) -> bool {
        let common = match (&self.known[first], &self.known[second]) {
            (Known::OneOf(first), Known::OneOf(second)) => {
                Some(first.iter().filter(|format| second.contains(format)).cloned().collect::<Vec<_>>())
            }
            (Known::OneOf(formats), _) | (_, Known::OneOf(formats)) => Some(formats.clone()),
            _ => None,
        };
        match common {
            Some(formats) if formats.is_empty() => {
                for i in [first, second] {
                    if let Known::OneOf(formats) = &self.known[i] {
                        self.known[i] = Known::Is(formats[0].clone());
                    }
                }
                return false;
            }
            Some(formats) => self.known[second] = Known::OneOf(formats),
            None => {}
        }
        self.known[first] = Known::Is(elem);
        true
    }

    /// Decides what has one format to choose from.
    pub(crate) fn decide_only_choices(&mut self) {
        for known in &mut self.known {
            if let Known::OneOf(formats) = known
                && let [only] = formats.as_slice()
            {
                *known = Known::Is(only.clone());
            }
        }
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

    #[test]
    fn choices_narrow_and_a_refused_one_is_the_usual() {
        let formats = |formats: &[DType]| formats.iter().map(|&format| format.into()).collect();
        let mut elements = Elements::default();
        let (sums, stored) = (elements.one_of(formats(&[DType::F32, DType::F16])), elements.unknown());
        assert!(elements.unify(&stored, &sums));
        assert!(Elements::is_unknown(&elements.resolve(&sums)));
        let narrow = elements.one_of(formats(&[DType::F16, DType::F64]));
        assert!(elements.unify(&narrow, &stored));
        elements.decide_only_choices();
        assert_eq!(elements.resolve(&sums), Elem::Known(DType::F16));

        let sums = elements.one_of(formats(&[DType::F32, DType::F16]));
        assert!(!elements.unify(&sums, &DType::BF16.into()));
        assert_eq!(elements.resolve(&sums), Elem::Known(DType::F32));

        let (sums, integers) =
            (elements.one_of(formats(&[DType::F32])), elements.one_of(formats(&[DType::I32])));
        assert!(!elements.unify(&sums, &integers));
        let parameter = elements.one_of(formats(&[DType::F32]));
        assert!(elements.unify(&parameter, &Elem::Param("T".into())));
    }

    /// Indices are no elements of a program's, and `i8 … u64` are all integers.
    #[test]
    fn messages_name_every_format() {
        let is_named = |format: &DType| FORMATS.split(", ").any(|name| name == format.rust_name());
        let others = DType::ALL.iter().filter(|format| !format.is_int() && **format != DType::Index);
        let missing: Vec<_> = others.filter(|format| !is_named(format)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
