//! Tokens of the `.tir` text, with their places.

use super::parse::ParseError;

/// A token. Punctuation is a single character each.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name or keyword.
    Word(String),
    /// `%name` or `%0`, without the sign.
    Value(String),
    /// Digits, with a fraction or exponent if it is a float; no sign.
    Number(String),
    /// A quoted string, unescaped.
    Text(String),
    /// Any other visible character.
    Punct(char),
    /// The end of the text.
    End,
}

impl Token {
    /// How a message names the token.
    pub(super) fn describe(&self) -> String {
        match self {
            Token::Word(text) | Token::Number(text) => format!("`{text}`"),
            Token::Value(text) => format!("`%{text}`"),
            Token::Text(text) => format!("{text:?}"),
            Token::Punct(c) => format!("`{c}`"),
            Token::End => String::from("the end of the text"),
        }
    }
}

/// A token and where it begins.
#[derive(Clone, Debug)]
pub(super) struct Spanned {
    pub(super) token: Token,
    pub(super) line: u32,
    pub(super) column: u32,
}

struct Lexer<'t> {
    chars: std::iter::Peekable<std::str::Chars<'t>>,
    line: u32,
    column: u32,
}

/// Cuts a text into tokens; the last is [`Token::End`]. `;` begins a comment that ends with the line.
pub(super) fn tokens(text: &str) -> Result<Vec<Spanned>, ParseError> {
    let mut lexer = Lexer { chars: text.chars().peekable(), line: 1, column: 1 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blank();
        let (line, column) = (lexer.line, lexer.column);
        let token = lexer.token().map_err(|message| ParseError { line, column, message })?;
        let end = token == Token::End;
        tokens.push(Spanned { token, line, column });
        if end {
            return Ok(tokens);
        }
    }
}

impl Lexer<'_> {
    fn bump(&mut self) -> Option<char> {
        let c = self.chars.next()?;
        if c == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(c)
    }

    fn skip_blank(&mut self) {
        while let Some(&c) = self.chars.peek() {
            if c == ';' {
                while self.chars.peek().is_some_and(|&c| c != '\n') {
                    self.bump();
                }
            } else if c.is_whitespace() {
                self.bump();
            } else {
                break;
            }
        }
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> String {
        let mut text = String::new();
        while let Some(&c) = self.chars.peek() {
            if !accept(c) {
                break;
            }
            text.push(c);
            self.bump();
        }
        text
    }

    fn token(&mut self) -> Result<Token, String> {
        let Some(&c) = self.chars.peek() else { return Ok(Token::End) };
        Ok(match c {
            '%' => {
                self.bump();
                let name = self.take_while(is_word);
                if name.is_empty() {
                    return Err("`%` needs a name or number".to_owned());
                }
                Token::Value(name + &self.element())
            }
            '"' => Token::Text(self.string()?),
            _ if c.is_ascii_digit() => Token::Number(self.number()),
            _ if is_word(c) => {
                let name = self.take_while(is_dotted) + &self.element();
                Token::Word(name + &self.take_while(is_dotted))
            }
            _ => {
                self.bump();
                Token::Punct(c)
            }
        })
    }

    /// `[3]` at once after a name: the name is that of an element of an array of arguments.
    fn element(&mut self) -> String {
        let mut ahead = self.chars.clone();
        let is_open = ahead.next() == Some('[');
        let digits = ahead.by_ref().take_while(char::is_ascii_digit).count();
        // What ends the digits is taken with them.
        let length = digits + 2;
        let is_element = is_open && digits > 0 && self.chars.clone().nth(length - 1) == Some(']');
        (0..if is_element { length } else { 0 }).filter_map(|_| self.bump()).collect()
    }

    fn number(&mut self) -> String {
        let mut text = self.take_while(|c| c.is_ascii_digit());
        if self.chars.peek() == Some(&'.') {
            text.push('.');
            self.bump();
            text += &self.take_while(|c| c.is_ascii_digit());
        }
        if self.chars.peek() == Some(&'e') {
            text.push('e');
            self.bump();
            if self.chars.peek() == Some(&'-') {
                text.push('-');
                self.bump();
            }
            text += &self.take_while(|c| c.is_ascii_digit());
        }
        text
    }

    /// What follows `\u`: a code point in braces.
    fn unicode(&mut self) -> Result<char, String> {
        let wrong = || "an escape `\\u` is followed by a character's number in braces".to_owned();
        if self.bump() != Some('{') {
            return Err(wrong());
        }
        let digits = self.take_while(|c| c.is_ascii_hexdigit());
        let number = u32::from_str_radix(&digits, 16).ok().filter(|_| self.bump() == Some('}'));
        number.and_then(char::from_u32).ok_or_else(wrong)
    }

    /// A string as Rust's `{:?}` writes it.
    fn string(&mut self) -> Result<String, String> {
        self.bump();
        let mut text = String::new();
        loop {
            match self.bump() {
                None | Some('\n') => return Err("the string isn't closed".to_owned()),
                Some('"') => return Ok(text),
                Some('\\') => match self.bump() {
                    Some(c @ ('"' | '\\' | '\'')) => text.push(c),
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some('r') => text.push('\r'),
                    Some('0') => text.push('\0'),
                    Some('u') => text.push(self.unicode()?),
                    _ => return Err("unknown escape in a string".to_owned()),
                },
                Some(c) => text.push(c),
            }
        }
    }
}

/// Whether a name may hold this. Names are Rust's, which have marks of many scripts besides letters and digits; all that the
/// text itself is made of is ASCII.
pub(crate) fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii() && !c.is_whitespace()
}

fn is_dotted(c: char) -> bool {
    is_word(c) || c == '.'
}
