//! What the command line says.

use std::collections::BTreeMap;
use tile_codegen::simt::Timing;
use tile_ir::TargetDesc;
use tile_ir::target::Family;

const USAGE: &str = "cargo xtask sim KERNEL [--target sm_90a] [--size m=128,n=64] [--early]";

/// The target that runs where none is named.
const TARGET: &str = "sm_90a";

/// What is to be run, and how.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// A kernel's name, or an instance's.
    pub(crate) kernel: String,
    pub(crate) target: &'static TargetDesc,
    /// Run-time sizes by name.
    pub(crate) sizes: BTreeMap<String, usize>,
    /// When asynchronous operations do their work.
    pub(crate) timing: Timing,
}

impl Options {
    /// Reads the words.
    ///
    /// # Errors
    /// The word that is wrong, and what may stand there.
    pub(crate) fn parse(words: &[String]) -> Result<Options, String> {
        let mut words = words.iter();
        let (mut kernel, mut target, mut timing) = (None, TARGET, Timing::Late);
        let mut sizes = BTreeMap::new();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("`{word}` needs a value: {USAGE}"));
            match word.as_str() {
                "--target" => target = value()?,
                "--size" => sizes.extend(value()?.split(',').map(size).collect::<Result<Vec<_>, _>>()?),
                "--early" => timing = Timing::Early,
                option if option.starts_with('-') => {
                    return Err(format!("`{option}` isn't an option: {USAGE}"));
                }
                name if kernel.is_none() => kernel = Some(name.to_owned()),
                name => return Err(format!("one kernel is run at a time, and `{name}` is another: {USAGE}")),
            }
        }
        let kernel = kernel.ok_or_else(|| format!("name a kernel: {USAGE}"))?;
        Ok(Options { kernel, target: gpu(target)?, sizes, timing })
    }
}

fn size(text: &str) -> Result<(String, usize), String> {
    let parts =
        text.split_once('=').and_then(|(name, value)| Some((name.trim(), value.trim().parse().ok()?)));
    let (name, value) = parts.ok_or_else(|| format!("`{text}` isn't a size; write `m=128`"))?;
    Ok((name.to_owned(), value))
}

fn gpu(name: &str) -> Result<&'static TargetDesc, String> {
    let target = TargetDesc::named(name).map_err(|error| error.to_string())?;
    match target.family {
        Family::Cpu => Err(format!("`{name}` isn't a GPU, which alone are run thread by thread")),
        Family::Nvptx | Family::Amdgpu => Ok(target),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Options, String> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn options_are_read() {
        let options = parse("gemm").unwrap();
        assert_eq!(
            (options.kernel.as_str(), options.target.name, options.timing),
            ("gemm", "sm_90a", Timing::Late)
        );
        assert!(options.sizes.is_empty());
        let options = parse("--early --size m=128,n=64 gemm --target gfx942 --size k=7").unwrap();
        assert_eq!(
            (options.kernel.as_str(), options.target.name, options.timing),
            ("gemm", "gfx942", Timing::Early)
        );
        let sizes = [("k", 7), ("m", 128), ("n", 64)].map(|(name, value)| (name.to_owned(), value));
        assert_eq!(options.sizes, sizes.into());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, named) in [
            ("", "name a kernel"),
            ("gemm add", "`add` is another"),
            ("gemm --late", "`--late` isn't an option"),
            ("gemm --size", "`--size` needs a value"),
            ("gemm --size m", "`m` isn't a size; write `m=128`"),
            ("gemm --size m=128,n=-1", "`n=-1` isn't a size"),
            ("gemm --target cpu", "`cpu` isn't a GPU"),
            ("gemm --target sm_1", "sm_90a"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
