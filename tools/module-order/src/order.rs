//! The declared order, and the imports that break it.

use crate::imports::Path;
use crate::sources::{SiblingImport, Sources};

/// The order of the modules of a crate, or of those below one of its modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The directory of the crate.
    pub directory: String,
    /// The module whose children are ordered; empty for the crate itself.
    pub parent: Vec<String>,
    /// The modules, earliest first. Those of one layer do not import each other.
    pub layers: Vec<Vec<String>>,
}

impl Order {
    /// Reads a list of orders: `[directory]` or `[directory::module]`, and below it a line for each layer. `#` begins a
    /// comment.
    ///
    /// # Errors
    ///
    /// The line that stands below no header.
    pub fn parse(text: &str) -> Result<Vec<Self>, String> {
        let mut orders: Vec<Self> = Vec::new();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                let mut parts = header.split("::").map(str::to_owned);
                let directory = parts.next().unwrap_or_default();
                orders.push(Self { directory, parent: parts.collect(), layers: Vec::new() });
            } else if !line.is_empty() {
                let order = orders.last_mut().ok_or_else(|| format!("no crate is named before: {line}"))?;
                order.layers.push(line.split_whitespace().map(str::to_owned).collect());
            }
        }
        Ok(orders)
    }

    fn position(&self, module: &str) -> Option<usize> {
        self.layers.iter().position(|layer| layer.iter().any(|name| name == module))
    }
}

/// Each import of a module that does not come earlier, and each module that the order misses or invents.
pub fn violations(order: &Order, sources: &Sources) -> Vec<String> {
    let named = |module: &str| {
        let mut path: Path = order.parent.clone();
        path.push(module.to_owned());
        format!("{}: {}", order.directory, path.join("::"))
    };
    let children = sources.children(&order.parent);
    let missing = children.iter().filter(|module| order.position(module).is_none());
    let mut found: Vec<String> =
        missing.map(|module| format!("{} has no place in the order", named(module))).collect();
    let declared = order.layers.iter().flatten();
    let invented = declared.filter(|module| !children.contains(module.as_str()));
    found.extend(invented.map(|module| format!("{} does not exist", named(module))));
    for SiblingImport { module, path, own, target } in sources.imports_below(&order.parent) {
        if let (Some(own_place), Some(place)) = (order.position(&own), order.position(&target))
            && place >= own_place
        {
            let relation = if place == own_place { "is of the same layer as" } else { "comes after" };
            found
                .push(format!("{}: {module} imports {path}, but {target} {relation} {own}", order.directory));
        }
    }
    found
}
