//! Makes a failing kernel small: lines are dropped, their results replaced by other values of the type, as long as
//! it stays a kernel that fails.

/// A statement: its line, and its region's lines where it has one.
pub(super) fn statement(lines: &[String], at: usize) -> usize {
    let depth = |line: &str| line.len() - line.trim_start().len();
    if !lines[at].ends_with('{') {
        return at + 1;
    }
    let closes = |line: &String| depth(line) == depth(&lines[at]) && line.trim() == "}";
    lines[at..].iter().position(closes).map_or(at + 1, |length| at + length + 1)
}

/// The names that a line defines, with their types.
fn results(line: &str) -> Vec<(String, String)> {
    let Some((names, rest)) = line.trim().split_once(" = ") else { return Vec::new() };
    let types = rest.trim_end_matches(" {").rsplit_once(" : ").map_or("", |(_, types)| types);
    let types = split(types);
    names.split(", ").map(str::to_owned).zip(types).collect()
}

/// Types between commas that stand in no bracket.
fn split(types: &str) -> Vec<String> {
    let (mut depth, mut found) = (0, vec![String::new()]);
    for c in types.chars() {
        match c {
            '<' | '[' | '(' => depth += 1,
            '>' | ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                found.push(String::new());
                continue;
            }
            _ => {}
        }
        found.last_mut().expect("never empty").push(c);
    }
    found.iter().map(|ty| ty.trim().to_owned()).collect()
}

fn renamed(line: &str, from: &str, to: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(from) {
        let end = at + from.len();
        let whole = !rest[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        text += &rest[..at];
        text += if whole { to } else { from };
        rest = &rest[end..];
    }
    text + rest
}

/// The lines without those of `from..to`, whose results are replaced by earlier values.
fn without(lines: &[String], from: usize, to: usize) -> Option<Vec<String>> {
    let mut kept: Vec<String> = lines[..from].iter().chain(&lines[to..]).cloned().collect();
    for (name, ty) in results(&lines[from]) {
        let used = kept[from..].iter().any(|line| renamed(line, &name, "") != *line);
        if !used {
            continue;
        }
        let earlier = lines[..from].iter().rev().flat_map(|line| results(line));
        let other = earlier.into_iter().find(|(_, other)| *other == ty)?.0;
        for line in &mut kept[from..] {
            *line = renamed(line, &name, &other);
        }
    }
    Some(kept)
}

/// The smallest kernel that this finds for which `fails` still holds. `fails` is asked about texts that may be no
/// kernels.
pub(super) fn minimize(source: &str, fails: impl Fn(&str) -> bool) -> String {
    let mut lines: Vec<String> = source.lines().map(str::to_owned).collect();
    loop {
        let before = lines.len();
        let mut at = lines.len();
        while at > 1 {
            at -= 1;
            if at >= lines.len() || lines[at].trim().starts_with('}') {
                continue;
            }
            let end = statement(&lines, at);
            let candidate = without(&lines, at, end).filter(|lines| fails(&(lines.join("\n") + "\n")));
            lines = candidate.unwrap_or(lines);
        }
        if lines.len() == before {
            return lines.join("\n") + "\n";
        }
    }
}

#[test]
fn what_has_nothing_to_do_with_a_failure_goes() {
    let source = "\
kernel @k() {
  %a = constant 1 : i32
  %b = add %a, %a : i32
  %c = mul %b, %b : i32
  %d = if %t : i32 {
    %e = neg %c : i32
    yield %e
  } else {
    yield %a
  }
  %f = sub %d, %b : i32
  print 0 \"{}\" %f
}
";
    let small = minimize(source, |text| text.contains("mul") && text.contains("print"));
    assert_eq!(
        small,
        "kernel @k() {\n  %a = constant 1 : i32\n  %c = mul %a, %a : i32\n  print 0 \"{}\" %c\n}\n"
    );
}
