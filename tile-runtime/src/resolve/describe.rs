//! What is said of an instance: its parameters, and how to get code for it where there is none.

use super::Prepared;
use crate::embedded::EmbeddedCode;
use crate::error::Error;
use crate::launch::KernelDef;
use tile_ir::Instance;
use tile_ir::abi::Argument;
use tile_ir::specialize::Binding;

impl Prepared {
    #[cfg_attr(
        feature = "jit",
        allow(dead_code, reason = "with a compiler, only a GPU older than every target lacks code")
    )]
    pub(super) fn missing(&self, kernel: &KernelDef, target: &str) -> Error {
        if let Some((number, layout)) = self.layouts.first() {
            return Error::EmbeddedPlace {
                kernel: kernel.name().to_owned(),
                argument: self.abi.arguments.get(*number).map_or("", Argument::name).to_owned(),
                problem: layout.describe(),
            };
        }
        let bindings = self.parameters();
        let code = kernel.embedded().iter().filter(|held| !matches!(held.code, EmbeddedCode::LeftOut(_)));
        let held: Vec<(&str, String)> =
            code.map(|held| (held.target, display_bindings(held.bindings.iter().copied()))).collect();
        let text = |(target, held): &(&str, String)| match held.as_str() {
            "" => (*target).to_owned(),
            held => format!("{target} ({held})"),
        };
        let mut texts: Vec<String> = held.iter().map(text).collect();
        texts.dedup();
        let embedded = match texts.as_slice() {
            [] => "this executable has none for any device".to_owned(),
            texts => format!("this executable has it for {}", texts.join(", ")),
        };
        let is_elsewhere = held.iter().any(|(_, held)| *held == bindings);
        let remedy = remedy(target, &bindings, is_elsewhere);
        Error::MissingInstance {
            kernel: kernel.name().to_owned(),
            bindings,
            target: target.to_owned(),
            embedded,
            remedy,
        }
    }
}

/// How to have code of an instance embedded, which the executable has for another target, or not at all.
fn remedy(target: &str, bindings: &str, is_elsewhere: bool) -> String {
    if is_elsewhere {
        return format!("Add {target} to the targets of build.rs");
    }
    let named = if bindings.is_empty() { String::new() } else { format!(" with `instances({bindings})`") };
    format!(
        "A build script compiles every `#[tile_kernel]`{named} in `src` for the targets that it names, with \
         `.also(\"tests\")` those in `tests` too, and none that another macro makes or that it warns of: add what is missing"
    )
}

/// What the parameters of an instance are bound to,
/// and how arguments lie that aren't dense: `B = 16, x strided [1, x.stride_1]`.
pub(crate) fn display_parameters(instance: &Instance) -> String {
    let parameters =
        display_bindings(instance.bindings().iter().map(|(name, value)| (name.as_str(), *value)));
    let laid_out = instance.tensors().filter_map(|(param, tensor)| {
        let name = instance.value(param).name.as_deref()?;
        Some(format!("{name} {}", tensor.layout.as_deref()?))
    });
    let parameters = (!parameters.is_empty()).then_some(parameters).into_iter();
    parameters.chain(laid_out).collect::<Vec<_>>().join(", ")
}

/// `BM = 128, T = f32`.
pub(crate) fn display_bindings<'b>(bindings: impl Iterator<Item = (&'b str, Binding)>) -> String {
    let texts: Vec<String> = bindings.map(|(name, value)| format!("{name} = {value}")).collect();
    texts.join(", ")
}
