//! The `#[tile_kernel]` attribute: `tile_frontend::lower`, then `expand` writes out what it gives.
//!
//! Decides nothing about kernels. Never links LLVM: a proc macro that did would bind to rustc's own.

mod expand;
mod signature;
mod structs;

use proc_macro::TokenStream;
use syn::{Item, ItemFn};

/// Makes a tile kernel out of a function.
///
/// The function says what one block does with tiles of its tensors. The attribute checks it (shapes, element
/// types, which tensor may be written) and puts in its place:
///
/// * a function of the same name and compile-time parameters that takes `&Tensor` and `&mut Tensor` and
///   gives a `Launch`; run-time sizes and the grid come from the tensors' shapes;
/// * an empty enum of the same name with `IR` and `ir()`, the kernel in tile IR.
///
/// `#[tile_kernel(instances(BM = 128, BN = 128; BM = 64, BN = 64))]` names the instances that a build script
/// compiles ahead of time.
#[proc_macro_attribute]
pub fn tile_kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    match syn::parse(item) {
        Ok(Item::Fn(function)) => kernel(attribute, function),
        Ok(item) => {
            error(&syn::Error::new_spanned(item, "a kernel is a function: put `#[tile_kernel]` on a `fn`"))
        }
        Err(wrong) => error(&wrong),
    }
}

/// Makes a struct of tiles and scalars a value of kernels: `Copy`, carried through loops and branches field by
/// field.
///
/// ```text
/// #[derive(TileStruct)]
/// struct Softmax {
///     max: Tile<f32, 2>,
///     sum: Tile<f32, 2>,
/// }
/// ```
///
/// Fields are tiles, scalars, arrays and tuples of these, and other such structs; a compile error names a field
/// that is something else.
#[proc_macro_derive(TileStruct)]
pub fn tile_struct(item: TokenStream) -> TokenStream {
    match syn::parse(item) {
        Ok(input) => structs::derive(&input).into(),
        Err(wrong) => error(&wrong),
    }
}

fn error(error: &syn::Error) -> TokenStream {
    error.to_compile_error().into()
}

fn kernel(attribute: TokenStream, function: ItemFn) -> TokenStream {
    let file = proc_macro::Span::call_site().file();
    match tile_frontend::lower(attribute.into(), function.clone(), &file) {
        Ok(lowered) => expand::kernel(&function, &lowered).into(),
        Err(errors) => {
            let (errors, stub) = (errors.to_compile_errors(), expand::stub(&function));
            quote::quote!(#errors #stub).into()
        }
    }
}
