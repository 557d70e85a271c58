//! The paths that a source file names, read from its tokens: comments and strings are none.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A path, such as `crate`, `lower`, `Plane`.
pub(crate) type Path = Vec<String>;

/// The imports of a file.
#[derive(Debug, Default)]
pub(crate) struct Imports {
    /// Every path that starts with `crate`, `self` or `super`, and every `use`, with the module that it stands in.
    pub(crate) paths: Vec<Import>,
    /// Modules that exist in tests alone.
    pub(crate) test_modules: Vec<Path>,
}

/// A path, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Import {
    /// The module, from the root of the crate.
    pub(crate) module: Path,
    /// As written.
    pub(crate) path: Path,
    /// The name that `use` gives it there.
    pub(crate) name: Option<String>,
}

impl Imports {
    /// Reads the file of a module.
    pub(crate) fn read(module: &[String], text: &str) -> Result<Self, proc_macro2::LexError> {
        let mut imports = Self::default();
        imports.scan(module, text.parse()?);
        Ok(imports)
    }

    fn scan(&mut self, module: &[String], tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut rest = tokens.as_slice();
        while let [first, after @ ..] = rest {
            rest = match first {
                TokenTree::Punct(punct) if punct.as_char() == '#' => self.attribute(module, after),
                TokenTree::Ident(word) if word == "use" => self.import(module, after),
                TokenTree::Ident(word) if word == "mod" => self.inline_module(module, after),
                TokenTree::Ident(word) if word == "crate" || word == "self" || word == "super" => {
                    self.path(module, rest)
                }
                TokenTree::Group(group) => {
                    self.scan(module, group.stream());
                    after
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => after,
            };
        }
    }

    /// Steps over an attribute; over the item as well, if that is for tests alone.
    fn attribute<'t>(&mut self, module: &[String], rest: &'t [TokenTree]) -> &'t [TokenTree] {
        let [TokenTree::Group(group), after @ ..] = rest else { return rest };
        if !is_for_tests(group) {
            return after;
        }
        let mut end = after.len();
        let mut is_use = false;
        for (index, token) in after.iter().enumerate() {
            match token {
                TokenTree::Ident(word) if word == "use" => is_use = true,
                TokenTree::Ident(word) if word == "mod" => {
                    if let Some(TokenTree::Ident(name)) = after.get(index + 1) {
                        self.test_modules.push(child(module, name.to_string()));
                    }
                }
                TokenTree::Punct(punct) if punct.as_char() == ';' => {
                    end = index + 1;
                    break;
                }
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && !is_use => {
                    end = index + 1;
                    break;
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) | TokenTree::Group(_) => {}
            }
        }
        after.get(end..).unwrap_or_default()
    }

    /// Reads a `use` up to its semicolon.
    fn import<'t>(&mut self, module: &[String], rest: &'t [TokenTree]) -> &'t [TokenTree] {
        // `impl Trait + use<'a>` imports nothing.
        if matches!(rest.first(), Some(TokenTree::Punct(punct)) if punct.as_char() == '<') {
            return rest;
        }
        let end = rest.iter().position(|token| is_punct(token, ';')).unwrap_or(rest.len());
        let (tree, after) = rest.split_at(end);
        self.tree(module, &[], tree);
        after
    }

    /// Reads one branch of a `use`.
    fn tree(&mut self, module: &[String], prefix: &[String], branch: &[TokenTree]) {
        let mut path = prefix.to_vec();
        let mut name = None;
        let mut tokens = branch.iter();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(word) if word == "as" => name = tokens.next().map(ToString::to_string),
                TokenTree::Ident(word) => path.push(word.to_string()),
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    for branch in inner.split(|token| is_punct(token, ',')).filter(|one| !one.is_empty()) {
                        self.tree(module, &path, branch);
                    }
                    return;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
        // `a::{self}` is `a`.
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let name = name.or_else(|| path.last().cloned());
        self.paths.push(Import { module: module.to_vec(), path, name });
    }

    /// Reads a module that is written out; a file of its own is read by itself.
    fn inline_module<'t>(&mut self, module: &[String], rest: &'t [TokenTree]) -> &'t [TokenTree] {
        let [TokenTree::Ident(name), TokenTree::Group(group), after @ ..] = rest else { return rest };
        self.scan(&child(module, name.to_string()), group.stream());
        after
    }

    /// Reads a path outside of `use`.
    fn path<'t>(&mut self, module: &[String], rest: &'t [TokenTree]) -> &'t [TokenTree] {
        let mut path = Path::new();
        let mut rest = rest;
        while let [TokenTree::Ident(word), after @ ..] = rest {
            path.push(word.to_string());
            rest = after;
            match after {
                [one, other, after @ ..] if is_punct(one, ':') && is_punct(other, ':') => rest = after,
                _ => break,
            }
        }
        if path.len() > 1 {
            self.paths.push(Import { module: module.to_vec(), path, name: None });
        }
        rest
    }
}

/// Whether an attribute is `cfg(test)`.
fn is_for_tests(attribute: &Group) -> bool {
    let tokens: Vec<TokenTree> = attribute.stream().into_iter().collect();
    matches!(tokens.as_slice(), [TokenTree::Ident(name), TokenTree::Group(of)]
        if name == "cfg" && of.stream().to_string() == "test")
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

/// The path of something in a module.
pub(crate) fn child(module: &[String], name: String) -> Path {
    let mut path = module.to_vec();
    path.push(name);
    path
}
