//! From a crate's root to everything that rustc builds of it: modules that some `mod` names, without what `cfg` leaves out.

use super::condition::Conditions;
use super::files::Files;
use super::tree::{
    Crate, CrateId, Function, FunctionId, Import, Kernel, Maker, Place, Scope, ScopeId, Segments, Tree,
    Visible,
};
use proc_macro2::{TokenStream, TokenTree};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Block, Expr, ExprLit, ImplItemFn, Item, ItemConst, ItemExternCrate, ItemFn, ItemImpl,
    ItemMacro, ItemMod, ItemStatic, ItemTrait, ItemUse, Lit, LitStr, Stmt, Token, UseTree, Visibility,
};
use tile_frontend::{Helpers, is_function, is_kernel, is_module, is_module_of_file, path_text};

/// Reads a crate from its root into a tree. `generated` is the folder of what its build script writes; of a crate that is only
/// called there is none, and its kernels are left out: its own build script compiles these.
///
/// # Errors
/// Where the root can't be read.
pub(super) fn read(
    tree: &mut Tree,
    conditions: &Conditions,
    package: &Path,
    root: &Path,
    of: Crate,
    generated: Option<&Path>,
) -> Result<CrateId, String> {
    let id = CrateId(tree.crates.len());
    let name = of.name.clone();
    let features = of.features.clone();
    tree.crates.push(of);
    let mut reader = Reader {
        package,
        conditions,
        features,
        scope: ScopeId(tree.scopes.len()),
        seen: None,
        files: Files::beside(root),
        file: "".into(),
        generated,
        of: id,
        open: Vec::new(),
        is_sure: true,
        tree,
    };
    let scope = reader.add_scope(None, false, name);
    reader.tree.crates[id.0].root = scope;
    reader.read_file(root, Files::beside(root))?;
    Ok(id)
}

struct Reader<'t> {
    tree: &'t mut Tree,
    package: &'t Path,
    conditions: &'t Conditions,
    features: Option<Rc<[String]>>,
    of: CrateId,
    /// The folder of what the build script that runs writes, in a crate of its own package.
    generated: Option<&'t Path>,
    /// The innermost module or block.
    scope: ScopeId,
    /// What all its kernels and functions see, where its module says so.
    seen: Option<Helpers>,
    files: Files,
    /// The file's name in messages.
    file: Rc<str>,
    /// The files that are being read, outermost first: one that includes itself is rustc's to report.
    open: Vec<PathBuf>,
    /// Whether it is known that rustc reads what is read.
    is_sure: bool,
}

impl Reader<'_> {
    fn read_file(&mut self, path: &Path, files: Files) -> Result<(), String> {
        let name = path.strip_prefix(self.package).unwrap_or(path).display().to_string();
        if self.open.iter().any(|open| open == path) {
            return Ok(());
        }
        let read = fs::read_to_string(path).map_err(|error| format!("{name}: {error}"));
        if read.is_ok() {
            self.depend_on(path);
        } else {
            self.lack(path);
        }
        let source = read?;
        // A file that rustc can't parse either is rustc's to report.
        let Ok(syntax) = syn::parse_file(&source) else { return Ok(()) };
        if !self.conditions.hold(self.features.as_deref(), &syntax.attrs) {
            return Ok(());
        }
        self.open.push(path.to_owned());
        let outer =
            (std::mem::replace(&mut self.files, files), std::mem::replace(&mut self.file, name.into()));
        self.under(&syntax.attrs, |reader| reader.visit_file(&syntax));
        (self.files, self.file) = outer;
        self.open.pop();
        Ok(())
    }

    fn depend_on(&mut self, file: &Path) {
        // What a build script writes is newer than its own start: it would run in every build.
        if !self.generated.is_some_and(|generated| file.starts_with(generated)) {
            self.tree.files.insert(file.to_owned());
        }
    }

    /// Takes down a file that isn't there. Cargo runs the build script at every build until it is, which is of use only where
    /// rustc needs it.
    fn lack(&mut self, file: &Path) {
        if self.is_sure {
            self.depend_on(file);
        }
    }

    /// Reads what stands under attributes, of which `cfg` may leave out more than is known.
    fn under<T>(&mut self, attributes: &[Attribute], read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.is_sure;
        self.is_sure &= self.conditions.surely_hold(self.features.as_deref(), attributes);
        let value = read(self);
        self.is_sure = outer;
        value
    }

    fn add_scope(&mut self, parent: Option<ScopeId>, is_block: bool, path: String) -> ScopeId {
        let (modules, functions, imports) = Default::default();
        self.tree.scopes.push(Scope { of: self.of, parent, is_block, path, modules, functions, imports });
        ScopeId(self.tree.scopes.len() - 1)
    }

    fn within<T>(&mut self, scope: ScopeId, seen: Option<Helpers>, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = (std::mem::replace(&mut self.scope, scope), std::mem::replace(&mut self.seen, seen));
        let value = read(self);
        (self.scope, self.seen) = outer;
        value
    }

    /// The attributes of an item that is there; `None` of one that `cfg` leaves out.
    fn present(&self, attributes: &[Attribute]) -> Option<Vec<Attribute>> {
        let applied = self.conditions.applied(self.features.as_deref(), attributes);
        self.conditions.hold(self.features.as_deref(), &applied).then_some(applied)
    }

    fn place(&self, line: usize) -> Place {
        Place { file: Rc::clone(&self.file), line }
    }

    fn visible(&self, visibility: &Visibility) -> Visible {
        let around = || self.tree.scope(self.tree.module(self.scope)).parent;
        match visibility {
            Visibility::Public(_) => Visible::Everywhere,
            Visibility::Inherited => Visible::Within(self.scope),
            Visibility::Restricted(restricted) if restricted.path.is_ident("self") => {
                Visible::Within(self.scope)
            }
            Visibility::Restricted(restricted) if restricted.path.is_ident("super") => {
                Visible::Within(around().map_or(self.scope, |around| self.tree.module(around)))
            }
            // A longer path may name a module that isn't read yet; rustc refuses who mustn't see it.
            Visibility::Restricted(_) => Visible::Within(self.tree.crates[self.of.0].root),
        }
    }

    fn module(&mut self, module: &ItemMod) {
        let Some(attributes) = self.present(&module.attrs) else { return };
        let name = module.ident.to_string();
        let visible = self.visible(&module.vis);
        let path = format!("{}::{name}", self.tree.scope(self.scope).path);
        let scope = self.add_scope(Some(self.scope), false, path);
        self.tree.scopes[self.scope.0].modules.entry(name.clone()).or_default().push((scope, visible));
        self.under(&attributes, |reader| reader.content(module, &attributes, scope));
    }

    fn content(&mut self, module: &ItemMod, attributes: &[Attribute], scope: ScopeId) {
        match &module.content {
            Some((_, items)) => {
                let seen = attributes.iter().any(is_module).then(|| Helpers::of(items));
                let outer = self.files.clone();
                self.files = outer.inline(&module.ident.unraw().to_string(), attributes);
                self.within(scope, seen, |reader| items.iter().for_each(|item| reader.visit_item(item)));
                self.files = outer;
            }
            None => {
                // `mod r#type;` is in `type.rs`.
                let in_path = module.ident.unraw().to_string();
                match self.files.module(&in_path, attributes) {
                    // What can't be read is rustc's to report.
                    Ok((file, files)) => {
                        self.within(scope, None, |reader| drop(reader.read_file(&file, files)))
                    }
                    Err(absent) => absent.iter().for_each(|file| self.lack(file)),
                }
            }
        }
    }

    fn function(&mut self, function: &ItemFn, attributes: Vec<Attribute>) {
        let item = ItemFn { attrs: attributes, ..function.clone() };
        let place = self.place(item.sig.ident.span().start().line);
        let scope = self.scope;
        if item.attrs.iter().any(is_function) {
            let name = item.sig.ident.to_string();
            let visible = self.visible(&item.vis);
            let itself = || Helpers::of(&[Item::Fn(item.clone())]);
            let seen = self.seen.clone().unwrap_or_else(itself);
            let id = FunctionId(self.tree.functions.len());
            self.tree.functions.push(Function { item, scope, visible, seen, place });
            self.tree.scopes[scope.0].functions.entry(name).or_default().push(id);
        } else if let Some(position) = item.attrs.iter().position(is_kernel)
            && self.generated.is_some()
        {
            let mut item = item;
            let attribute = item.attrs.remove(position);
            let seen = self.seen.clone().unwrap_or_default();
            self.tree.kernels.push(Kernel { attribute, item, scope, seen, place });
        }
    }

    fn import(&mut self, visible: Visible, path: Segments, name: Option<String>) {
        let import = Rc::new(Import { visible, path, name });
        self.tree.scopes[self.scope.0].imports.push(import);
    }

    fn imports(&mut self, visible: Visible, tree: &UseTree, before: &Segments) {
        let with = |name: &syn::Ident| {
            let mut path = before.clone();
            path.names.push(name.to_string());
            path
        };
        match tree {
            UseTree::Path(path) => self.imports(visible, &path.tree, &with(&path.ident)),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.imports(visible, tree, before));
            }
            UseTree::Glob(_) => self.import(visible, before.clone(), None),
            // `use rows::{self};`
            UseTree::Name(name) if name.ident == "self" => {
                self.import(visible, before.clone(), before.names.last().cloned());
            }
            UseTree::Rename(rename) if rename.ident == "self" && !before.names.is_empty() => {
                self.import(visible, before.clone(), Some(rename.rename.to_string()));
            }
            UseTree::Name(name) => self.import(visible, with(&name.ident), Some(name.ident.to_string())),
            UseTree::Rename(rename) => {
                self.import(visible, with(&rename.ident), Some(rename.rename.to_string()));
            }
        }
    }
}

impl Visit<'_> for Reader<'_> {
    fn visit_item(&mut self, item: &Item) {
        match item {
            Item::Mod(module) => self.module(module),
            Item::Use(ItemUse { attrs, vis, tree, leading_colon, .. }) => {
                if self.present(attrs).is_some() {
                    let before = Segments { is_global: leading_colon.is_some(), names: Vec::new() };
                    self.imports(self.visible(vis), tree, &before);
                }
            }
            Item::ExternCrate(ItemExternCrate { attrs, vis, ident, rename: Some((_, rename)), .. }) => {
                if self.present(attrs).is_some() {
                    let names = vec![if ident == "self" { "crate".to_owned() } else { ident.to_string() }];
                    let path = Segments { is_global: ident != "self", names };
                    self.import(self.visible(vis), path, Some(rename.to_string()));
                }
            }
            Item::Fn(function) => {
                let Some(attributes) = self.present(&function.attrs) else { return };
                self.function(function, attributes);
                visit::visit_item_fn(self, function);
            }
            Item::Macro(called) => {
                if let Some(attributes) = self.present(&called.attrs) {
                    self.under(&attributes, |reader| reader.called(called));
                }
            }
            Item::Const(ItemConst { attrs, .. })
            | Item::Static(ItemStatic { attrs, .. })
            | Item::Impl(ItemImpl { attrs, .. })
            | Item::Trait(ItemTrait { attrs, .. })
                if self.present(attrs).is_none() => {}
            item => visit::visit_item(self, item),
        }
    }

    fn visit_impl_item_fn(&mut self, method: &ImplItemFn) {
        if self.present(&method.attrs).is_some() {
            visit::visit_impl_item_fn(self, method);
        }
    }

    /// A block with items is where names are looked up before its module.
    fn visit_block(&mut self, block: &Block) {
        if !block.stmts.iter().any(|statement| matches!(statement, Stmt::Item(_))) {
            return visit::visit_block(self, block);
        }
        let path = self.tree.scope(self.scope).path.clone();
        let scope = self.add_scope(Some(self.scope), true, path);
        self.within(scope, None, |reader| visit::visit_block(reader, block));
    }
}

impl Reader<'_> {
    /// A macro that stands for items.
    fn called(&mut self, called: &ItemMacro) {
        if is_module_of_file(&called.mac) {
            let Ok(file) = called.mac.parse_body::<syn::File>() else { return };
            let seen = Some(Helpers::of(&file.items));
            return self.within(self.scope, seen, |reader| reader.visit_file(&file));
        }
        if called.mac.path.is_ident("include") {
            match called.mac.parse_body::<Expr>().ok().and_then(|path| self.text(&path)) {
                Some(path) => {
                    let file = self.files.included(&path);
                    self.within(self.scope, None, |reader| {
                        drop(reader.read_file(&file, Files::beside(&file)));
                    });
                }
                // rustc may be given a variable by anybody.
                None if self.generated.is_some() => {
                    let place = self.place(called.mac.path.span().start().line);
                    self.tree.unread.push(place);
                }
                None => {}
            }
            return;
        }
        if self.generated.is_some() && makes_kernels(called.mac.tokens.clone()) {
            let name = called.ident.as_ref().map_or_else(|| path_text(&called.mac.path), ToString::to_string);
            let place = self.place(called.mac.path.span().start().line);
            self.tree.makers.push(Maker { name, place });
        }
    }
}

impl Reader<'_> {
    /// What rustc makes of a literal, and of `concat!(env!("OUT_DIR"), "/kernels.rs")`; `None` where that isn't known.
    fn text(&self, expression: &Expr) -> Option<String> {
        match expression {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            Expr::Group(inner) => self.text(&inner.expr),
            Expr::Macro(called) if called.mac.path.is_ident("concat") => {
                let all = Punctuated::<Expr, Token![,]>::parse_terminated;
                let parts = called.mac.parse_body_with(all).ok()?;
                parts.iter().map(|part| self.text(part)).collect()
            }
            Expr::Macro(called) if called.mac.path.is_ident("env") => {
                let name = called.mac.parse_body::<LitStr>().ok()?.value();
                let folder = match name.as_str() {
                    "OUT_DIR" => self.generated?,
                    "CARGO_MANIFEST_DIR" if self.generated.is_some() => self.package,
                    _ => return None,
                };
                folder.to_str().map(ToOwned::to_owned)
            }
            _ => None,
        }
    }
}

/// Whether what a macro is given, or is defined as, has kernels in it.
fn makes_kernels(tokens: TokenStream) -> bool {
    fn names_kernels(attribute: TokenStream) -> bool {
        attribute.into_iter().any(|token| match token {
            TokenTree::Ident(name) => name == "tile_kernel",
            TokenTree::Group(group) => names_kernels(group.stream()),
            _ => false,
        })
    }
    let mut follows_hash = false;
    tokens.into_iter().any(|token| {
        let is_hash = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '#');
        let is_attribute = std::mem::replace(&mut follows_hash, is_hash);
        let TokenTree::Group(group) = token else { return false };
        is_attribute && names_kernels(group.stream()) || makes_kernels(group.stream())
    })
}
