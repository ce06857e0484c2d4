//! Which functions have values of formats that Rust has no literals of, and that its `as` doesn't know: by the types that they
//! name, and by the fields, functions and constants of their module that they use, whose types say it there.

use crate::assigned::member_name;
use crate::helpers::Helpers;
use crate::macros;
use std::collections::HashSet;
use syn::visit::{self, Visit};
use syn::{
    ExprField, ExprMethodCall, FieldPat, ItemFn, Macro, Member, PatTupleStruct, Path, ReturnType, Type,
};
use tile_ir::DType;

/// Whether a type is a float that `as` doesn't know.
pub(super) fn is_foreign_to_rust(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    let name = path.path.get_ident().map(ToString::to_string).unwrap_or_default();
    let dtype = DType::from_rust_name(&name);
    dtype.is_some_and(|dtype| dtype.is_float() && !matches!(dtype, DType::F32 | DType::F64))
}

/// Whether a function has such values, as may the type that it is of; `seen` is what its module lets it see.
pub(super) fn is_in(function: &ItemFn, owner: Option<&Type>, seen: &Helpers) -> bool {
    let fields = seen.fields().filter(|(_, ty)| names_one(ty)).map(|(name, _)| name);
    let gives_one = |output: &ReturnType| matches!(output, ReturnType::Type(_, ty) if names_one(ty));
    let functions = seen.signatures().filter(|signature| gives_one(&signature.output));
    let constants = seen.constants().filter(|item| names_one(&item.ty));
    let values = functions.map(|signature| &signature.ident).chain(constants.map(|item| &item.ident));
    let values = values.map(ToString::to_string).collect();
    let mut uses = Uses { fields: fields.collect(), values, one: false };
    uses.visit_item_fn(function);
    owner.into_iter().for_each(|owner| uses.visit_type(owner));
    uses.one
}

/// Whether a type is such a format, or of such elements.
fn names_one(ty: &Type) -> bool {
    struct Named(bool);
    impl Visit<'_> for Named {
        fn visit_type(&mut self, ty: &Type) {
            self.0 |= is_foreign_to_rust(ty);
            visit::visit_type(self, ty);
        }
    }
    let mut named = Named(false);
    named.visit_type(ty);
    named.0
}

/// What of such formats a function uses.
struct Uses {
    /// The fields of structs that are of such a format.
    fields: HashSet<String>,
    /// The functions and constants that give one.
    values: HashSet<String>,
    /// Whether there is one.
    one: bool,
}

impl Uses {
    fn field(&mut self, member: &Member) {
        self.one |= self.fields.contains(&member_name(member));
    }
}

impl Visit<'_> for Uses {
    fn visit_type(&mut self, ty: &Type) {
        self.one |= is_foreign_to_rust(ty);
        visit::visit_type(self, ty);
    }

    fn visit_path(&mut self, path: &Path) {
        self.one |= path.segments.last().is_some_and(|last| self.values.contains(&last.ident.to_string()));
        visit::visit_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &ExprMethodCall) {
        self.one |= self.values.contains(&call.method.to_string());
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_field(&mut self, field: &ExprField) {
        self.field(&field.member);
        visit::visit_expr_field(self, field);
    }

    fn visit_field_pat(&mut self, pattern: &FieldPat) {
        self.field(&pattern.member);
        visit::visit_field_pat(self, pattern);
    }

    /// Its `..` may stand before a field, of which it leaves the number open.
    fn visit_pat_tuple_struct(&mut self, pattern: &PatTupleStruct) {
        self.one |= self.fields.iter().any(|name| name.starts_with(|first: char| first.is_ascii_digit()));
        visit::visit_pat_tuple_struct(self, pattern);
    }

    fn visit_macro(&mut self, called: &Macro) {
        macros::expressions(called).iter().for_each(|expression| self.visit_expr(expression));
    }
}
