//! The modules of a crate, and the paths that each of them names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path as FilePath;
use std::{fs, io};

use crate::imports::{Import, Imports, Path, child};

/// An import between two modules below one parent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SiblingImport {
    /// The importing module.
    pub(crate) module: String,
    /// The imported path, as written.
    pub(crate) path: String,
    /// The name directly below the parent that the importing module is in.
    pub(crate) own: String,
    /// The name directly below the parent that the path leads into.
    pub(crate) target: String,
}

/// The sources of a crate, without its tests.
#[derive(Debug, Default)]
pub struct Sources {
    modules: BTreeSet<Path>,
    imports: Vec<Import>,
    /// By module and name: the path that `use` has there for the name.
    names: BTreeMap<(Path, String), Path>,
}

impl Sources {
    /// Reads the files below a directory `src`.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or is not Rust.
    pub fn read(src: &FilePath) -> io::Result<Self> {
        let mut files = Vec::new();
        let mut folders = vec![src.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if let Some(name) = path.strip_prefix(src).ok().and_then(FilePath::to_str)
                    && let Some(name) = name.strip_suffix(".rs")
                {
                    files.push((name.to_owned(), fs::read_to_string(&path)?));
                }
            }
        }
        let files = files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        Self::new(files).map_err(|(name, error)| io::Error::other(format!("{name}.rs: {error}")))
    }

    /// Takes files by their path below `src`, without `.rs`, and their text.
    ///
    /// # Errors
    ///
    /// The file that is not Rust.
    pub fn new<'a>(
        files: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, (String, proc_macro2::LexError)> {
        let mut sources = Self::default();
        let mut tests = BTreeSet::new();
        for (name, text) in files {
            let mut module: Path = name.split('/').map(str::to_owned).collect();
            if name == "lib" || name == "main" || module.last().is_some_and(|last| last == "mod") {
                module.pop();
            }
            let imports = Imports::read(&module, text).map_err(|error| (name.to_owned(), error))?;
            sources.modules.insert(module);
            sources.imports.extend(imports.paths);
            tests.extend(imports.test_modules);
        }
        let is_test = |module: &Path| {
            (0..=module.len()).any(|length| tests.contains(module.get(..length).unwrap_or_default()))
        };
        sources.modules.retain(|module| !is_test(module));
        sources.imports.retain(|import| !is_test(&import.module));
        for import in &sources.imports {
            if let Some(name) = &import.name {
                sources.names.insert((import.module.clone(), name.clone()), import.path.clone());
            }
        }
        Ok(sources)
    }

    /// The names of the modules directly below one.
    pub(crate) fn children(&self, parent: &[String]) -> BTreeSet<&str> {
        let below = self.modules.iter().filter_map(|module| module.strip_prefix(parent));
        below.filter_map(|rest| rest.first()).map(String::as_str).collect()
    }

    /// The modules with modules below them, and the root.
    pub(crate) fn parents(&self) -> BTreeSet<&[String]> {
        self.modules.iter().filter_map(|module| Some(module.split_last()?.1)).collect()
    }

    /// Every import of a module below `parent` from another one there.
    pub(crate) fn imports_below(&self, parent: &[String]) -> Vec<SiblingImport> {
        let mut found = BTreeSet::new();
        for import in &self.imports {
            let Some(own) = import.module.strip_prefix(parent).and_then(|rest| rest.first()) else {
                continue;
            };
            if let Some(absolute) = self.absolute(&import.module, &import.path)
                && let Some(target) = self.child_of(parent, absolute)
                && target != *own
            {
                found.insert(SiblingImport {
                    module: import.module.join("::"),
                    path: import.path.join("::"),
                    own: own.clone(),
                    target,
                });
            }
        }
        found.into_iter().collect()
    }

    /// A path from the root of the crate; `None` for one that leads into another crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Path> {
        let mut from = module.to_vec();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => {
                from.clear();
                rest = rest.get(1..)?;
            }
            "self" | "super" => {
                while let Some(first) = rest.first().filter(|first| *first == "self" || *first == "super") {
                    if first == "super" {
                        from.pop()?;
                    }
                    rest = rest.get(1..)?;
                }
            }
            first => {
                self.modules.contains(&child(module, first.to_owned())).then_some(())?;
            }
        }
        from.extend(rest.iter().cloned());
        Some(from)
    }

    /// The module directly below `parent` that a path from the root leads into. Re-exports of `parent` and of the modules
    /// above it are followed to their origin, because they belong to no layer.
    fn child_of(&self, parent: &[String], mut path: Path) -> Option<String> {
        // Re-exports of re-exports are few; a bound keeps circular ones from going on forever.
        for _ in 0..8 {
            let common = path.iter().zip(parent).take_while(|(one, other)| one == other).count();
            let next = path.get(common)?;
            let at = path.get(..common)?;
            if self.modules.contains(&child(at, next.clone())) {
                return (at == parent).then(|| next.clone());
            }
            let target = self.names.get(&(at.to_vec(), next.clone()))?;
            let mut followed = self.absolute(at, target)?;
            followed.extend(path.iter().skip(common + 1).cloned());
            path = followed;
        }
        None
    }
}
