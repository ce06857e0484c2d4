//! Errors of the front end: a place, what is wrong there, what else is involved, and what to do.

use crate::helpers::{is_free, path_text, plain};
use crate::span::Span;
use proc_macro2::TokenStream;
use std::fmt;
use tile_ir::ops::TypeError;

/// One mistake in a kernel.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// The smallest tokens that are wrong.
    pub span: Span,
    /// What is wrong, in a sentence.
    pub message: String,
    /// Other places that are involved, each with what is there.
    pub labels: Vec<(Span, String)>,
    /// What to write instead.
    pub help: Option<String>,
    /// The function that wasn't found, where that is the mistake.
    pub missing: Option<Missing>,
}

/// A function that wasn't found.
#[derive(Clone, Debug)]
pub struct Missing {
    /// The path that it is called by, without generic arguments.
    pub path: syn::Path,
    /// Whether a function of another module calls it, where the path may mean something else than in the kernel.
    pub is_elsewhere: bool,
}

impl Diagnostic {
    pub(crate) fn new(span: impl Into<Span>, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            span: span.into(),
            message: message.into(),
            labels: Vec::new(),
            help: None,
            missing: None,
        }
    }

    /// Of a function that calls itself by way of others, where it or one of these does.
    pub(crate) fn of_circle<'n>(
        span: impl Into<Span>,
        name: &str,
        through: impl IntoIterator<Item = &'n String>,
    ) -> Diagnostic {
        let through: String = through.into_iter().map(|other| format!(" calls `{other}`, which")).collect();
        let message = format!("`{name}`{through} calls `{name}`: a kernel has no stack of calls");
        Diagnostic::new(span, message).help("write a loop")
    }

    /// Of a constant that its own value names, by way of others perhaps.
    pub(crate) fn of_constant(span: impl Into<Span>, name: &str) -> Diagnostic {
        let message = format!("`{name}` is made of itself");
        Diagnostic::new(span, message).help("write its value, or one of constants that are made without it")
    }

    /// What the IR refuses, at the tokens that say it.
    pub(crate) fn of_type_error(span: impl Into<Span>, error: TypeError) -> Diagnostic {
        Diagnostic { help: error.help, ..Diagnostic::new(span, error.message) }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn missing(mut self, path: &syn::Path, is_elsewhere: bool) -> Diagnostic {
        self.missing = Some(Missing { path: plain(path), is_elsewhere });
        self
    }

    pub(crate) fn label(mut self, span: impl Into<Span>, text: impl Into<String>) -> Diagnostic {
        let (span, text) = (span.into(), text.into());
        let known = self.labels.iter().any(|(place, label)| label == &text && place.start() == span.start());
        if !known {
            self.labels.push((span, text));
        }
        self
    }

    /// The path of a function that the kernel may be given.
    fn wanted(&self) -> Option<&syn::Path> {
        let missing = self.missing.as_ref()?;
        (!missing.is_elsewhere && is_free(&missing.path)).then_some(&missing.path)
    }

    /// Whether two say the same of one place.
    pub(crate) fn is_same(&self, other: &Diagnostic) -> bool {
        self.span.start() == other.span.start() && self.message == other.message
    }

    /// Message, labels and help as one text. Stable Rust lets a macro report a message only, so the other
    /// places are told by line.
    fn text(&self) -> String {
        let mut text = self.message.clone();
        for (span, label) in &self.labels {
            let start = span.start();
            text += &format!("\n  line {}: {label}", start.line);
        }
        if let Some(help) = &self.help {
            text += &format!("\n  help: {help}");
        }
        text
    }
}

impl fmt::Display for Diagnostic {
    /// `line:column: message`, for the build script.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = self.span.start();
        write!(f, "{}:{}: {}", start.line, start.column + 1, self.text())
    }
}

/// All mistakes found in a kernel; at least one.
#[derive(Clone, Debug)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    pub(crate) fn new(mut all: Vec<Diagnostic>) -> Diagnostics {
        all.sort_by_key(|diagnostic| {
            let start = diagnostic.span.start();
            (start.line, start.column)
        });
        Diagnostics(all)
    }

    /// The mistakes in order of appearance.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter()
    }

    /// The functions that weren't found, by the paths that the kernel calls them by, and that may be functions of
    /// other modules: of a free function's form.
    pub fn missing(&self) -> Vec<&syn::Path> {
        self.0.iter().filter_map(Diagnostic::wanted).collect()
    }

    /// The functions that weren't found, by the paths that the kernel or what it calls call them by.
    pub fn unknown(&self) -> Vec<&syn::Path> {
        self.0.iter().filter_map(|diagnostic| Some(&diagnostic.missing.as_ref()?.path)).collect()
    }

    /// The same where of some functions is known that they are there, and what of them isn't right.
    #[must_use]
    pub fn with_unfinished(mut self, waits_for: impl Fn(&syn::Path) -> Option<String>) -> Diagnostics {
        for diagnostic in &mut self.0 {
            let path = diagnostic.missing.as_ref().map(|missing| &missing.path);
            if let Some((path, wrong)) = path.and_then(|path| Some((path, waits_for(path)?))) {
                let message = format!("`{}` can't be used before {wrong} is right", path_text(path));
                diagnostic.message = message;
                diagnostic.help = Some("correct that first: it has an error of its own".to_owned());
            }
        }
        self
    }

    /// Tokens that make rustc report each mistake at its place.
    pub fn to_compile_errors(&self) -> TokenStream {
        let errors = self.0.iter().map(|diagnostic| {
            // `new_spanned` underlines from the first token that it is given to the last.
            let ends = diagnostic.span.ends().map(|span| syn::Ident::new("_end", span));
            syn::Error::new_spanned(quote::quote!(#(#ends)*), diagnostic.text())
        });
        errors.map(|error| error.to_compile_error()).collect()
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Diagnostics {
        Diagnostics(vec![diagnostic])
    }
}

impl From<syn::Error> for Diagnostics {
    fn from(error: syn::Error) -> Diagnostics {
        Diagnostic::new(error.span(), error.to_string()).into()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.0.iter().enumerate() {
            write!(f, "{}{diagnostic}", if i == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
