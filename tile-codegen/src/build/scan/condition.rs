//! `cfg` as cargo tells a build script of it.
//!
//! What can't be known counts as true, so that code is rather read in vain than left out: what the script itself gives rustc
//! by `cargo::rustc-cfg`, `debug_assertions`, which cargo doesn't tell, and the features of a package that cargo couldn't tell of.

use std::collections::HashMap;
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, Lit, Meta, Token};

/// Names that rustc or a tool sets where they hold, and that so are false where cargo doesn't tell of them.
const KNOWN: &[&str] = &[
    "doc",
    "doctest",
    "miri",
    "overflow_checks",
    "panic",
    "proc_macro",
    "rust_analyzer",
    "target_abi",
    "target_arch",
    "target_endian",
    "target_env",
    "target_family",
    "target_feature",
    "target_has_atomic",
    "target_os",
    "target_pointer_width",
    "target_vendor",
    "test",
    "unix",
    "windows",
];

/// The target's conditions, by their names in small letters: cargo tells names in capitals.
#[derive(Clone, Debug, Default)]
pub(in crate::build) struct Conditions(HashMap<String, Vec<String>>);

impl Conditions {
    /// Those of `CARGO_CFG_*`. A value is a list, with commas.
    pub(in crate::build) fn of(variables: impl Iterator<Item = (String, String)>) -> Conditions {
        let conditions = variables.filter_map(|(name, value)| {
            let name = name.strip_prefix("CARGO_CFG_")?.to_lowercase();
            Some((name, value.split(',').map(ToOwned::to_owned).collect()))
        });
        // Each crate has features of its own.
        Conditions(conditions.filter(|(name, _)| name != "feature").collect())
    }

    /// Whether it is known of an item with these attributes that it is there.
    pub(super) fn surely_hold(&self, features: Option<&[String]>, attributes: &[Attribute]) -> bool {
        self.values_of(features, attributes).all(|value| value == Some(true))
    }

    /// Whether an item with these attributes is there, as far as that is known.
    pub(super) fn hold(&self, features: Option<&[String]>, attributes: &[Attribute]) -> bool {
        self.values_of(features, attributes).all(|value| value != Some(false))
    }

    /// Of each `cfg` whether it holds; `None` where that can't be known.
    fn values_of(
        &self,
        features: Option<&[String]>,
        attributes: &[Attribute],
    ) -> impl Iterator<Item = Option<bool>> {
        let conditions = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
        conditions.map(move |attribute| self.value(features, &attribute.parse_args().ok()?))
    }

    /// The attributes of an item, with those that `cfg_attr` gives it in place of that.
    pub(super) fn applied(&self, features: Option<&[String]>, attributes: &[Attribute]) -> Vec<Attribute> {
        let one = |attribute: &Attribute| {
            if !attribute.path().is_ident("cfg_attr") {
                return vec![attribute.clone()];
            }
            let parsed = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
            let mut metas = parsed.unwrap_or_default().into_iter();
            let holds = metas.next().is_some_and(|meta| self.value(features, &meta) != Some(false));
            let given = metas.filter(|_| holds).map(|meta| Attribute { meta, ..attribute.clone() });
            self.applied(features, &given.collect::<Vec<_>>())
        };
        attributes.iter().flat_map(one).collect()
    }

    /// The values of a name that is set.
    fn values(&self, name: &str) -> Option<&Vec<String>> {
        self.0.get(&name.to_lowercase())
    }

    /// Whether a condition holds; `None` where that can't be known.
    fn value(&self, features: Option<&[String]>, meta: &Meta) -> Option<bool> {
        match meta {
            Meta::Path(path) => {
                let name = path.get_ident()?.to_string();
                match name.as_str() {
                    "true" => Some(true),
                    "false" => Some(false),
                    name => self.values(name).map(|_| true).or_else(|| unset(name)),
                }
            }
            Meta::NameValue(pair) => {
                let name = pair.path.get_ident()?.to_string();
                let Expr::Lit(ExprLit { lit: Lit::Str(value), .. }) = &pair.value else { return None };
                let value = value.value();
                match self.values(&name) {
                    _ if name == "feature" => features.map(|features| features.contains(&value)),
                    Some(values) => Some(values.contains(&value)),
                    None => unset(&name),
                }
            }
            Meta::List(list) => {
                let metas = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok()?;
                let mut values = metas.iter().map(|meta| self.value(features, meta));
                match list.path.get_ident()?.to_string().as_str() {
                    "all" => all(values),
                    "any" => all(values.map(not)).map(|none| !none),
                    "not" => not(values.next()?),
                    _ => None,
                }
            }
        }
    }
}

fn not(value: Option<bool>) -> Option<bool> {
    value.map(|value| !value)
}

/// Whether all hold: one that doesn't decides it, whatever the others are.
fn all(values: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut known = Some(true);
    for value in values {
        match value {
            Some(false) => return value,
            Some(true) => {}
            None => known = None,
        }
    }
    known
}

/// What a name means that cargo doesn't tell of.
fn unset(name: &str) -> Option<bool> {
    KNOWN.contains(&name).then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    fn conditions() -> Conditions {
        let set = [
            ("CARGO_CFG_UNIX", ""),
            ("CARGO_CFG_TARGET_OS", "linux"),
            ("CARGO_CFG_TARGET_FEATURE", "fxsr,sse2"),
            ("CARGO_CFG_FEATURE", "of-the-package"),
            ("CARGO_CFG_MY_FLAG", ""),
            ("CARGO_CFG_MY_VALUE", "One"),
            ("HOME", "/root"),
        ];
        Conditions::of(set.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())))
    }

    #[test]
    fn conditions_are_true_false_or_unknown() {
        let features = ["fast".to_owned()];
        for (condition, expected) in [
            ("unix", Some(true)),
            ("windows", Some(false)),
            ("test", Some(false)),
            (r#"target_os = "linux""#, Some(true)),
            (r#"target_os = "macos""#, Some(false)),
            (r#"target_feature = "sse2""#, Some(true)),
            (r#"target_feature = "avx2""#, Some(false)),
            (r#"feature = "fast""#, Some(true)),
            (r#"feature = "of-the-package""#, Some(false)),
            // Names of other letters than small ones, which the variables have as capitals.
            ("not(My_Flag)", Some(false)),
            (r#"MY_VALUE = "One""#, Some(true)),
            (r#"MY_VALUE = "one""#, Some(false)),
            ("debug_assertions", None),
            ("of_the_build_script", None),
            ("not(debug_assertions)", None),
            ("all(debug_assertions, windows)", Some(false)),
            ("any(debug_assertions, not(test))", Some(true)),
            (r#"all(unix, any(windows, target_family = "wasm"))"#, Some(false)),
            ("all()", Some(true)),
            ("any()", Some(false)),
        ] {
            let meta = syn::parse_str(condition).unwrap();
            assert_eq!(conditions().value(Some(&features), &meta), expected, "{condition}");
        }
    }

    #[test]
    fn what_is_unknown_counts_as_there() {
        let hold = |attribute: Attribute| conditions().hold(Some(&[]), &[attribute]);
        assert!(hold(parse_quote!(#[cfg(debug_assertions)])));
        assert!(hold(parse_quote!(#[cfg(not(debug_assertions))])));
        assert!(!hold(parse_quote!(#[cfg(feature = "fast")])));
        assert!(hold(parse_quote!(#[inline])));
    }

    #[test]
    fn conditional_attributes_are_given_where_they_hold() {
        let given: [Attribute; 2] = [
            parse_quote!(#[cfg_attr(unix, path = "unix.rs", cfg_attr(all(), inline))]),
            parse_quote!(#[cfg_attr(windows, path = "windows.rs")]),
        ];
        let applied = conditions().applied(Some(&[]), &given);
        let names: Vec<_> = applied.iter().map(|attribute| attribute.path().get_ident().unwrap()).collect();
        assert_eq!(names, ["path", "inline"]);
    }
}
