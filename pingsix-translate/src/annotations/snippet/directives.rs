//! The directives of a text in the syntax of nginx (`ngx_conf_read_token` of `src/core/ngx_conf_file.c`).

use std::iter::Peekable;
use std::str::Chars;

/// A directive.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Directive {
    /// The number of its first line, from one on.
    pub(super) line: usize,
    /// Its name and its parameters.
    pub(super) words: Vec<String>,
    /// Whether a block in braces follows. The directives of the block and those behind it are left out.
    pub(super) has_block: bool,
}

/// The longest name that a message repeats, in bytes.
const MAX_NAME: usize = 64;

impl Directive {
    /// The name, and the header that it changes. Other words may be secrets, so no message repeats them.
    pub(super) fn label(&self) -> String {
        let is_name = |word: &&str| {
            word.len() <= MAX_NAME
                && !word.is_empty()
                && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        };
        let mut words = self.words.iter().map(String::as_str);
        let Some(name) = words.next().filter(is_name) else { return "a directive".to_owned() };
        let takes_header = name.ends_with("_header") || name.ends_with("_headers");
        let headers = words.filter_map(|word| word.split(':').next()).filter(is_name);
        // A header and its value are two words, or one with a colon.
        let most = if name.ends_with("_headers") { usize::MAX } else { 1 };
        let headers: Vec<&str> = headers.take(most).filter(|_| takes_header).collect();
        std::iter::once(name).chain(headers).collect::<Vec<_>>().join(" ")
    }
}

/// Splits a text into directives, up to the first block.
///
/// # Errors
///
/// The number of the line that breaks the syntax.
pub(super) fn split(text: &str) -> Result<Vec<Directive>, usize> {
    let mut reader = Reader { letters: text.chars().peekable(), line: 1 };
    let mut directives = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut line = 1;
    loop {
        match reader.token()? {
            Token::Word(word) => {
                if words.is_empty() {
                    line = reader.line_of_word(&word);
                }
                words.push(word);
            }
            Token::Semicolon | Token::Block if words.is_empty() => return Err(reader.line),
            Token::Semicolon => {
                directives.push(Directive { line, words: std::mem::take(&mut words), has_block: false });
            }
            Token::Block => {
                directives.push(Directive { line, words, has_block: true });
                return Ok(directives);
            }
            Token::End if words.is_empty() => return Ok(directives),
            Token::End => return Err(reader.line),
        }
    }
}

enum Token {
    Word(String),
    Semicolon,
    Block,
    End,
}

struct Reader<'t> {
    letters: Peekable<Chars<'t>>,
    line: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let letter = self.letters.next();
        self.line += usize::from(letter == Some('\n'));
        letter
    }

    /// The line in which a word begins that ends here.
    fn line_of_word(&self, word: &str) -> usize {
        self.line - word.matches('\n').count().min(self.line - 1)
    }

    fn token(&mut self) -> Result<Token, usize> {
        loop {
            let Some(letter) = self.letters.peek().copied() else { return Ok(Token::End) };
            match letter {
                ' ' | '\t' | '\r' | '\n' => {
                    self.next();
                }
                '#' => while self.next().is_some_and(|letter| letter != '\n') {},
                ';' | '{' | '}' => {
                    self.next();
                    return match letter {
                        ';' => Ok(Token::Semicolon),
                        '{' => Ok(Token::Block),
                        // A brace that closes nothing would end the location.
                        _ => Err(self.line),
                    };
                }
                '"' | '\'' => {
                    self.next();
                    return self.quoted(letter);
                }
                _ => return self.bare(),
            }
        }
    }

    /// A word behind its opening quote. White space, a semicolon, a block or the end of a condition has to follow.
    fn quoted(&mut self, quote: char) -> Result<Token, usize> {
        let mut word = String::new();
        loop {
            match self.next().ok_or(self.line)? {
                '\\' => self.escaped(&mut word)?,
                letter if letter == quote => break,
                letter => word.push(letter),
            }
        }
        match self.letters.peek() {
            None | Some(' ' | '\t' | '\r' | '\n' | ';' | '{' | ')') => Ok(Token::Word(word)),
            Some(_) => Err(self.line),
        }
    }

    fn bare(&mut self) -> Result<Token, usize> {
        let mut word = String::new();
        while let Some(letter) = self.letters.peek().copied() {
            match letter {
                ' ' | '\t' | '\r' | '\n' | ';' => break,
                // A brace behind a dollar sign is part of a variable.
                '{' if !word.ends_with('$') => break,
                '\\' => {
                    self.next();
                    self.escaped(&mut word)?;
                }
                letter => {
                    self.next();
                    word.push(letter);
                }
            }
        }
        Ok(Token::Word(word))
    }

    /// The letter behind a backslash. nginx keeps the backslash before letters without a meaning.
    fn escaped(&mut self, word: &mut String) -> Result<(), usize> {
        match self.next().ok_or(self.line)? {
            letter @ ('"' | '\'' | '\\') => word.push(letter),
            't' => word.push('\t'),
            'r' => word.push('\r'),
            'n' => word.push('\n'),
            letter => word.extend(['\\', letter]),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<Vec<Vec<String>>, usize> {
        Ok(split(text)?.into_iter().map(|directive| directive.words).collect())
    }

    #[test]
    fn words_are_those_of_nginx() {
        for (text, expected) in [
            ("a b;c;", vec![vec!["a", "b"], vec!["c"]]),
            ("a \"b c\" 'd;e' ;", vec![vec!["a", "b c", "d;e"]]),
            ("# x; y {\na b; # c\n", vec![vec!["a", "b"]]),
            ("a b#c;", vec![vec!["a", "b#c"]]),
            ("a \"\\\"b\\\"\" '\\'' \\d+;", vec![vec!["a", "\"b\"", "'", "\\d+"]]),
            ("a ${b}c$d;", vec![vec!["a", "${b}c$d"]]),
            ("a \"b\nc\";", vec![vec!["a", "b\nc"]]),
            ("a \"\";", vec![vec!["a", ""]]),
            ("if ($a ~ \"b\") {", vec![vec!["if", "($a", "~", "b", ")"]]),
            ("", vec![]),
        ] {
            assert_eq!(words(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn a_broken_text_names_its_line() {
        for (text, line) in
            [("a b", 1), (";", 1), ("a;\n}", 2), ("a \"b\"c;", 1), ("a;\n\n'b", 3), ("a \\", 1)]
        {
            assert_eq!(words(text), Err(line), "{text}");
        }
    }

    #[test]
    fn a_directive_has_the_line_of_its_first_word_and_a_block_ends_the_text() {
        let read = split("a\n b;\n\nif ($x) {\n c;\n}\nd;").unwrap();
        let brief: Vec<(usize, &str, bool)> =
            read.iter().map(|one| (one.line, one.words[0].as_str(), one.has_block)).collect();
        assert_eq!(brief, [(1, "a", false), (4, "if", true)]);
    }

    #[test]
    fn a_label_has_names_alone() {
        for (text, label) in [
            ("more_set_headers \"X-A: hunter2\" 'X-B: x';", "more_set_headers X-A X-B"),
            ("proxy_set_header Authorization hunter2;", "proxy_set_header Authorization"),
            ("auth_basic hunter2;", "auth_basic"),
            ("\"hunter2 x\" y;", "a directive"),
        ] {
            assert_eq!(split(text).unwrap()[0].label(), label);
        }
    }
}
