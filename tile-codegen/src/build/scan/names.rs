//! Which function a path means, as rustc finds it: in the block and module that it stands in, by `use` with its renames,
//! groups and globs, by `self`, `super` and `crate`, and in other crates.
//!
//! A name that is declared or imported hides one that a glob brings, and nobody sees what is private to others: else a glob
//! would bring what it doesn't in Rust.

use super::crates::{Crates, Unread};
use super::tree::{FunctionId, ScopeId, Segments, Visible};

/// Why a path means no function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// There is none; where a `use` brings the name, by the path there.
    Missing(Option<Segments>),
    /// There are several.
    Ambiguous(Vec<FunctionId>),
    /// It may be in a crate that can't be read.
    Unread(Unread),
}

/// What a name may mean. The two don't hide each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Module,
    Function,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Module(ScopeId),
    Function(FunctionId),
}

/// What is looked up at a time: a `use` may name what itself brings.
type Open = Vec<(ScopeId, String, Kind)>;

/// The function that a path means in a scope. Reads the crates that the path leads to.
///
/// # Errors
/// Where there isn't exactly one.
pub(super) fn function(crates: &mut Crates, scope: ScopeId, path: &Segments) -> Result<FunctionId, Failure> {
    let mut names = Names { crates, open: Vec::new() };
    match names.path(scope, path, Kind::Function)? {
        Meaning::Function(function) => Ok(function),
        Meaning::Module(_) => Err(Failure::Missing(None)),
    }
}

struct Names<'c, 'p> {
    crates: &'c mut Crates<'p>,
    open: Open,
}

impl Names<'_, '_> {
    fn path(&mut self, from: ScopeId, path: &Segments, kind: Kind) -> Result<Meaning, Failure> {
        let Some((last, before)) = path.names.split_last() else { return Err(Failure::Missing(None)) };
        match self.around(from, path.is_global, before)? {
            Some(module) if last == "self" => Ok(Meaning::Module(module)),
            Some(module) => self.member(from, module, last, kind),
            None if path.is_global => self.library(from, last, kind),
            None => self.first(from, last, kind),
        }
    }

    /// The module that the names before a path's last lead to; `None` without any.
    fn around(
        &mut self,
        from: ScopeId,
        is_global: bool,
        names: &[String],
    ) -> Result<Option<ScopeId>, Failure> {
        let mut module = None;
        for name in names {
            let meaning = match module {
                None if is_global => self.library(from, name, Kind::Module)?,
                None => self.first(from, name, Kind::Module)?,
                Some(module) if name == "super" => Meaning::Module(self.outer(module)?),
                Some(module) => self.member(from, module, name, Kind::Module)?,
            };
            let Meaning::Module(next) = meaning else { return Err(Failure::Missing(None)) };
            module = Some(next);
        }
        Ok(module)
    }

    /// What a path's first name means: in the innermost block that has it, in the module, or as a crate.
    fn first(&mut self, from: ScopeId, name: &str, kind: Kind) -> Result<Meaning, Failure> {
        let tree = &self.crates.tree;
        let module = tree.module(from);
        match name {
            "crate" => return Ok(Meaning::Module(tree.crates[tree.scope(from).of.0].root)),
            "self" => return Ok(Meaning::Module(module)),
            "super" => return self.outer(module).map(Meaning::Module),
            _ => {}
        }
        let mut failure = Failure::Missing(None);
        let mut scope = Some(from);
        while let Some(inner) = scope {
            match self.member(from, inner, name, kind) {
                Err(other) => failure = failure.or(other),
                found => return found,
            }
            let tree = &self.crates.tree;
            scope = tree.scope(inner).parent.filter(|_| tree.scope(inner).is_block);
        }
        self.library(from, name, kind).map_err(|other| failure.or(other))
    }

    /// The module around one.
    fn outer(&self, module: ScopeId) -> Result<ScopeId, Failure> {
        let tree = &self.crates.tree;
        tree.scope(module).parent.map(|parent| tree.module(parent)).ok_or(Failure::Missing(None))
    }

    /// The root of another crate.
    fn library(&mut self, from: ScopeId, name: &str, kind: Kind) -> Result<Meaning, Failure> {
        if kind != Kind::Module {
            return Err(Failure::Missing(None));
        }
        let of = self.crates.tree.scope(from).of;
        match self.crates.library(of, name).map_err(Failure::Unread)? {
            Some(root) => Ok(Meaning::Module(root)),
            None => Err(Failure::Missing(None)),
        }
    }

    /// What a name means in a module, for code in another.
    fn member(&mut self, from: ScopeId, scope: ScopeId, name: &str, kind: Kind) -> Result<Meaning, Failure> {
        let entry = (scope, name.to_owned(), kind);
        if self.open.contains(&entry) {
            return Err(Failure::Missing(None));
        }
        self.open.push(entry);
        let found = self.member_once(from, scope, name, kind);
        self.open.pop();
        found
    }

    fn member_once(
        &mut self,
        from: ScopeId,
        scope: ScopeId,
        name: &str,
        kind: Kind,
    ) -> Result<Meaning, Failure> {
        let own = self.declared(from, scope, name, kind);
        if !own.is_empty() {
            return one(own, Failure::Missing(None));
        }
        let tree = &self.crates.tree;
        let imports = tree.scope(scope).imports.iter();
        let imports: Vec<_> = imports.filter(|import| tree.sees(from, import.visible)).cloned().collect();
        let (mut found, mut failure) = (Vec::new(), Failure::Missing(None));
        for import in imports.iter().filter(|import| import.name.as_deref() == Some(name)) {
            match self.path(scope, &import.path, kind) {
                Ok(meaning) => found.push(meaning),
                // Of a `use` that names what another brings, the other says more.
                Err(Failure::Missing(None)) => {
                    failure = failure.or(Failure::Missing(Some(import.path.clone())))
                }
                Err(other) => failure = failure.or(other),
            }
        }
        if found.is_empty() && matches!(failure, Failure::Missing(_)) {
            for import in imports.iter().filter(|import| import.name.is_none()) {
                let module = self.around(scope, import.path.is_global, &import.path.names);
                let meaning = module.and_then(|module| match module {
                    Some(module) => self.member(scope, module, name, kind),
                    None => Err(Failure::Missing(None)),
                });
                match meaning {
                    Ok(meaning) => found.push(meaning),
                    Err(other) => failure = failure.or(other),
                }
            }
        }
        one(found, failure)
    }

    /// What is declared in a scope itself.
    fn declared(&self, from: ScopeId, scope: ScopeId, name: &str, kind: Kind) -> Vec<Meaning> {
        let tree = &self.crates.tree;
        let is_seen = |visible: Visible| tree.sees(from, visible);
        match kind {
            Kind::Module => {
                let modules = tree.scope(scope).modules.get(name).into_iter().flatten();
                let seen = modules.filter(|(_, visible)| is_seen(*visible));
                seen.map(|&(module, _)| Meaning::Module(module)).collect()
            }
            Kind::Function => {
                let functions = tree.scope(scope).functions.get(name).into_iter().flatten();
                let seen = functions.filter(|&&function| is_seen(tree.function(function).visible));
                seen.map(|&function| Meaning::Function(function)).collect()
            }
        }
    }
}

impl Failure {
    /// The more telling one.
    fn or(self, other: Failure) -> Failure {
        if self == Failure::Missing(None) { other } else { self }
    }
}

/// The only meaning, brought in one way or in several.
fn one(mut found: Vec<Meaning>, failure: Failure) -> Result<Meaning, Failure> {
    let Some(first) = found.pop() else { return Err(failure) };
    if found.iter().all(|other| *other == first) {
        return Ok(first);
    }
    let functions = found.into_iter().chain([first]).filter_map(|meaning| match meaning {
        Meaning::Function(function) => Some(function),
        Meaning::Module(_) => None,
    });
    Err(Failure::Ambiguous(functions.collect()))
}
