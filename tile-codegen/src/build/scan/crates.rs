//! The crates that kernels may call functions of: those of the package, and, as paths lead to them, those that it depends on.

use super::condition::Conditions;
use super::read::read;
use super::tree::{Crate, CrateId, ScopeId, Tree};
use crate::build::cargo::{Cargo, Graph, Kind, Package, Target};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// What there is to read, and what was read.
pub(super) struct Crates<'p> {
    pub(super) tree: Tree,
    cargo: &'p Cargo,
    package: &'p Package,
    conditions: &'p Conditions,
    /// The package's own library.
    library: Option<(String, CrateId)>,
    /// The packages that the package is built with, when they were asked for.
    graph: Option<Graph>,
    /// Libraries of other packages, by these.
    others: HashMap<String, Result<CrateId, Unread>>,
    /// Files besides sources that what was found depends on.
    pub(super) manifests: Vec<PathBuf>,
}

/// A crate that code names, and that can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unread {
    pub(super) name: String,
    pub(super) reason: String,
}

impl<'p> Crates<'p> {
    /// Reads those of a package's crates that are wanted.
    ///
    /// # Errors
    /// Where a root can't be read.
    pub(super) fn read(
        cargo: &'p Cargo,
        package: &'p Package,
        conditions: &'p Conditions,
        roots: &[&Target],
    ) -> Result<Crates<'p>, String> {
        let mut crates = Crates {
            tree: Tree::default(),
            cargo,
            package,
            conditions,
            library: None,
            graph: None,
            others: HashMap::new(),
            manifests: vec![cargo.manifest.clone()],
        };
        let features = Some(cargo.features.clone().into());
        for target in roots {
            let of = Crate {
                package: None,
                name: "crate".to_owned(),
                features: features.clone(),
                root: ScopeId(0),
            };
            let id = read(&mut crates.tree, conditions, &package.folder, &target.root, of, Some(&cargo.out))?;
            if target.kind == Kind::Library {
                crates.library = Some((target.name.clone(), id));
            }
        }
        Ok(crates)
    }

    /// The package's own manifest.
    pub(super) fn manifest(&self) -> &Path {
        &self.cargo.manifest
    }

    /// The root of the crate that one names so; `None` where there is none with functions of kernels.
    ///
    /// # Errors
    /// Where there may be some, but it can't be read.
    pub(super) fn library(&mut self, of: CrateId, name: &str) -> Result<Option<ScopeId>, Unread> {
        let package = self.tree.crates[of.0].package.clone();
        if package.is_none() {
            if let Some((own, id)) = &self.library
                && own == name
            {
                return Ok(Some(self.tree.crates[id.0].root));
            }
            if !self.package.may_call(name) {
                return Ok(None);
            }
        }
        let graph = self.graph.get_or_insert_with(|| self.cargo.graph());
        let seen = graph.seen(package.as_ref().unwrap_or(&graph.root), name);
        let seen = seen.map_err(|reason| Unread { name: name.to_owned(), reason })?;
        let Some((id, node)) = seen else { return Ok(None) };
        let Some(library) = &node.library else { return Ok(None) };
        if let Some(known) = self.others.get(id) {
            return known.clone().map(|id| Some(self.tree.crates[id.0].root));
        }
        self.manifests.extend(graph.lock.iter().chain([&node.manifest]).cloned());
        let of = Crate {
            package: Some(id.to_owned()),
            name: name.to_owned(),
            features: node.features.clone().map(Into::into),
            root: ScopeId(0),
        };
        let folder = &self.package.folder;
        let known = read(&mut self.tree, self.conditions, folder, &library.root, of, None);
        let known = known.map_err(|reason| Unread { name: name.to_owned(), reason });
        self.others.insert(id.to_owned(), known.clone());
        known.map(|id| Some(self.tree.crates[id.0].root))
    }
}
