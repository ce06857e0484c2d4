//! Reads a kernel: recursive descent over the tokens of [`super::lexer`]. Any text gives a kernel or a
//! [`ParseError`]; the kernel is as unverified as the text.

use super::lexer::{Spanned, Token, tokens};
use crate::grid::Grid;
use crate::kernel::{FastAccumulation, Generic, GenericKind, Kernel, OpData, Presence, RegionId, ValueId};
use crate::loc::Loc;
use crate::ops::{Domain, Literal, Op};
use crate::schedule_hints::ScheduleHint;
use crate::types::Type;
use crate::verify::MAX_NESTING;
use std::collections::HashMap;

/// A text that isn't IR.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct ParseError {
    /// 1-based line in the text.
    pub line: u32,
    /// 1-based column in the text.
    pub column: u32,
    /// What was expected and what was found.
    pub message: String,
}

pub(super) type Parsed<T> = Result<T, ParseError>;

/// How deeply extents may nest: far beyond any kernel, and safe for the stack. Regions nest as deeply as the verifier says.
const MAX_EXTENT_DEPTH: usize = 136;

/// Reads a kernel from either form of text.
///
/// # Errors
/// [`ParseError`] at the first token that doesn't fit. The result is not verified.
pub fn parse(text: &str) -> Parsed<Kernel> {
    let mut parser = Parser::of(text)?;
    parser.kernel()?;
    Ok(parser.kernel)
}

/// An argument as it is declared.
struct Parameter {
    name: String,
    ty: Type,
    /// Whether it is a run-time size.
    is_size: bool,
    presence: Option<Presence>,
}

/// A name that a value gets, and its token.
pub(super) struct Name {
    text: String,
    position: usize,
}

pub(super) struct Parser {
    pub(super) tokens: Vec<Spanned>,
    pub(super) position: usize,
    pub(super) kernel: Kernel,
    values: HashMap<String, ValueId>,
    /// How many regions stand in each other where the parser is, and how many extents.
    regions: usize,
    extents: usize,
}

impl Parser {
    /// A parser at the first token of a text, of a kernel without generics yet.
    pub(super) fn of(text: &str) -> Parsed<Parser> {
        Ok(Parser {
            tokens: tokens(text)?,
            position: 0,
            kernel: Kernel::new("", Vec::new()),
            values: HashMap::new(),
            regions: 0,
            extents: 0,
        })
    }

    pub(super) fn peek(&self) -> &Token {
        &self.tokens[self.position].token
    }

    pub(super) fn next(&mut self) -> Token {
        let token = self.peek().clone();
        if self.position + 1 < self.tokens.len() {
            self.position += 1;
        }
        token
    }

    pub(super) fn error<T>(&self, message: impl Into<String>) -> Parsed<T> {
        self.error_at(self.position, message)
    }

    pub(super) fn error_at<T>(&self, position: usize, message: impl Into<String>) -> Parsed<T> {
        let Spanned { line, column, .. } = self.tokens[position];
        Err(ParseError { line, column, message: message.into() })
    }

    pub(super) fn expected<T>(&self, what: &str) -> Parsed<T> {
        self.error(format!("expected {what}, found {}", self.peek().describe()))
    }

    pub(super) fn accept(&mut self, c: char) -> bool {
        let found = *self.peek() == Token::Punct(c);
        if found {
            self.next();
        }
        found
    }

    pub(super) fn punct(&mut self, c: char) -> Parsed<()> {
        if self.accept(c) { Ok(()) } else { self.expected(&format!("`{c}`")) }
    }

    pub(super) fn accept_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Word(w) if w == word);
        if found {
            self.next();
        }
        found
    }

    pub(super) fn keyword(&mut self, word: &str) -> Parsed<()> {
        if self.accept_word(word) { Ok(()) } else { self.expected(&format!("`{word}`")) }
    }

    pub(super) fn word(&mut self, what: &str) -> Parsed<String> {
        match self.peek() {
            Token::Word(_) => match self.next() {
                Token::Word(word) => Ok(word),
                _ => self.expected(what),
            },
            _ => self.expected(what),
        }
    }

    pub(super) fn unsigned(&mut self, what: &str) -> Parsed<u64> {
        let parsed = match self.peek() {
            Token::Number(text) => text.parse().ok(),
            _ => return self.expected(what),
        };
        match parsed {
            Some(value) => {
                self.next();
                Ok(value)
            }
            None => self.expected(what),
        }
    }

    /// `open item, item close`, possibly empty.
    pub(super) fn list<T>(
        &mut self,
        open: char,
        close: char,
        item: impl Fn(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        self.punct(open)?;
        let mut items = Vec::new();
        if self.accept(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.accept(',') {
                break;
            }
        }
        self.punct(close)?;
        Ok(items)
    }

    /// An extent, which may stand in others.
    pub(super) fn extent_in_extents<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.extents == MAX_EXTENT_DEPTH {
            return self.error(format!("extents nest more than {MAX_EXTENT_DEPTH} levels deep"));
        }
        self.extents += 1;
        let result = parse(self);
        self.extents -= 1;
        result
    }

    fn kernel(&mut self) -> Parsed<()> {
        if self.accept_word("file") {
            let position = self.position;
            match self.next() {
                Token::Text(file) => self.kernel.file = file,
                _ => return self.error_at(position, "expected a quoted file name"),
            }
        }
        self.keyword("kernel")?;
        self.punct('@')?;
        self.kernel.name = self.word("a kernel name")?;
        if *self.peek() == Token::Punct('<') {
            self.kernel.generics = self.list('<', '>', Self::generic)?;
        }
        for Parameter { name, ty, is_size, presence } in self.list('(', ')', Self::parameter)? {
            let value = self.kernel.new_param(ty, &name);
            self.kernel.given_sizes.extend(is_size.then_some(value));
            self.kernel.optional.extend(presence.map(|presence| (value, presence)));
            self.values.insert(name, value);
        }
        if self.accept_word("where") {
            self.conditions()?;
        }
        if self.accept_word("grid") {
            let is_tiles = self.accept_word("tiles");
            let grid = if is_tiles { Grid::Tiles } else { Grid::Extents(self.list('[', ']', Self::dim)?) };
            self.kernel.grid = Some(grid);
        }
        for hint in ScheduleHint::ALL {
            if self.accept_word(hint.name()) {
                let value = self.dim()?;
                self.kernel.hints.say(hint, value);
            }
        }
        if self.accept_word("fast_accumulation") {
            let is_of_some = self.accept_word("if");
            self.kernel.fast_accumulation =
                if is_of_some { FastAccumulation::If(self.presence()?) } else { FastAccumulation::Yes };
        }
        if self.accept_word("pairs") {
            self.kernel.pairs = Some(self.unsigned("an axis")? as usize);
        }
        let body = self.kernel.body();
        self.region_ops(body)?;
        if *self.peek() == Token::End { Ok(()) } else { self.expected("the end of the text") }
    }

    fn generic(&mut self) -> Parsed<Generic> {
        let name = self.word("a parameter name")?;
        let kind = match self.accept(':') {
            false => GenericKind::Const,
            true if self.accept_word("bool") => GenericKind::Bool,
            true => GenericKind::Elem(self.bound()?),
        };
        Ok(Generic { name, kind })
    }

    fn bound(&mut self) -> Parsed<Domain> {
        for domain in [Domain::Any, Domain::Number, Domain::Float, Domain::Int] {
            if self.accept_word(super::print::bound_name(domain)) {
                return Ok(domain);
            }
        }
        self.expected("`bool`, `any`, `number`, `float` or `int`")
    }

    /// `%bias: tensor<n x f32> if BIASED`, of which the end says which instances have the argument.
    fn parameter(&mut self) -> Parsed<Parameter> {
        let position = self.position;
        let name = self.value_name()?;
        if self.values.contains_key(&name) || name.starts_with(|c: char| c.is_ascii_digit()) {
            return self.error_at(position, format!("`%{name}` can't name an argument"));
        }
        self.punct(':')?;
        let ty = self.ty()?;
        let is_size = self.accept_word("size");
        let presence = if self.accept_word("if") { Some(self.presence()?) } else { None };
        Ok(Parameter { name, ty, is_size, presence })
    }

    /// `BIASED` or `K > 3`.
    fn presence(&mut self) -> Parsed<Presence> {
        let parameter = self.word("a parameter name")?;
        let above = if self.accept('>') { self.unsigned("a number")? as usize } else { 0 };
        Ok(Presence { parameter, above })
    }

    /// A name that a value gets.
    pub(super) fn name(&mut self) -> Parsed<Name> {
        let position = self.position;
        self.value_name().map(|text| Name { text, position })
    }

    fn value_name(&mut self) -> Parsed<String> {
        match self.peek() {
            Token::Value(name) => {
                let name = name.clone();
                self.next();
                Ok(name)
            }
            _ => self.expected("a value"),
        }
    }

    pub(super) fn value(&mut self) -> Parsed<ValueId> {
        let position = self.position;
        let name = self.value_name()?;
        match self.values.get(&name) {
            Some(&value) => Ok(value),
            None => self.error_at(position, format!("`%{name}` is not defined")),
        }
    }

    /// Operands. There are none where what stands next are the results of another op.
    pub(super) fn values(&mut self) -> Parsed<Vec<ValueId>> {
        let mut values = Vec::new();
        if !matches!(self.peek(), Token::Value(_)) || self.is_at_results() {
            return Ok(values);
        }
        loop {
            values.push(self.value()?);
            if !self.accept(',') {
                return Ok(values);
            }
        }
    }

    /// Whether values and a `=` follow.
    fn is_at_results(&self) -> bool {
        let mut tokens = self.tokens[self.position..].iter().map(|spanned| &spanned.token);
        while let Some(Token::Value(_)) = tokens.next() {
            match tokens.next() {
                Some(Token::Punct('=')) => return true,
                Some(Token::Punct(',')) => {}
                _ => return false,
            }
        }
        false
    }

    fn define(&mut self, Name { text: name, position }: &Name, ty: Type) -> Parsed<ValueId> {
        let unnamed = name.starts_with(|c: char| c.is_ascii_digit());
        if self.values.contains_key(name) {
            return self.error_at(*position, format!("`%{name}` is defined twice"));
        }
        let value = self.kernel.new_value(ty, (!unnamed).then_some(name));
        self.values.insert(name.clone(), value);
        Ok(value)
    }

    /// `{ op… }`; the region ends with a `yield` unless it is the kernel's body.
    fn region_ops(&mut self, region: RegionId) -> Parsed<()> {
        self.punct('{')?;
        if self.regions == MAX_NESTING {
            return self.error(format!("regions nest more than {MAX_NESTING} levels deep"));
        }
        self.regions += 1;
        while !self.accept('}') {
            if !matches!(self.peek(), Token::Word(_) | Token::Value(_)) {
                return self.expected("an op or `}`");
            }
            self.op(region)?;
        }
        self.regions -= 1;
        Ok(())
    }

    fn body_region(&mut self, region: RegionId) -> Parsed<()> {
        self.region_ops(region)?;
        self.close_region(region);
        Ok(())
    }

    fn close_region(&mut self, region: RegionId) {
        let ends =
            self.kernel.region(region).ops.last().is_some_and(|&op| self.kernel.op(op).op == Op::Yield);
        if !ends {
            self.append(region, Op::Yield, Vec::new(), Vec::new(), Vec::new(), Loc::UNKNOWN);
        }
    }

    fn append(
        &mut self,
        region: RegionId,
        op: Op,
        operands: Vec<ValueId>,
        results: Vec<ValueId>,
        regions: Vec<RegionId>,
        loc: Loc,
    ) {
        let id = self.kernel.new_op(OpData { op, operands, results, regions, loc });
        self.kernel.region_mut(region).ops.push(id);
    }

    fn op(&mut self, region: RegionId) -> Parsed<()> {
        let (begin, mut names) = (self.position, Vec::new());
        if matches!(self.peek(), Token::Value(_)) {
            loop {
                names.push(self.name()?);
                if !self.accept(',') {
                    break;
                }
            }
            self.punct('=')?;
        }
        let start = self.position;
        let head = self.head()?;
        let types = if self.accept(':') { self.types()? } else { Vec::new() };
        if types.len() != names.len() {
            let message = format!("{} results are named, but {} types given", names.len(), types.len());
            return self.error_at(begin, message);
        }
        let loc = self.location()?;
        let (op, regions) = self.finish(start, head.op, &types)?;
        let mut results = Vec::new();
        for (name, ty) in names.iter().zip(types) {
            results.push(self.define(name, ty)?);
        }
        self.append(region, op, head.operands, results, regions, loc);
        Ok(())
    }

    fn types(&mut self) -> Parsed<Vec<Type>> {
        let mut types = vec![self.ty()?];
        while self.accept(',') {
            types.push(self.ty()?);
        }
        Ok(types)
    }

    pub(super) fn location(&mut self) -> Parsed<Loc> {
        if !self.accept('@') {
            return Ok(Loc::UNKNOWN);
        }
        let line = self.unsigned("a line")?;
        self.punct(':')?;
        let column = self.unsigned("a column")?;
        Ok(Loc::new(u32::try_from(line).unwrap_or(0), u32::try_from(column).unwrap_or(0)))
    }

    pub(super) fn loop_region(
        &mut self,
        counter: Option<Name>,
        carried: &[Name],
        types: &[Type],
    ) -> Parsed<RegionId> {
        if carried.len() != types.len() {
            return self.error(format!(
                "{} values are carried, but {} types given",
                carried.len(),
                types.len()
            ));
        }
        let region = self.kernel.new_region();
        let mut params = Vec::new();
        if let Some(counter) = counter {
            params.push(self.define(&counter, Type::INDEX)?);
        }
        for (name, ty) in carried.iter().zip(types) {
            params.push(self.define(name, ty.clone())?);
        }
        self.kernel.region_mut(region).params = params;
        self.body_region(region)?;
        Ok(region)
    }

    /// The region of a fold, whose parameters are scalars of the results' formats, twice.
    pub(super) fn fold_region(
        &mut self,
        op: Op,
        params: &[Name],
        types: &[Type],
    ) -> Parsed<(Op, Vec<RegionId>)> {
        if params.len() != 2 * types.len() {
            return self.error(format!("{} results need {} parameters", types.len(), 2 * types.len()));
        }
        let region = self.kernel.new_region();
        let scalars = types.iter().chain(types).map(|ty| Type::Scalar(ty.elem().clone()));
        let params = params.iter().zip(scalars).map(|(name, ty)| self.define(name, ty));
        let params = params.collect::<Parsed<Vec<ValueId>>>()?;
        self.kernel.region_mut(region).params = params;
        self.body_region(region)?;
        Ok((op, vec![region]))
    }

    pub(super) fn if_regions(&mut self) -> Parsed<(Op, Vec<RegionId>)> {
        let (then, otherwise) = (self.kernel.new_region(), self.kernel.new_region());
        self.body_region(then)?;
        if self.accept_word("else") {
            self.body_region(otherwise)?;
        } else {
            self.close_region(otherwise);
        }
        Ok((Op::If, vec![then, otherwise]))
    }

    pub(super) fn literal(&mut self) -> Parsed<Literal> {
        let negative = self.accept('-');
        let literal = match self.peek() {
            Token::Word(word) => match word.as_str() {
                "true" => Some(Literal::Int(1)),
                "false" => Some(Literal::Int(0)),
                "inf" => Some(Literal::Float(f64::INFINITY)),
                "nan" => Some(Literal::Float(f64::NAN)),
                _ => None,
            },
            Token::Number(text) if text.contains(['.', 'e']) => text.parse().ok().map(Literal::Float),
            Token::Number(text) => text.parse().ok().map(Literal::Int),
            _ => None,
        };
        let Some(literal) = literal else { return self.expected("a number, `true` or `false`") };
        self.next();
        Ok(match literal {
            Literal::Int(value) if negative => Literal::Int(-value),
            Literal::Float(value) if negative => Literal::Float(-value),
            positive => positive,
        })
    }
}
