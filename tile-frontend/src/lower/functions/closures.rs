//! Closures: lowered where they are called, with the variables that they captured where they were written, and in the
//! text that they stand in.

use super::Parameter;
use super::conform::type_text;
use crate::assigned;
use crate::callable::Callable;
use crate::diagnostic::Diagnostic;
use crate::lower::{Lowered, Lowering};
use crate::macros;
use crate::scope::{Changes, Variable};
use crate::span::{Span, Spanned};
use crate::text::Text;
use crate::value::{Closure, Declared, Val};
use std::collections::BTreeSet;
use std::rc::Rc;
use syn::visit::{self, Visit};
use syn::{Block, Expr, ExprCall, ExprClosure, ExprPath, Pat, PatIdent, ReturnType, Stmt};

/// How deep calls may be nested: only a closure that is passed to itself gets there.
const DEEPEST: usize = 64;

impl Lowering {
    /// `|x| x * scale`: captures what it names, as it is now. Rust lets nothing change it while the closure is
    /// used, and a `move` closure has copies.
    pub(in crate::lower) fn closure(&mut self, closure: &ExprClosure) -> Lowered<Val> {
        if let Some(word) = closure.asyncness {
            return self.error(word.span(), "a closure of a kernel can't be `async`", "remove the word");
        }
        let mut names = Names::default();
        names.visit_expr_closure(closure);
        let assigned = assigned::by_expression(&closure.body).names;
        if let Some(name) = assigned.iter().find(|name| !names.bound.contains(*name)) {
            let place = place_of_assignment(&closure.body, name).unwrap_or_else(|| closure.body.span());
            let message = format!("the closure assigns to `{name}`, which it captured");
            let help = "give the new value back, as in `x = step(x)`";
            return self.error(place, message, help);
        }
        let captured = names.used.iter().filter_map(|name| self.scopes.find(name));
        let captured = captured.map(|id| self.scopes.variables[id].clone());
        let captured = captured.map(|variable| Variable { changes: Changes::Never, ..variable }).collect();
        let (syntax, text) = (closure.clone(), Rc::clone(&self.text));
        let (calls, declared) = (Rc::default(), Vec::new());
        Ok(Val::Closure(Rc::new(Closure { syntax, captured, text, calls, declared })))
    }

    pub(in crate::lower) fn call_closure(
        &mut self,
        name: &str,
        closure: &Closure,
        call: &ExprCall,
    ) -> Lowered<Val> {
        let arguments = self.passed(call)?;
        self.apply_closure(name, closure, arguments, [call.func.span(), call.span()])
    }

    /// What a closure gives for arguments. `places` are those of what is called and of the call.
    pub(in crate::lower) fn apply_closure(
        &mut self,
        name: &str,
        closure: &Closure,
        arguments: Vec<(Val, Span)>,
        places: [Span; 2],
    ) -> Lowered<Val> {
        let [called, call] = places;
        if self.calls.len() >= DEEPEST {
            let message = format!("calls of closures are nested more than {DEEPEST} deep");
            return self.error(called, message, "a closure that is given itself has no end");
        }
        let syntax = &closure.syntax;
        let parameters: Vec<Parameter<'_>> = syntax
            .inputs
            .iter()
            .map(|input| match input {
                Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
                pattern => (pattern, None),
            })
            .collect();
        self.check_count(name, &parameters, arguments.len(), call)?;
        let output = match &syntax.output {
            ReturnType::Default => None,
            ReturnType::Type(_, ty) => Some(&**ty),
        };
        let outer = self.scopes.isolate();
        for variable in &closure.captured {
            self.scopes.define(variable.clone());
        }
        self.scopes.enter();
        self.calls.push(self.site(name, called));
        let value = self.called_as_declared(closure, arguments, |lowering, arguments| {
            let arguments = (0..).zip(arguments);
            let arguments =
                arguments.map(|(i, (value, span))| (lowering.as_before(closure, i, value), span)).collect();
            lowering.bind_arguments(&parameters, arguments)?;
            let value = lowering.inlined(&as_block(&syntax.body), output)?;
            Ok(lowering.as_before(closure, parameters.len(), value))
        });
        self.calls.pop();
        self.scopes.restore(outer);
        value
    }

    /// A value that a call of a closure is given or gives, of the type that the one at this place had in the calls before.
    fn as_before(&mut self, closure: &Closure, place: usize, value: Val) -> Val {
        let before = closure.calls.borrow().get(&place).cloned();
        let value = self.named(value);
        let value = self.of_type_with(value, before);
        closure.calls.borrow_mut().insert(place, self.formats_of(&value));
        value
    }

    /// Calls a closure with arguments, and makes arguments and result those of the types that the functions which
    /// it was passed to declare.
    fn called_as_declared(
        &mut self,
        closure: &Closure,
        mut arguments: Vec<(Val, Span)>,
        body: impl FnOnce(&mut Self, Vec<(Val, Span)>) -> Lowered<Val>,
    ) -> Lowered<Val> {
        let name = self.calls.last().map(|call| call.name.clone()).unwrap_or_default();
        for declared in closure.declared.iter().rev() {
            let types = declared.inputs.iter().enumerate().zip(arguments);
            arguments = self.in_text(&declared.text, |lowering| {
                let conformed = types.map(|((i, ty), (value, span))| {
                    let what = format!("argument {} of `{name}`", i + 1);
                    Ok((lowering.conform(value, ty, &what, span)?, span))
                });
                conformed.collect::<Lowered<_>>()
            })?;
        }
        let mut value = self.in_text(&closure.text, |lowering| body(lowering, arguments))?;
        let place = closure.syntax.body.span();
        for Declared { output, text, .. } in &closure.declared {
            let Some(ty) = output else { continue };
            let what = format!("the value of `{name}`");
            value = self.in_text(text, |lowering| lowering.conform(value, ty, &what, place))?;
        }
        Ok(value)
    }

    pub(in crate::lower) fn in_text<T>(&mut self, text: &Rc<Text>, lower: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.text, Rc::clone(text));
        let lowered = lower(self);
        self.text = outer;
        lowered
    }

    /// An argument of a function that declares a closure.
    pub(in crate::lower) fn declared(
        &mut self,
        value: Val,
        callable: Callable,
        what: &str,
        span: Span,
    ) -> Lowered<Val> {
        let expected = callable_text(&callable);
        let Val::Closure(closure) = value else {
            let found = self.display_value(&value);
            let message = format!("{what} is {found}, but is declared as a closure, `{expected}`");
            let help = format!("pass a closure, such as `{}`", callable.example());
            return self.report_at_call(Diagnostic::new(span, message).help(help));
        };
        let (count, needed) = (closure.syntax.inputs.len(), callable.inputs.len());
        if count != needed {
            let plural = |count| if count == 1 { "" } else { "s" };
            let message = format!(
                "{what} is a closure with {count} parameter{}, but is declared with {needed}, `{expected}`",
                plural(count)
            );
            let help = format!(
                "write a closure with {needed} parameter{}: `{}`",
                plural(needed),
                callable.example()
            );
            return self.report_at_call(Diagnostic::new(span, message).help(help));
        }
        let Callable { inputs, output, .. } = callable;
        let mut closure = Closure::clone(&closure);
        closure.declared.push(Declared { inputs, output, text: Rc::clone(&self.text) });
        Ok(Val::Closure(Rc::new(closure)))
    }
}

/// `Fn(A) -> B` as it is usually written.
fn callable_text(callable: &Callable) -> String {
    let inputs: Vec<String> = callable.inputs.iter().map(type_text).collect();
    let output = callable.output.as_ref().map(|ty| format!(" -> {}", type_text(ty)));
    format!("{}({}){}", callable.name, inputs.join(", "), output.unwrap_or_default())
}

/// What a closure does, as the statements of a block.
pub(in crate::lower) fn as_block(body: &Expr) -> Block {
    match body {
        Expr::Block(block) if block.label.is_none() => block.block.clone(),
        other => {
            Block { brace_token: syn::token::Brace::default(), stmts: vec![Stmt::Expr(other.clone(), None)] }
        }
    }
}

/// The names that a closure binds itself, and those that it uses.
#[derive(Default)]
struct Names {
    bound: BTreeSet<String>,
    used: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Names {
    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        // A pattern that is a name binds it, or compares with a constant of this name.
        self.bound.insert(pattern.ident.to_string());
        self.used.insert(pattern.ident.to_string());
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        self.used.extend(path.path.get_ident().map(ToString::to_string));
        visit::visit_expr_path(self, path);
    }

    fn visit_type_path(&mut self, path: &'ast syn::TypePath) {
        // `BM` of `f::<BM>(x)` reads as a type.
        self.used.extend(path.path.get_ident().map(ToString::to_string));
        visit::visit_type_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        let mut inner = Names::default();
        match macros::matched(called) {
            Some(question) => inner.visit_expr_match(&question.as_match()),
            None => macros::expressions(called).iter().for_each(|value| inner.visit_expr(value)),
        }
        self.used.extend(inner.used);
        self.bound.extend(inner.bound);
    }
}

/// Where a name is assigned to.
fn place_of_assignment(body: &Expr, name: &str) -> Option<Span> {
    struct Find<'n> {
        name: &'n str,
        found: Option<Span>,
    }
    impl<'ast> Visit<'ast> for Find<'_> {
        fn visit_expr(&mut self, expression: &'ast Expr) {
            let target = match expression {
                Expr::Assign(assign) => Some(&assign.left),
                Expr::Binary(binary) if assigned::is_compound_assignment(&binary.op) => Some(&binary.left),
                _ => None,
            };
            let changed = target.map(|target| assigned::by_expression(&syn::parse_quote!(#target = 0)).names);
            if changed.is_some_and(|names| names.contains(self.name)) && self.found.is_none() {
                self.found = target.map(|target| target.span());
            }
            visit::visit_expr(self, expression);
        }
    }
    let mut find = Find { name, found: None };
    find.visit_expr(body);
    find.found
}
