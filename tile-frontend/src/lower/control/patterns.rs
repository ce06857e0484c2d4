//! The parts of patterns that take a value apart: an array, a tuple or a struct, with `..` for what isn't named.

use crate::assigned::member_name;
use crate::lower::{Lowered, Lowering};
use crate::span::Spanned;
use crate::value::Val;
use std::collections::BTreeMap;
use syn::{Pat, PatStruct};

/// Patterns inside of one, each with its part of the value.
pub(in crate::lower) type Parts<'p> = Vec<(&'p Pat, Val)>;

impl Lowering {
    /// The patterns inside of one that takes a value apart; `None` where this one doesn't, or not such a value.
    pub(in crate::lower) fn taken_apart<'p>(
        &mut self,
        pattern: &'p Pat,
        value: &Val,
    ) -> Option<Lowered<Parts<'p>>> {
        Some(match (pattern, value) {
            (Pat::Slice(slice), Val::List(values)) => {
                self.side_by_side(pattern, slice.elems.iter().collect(), values)
            }
            (Pat::Tuple(tuple), Val::List(values)) => {
                self.side_by_side(pattern, tuple.elems.iter().collect(), values)
            }
            (Pat::TupleStruct(tuple), Val::Record(_, fields)) => {
                let values: Vec<Val> =
                    (0..).map_while(|at: usize| fields.get(&at.to_string()).cloned()).collect();
                self.side_by_side(pattern, tuple.elems.iter().collect(), &values)
            }
            (Pat::Struct(record), Val::Record(_, fields)) => self.by_field(record, fields),
            _ => return None,
        })
    }

    /// Each pattern beside its value; `..` stands beside all that the others leave.
    fn side_by_side<'p>(
        &mut self,
        whole: &Pat,
        patterns: Vec<&'p Pat>,
        values: &[Val],
    ) -> Lowered<Parts<'p>> {
        let rest = patterns.iter().position(|pattern| is_rest(pattern));
        let named = patterns.len() - usize::from(rest.is_some());
        let fits = if rest.is_some() { named <= values.len() } else { named == values.len() };
        if !fits {
            let message =
                format!("a pattern of length {named} takes apart a value of length {}", values.len());
            return self.error(whole.span(), message, "name each value, or use `_`, and `..` for several");
        }
        let Some(rest) = rest else {
            return Ok(patterns.into_iter().zip(values.iter().cloned()).collect());
        };
        let after = rest + values.len() - named;
        let (before, others) = patterns.split_at(rest);
        let mut parts: Parts<'p> = before.iter().copied().zip(values.iter().cloned()).collect();
        parts.push((others[0], Val::List(values[rest..after].to_vec())));
        parts.extend(others[1..].iter().copied().zip(values[after..].iter().cloned()));
        Ok(parts)
    }

    fn by_field<'p>(&mut self, record: &'p PatStruct, fields: &BTreeMap<String, Val>) -> Lowered<Parts<'p>> {
        let mut parts = Parts::new();
        for field in &record.fields {
            let name = member_name(&field.member);
            let Some(value) = fields.get(&name) else {
                let names: Vec<String> = fields.keys().map(|field| format!("`{field}`")).collect();
                let help = format!("it has {}", names.join(", "));
                return self.error(field.member.span(), format!("the struct has no field `{name}`"), &help);
            };
            parts.push((&*field.pat, value.clone()));
        }
        Ok(parts)
    }
}

/// `..`, or `name @ ..`.
fn is_rest(pattern: &Pat) -> bool {
    match pattern {
        Pat::Rest(_) => true,
        Pat::Ident(name) => name.subpat.as_ref().is_some_and(|(_, inner)| is_rest(inner)),
        _ => false,
    }
}
