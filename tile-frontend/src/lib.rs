//! The front end: a `#[tile_kernel]` function to verified tile IR, with errors at the user's tokens.
//!
//! Both the attribute macro and the build-script helper call [`lower`], so the code that `cargo build` embeds
//! and the code that the macro names are made from one text. Knows nothing of LLVM, of devices or of what
//! rustc inferred: shapes and element types are inferred here, from syntax alone, which is why they are
//! errors at `cargo check`.
//!
//! A kernel's body stays ordinary Rust that rustc checks as well. What is refused here is what has no
//! meaning as a tile program; what rustc says better is left to it.

mod assigned;
mod attribute;
mod bindings;
mod callable;
mod called;
mod conditional;
mod constants;
mod copies;
mod diagnostic;
mod elements;
mod evaluate;
mod exits;
mod extent;
mod functions;
mod grid;
mod groups;
mod helpers;
mod hints;
mod hygiene;
mod lower;
mod macros;
mod messages;
mod methods;
mod module_constants;
mod parameters;
mod raw_names;
mod refused;
mod rewrite;
mod scope;
mod signature;
mod span;
mod structs;
mod text;
mod totals;
mod turns;
mod updates;
mod value;

pub use called::called_elsewhere;
pub use diagnostic::{Diagnostic, Diagnostics, Missing};
pub use functions::{absent, function, in_a_circle};
pub use groups::write_out as write_out_groups;
pub use helpers::{Helpers, is_const, is_function, is_kernel, is_module, is_module_of_file, path_text};
pub use macros::expressions as macro_expressions;
pub use methods::methods;
pub use module_constants::constant;
pub use signature::{Size, is_bool, lone_name, optional, sizes};
pub use span::Span;
pub use tile_ir::{Binding, Bindings};

use proc_macro2::TokenStream;
use syn::ItemFn;
use tile_ir::VerifiedKernel;

/// A kernel that the front end accepts.
#[derive(Debug)]
pub struct Lowered {
    /// The kernel in tile IR, generic over its compile-time parameters.
    pub kernel: VerifiedKernel,
    /// What `instances(…)` asks for, each checked by specialising the kernel.
    pub instances: Vec<Bindings>,
    /// Whether the kernel allows that products are done slower than a target could: `allow(slow_product)`.
    pub allows_slow_products: bool,
    /// The function, its body as the reference device runs it: comparisons of tiles and arithmetic of integer
    /// scalars are calls, because Rust's operators mean something else, and each turn of a loop
    /// frees what the one before it made.
    pub function: ItemFn,
}

impl Lowered {
    /// The IR with source locations, as executables hold it.
    pub fn text(&self) -> String {
        tile_ir::text::print_with_locations(&self.kernel)
    }

    /// The identity of the kernel's meaning: embedded code is filed under it.
    pub fn fingerprint(&self) -> u64 {
        tile_ir::text::fingerprint(&self.kernel)
    }
}

/// Lowers a kernel: `attribute` is what stands in the parentheses of `#[tile_kernel(…)]`, `file` the name
/// that the IR's locations refer to.
///
/// # Errors
/// Every [`Diagnostic`] found. An error in one statement doesn't hide those of others.
///
/// ```
/// let function = syn::parse_quote! {
///     fn double<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
///         let x = x.partition_view([B]);
///         let mut y = y.partition_view_mut([B]);
///         let tile = x.load_masked(y.index());
///         y.store_masked(tile * 2.0);
///     }
/// };
/// let lowered = tile_frontend::lower(quote::quote!(instances(B = 256)), function, "src/main.rs")?;
/// assert!(lowered.kernel.to_string().contains("mul %tile"));
/// # Ok::<(), tile_frontend::Diagnostics>(())
/// ```
pub fn lower(attribute: TokenStream, function: ItemFn, file: &str) -> Result<Lowered, Diagnostics> {
    lower_with(attribute, function, &Helpers::default(), file)
}

/// [`lower`] of a kernel that sees the functions and constants of a module.
///
/// # Errors
/// As [`lower`]. A mistake in a function that is called is at its token, and names the call.
pub fn lower_with(
    attribute: TokenStream,
    mut function: ItemFn,
    helpers: &Helpers,
    file: &str,
) -> Result<Lowered, Diagnostics> {
    let refused = refused::inside(&function);
    if !refused.is_empty() {
        return Err(Diagnostics::new(refused));
    }
    updates::write_out(&mut function, false, helpers);
    let attribute = attribute::parse(attribute)?;
    let mut signature = signature::parse(&function, &attribute.conditions, helpers, file)?;
    if let Some(grid) = &attribute.grid {
        let names = signature.extents_of_grid();
        grid::declare(&mut signature.kernel, grid, &names)?;
    }
    signature.kernel.hints = hints::lower(&attribute.hints, &signature.extents())?;
    signature.kernel.fast_accumulation = attribute.fast_accumulation(&signature.kernel)?;
    copies::number(&mut function.block);
    let body = lower::body(signature, &function, helpers)?;
    turns::mark(&mut function);
    rewrite::rewrite(&mut function.block, &body.rewrites);
    grid::use_arguments(&mut function, &body.kernel);
    let allows_slow_products = attribute.allows_slow_products;
    let instances = attribute.specialize(&body.kernel)?;
    Ok(Lowered { kernel: body.kernel, instances, allows_slow_products, function })
}
