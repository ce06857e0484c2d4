//! Calls of functions across modules and crates.
//!
//! A macro sees only its own tokens. So `#[tile_fn] fn step` also makes a macro of the name `step`, which goes
//! wherever `use` takes the function, and hands its tokens on. A kernel that calls an unknown `step` expands to
//! `step! { the kernel }`, which expands to `__tile_kernel! { the kernel, the tokens of step }`, until all is known.
//!
//! rustc resolves the names, so a path means the same function to the macro and to rustc. Names in a function mean
//! nothing where the kernel stands. So a function collects what it calls of other modules in the same way, where it
//! stands itself, before its macro is made; it hands that on with what its own module sees.
//!
//! Where there is no such macro, a kernel says so itself: [`ask`] has it asked for in a block in which another macro
//! stands for it, `__tile_absent!`.

use crate::{expand, waiting};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use syn::parse::{Parse, ParseStream};
use syn::visit::{self, Visit};
use syn::{ExprPath, Item, ItemFn, Macro, Path, Token, Visibility, braced, parse_quote};
use tile_frontend::{Diagnostics, Helpers, Lowered, path_text};

/// A kernel or a function of kernels, and what is known of the functions that it calls.
pub(crate) struct Request {
    kind: Kind,
    function: ItemFn,
    /// What it sees of its module: functions and constants.
    seen: Vec<Item>,
    /// The names of all functions of its module.
    functions: Vec<Ident>,
    /// The paths at which rustc knows of no function with `#[tile_fn]`.
    absent: Vec<Path>,
    found: Vec<Found>,
}

/// Who asks for a function.
enum Kind {
    /// A kernel with these options.
    Kernel(TokenStream),
    Function,
    /// A function that asks only whether there is one: its macro, which can't be made in a block, is asked for besides.
    Question,
}

/// What a request wants: the function at a path.
pub(crate) struct Wanted {
    path: Path,
    request: Request,
}

/// What a request is told: the function that it wanted.
pub(crate) struct Answer {
    function: ItemFn,
    seen: Vec<Item>,
    found: Vec<Found>,
    wanted: Wanted,
}

/// A function of another module.
struct Found {
    path: Path,
    function: ItemFn,
    /// What it sees of its own module.
    seen: Vec<Item>,
    /// What it calls of other modules.
    found: Vec<Found>,
}

impl Request {
    /// A kernel that sees nothing.
    pub(crate) fn kernel(options: TokenStream, function: ItemFn) -> Request {
        let (seen, functions, absent, found) = Default::default();
        Request { kind: Kind::Kernel(options), function, seen, functions, absent, found }
    }

    /// The options of a kernel; a function has none.
    fn options(&self) -> TokenStream {
        match &self.kind {
            Kind::Kernel(options) => options.clone(),
            Kind::Function | Kind::Question => TokenStream::new(),
        }
    }

    /// A function that sees itself alone.
    pub(crate) fn function(function: ItemFn) -> Request {
        let itself: ItemFn = {
            let mut itself = function.clone();
            itself.attrs.push(parse_quote!(#[tile_fn]));
            itself
        };
        let (functions, absent, found) = Default::default();
        Request { kind: Kind::Function, function, seen: vec![Item::Fn(itself)], functions, absent, found }
    }

    /// Whether there is a function that this one calls.
    fn question(&self) -> Request {
        let mut function = self.function.clone();
        function.block.stmts.clear();
        let (seen, functions, absent, found) = Default::default();
        Request { kind: Kind::Question, function, seen, functions, absent, found }
    }

    /// The same in a module of these functions and constants, whose functions have these names. Where the module's text
    /// says all that it imports, a name that is neither is nowhere, and its macro isn't asked for.
    pub(crate) fn in_module(
        self,
        seen: &[Item],
        helpers: &Helpers,
        functions: &[Ident],
        imported: Option<&HashSet<String>>,
    ) -> Request {
        let absent = imported.map_or_else(Vec::new, |imported| {
            let mut called = tile_frontend::called_elsewhere(&self.function, helpers);
            let is_nowhere =
                |name: &Ident| !imported.contains(&name.to_string()) && !functions.contains(name);
            called.retain(|path| path.get_ident().is_some_and(is_nowhere));
            called
        });
        Request { seen: seen.to_vec(), functions: functions.to_vec(), absent, ..self }
    }

    fn helpers(&self) -> Helpers {
        helpers(&self.seen, &self.found, &file(&self.function))
    }

    /// The first of these functions that is unknown and may stand elsewhere.
    fn wanted<'p>(&self, called: impl IntoIterator<Item = &'p Path>) -> Option<&'p Path> {
        let is_new = |path: &&Path| {
            let known = self.found.iter().map(|found| &found.path).chain(&self.absent);
            let known = known.into_iter().any(|known| path_text(known) == path_text(path));
            let own = path.get_ident().is_some_and(|name| self.functions.contains(name));
            !known && !own && !path.is_ident(&self.function.sig.ident)
        };
        called.into_iter().find(is_new)
    }

    fn missing(&self, errors: &Diagnostics) -> Option<Path> {
        self.wanted(errors.missing()).cloned()
    }
}

/// What a module's functions see: of the module, and what they were found to call of others.
fn helpers(seen: &[Item], found: &[Found], kernels_file: &str) -> Helpers {
    let mut helpers = Helpers::of(seen);
    for Found { path, function, seen, found } in found {
        let foreign = file(function) != kernels_file;
        let own = self::helpers(seen, found, kernels_file);
        helpers.insert(path_text(path), function.clone(), own, foreign);
    }
    helpers
}

impl ToTokens for Found {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Found { path, function, seen, found } = self;
        tokens.extend(quote!({ #path } { #function } { #(#seen)* } { #(#found)* }));
    }
}

impl Parse for Found {
    fn parse(input: ParseStream<'_>) -> syn::Result<Found> {
        let path = syn::parse2(in_braces(input)?)?;
        let (function, seen, found) = definition(input)?;
        Ok(Found { path, function, seen, found })
    }
}

/// A function, what it sees of its own module, and what it calls of others.
fn definition(input: ParseStream<'_>) -> syn::Result<(ItemFn, Vec<Item>, Vec<Found>)> {
    let function = syn::parse2(in_braces(input)?)?;
    let seen = items(in_braces(input)?)?;
    let inner;
    braced!(inner in input);
    Ok((function, seen, all(&inner)?))
}

fn all<T: Parse>(input: ParseStream<'_>) -> syn::Result<Vec<T>> {
    let mut all = Vec::new();
    while !input.is_empty() {
        all.push(input.parse()?);
    }
    Ok(all)
}

/// The order of what stands in braces is that of [`Request::parse`].
impl ToTokens for Request {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Request { kind, function, seen, functions, absent, found } = self;
        let kind = match kind {
            Kind::Kernel(options) => quote!({ #options }),
            Kind::Function => TokenStream::new(),
            Kind::Question => quote!(?),
        };
        let absent = absent.iter().map(|path| quote!({ #path }));
        tokens.extend(quote! {
            { #kind } { #function } { #(#seen)* } { #(#functions)* } { #(#absent)* } { #(#found)* }
        });
    }
}

impl Parse for Request {
    fn parse(input: ParseStream<'_>) -> syn::Result<Request> {
        let written;
        braced!(written in input);
        let kind = if written.is_empty() {
            Kind::Function
        } else if written.parse::<Option<Token![?]>>()?.is_some() {
            Kind::Question
        } else {
            Kind::Kernel(in_braces(&written)?)
        };
        let function = syn::parse2(in_braces(input)?)?;
        let seen = items(in_braces(input)?)?;
        let names = in_braces(input)?.into_iter();
        let functions = names.map(|name| syn::parse2(name.into())).collect::<syn::Result<_>>()?;
        let (paths, found);
        braced!(paths in input);
        braced!(found in input);
        let mut absent = Vec::new();
        while !paths.is_empty() {
            absent.push(syn::parse2(in_braces(&paths)?)?);
        }
        Ok(Request { kind, function, seen, functions, absent, found: all(&found)? })
    }
}

impl ToTokens for Wanted {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Wanted { path, request } = self;
        tokens.extend(quote!({ #path } #request));
    }
}

impl Parse for Wanted {
    fn parse(input: ParseStream<'_>) -> syn::Result<Wanted> {
        Ok(Wanted { path: syn::parse2(in_braces(input)?)?, request: input.parse()? })
    }
}

/// A function's macro writes its definition in front of what it is given.
impl Parse for Answer {
    fn parse(input: ParseStream<'_>) -> syn::Result<Answer> {
        let (function, seen, found) = definition(input)?;
        Ok(Answer { function, seen, found, wanted: input.parse()? })
    }
}

fn in_braces(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let inner;
    braced!(inner in input);
    inner.parse()
}

fn items(tokens: TokenStream) -> syn::Result<Vec<Item>> {
    Ok(syn::parse2::<syn::File>(tokens)?.items)
}

/// Goes on with a kernel or function that has the tokens of one more function.
pub(crate) fn resume(answer: Answer) -> TokenStream {
    let Answer { function, seen, found, wanted: Wanted { path, mut request } } = answer;
    if let Kind::Question = request.kind {
        return TokenStream::new();
    }
    request.found.push(Found { path, function, seen, found });
    go_on(request)
}

/// Goes on with a kernel that calls a function at a path where there is none.
pub(crate) fn absent(wanted: Wanted) -> TokenStream {
    let Wanted { path, mut request } = wanted;
    if let Kind::Question = request.kind {
        let function = &request.function;
        let error = match waiting::circle(&function.sig.ident, &path) {
            Some(through) => tile_frontend::in_a_circle(function, &path, &through),
            None => tile_frontend::absent(function, &path).with_unfinished(waiting::of),
        };
        return error.to_compile_errors();
    }
    request.absent.push(path);
    go_on(request)
}

fn go_on(request: Request) -> TokenStream {
    let function = &request.function;
    if let Kind::Function = request.kind {
        return macro_of(request);
    }
    match lowered(&request) {
        Ok(lowered) => expand::meaning(function, &request.helpers(), &lowered),
        Err(Unknown::Wanted(path)) => ask(function, &path, &request),
        Err(Unknown::Refused(errors)) => {
            let stub = expand::meaning_of_refused(function, &request.helpers());
            let errors = errors.to_compile_errors();
            quote!(#errors #stub)
        }
    }
}

/// A call of the macro of the function at `path`, which hands its tokens on.
///
/// rustc says of a name that is no macro that it can't find that macro, and nobody wrote one. So the macro is imported
/// under a name that an outer block has as well, for `__tile_absent!`: where the path is that of a function without
/// `#[tile_fn]`, the import is of the function alone, and the name means the outer one. Where the path is a name that
/// nobody has, the import would be an error of its own; a type of the name, which is none of macros, makes it none.
fn ask(function: &ItemFn, path: &Path, request: &Request) -> TokenStream {
    let stand_in = path.get_ident().filter(|name| !names_type(function, request, name)).map(|name| {
        let name = expand::of_macro(name);
        quote!(enum #name {})
    });
    quote! {
        const _: () = {
            use ::tile::__tile_absent as __tile_asked;
            #stand_in
            const _: () = {
                #[allow(unused_imports)]
                use #path as __tile_asked;
                const _: () = {
                    __tile_asked! { { #path } #request }
                };
            };
        };
    }
}

/// Whether a function, or what is known of its module, uses a name as that of a type or module.
fn names_type(function: &ItemFn, request: &Request, name: &Ident) -> bool {
    struct Uses<'n>(&'n Ident, bool);
    impl<'ast> Visit<'ast> for Uses<'_> {
        fn visit_expr_path(&mut self, path: &'ast ExprPath) {
            // What stands alone in an expression is a value.
            match path.path.segments.first().filter(|_| path.path.segments.len() == 1) {
                Some(value) => self.visit_path_segment(value),
                None => visit::visit_expr_path(self, path),
            }
        }

        fn visit_path(&mut self, path: &'ast Path) {
            self.1 |= path.segments.first().is_some_and(|first| first.ident == *self.0);
            visit::visit_path(self, path);
        }

        fn visit_macro(&mut self, called: &'ast Macro) {
            self.visit_path(&called.path);
            for expression in tile_frontend::macro_expressions(called) {
                let mut inside = Uses(self.0, false);
                inside.visit_expr(&expression);
                self.1 |= inside.1;
            }
        }
    }
    let mut uses = Uses(name, false);
    uses.visit_item_fn(function);
    request.seen.iter().for_each(|item| uses.visit_item(item));
    // What has a name alone stands in the module, too.
    let beside = request.found.iter().filter(|found| found.path.get_ident().is_some());
    beside.for_each(|found| uses.visit_item_fn(&found.function));
    uses.1
}

/// Why a kernel has no code yet.
enum Unknown {
    /// The function at a path isn't known, and may stand elsewhere.
    Wanted(Path),
    Refused(Diagnostics),
}

fn lowered(request: &Request) -> Result<Lowered, Unknown> {
    let (function, options) = (&request.function, request.options());
    tile_frontend::lower_with(options, function.clone(), &request.helpers(), &file(function)).map_err(
        |errors| match request.missing(&errors) {
            Some(path) => Unknown::Wanted(path),
            None => Unknown::Refused(errors.with_unfinished(waiting::of)),
        },
    )
}

/// The code of a kernel or of a function.
pub(crate) fn expand(request: Request) -> TokenStream {
    match request.kind {
        Kind::Kernel(_) => kernel(request),
        Kind::Function | Kind::Question => function(request),
    }
}

/// The kernel's code, or the part of it that is known and a call of the macro that hands on the next function.
pub(crate) fn kernel(request: Request) -> TokenStream {
    let function = &request.function;
    match lowered(&request) {
        Ok(lowered) => expand::kernel(function, &request.options(), &request.helpers(), &lowered),
        Err(Unknown::Wanted(path)) => {
            let (face, asked) = (expand::face(function, &request.options()), ask(function, &path, &request));
            quote!(#face #asked)
        }
        Err(Unknown::Refused(errors)) => {
            let stub = expand::stub(function, &request.helpers());
            let errors = errors.to_compile_errors();
            quote!(#errors #stub)
        }
    }
}

/// A function as rustc sees it, and what hands it on.
pub(crate) fn function(request: Request) -> TokenStream {
    match tile_frontend::function(request.function.clone(), &Helpers::of(&request.seen)) {
        Ok(rewritten) => {
            let hands_on = macro_of(request);
            quote! {
                // Indexing by a counter is how a kernel goes through several arrays, and operators are calls.
                #[allow(clippy::needless_range_loop, clippy::redundant_closure)]
                #rewritten

                #hands_on
            }
        }
        Err(errors) => {
            let (errors, function) = (errors.to_compile_errors(), &request.function);
            waiting::note_refused(&function.sig.ident);
            quote!(#errors #function)
        }
    }
}

/// The macro that hands a function on, or a call of that of the next function that it calls itself.
fn macro_of(request: Request) -> TokenStream {
    let called = tile_frontend::called_elsewhere(&request.function, &Helpers::of(&request.seen));
    let wanted = request.wanted(&called);
    waiting::note(&request.function.sig.ident, wanted);
    if let Some(path) = wanted {
        // A macro that others are to find can't be made in a block, so rustc says as well that it isn't there.
        let question = ask(&request.function, path, &request.question());
        return quote!(#question #path! { { #path } #request });
    }
    let Request { function, seen, found, .. } = &request;
    let (name, visibility) = (&function.sig.ident, &function.vis);
    let export = matches!(visibility, Visibility::Public(_)).then(|| quote!(#[macro_export]));
    let hands_on = unique_name(name);
    quote! {
        #[doc(hidden)]
        #export
        macro_rules! #hands_on {
            ($($request:tt)*) => {
                ::tile::__tile_kernel! { { #function } { #(#seen)* } { #(#found)* } $($request)* }
            };
        }

        #[doc(hidden)]
        #[allow(unused_imports, unreachable_pub)]
        #visibility use #hands_on as #name;
    }
}

/// Exported macros of a crate share one namespace, so the name says where the function stands. Functions that a
/// `macro_rules!` makes stand where it does, all of them: each after the first is numbered.
fn unique_name(name: &Ident) -> Ident {
    static MADE: Mutex<BTreeMap<u64, usize>> = Mutex::new(BTreeMap::new());
    let mut hasher = DefaultHasher::new();
    let (span, start) = (name.span().unwrap(), name.span().start());
    (name.to_string(), span.file(), start.line, start.column).hash(&mut hasher);
    let place = hasher.finish();
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = made.entry(place).or_default();
    let number = if *before == 0 { String::new() } else { format!("_{before}") };
    *before += 1;
    format_ident!("__tile_fn_{name}_{place:016x}{number}", span = Span::call_site())
}

/// The file that a function stands in.
fn file(function: &ItemFn) -> String {
    function.sig.ident.span().unwrap().file()
}
