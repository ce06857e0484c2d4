//! The `#[tile_kernel]` attribute: `tile_frontend::lower`, then `expand` writes out what it gives.
//!
//! Decides nothing about kernels. Never links LLVM: a proc macro that did would bind to rustc's own.

mod across;
mod expand;
mod lints;
mod module;
mod signature;
mod structs;
mod waiting;

use proc_macro::TokenStream;
use syn::{AttrStyle, File, Item, ItemFn};

/// Makes a tile kernel out of a function.
///
/// The function says what one block does with tiles of its tensors. The attribute checks it (shapes, element
/// types, which tensor may be written) and puts in its place:
///
/// * a function of the same name and compile-time parameters that takes `&Tensor` and `&mut Tensor` and
///   gives a `Launch`; run-time sizes and the grid come from the tensors' shapes;
/// * an empty enum of the same name with `IR` and `ir()`, the kernel in tile IR, and with `best(…)`, a launch as the
///   instance for which the cost model predicts the least time.
///
/// What may stand in its parentheses, separated by commas:
///
/// | | |
/// |---|---|
/// | `instances(BM = 64 \| 128, BN = 128; BM = 32, BN = 32)` | the instances that a build script compiles ahead of time and that `best` chooses from: of each list every combination of its values. A kernel without parameters is one instance, which needs no naming |
/// | `where(BK % 16 == 0, m % BM == 0)` | what the kernel relies on: of const parameters, checked when an instance is made, and of run-time sizes, checked at launch |
/// | `grid = [m.div_ceil(BM), 4]` | a grid of its own, for a kernel whose blocks own no tiles |
/// | `grid = tiles` | a block per tile of the outputs, also where a target would make the kernel persistent |
/// | `threads = 128`, `stages = 3`, `occupancy = 2` | how GPUs schedule the kernel, by numbers or const parameters, instead of choosing themselves: threads of a block, stages of tiles in shared memory, and blocks of a multiprocessor |
/// | `fast_accumulation`, `fast_accumulation = FAST` | lets tensor cores add up products of 8-bit floats in the bits that they keep of them: on Hopper and Ada about 14, where sums of f32 have 24; in all instances, or in those whose parameter `const FAST: bool` is true |
/// | `allow(slow_product)` | silences the build script's warnings of products that a target could do faster |
#[proc_macro_attribute]
pub fn tile_kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    match parse(item) {
        Ok(Item::Fn(function)) => across::kernel(across::Request::kernel(attribute.into(), function)).into(),
        Ok(item) => {
            error(&syn::Error::new_spanned(item, "a kernel is a function: put `#[tile_kernel]` on a `fn`"))
        }
        Err(wrong) => error(&wrong),
    }
}

/// Makes a function one that kernels call.
///
/// ```text
/// #[tile_kernels]
/// mod kernels {
///     use tile::prelude::*;
///
///     #[tile_fn]
///     fn normalized<T: Float>(x: Tile<T, 2>) -> Tile<T, 2> {
///         x / x.sum(1)
///     }
///
///     #[tile_kernel]
///     pub fn kernel<const M: usize, const N: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
///         let x = x.partition_view([M, N]);
///         let mut y = y.partition_view_mut([M, N]);
///         y.store_masked(normalized(x.load_masked(y.index())));
///     }
/// }
/// ```
///
/// A call is lowered in its place: shapes follow from the arguments, and a mistake in the function names the call.
/// Parameters are tiles, numbers, closures (`impl Fn(…) -> …`), partition views (of an output `&mut PartitionViewMut` or
/// `&mut SpanningViewMut` of `tile::kernel`) and atomic views, and arrays, tuples and structs of these. Type parameters follow
/// from the arguments, and const parameters that are a tile's rank; others are written: `step::<BM>(x)`. Kernels and
/// functions call functions of their own `#[tile_kernels]` module and, by path or `use`, of other modules and crates;
/// functions of two modules can't call each other in a cycle. A function stays ordinary Rust, so tests call it too.
///
/// In such a module `#[tile_fn] impl State { … }` has functions and constants of a type that kernels of the module, and
/// functions that they call, use: `State::new(x)`, `state.result()`, `State::SCALE`. They take `self`, `&self` or
/// `&mut self`; a call of one that takes `&mut self` is an assignment, `state.update(x)`.
#[proc_macro_attribute]
pub fn tile_fn(attribute: TokenStream, item: TokenStream) -> TokenStream {
    if let Some(wrong) = options_of_function(attribute.into()) {
        return error(&wrong);
    }
    match parse(item) {
        Ok(Item::Fn(item)) => across::function(across::Request::function(item)).into(),
        Ok(Item::Impl(item)) => {
            let message = "`#[tile_fn]` on an `impl` is for kernels of the same module\n  \
                           help: put both into one module with `#[tile_kernels]`";
            let wrong = syn::Error::new_spanned(&item.self_ty, message).to_compile_error();
            quote::quote!(#wrong #item).into()
        }
        Ok(item) => error(&syn::Error::new_spanned(
            item,
            "a function of kernels is a function: put `#[tile_fn]` on a `fn`",
        )),
        Err(wrong) => error(&wrong),
    }
}

/// A module whose kernels call its `#[tile_fn]` functions and use its `const` items.
///
/// It is an inline module, `mod kernels { … }`, because a macro sees only its own tokens; a module of its own file has
/// [`macro@kernels`] inside. Modules inside of it have the attribute themselves.
#[proc_macro_attribute]
pub fn tile_kernels(attribute: TokenStream, item: TokenStream) -> TokenStream {
    if let Some(token) = attribute.into_iter().next() {
        let message = "`tile_kernels` has no options; they stand at each `#[tile_kernel(…)]`";
        return error(&syn::Error::new(token.span().into(), message));
    }
    match parse(item) {
        Ok(Item::Mod(item)) => module::expand(item).into(),
        Ok(item) => {
            error(&syn::Error::new_spanned(item, "`#[tile_kernels]` stands on a module: `mod kernels { … }`"))
        }
        Err(wrong) => error(&wrong),
    }
}

/// [`macro@tile_kernels`] for a module that is a file: stands around the items of the file.
///
/// ```text
/// // src/kernels.rs, which is `mod kernels;` elsewhere
/// tile::kernels! {
///     use tile::prelude::*;
///
///     const FLOOR: f32 = 1e-6;
///
///     #[tile_fn]
///     fn normalized(x: Tile<f32, 2>) -> Tile<f32, 2> {
///         x / (x.sum(1) + FLOOR)
///     }
///
///     #[tile_kernel]
///     pub fn kernel<const M: usize, const N: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
///         let x = x.partition_view([M, N]);
///         let mut y = y.partition_view_mut([M, N]);
///         y.store_masked(normalized(x.load_masked(y.index())));
///     }
/// }
/// ```
///
/// An attribute on `mod kernels;` would be given these three tokens alone, and stable Rust refuses it. Functions and
/// kernels that use only their own text need neither.
#[proc_macro]
pub fn kernels(items: TokenStream) -> TokenStream {
    match syn::parse::<File>(items) {
        Ok(mut file) => {
            file.items.iter_mut().for_each(tile_frontend::write_out_groups);
            module::file(file).into()
        }
        Err(wrong) => error(&wrong),
    }
}

/// Makes a struct of tiles and scalars a value of kernels: `Copy`, carried through loops and branches field by
/// field. It derives `Clone` and `Copy`; don't name them again.
///
/// ```text
/// #[derive(TileStruct)]
/// struct Softmax {
///     max: Tile<f32, 2>,
///     sum: Tile<f32, 2>,
/// }
/// ```
///
/// So is a tuple struct, `struct Sums(Tile<f32, 2>, Tile<f32, 2>);`. Fields are tiles, scalars, arrays and tuples of
/// these, and other such structs; a compile error names a field that is something else.
#[proc_macro_derive(TileStruct)]
pub fn tile_struct(item: TokenStream) -> TokenStream {
    match syn::parse(item) {
        Ok(input) => structs::derive(&input).into(),
        Err(wrong) => error(&wrong),
    }
}

/// Goes on with a kernel or a function, which now has the tokens of a function of another module. [`macro@tile_fn`] calls it.
#[doc(hidden)]
#[proc_macro]
pub fn __tile_kernel(answer: TokenStream) -> TokenStream {
    match syn::parse(answer) {
        Ok(answer) => across::resume(answer).into(),
        Err(wrong) => error(&wrong),
    }
}

/// A kernel or a function of a module that has a condition of its own, `#[cfg(…)]`, which stands before this.
#[doc(hidden)]
#[proc_macro]
pub fn __tile_conditional(request: TokenStream) -> TokenStream {
    match syn::parse(request) {
        Ok(request) => across::expand(request).into(),
        Err(wrong) => error(&wrong),
    }
}

/// Goes on with a kernel that calls a function which there isn't, in place of that function's macro.
#[doc(hidden)]
#[proc_macro]
pub fn __tile_absent(wanted: TokenStream) -> TokenStream {
    match syn::parse(wanted) {
        Ok(wanted) => across::absent(wanted).into(),
        Err(wrong) => error(&wrong),
    }
}

/// The item that an attribute stands on.
fn parse(item: TokenStream) -> syn::Result<Item> {
    let mut item = syn::parse(item)?;
    tile_frontend::write_out_groups(&mut item);
    if let Item::Fn(function) = &mut item {
        write_attributes_outside(function);
    }
    Ok(item)
}

/// In the functions that are made of one, `#![allow(…)]` and `//! …` are not where Rust has them.
fn write_attributes_outside(function: &mut ItemFn) {
    function.attrs.iter_mut().for_each(|attribute| attribute.style = AttrStyle::Outer);
}

/// What is wrong with what stands in the parentheses of `#[tile_fn(…)]`.
fn options_of_function(options: proc_macro2::TokenStream) -> Option<syn::Error> {
    let token = options.into_iter().next()?;
    Some(syn::Error::new(token.span(), "`tile_fn` has no options"))
}

fn error(error: &syn::Error) -> TokenStream {
    error.to_compile_error().into()
}
