//! What a kernel relies on: `where "m % BM == 0": rem(m, BM) eq 0`.

use super::lexer::Token;
use super::parse::{Parsed, Parser};
use crate::condition::{Comparison, Condition, Formula};
use crate::ops::Predicate;

impl Parser {
    pub(super) fn conditions(&mut self) -> Parsed<()> {
        loop {
            let position = self.position;
            let source = match self.next() {
                Token::Text(source) => source,
                _ => return self.error_at(position, "expected a condition in quotes"),
            };
            self.punct(':')?;
            let formula = self.formula()?;
            let loc = self.location()?;
            self.kernel.conditions.push(Condition { formula, source, loc });
            if !self.accept(',') {
                return Ok(());
            }
        }
    }

    /// `rem(m, BM) eq 0`, `any(CAUSAL eq 0, m eq n)`, `all(m gt 0, n gt 0)`.
    fn formula(&mut self) -> Parsed<Formula> {
        for (name, make) in [("all", Formula::All as fn(Vec<Formula>) -> Formula), ("any", Formula::Any)] {
            if self.is_call_of(name) {
                self.next();
                return self.extent_in_extents(|parser| Ok(make(parser.list('(', ')', Self::formula)?)));
            }
        }
        let left = self.dim()?;
        let position = self.position;
        let predicate = Predicate::from_name(&self.word("a comparison")?);
        let Some(predicate) = predicate else {
            return self.error_at(position, "expected `eq`, `ne`, `lt`, `le`, `gt` or `ge`");
        };
        Ok(Formula::Compare(Comparison { left, predicate, right: self.dim()? }))
    }

    /// Whether a word and a parenthesis stand here: a size may have the word for its name.
    fn is_call_of(&self, word: &str) -> bool {
        let behind = self.tokens.get(self.position + 1).map(|behind| &behind.token);
        matches!(self.peek(), Token::Word(found) if found == word) && behind == Some(&Token::Punct('('))
    }
}
