//! Modules that import each other, directly or through others.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources::Sources;

/// The modules below one parent that import each other, directly or through others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportCycle {
    /// The parent, such as `lower::budget`; empty for the crate itself.
    pub parent: String,
    /// A sentence for each import that is part of a cycle.
    pub imports: Vec<String>,
}

/// The import cycles of a crate, by parent. Items of the parent itself belong to none of its children, so a child may use
/// them.
pub fn import_cycles(sources: &Sources) -> Vec<ImportCycle> {
    let mut found = Vec::new();
    for parent in sources.parents() {
        let imports = sources.imports_below(parent);
        let mut reached: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for import in &imports {
            reached.entry(&import.own).or_default().insert(&import.target);
        }
        loop {
            let before: usize = reached.values().map(BTreeSet::len).sum();
            for own in reached.keys().copied().collect::<Vec<_>>() {
                let targets = reached[own].iter().filter_map(|target| reached.get(target));
                let further: BTreeSet<&str> = targets.flatten().copied().collect();
                reached.entry(own).or_default().extend(further);
            }
            if reached.values().map(BTreeSet::len).sum::<usize>() == before {
                break;
            }
        }
        let leads_back = |own: &str, target: &str| reached.get(target).is_some_and(|all| all.contains(own));
        let back = imports.iter().filter(|import| leads_back(&import.own, &import.target));
        let imports: Vec<String> = back
            .map(|import| {
                format!(
                    "{} imports {}, and {} leads back to {}",
                    import.module, import.path, import.target, import.own
                )
            })
            .collect();
        if !imports.is_empty() {
            found.push(ImportCycle { parent: parent.join("::"), imports });
        }
    }
    found
}
