//! `#[tile_fn] impl State { … }`: the functions of a type, as functions of no type that take what `self` is.

use crate::conditional;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::functions;
use crate::helpers::{Helpers, path_text};
use crate::lower::arguments_of;
use crate::span::Spanned;
use proc_macro2::Ident;
use quote::ToTokens;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Attribute, Expr, FnArg, GenericArgument, GenericParam, Generics, ImplItem, ImplItemFn, ItemConst, ItemFn,
    ItemImpl, Macro, PatType, PathArguments, PathSegment, Receiver, ReceiverKind, Signature, Type,
    parse_quote,
};

/// The functions and constants of an `impl`.
pub(crate) struct Methods<'i> {
    item: &'i ItemImpl,
    /// The name of the type that has them.
    pub(crate) owner: &'i Ident,
}

/// The type of an `impl`, which its functions are of.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    /// As the `impl` names it: `State<T>`.
    ty: Type,
    /// How many of a function's parameters in `<…>` are those of the `impl`, which are the first.
    pub(crate) parameters: usize,
}

impl Owner {
    /// The type's name.
    pub(crate) fn name(&self) -> String {
        last_segment(&self.ty).map(|segment| segment.ident.to_string()).unwrap_or_default()
    }

    /// Where in the type's `<…>` a parameter of the `impl` stands by itself.
    pub(crate) fn position_of(&self, parameter: &GenericParam) -> Option<usize> {
        let name = match parameter {
            GenericParam::Type(parameter) => &parameter.ident,
            GenericParam::Const(parameter) => &parameter.ident,
            GenericParam::Lifetime(_) => return None,
        };
        arguments_of(last_segment(&self.ty)?).into_iter().position(|argument| match argument {
            GenericArgument::Type(Type::Path(path)) => path.path.is_ident(name),
            GenericArgument::Const(Expr::Path(path)) => path.path.is_ident(name),
            _ => false,
        })
    }
}

/// The parameters of an `impl`, and behind them a function's own.
fn with_own(of_impl: &Generics, own: &Generics) -> Generics {
    let mut generics = own.clone();
    generics.params = of_impl.params.iter().chain(&own.params).cloned().collect();
    if let Some(bounds) = &of_impl.where_clause {
        generics.make_where_clause().predicates.extend(bounds.predicates.clone());
    }
    generics
}

fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    }
}

impl<'i> Methods<'i> {
    /// Those of an `impl` for a type with a name.
    pub(crate) fn of(item: &'i ItemImpl) -> Option<Methods<'i>> {
        let Type::Path(path) = &*item.self_ty else { return None };
        Some(Methods { item, owner: &path.path.segments.last()?.ident })
    }

    /// The path of that type, where it is more than a name.
    pub(crate) fn path(&self) -> Option<String> {
        let Type::Path(ty) = &*self.item.self_ty else { return None };
        Some(path_text(&ty.path)).filter(|path| path.contains("::"))
    }

    fn members(&self) -> impl Iterator<Item = &'i ImplItemFn> {
        self.item.items.iter().filter_map(|item| match item {
            ImplItem::Fn(function) => Some(function),
            _ => None,
        })
    }

    /// The signatures as they are written.
    pub(crate) fn signatures(&self) -> impl Iterator<Item = &'i Signature> {
        self.members().map(|function| &function.sig)
    }

    /// The attributes of a member, and the conditions of the `impl`, with which rustc leaves out all of them.
    fn with_conditions(&self, attributes: &[Attribute]) -> Vec<Attribute> {
        let conditions = self.item.attrs.iter().filter(|attribute| conditional::is_condition(attribute));
        attributes.iter().chain(conditions).cloned().collect()
    }

    /// What the functions are of.
    pub(crate) fn of_functions(&self) -> Owner {
        let parameters = self.item.generics.params.iter();
        let parameters =
            parameters.filter(|parameter| !matches!(parameter, GenericParam::Lifetime(_))).count();
        Owner { ty: (*self.item.self_ty).clone(), parameters }
    }

    /// The functions, with the type parameters of the `impl`, and its type where they say `Self`.
    pub(crate) fn functions(&self) -> impl Iterator<Item = ItemFn> {
        self.members().map(|function| {
            let mut free = ItemFn {
                attrs: self.with_conditions(&function.attrs),
                vis: function.vis.clone(),
                modifiers: function.modifiers.clone(),
                sig: function.sig.clone(),
                block: Box::new(function.block.clone()),
            };
            free.sig.generics = with_own(&self.item.generics, &free.sig.generics);
            if let Some(FnArg::Receiver(receiver)) = free.sig.inputs.first() {
                let taken = FnArg::Typed(self.taken(receiver));
                free.sig.inputs[0] = taken;
            }
            self.name_type(|name| name.visit_item_fn_mut(&mut free));
            free
        })
    }

    /// `self: State`, in which `self` is the name of a variable.
    fn taken(&self, receiver: &Receiver) -> PatType {
        let mutability = match receiver.kind {
            ReceiverKind::Reference(_, _, mutability) => mutability,
            _ => receiver.mutability,
        };
        let name = Ident::new("self", receiver.self_token.span);
        let pattern =
            syn::PatIdent { attrs: Vec::new(), by_ref: None, mutability, ident: name, subpat: None };
        let ty = &self.item.self_ty;
        let mut taken: PatType = parse_quote!(_: #ty);
        *taken.pat = syn::Pat::Ident(pattern);
        taken
    }

    /// The constants, which kernels name by their type.
    pub(crate) fn constants(&self) -> impl Iterator<Item = ItemConst> {
        let constants = self.item.items.iter().filter_map(|item| match item {
            ImplItem::Const(constant) => Some(constant),
            _ => None,
        });
        constants.map(|constant| {
            let (name, ty, value) = (&constant.ident, &constant.ty, &constant.expr);
            let mut item: ItemConst = parse_quote!(const #name: #ty = #value;);
            item.attrs = self.with_conditions(&constant.attrs);
            self.name_type(|name| name.visit_item_const_mut(&mut item));
            item
        })
    }

    fn name_type(&self, visit: impl FnOnce(&mut NameType<'_>)) {
        visit(&mut NameType { owner: self.owner, ty: &self.item.self_ty });
    }
}

/// `<…>` of a type as it stands in a path of an expression.
fn in_expressions(arguments: &PathArguments) -> PathArguments {
    let mut arguments = arguments.clone();
    if let PathArguments::AngleBracketed(arguments) = &mut arguments {
        arguments.colon2_token.get_or_insert_with(Default::default);
    }
    arguments
}

/// Puts a type's name where its `impl` says `Self`.
struct NameType<'t> {
    owner: &'t Ident,
    ty: &'t Type,
}

impl VisitMut for NameType<'_> {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        match ty {
            Type::Path(path) if path.path.is_ident("Self") => *ty = self.ty.clone(),
            ty => visit_mut::visit_type_mut(self, ty),
        }
    }

    fn visit_path_mut(&mut self, path: &mut syn::Path) {
        let is_of_type = path.segments.len() > 1;
        if let Some(first) = path.segments.first_mut().filter(|first| first.ident == "Self") {
            first.ident = Ident::new(&self.owner.to_string(), first.ident.span());
            // What `Self::new()` gives is of the same parameters.
            if let (true, Some(owner)) = (is_of_type, last_segment(self.ty)) {
                first.arguments = in_expressions(&owner.arguments);
            }
        }
        visit_mut::visit_path_mut(self, path);
    }

    fn visit_macro_mut(&mut self, called: &mut Macro) {
        crate::macros::rewrite(called, self);
    }
}

/// The functions of a type that kernels call, as rustc sees them; `seen` is what their module lets them see.
///
/// # Errors
/// [`Diagnostics`] of what such functions can't be.
pub fn methods(mut item: ItemImpl, seen: &Helpers) -> Result<ItemImpl, Diagnostics> {
    let mut errors = Vec::new();
    if Methods::of(&item).is_none() {
        let message = "functions of kernels are of a type with a name";
        errors.push(Diagnostic::new(item.self_ty.span(), message).help("write them for a struct"));
    }
    errors.extend(functions::refused_const_parameters(&item.generics));
    for member in &mut item.items {
        let ImplItem::Fn(method) = member else { continue };
        let function: ItemFn = parse_quote!(#method);
        let generics = with_own(&item.generics, &function.sig.generics);
        match functions::method(function, generics, &item.self_ty, seen) {
            Ok(function) => *member = ImplItem::Verbatim(function.into_token_stream()),
            Err(wrong) => errors.extend(wrong),
        }
    }
    if errors.is_empty() { Ok(item) } else { Err(Diagnostics::new(errors)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_a_function_that_takes_self() {
        let item: ItemImpl = parse_quote! {
            impl<T: Float> Sum<T> where T: MmaOperand<f32> {
                const HALF: f32 = 0.5;
                fn plus<const N: usize>(mut self, other: Self) -> Self {
                    self.tile += other.tile * Self::HALF + Self::ones::<N>();
                    dbg!(Self { ..self })
                }
            }
        };
        let methods = Methods::of(&item).unwrap();
        let functions: Vec<ItemFn> = methods.functions().collect();
        let expected: ItemFn = parse_quote! {
            fn plus<T: Float, const N: usize>(other: Sum<T>) -> Sum<T> where T: MmaOperand<f32> {
                self.tile += other.tile * Sum::<T>::HALF + Sum::<T>::ones::<N>();
                dbg!(Sum { ..self })
            }
        };
        let [function] = &functions[..] else { panic!("there is one function") };
        assert_eq!(
            function.block.to_token_stream().to_string(),
            expected.block.to_token_stream().to_string()
        );
        assert_eq!(
            function.sig.output.to_token_stream().to_string(),
            expected.sig.output.to_token_stream().to_string()
        );
        let generics = function.sig.generics.to_token_stream().to_string();
        assert_eq!(generics, expected.sig.generics.to_token_stream().to_string());
        let inputs = function.sig.inputs.to_token_stream().to_string();
        assert_eq!(inputs, "mut self : Sum < T > , other : Sum < T >");
        let constants: Vec<String> =
            methods.constants().map(|item| item.to_token_stream().to_string()).collect();
        assert_eq!(constants, ["const HALF : f32 = 0.5 ;"]);
    }
}
