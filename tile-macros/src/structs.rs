//! `#[derive(TileStruct)]`: a struct of kernel values is a kernel value.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields};

/// The impls of a struct, or what is wrong with it.
pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    implementations(input).unwrap_or_else(|error| error.to_compile_error())
}

fn implementations(input: &DeriveInput) -> Result<TokenStream, Error> {
    let data = match &input.data {
        Data::Struct(data) => data,
        Data::Enum(data) => {
            let message = "`TileStruct` is for structs: which variant a value is would be known at run time only\n  \
                           help: use a struct with an integer that `match` looks at";
            return Err(Error::new(data.enum_token.span, message));
        }
        Data::Union(data) => {
            let message = "`TileStruct` is for structs: a kernel has no untyped memory";
            return Err(Error::new(data.union_token.span, message));
        }
    };
    if let Fields::Unit = data.fields {
        let message = "`TileStruct` needs a struct with fields: this one has no value";
        return Err(Error::new_spanned(&input.ident, message));
    }
    let name = &input.ident;
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    let members: Vec<_> = data.fields.members().collect();
    let own = bounds.map(|bounds| bounds.predicates.iter().collect::<Vec<_>>()).unwrap_or_default();
    let values = data.fields.iter().map(|field| {
        let ty = &field.ty;
        quote_spanned!(ty.span()=> #ty: ::tile::kernel::TileValue)
    });
    let values: Vec<TokenStream> = values.collect();
    Ok(quote! {
        #[automatically_derived]
        impl #generics ::core::clone::Clone for #name #arguments where #(#own,)* #(#values,)* {
            fn clone(&self) -> Self {
                Self { #(#members: self.#members),* }
            }
        }

        #[automatically_derived]
        impl #generics ::core::marker::Copy for #name #arguments where #(#own,)* #(#values,)* {}

        #[automatically_derived]
        impl #generics ::tile::kernel::TileValue for #name #arguments where #(#own,)* #(#values,)* {
            fn add_tiles(&self, tiles: &mut ::tile::kernel::turns::Tiles) {
                #(::tile::kernel::TileValue::add_tiles(&self.#members, tiles);)*
            }
        }
    })
}
