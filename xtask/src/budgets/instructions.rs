//! The instructions of a kernel, by their names.

/// The names of a kernel's instructions in order, modifiers included: `LDG.E.128`, `global_load_dwordx4`. What fills
/// the code up to a boundary isn't among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instructions(Vec<String>);

impl Instructions {
    /// Those that `nvdisasm -c` prints: the address in a comment, a predicate, the instruction.
    pub(super) fn of_sass(text: &str) -> Instructions {
        let instruction = |line: &str| {
            let (_, code) = line.trim_start().strip_prefix("/*")?.split_once("*/")?;
            let word = code.split_whitespace().find(|word| !word.starts_with('@'))?;
            Some(word.trim_end_matches(';').to_owned())
        };
        Instructions::without_filling(text.lines().filter_map(instruction).collect(), &["NOP"])
    }

    /// Those that `llvm-objdump -d` prints of a code object: lines that begin with a tab.
    pub(super) fn of_objdump(text: &str) -> Instructions {
        let instruction = |line: &str| Some(line.strip_prefix('\t')?.split_whitespace().next()?.to_owned());
        Instructions::without_filling(
            text.lines().filter_map(instruction).collect(),
            &["s_nop", "s_code_end"],
        )
    }

    fn without_filling(mut names: Vec<String>, filling: &[&str]) -> Instructions {
        let end = names.iter().rposition(|name| !filling.contains(&name.as_str())).map_or(0, |last| last + 1);
        names.truncate(end);
        Instructions(names)
    }

    /// How many there are.
    pub(super) fn all(&self) -> u64 {
        self.0.len() as u64
    }

    /// How many have such a name.
    pub(super) fn count(&self, is_counted: impl Fn(&str) -> bool) -> u64 {
        self.0.iter().filter(|name| is_counted(name)).count() as u64
    }

    /// How many names begin with one of these.
    pub(super) fn starting(&self, starts: &[&str]) -> u64 {
        self.count(|name| starts.iter().any(|start| name.starts_with(start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_of_sass_are_read_without_predicates_and_filling() {
        let text = include_str!("samples/nvdisasm.txt");
        let names = Instructions::of_sass(text);
        let expected = ["LDC", "S2R", "LDG.E.128", "NOP", "STG.E", "HGMMA.64x128x16.F32.BF16", "EXIT", "BRA"];
        assert_eq!(names.0, expected);
        assert_eq!((names.all(), names.starting(&["LDG", "STG"])), (8, 2));
    }

    #[test]
    fn instructions_of_a_code_object_are_read_without_filling() {
        let text = include_str!("samples/objdump.txt");
        let names = Instructions::of_objdump(text);
        let expected = ["s_load_b128", "v_dual_mov_b32", "s_nop", "global_store_b32", "s_endpgm"];
        assert_eq!(names.0, expected);
    }
}
