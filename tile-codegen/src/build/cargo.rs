//! What cargo knows of the package that is built: its targets, and the packages that it is built with.
//!
//! `cargo metadata` says both, without network and without touching the lock file, which `cargo build` has just written. The
//! second takes longer, and is asked for when a kernel calls a function of another crate. It needs the sources of every
//! package that the workspace may be built with, which a fresh checkout that was never tested lacks; then the paths in
//! manifests lead to those packages that are there anyway.

use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package whose macros and kernel-side types kernels use. What doesn't depend on it has no function of kernels.
const THIS_LIBRARY: &str = "tile";

/// How to ask.
#[derive(Clone, Debug)]
pub(super) struct Cargo {
    pub(super) program: OsString,
    pub(super) manifest: PathBuf,
    /// What the program is built for, as rustc names it.
    pub(super) target: String,
    /// Where the build script writes: `OUT_DIR`.
    pub(super) out: PathBuf,
    /// The package's features.
    pub(super) features: Vec<String>,
}

/// A package that is built.
#[derive(Clone, Debug)]
pub(super) struct Package {
    pub(super) folder: PathBuf,
    pub(super) targets: Vec<Target>,
    /// Where what people look at goes: the target folder, or the one of a target in there that cargo was given (`--target`).
    pub(super) target_folder: PathBuf,
    /// The crates that its manifest names, as code names them, each with its package's name.
    declared: HashMap<String, String>,
}

/// A library, program, example, test or benchmark.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) kind: Kind,
    /// As code names it.
    pub(super) name: String,
    pub(super) root: PathBuf,
    pub(super) required_features: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Library,
    Program,
    /// What only `cargo test` and the like build.
    Other,
}

/// The packages that a package is built with.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    /// The package itself.
    pub(super) root: String,
    nodes: HashMap<String, Node>,
    pub(super) lock: Option<PathBuf>,
    /// Cargo's words, where only packages are here that manifests name by path.
    lacks: Option<String>,
}

/// A package that is built.
#[derive(Clone, Debug)]
pub(super) struct Node {
    name: String,
    pub(super) manifest: PathBuf,
    pub(super) library: Option<Target>,
    /// `None` where they aren't known.
    pub(super) features: Option<Vec<String>>,
    /// The packages of the crates that it sees, as its code names these; `None` for one that isn't known.
    dependencies: HashMap<String, Option<String>>,
}

impl Cargo {
    /// The package's targets.
    ///
    /// # Errors
    /// Cargo's words.
    pub(super) fn package(&self) -> Result<Package, String> {
        let metadata = self.metadata(&self.manifest, &["--no-deps"])?;
        let is_own = |package: &&Value| is_same(&path(&package["manifest_path"]), &self.manifest);
        let package = list(&metadata["packages"]).find(is_own);
        let package = package.ok_or_else(|| format!("cargo knows no package {}", self.manifest.display()))?;
        let declared = declared(package).map(|(name, dependency)| (name, text(&dependency["name"])));
        Ok(Package {
            folder: self.folder(),
            targets: targets(package),
            target_folder: self.target_folder(&metadata),
            declared: declared.collect(),
        })
    }

    /// The targets at the places where cargo looks for them, for where it can't be asked.
    pub(super) fn conventional(&self) -> Package {
        let source = self.folder().join("src");
        let programs = std::fs::read_dir(source.join("bin")).into_iter().flatten().flatten();
        let programs = programs.map(|entry| entry.path()).map(|path| match path.is_dir() {
            true => path.join("main.rs"),
            false => path,
        });
        let programs = programs.chain([source.join("main.rs")]).map(|root| (Kind::Program, root));
        let roots = programs.chain([(Kind::Library, source.join("lib.rs"))]);
        let roots = roots.filter(|(_, root)| root.extension().is_some_and(|is| is == "rs") && root.is_file());
        let target = |(kind, root)| {
            let (name, required_features) = Default::default();
            Target { kind, name, root, required_features }
        };
        Package {
            folder: self.folder(),
            targets: roots.map(target).collect(),
            target_folder: self.target_folder_around(),
            declared: HashMap::new(),
        }
    }

    /// The packages that the package is built with; where cargo can't say, those that lie at paths.
    pub(super) fn graph(&self) -> Graph {
        self.resolved().unwrap_or_else(|lacks| self.at_paths(lacks))
    }

    fn resolved(&self) -> Result<Graph, String> {
        let features = self.features.join(",");
        let arguments =
            ["--locked", "--filter-platform", &self.target, "--no-default-features", "--features", &features];
        let metadata = self.metadata(&self.manifest, &arguments)?;
        let packages: HashMap<String, &Value> =
            list(&metadata["packages"]).map(|package| (text(&package["id"]), package)).collect();
        let own =
            packages.iter().find(|(_, package)| is_same(&path(&package["manifest_path"]), &self.manifest));
        let (root, _) = own.ok_or_else(|| format!("cargo knows no package {}", self.manifest.display()))?;
        let all = list(&metadata["resolve"]["nodes"]).filter_map(|node| {
            let id = text(&node["id"]);
            let seen = list(&node["deps"])
                .filter(|dependency| list(&dependency["dep_kinds"]).any(|kind| kind["kind"] != "build"));
            let seen = seen.map(|dependency| (text(&dependency["name"]), Some(text(&dependency["pkg"]))));
            let features = list(&node["features"]).map(text).collect();
            let node = Node::of(packages.get(&id)?, Some(features), seen.collect());
            Some((id, node))
        });
        let mut nodes: HashMap<String, Node> = all.collect();
        let using = using_this_library(&nodes);
        nodes.retain(|id, _| using.contains(id));
        let lock = Some(path(&metadata["workspace_root"]).join("Cargo.lock"));
        Ok(Graph { root: root.clone(), nodes, lock, lacks: None })
    }

    /// The packages that manifests name by path, from the package's own on. A package's manifest is its name here.
    fn at_paths(&self, lacks: String) -> Graph {
        let id = |manifest: &Path| manifest.display().to_string();
        let mut graph =
            Graph { root: id(&self.manifest), nodes: HashMap::new(), lock: None, lacks: Some(lacks) };
        let mut known: Vec<Value> = Vec::new();
        let mut open = vec![self.manifest.clone()];
        while let Some(manifest) = open.pop() {
            let is_it = |package: &&Value| is_same(&path(&package["manifest_path"]), &manifest);
            if !known.iter().any(|package| is_it(&package)) {
                // Of a workspace all members are told at once. What cargo can't tell of here it can't build either.
                let metadata = self.metadata(&manifest, &["--no-deps"]).unwrap_or_default();
                known.extend(list(&metadata["packages"]).cloned());
            }
            let Some(package) = known.iter().find(is_it) else { continue };
            let seen = declared(package).filter(|(_, dependency)| dependency["name"] != THIS_LIBRARY);
            let seen = seen.map(|(name, dependency)| {
                let folder = dependency["path"].as_str().map(Path::new);
                (name, folder.map(|folder| folder.join("Cargo.toml")))
            });
            let seen: HashMap<String, Option<PathBuf>> = seen.collect();
            let dependencies =
                seen.iter().map(|(name, manifest)| (name.clone(), manifest.as_deref().map(id)));
            graph.nodes.insert(id(&manifest), Node::of(package, None, dependencies.collect()));
            open.extend(
                seen.into_values().flatten().filter(|manifest| !graph.nodes.contains_key(&id(manifest))),
            );
        }
        graph
    }

    /// The target folder, of what cargo says. What it has on the way, `OUT_DIR` among it, may be elsewhere
    /// (`build.build-dir`), in folders that lie as only cargo knows.
    fn target_folder(&self, metadata: &Value) -> PathBuf {
        let target = path(&metadata["target_directory"]);
        // Until 1.91, cargo knew of no other place.
        let build = metadata["build_directory"].as_str().map_or_else(|| target.clone(), PathBuf::from);
        match self.out.strip_prefix(build) {
            Ok(below) if below.starts_with(&self.target) => target.join(&self.target),
            Ok(_) => target,
            // `cargo build --target-dir`, of which nobody else is told.
            Err(_) => self.target_folder_around(),
        }
    }

    /// The target folder of an `OUT_DIR` that is in there: `<target>/<profile>/build/<package>-<hash>/out`, in later layouts of
    /// cargo's `<target>/<profile>/build/<package>/<hash>/out`.
    fn target_folder_around(&self) -> PathBuf {
        let mut build = self.out.ancestors().skip(2).skip_while(|folder| !folder.ends_with("build"));
        build.nth(2).unwrap_or(&self.out).to_owned()
    }

    fn folder(&self) -> PathBuf {
        self.manifest.parent().unwrap_or(Path::new("")).to_owned()
    }

    fn metadata(&self, manifest: &Path, arguments: &[&str]) -> Result<Value, String> {
        let mut command = Command::new(&self.program);
        command.args(["metadata", "--format-version", "1", "--offline", "--manifest-path"]);
        let output = command.arg(manifest).args(arguments).output();
        let output = output.map_err(|error| format!("{}: {error}", self.program.display()))?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            let words: Vec<&str> = words.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            return Err(words.join(" "));
        }
        serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("what cargo says can't be read: {error}"))
    }
}

impl Package {
    /// Whether a crate that code names may have functions of kernels: it is another package than this library.
    pub(super) fn may_call(&self, name: &str) -> bool {
        self.declared.get(name).is_some_and(|package| package != THIS_LIBRARY)
    }
}

impl Node {
    fn of(
        package: &Value,
        features: Option<Vec<String>>,
        dependencies: HashMap<String, Option<String>>,
    ) -> Node {
        Node {
            name: text(&package["name"]),
            manifest: path(&package["manifest_path"]),
            library: targets(package).into_iter().find(|target| target.kind == Kind::Library),
            features,
            dependencies,
        }
    }
}

impl Graph {
    /// The package that the code of one sees as a crate of this name, if it may have functions of kernels.
    ///
    /// # Errors
    /// Cargo's words, where it can't say.
    pub(super) fn seen(&self, package: &str, name: &str) -> Result<Option<(&str, &Node)>, String> {
        let unknown = || self.lacks.clone().unwrap_or_default();
        let Some(node) = self.nodes.get(package) else {
            return if self.lacks.is_some() { Err(unknown()) } else { Ok(None) };
        };
        match node.dependencies.get(name) {
            None => Ok(None),
            Some(None) => Err(unknown()),
            Some(Some(id)) => Ok(self.nodes.get_key_value(id).map(|(id, node)| (id.as_str(), node))),
        }
    }
}

/// The packages that depend on this library, also by way of others.
fn using_this_library(nodes: &HashMap<String, Node>) -> HashSet<String> {
    let mut using = HashSet::new();
    let is_library = |id: &String| nodes.get(id).is_some_and(|node| node.name == THIS_LIBRARY);
    loop {
        let before = using.len();
        for (id, node) in nodes.iter().filter(|(id, _)| !is_library(id)) {
            if node.dependencies.values().flatten().any(|used| is_library(used) || using.contains(used)) {
                using.insert(id.clone());
            }
        }
        if using.len() == before {
            return using;
        }
    }
}

/// The crates that a manifest names, as code names them, but for build scripts.
fn declared(package: &Value) -> impl Iterator<Item = (String, &Value)> {
    let declared = list(&package["dependencies"]).filter(|dependency| dependency["kind"] != "build");
    declared.map(|dependency| {
        let name = dependency["rename"].as_str().or(dependency["name"].as_str()).unwrap_or_default();
        (name.replace('-', "_"), dependency)
    })
}

fn targets(package: &Value) -> Vec<Target> {
    let target = |target: &Value| {
        let kinds: Vec<String> = list(&target["kind"]).map(text).collect();
        let kind = match kinds.first()?.as_str() {
            "bin" => Kind::Program,
            "example" | "test" | "bench" => Kind::Other,
            "custom-build" | "proc-macro" => return None,
            _ => Kind::Library,
        };
        Some(Target {
            kind,
            name: text(&target["name"]).replace('-', "_"),
            root: path(&target["src_path"]),
            required_features: list(&target["required-features"]).map(text).collect(),
        })
    };
    list(&package["targets"]).filter_map(target).collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn path(value: &Value) -> PathBuf {
    text(value).into()
}

/// Whether two paths lead to one file.
fn is_same(a: &Path, b: &Path) -> bool {
    a == b || std::fs::canonicalize(a).is_ok_and(|a| std::fs::canonicalize(b).is_ok_and(|b| a == b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cargo(manifest: &Path, out: PathBuf) -> Cargo {
        let (target, features) = ("aarch64-linux-android".to_owned(), Vec::new());
        Cargo { program: env!("CARGO").into(), manifest: manifest.to_owned(), target, out, features }
    }

    /// What cargo 1.95 says, and where it has a build script write. The last layout is that of its `-Zbuild-dir-new-layout`
    /// (rust-lang/cargo, pull request 16515).
    #[test]
    fn the_target_folder_is_where_cargo_says() {
        let [plain, moved] = [json!({"target_directory": "/w/target", "build_directory": "/w/target"}), {
            json!({"target_directory": "/w/target", "build_directory": "/cache/w"})
        }];
        let before = json!({"target_directory": "/w/target"});
        let cases = [
            (&plain, "/w/target/debug/build/app-1/out", "/w/target"),
            (&before, "/w/target/debug/build/app-1/out", "/w/target"),
            (&plain, "/w/target/debug/build/app/1/out", "/w/target"),
            (&plain, "/w/target/release/build/build/1/out", "/w/target"),
            (
                &plain,
                "/w/target/aarch64-linux-android/debug/build/app-1/out",
                "/w/target/aarch64-linux-android",
            ),
            (&moved, "/cache/w/debug/build/app-1/out", "/w/target"),
            (&moved, "/cache/w/debug/build/app/1/out", "/w/target"),
            (
                &moved,
                "/cache/w/aarch64-linux-android/debug/build/app/1/out",
                "/w/target/aarch64-linux-android",
            ),
            (&plain, "/given/debug/build/app-1/out", "/given"),
            (&plain, "/given/debug/build/app/1/out", "/given"),
        ];
        for (said, out, expected) in cases {
            let cargo = cargo(Path::new("/w/Cargo.toml"), out.into());
            assert_eq!(cargo.target_folder(said), Path::new(expected), "{out}");
        }
    }

    #[test]
    fn cargo_is_asked_for_the_target_folder() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let said = cargo(&manifest, PathBuf::new()).metadata(&manifest, &["--no-deps"]).unwrap();
        let build = path(said.get("build_directory").unwrap_or(&said["target_directory"]));
        let package = cargo(&manifest, build.join("debug/folders/nobody/knows/out")).package().unwrap();
        assert_eq!(package.target_folder, path(&said["target_directory"]));
    }
}
