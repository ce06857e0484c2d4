//! Numbers in fields of structs: they have the types that the struct says, as they have for rustc.
//!
//! A struct of the module is seen. Of another one its fields' types aren't, so that a number whose other uses say nothing is a
//! mistake: rustc would give it the field's type, and the kernel that of a literal.

use super::{Lowered, Lowering};
use crate::diagnostic::Diagnostic;
use crate::elements::Elements;
use crate::helpers::path_text;
use crate::span::Span;
use crate::text::Text;
use crate::value::Val;
use std::rc::Rc;
use syn::{Item, ItemStruct, Path, Stmt, Type};
use tile_ir::ops::Effect;
use tile_ir::{DType, Elem};

/// A number whose type its other uses must decide, and what is said if they don't.
pub(super) struct Undecided {
    pub(super) elem: Elem,
    pub(super) diagnostic: Diagnostic,
}

/// Where a field's value is written, in words.
struct Field<'f> {
    /// In quotes.
    name: &'f str,
    structure: &'f str,
    span: Span,
}

impl Lowering {
    /// Notes the structs of a block.
    pub(super) fn note_structs(&mut self, statements: &[Stmt]) {
        for statement in statements {
            if let Stmt::Item(Item::Struct(item)) = statement {
                self.structs.push((Rc::clone(&self.text), item.clone()));
            }
        }
    }

    /// The struct at a path, if it is one of a block around or of the module.
    pub(super) fn structure(&self, path: &Path) -> Option<&ItemStruct> {
        let is_meant = |(text, item): &&(Rc<Text>, ItemStruct)| {
            Rc::ptr_eq(text, &self.text) && item.ident == path_text(path)
        };
        let own = self.structs.iter().rev().find(is_meant);
        own.map(|(_, item)| item).or_else(|| self.text.helpers.structure(path))
    }

    /// What a field of a struct is given.
    pub(super) fn field_value(&mut self, path: &Path, field: &str, value: Val, span: Span) -> Lowered<Val> {
        let value = self.named(value);
        let structure = path_text(path);
        let ty = self.structure(path).and_then(|item| type_of(item, field));
        let place = Field { name: &format!("`{field}`"), structure: &structure, span };
        match ty {
            Some(ty) => self.of_field(&value, &ty, &place)?,
            None => self.note_undecided(&value, &place),
        }
        Ok(value)
    }

    /// Gives the numbers in a value the types that its field has.
    fn of_field(&mut self, value: &Val, ty: &Type, field: &Field<'_>) -> Lowered<()> {
        match (value, ty) {
            (value, Type::Paren(inner)) => self.of_field(value, &inner.elem, field),
            (Val::List(values), Type::Array(array)) => {
                values.iter().try_for_each(|value| self.of_field(value, &array.elem, field))
            }
            (Val::List(values), Type::Tuple(tuple)) if values.len() == tuple.elems.len() => {
                values.iter().zip(&tuple.elems).try_for_each(|(value, ty)| self.of_field(value, ty, field))
            }
            (value, Type::Path(path)) => match named_format(&path.path) {
                Some(dtype) => self.of_format(value, dtype, field),
                None => {
                    self.note_undecided(value, field);
                    Ok(())
                }
            },
            _ => Ok(()),
        }
    }

    fn of_format(&mut self, value: &Val, dtype: DType, field: &Field<'_>) -> Lowered<()> {
        match *value {
            Val::Int(_) | Val::Float(_) => {
                let what = format!("field {} of `{}`", field.name, field.structure);
                self.share(value, &dtype.into(), &what, field.span)
            }
            // What else it may be, rustc says.
            Val::Data(value) if self.shape(value).is_none() => {
                let found = self.elem(value);
                self.elements.unify(&found, &dtype.into());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn note_undecided(&mut self, value: &Val, field: &Field<'_>) {
        let (elem, written) = match value {
            Val::List(values) => return values.iter().for_each(|value| self.note_undecided(value, field)),
            Val::Int(int) => (int.shared.clone(), format!("{}u32", int.value)),
            Val::Float(float) => (float.shared.clone(), format!("{:?}f32", float.value)),
            Val::Data(value) if self.shape(*value).is_none() => {
                (Some(self.elem(*value)), "k as u32".to_owned())
            }
            _ => return,
        };
        let Some(elem) = elem.map(|elem| self.elements.resolve(&elem)).filter(Elements::is_unknown) else {
            return;
        };
        let Field { name, structure, span } = *field;
        let message = format!("nothing that the kernel sees says of which type field {name} is");
        let mut diagnostic = Diagnostic::new(span, message).help(format!(
            "write the number with the type that `{structure}` says, as in `{written}`; of a struct in the kernel's own module, with \
             `#[tile_kernels]`, it is seen"
        ));
        for (span, label) in self.sites() {
            diagnostic = diagnostic.label(span, label);
        }
        self.fields.push(Undecided { elem, diagnostic });
    }

    /// Reports the numbers in fields whose types nothing decided, and which something is computed of.
    pub(super) fn check_fields(&mut self) {
        for Undecided { elem, diagnostic } in std::mem::take(&mut self.fields) {
            let elem = self.elements.resolve(&elem);
            if Elements::is_unknown(&elem)
                && self.is_computed(&elem)
                && !self.errors.iter().any(|known| known.is_same(&diagnostic))
            {
                self.errors.push(diagnostic);
            }
        }
    }

    /// Whether something is computed of a number of this undecided type. Loops and branches only carry it.
    fn is_computed(&self, elem: &Elem) -> bool {
        let has_it = |of: &Elem| self.elements.resolve(of) == *elem;
        let mut ops = self.kernel.op_ids().map(|op| self.kernel.op(op));
        self.folded.iter().any(|folded| has_it(&folded.elem))
            || ops.any(|data| {
                data.regions.is_empty()
                    && !matches!(data.op.effect(), Effect::EndsRegion)
                    && data.operands.iter().any(|&operand| has_it(self.kernel.ty(operand).elem()))
            })
    }
}

/// The type of a field.
pub(super) fn type_of(item: &ItemStruct, field: &str) -> Option<Type> {
    let mut fields = item.fields.iter().enumerate();
    let (_, found) = fields.find(|(at, found)| match &found.ident {
        Some(name) => name == field,
        None => at.to_string() == field,
    })?;
    Some(found.ty.clone())
}

/// The format that a type names by itself.
pub(crate) fn named_format(path: &Path) -> Option<DType> {
    DType::from_rust_name(&path.segments.last()?.ident.to_string())
}
