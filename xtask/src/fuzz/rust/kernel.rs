//! A random kernel as a whole.

use super::writer::{Kind, Writer};

/// The arguments of every kernel, and what they are given.
pub(super) const ARGUMENTS: [(&str, [&str; 3]); 6] = [
    ("i32", ["3", "-7", "i32::MAX"]),
    ("u8", ["0", "200", "9"]),
    ("i64", ["-1", "5", "1 << 40"]),
    ("u32", ["1", "u32::MAX", "6"]),
    ("f32", ["0.5", "-3.75", "1e20"]),
    ("i8", ["-128", "4", "0"]),
];

/// A kernel whose output tells what every variable was in the end.
pub(super) fn kernel(name: &str, seed: u64) -> String {
    let mut writer = Writer::new(seed);
    let parameters: Vec<String> =
        ARGUMENTS.iter().enumerate().map(|(at, (ty, _))| format!("a{at}: {ty}")).collect();
    for (at, (ty, _)) in ARGUMENTS.iter().enumerate() {
        writer.declare(&format!("a{at}"), Kind::Scalar(ty), false);
    }
    writer.line("let mut y = y.partition_view_mut([1]);");
    writer.line("let [i] = y.index();");
    writer.line("let i = i as i32;");
    writer.declare("i", Kind::Scalar("i32"), false);
    writer.line("let mut acc: i64 = 1;");
    writer.declare("acc", Kind::Scalar("i64"), true);
    let count = 4 + writer.choose(10);
    writer.statements(count);
    let scope = writer.scope.clone();
    for (at, variable) in scope.iter().enumerate() {
        if scope[at + 1..].iter().any(|later| later.name == variable.name) {
            continue;
        }
        let values: Vec<String> = match variable.kind {
            Kind::Scalar(_) => vec![variable.name.clone()],
            Kind::Array(_, length) => (0..length).map(|at| format!("{}[{at}]", variable.name)).collect(),
            Kind::Closure(_) => Vec::new(),
        };
        for value in values {
            writer.line(&format!("let acc = acc * 31 + ({value} as i64);"));
        }
    }
    writer.line("y.store(Tile::full([1], acc));");
    format!("fn {name}({}, y: &mut Tensor<i64, n>) {{\n{}}}\n", parameters.join(", "), writer.text)
}
