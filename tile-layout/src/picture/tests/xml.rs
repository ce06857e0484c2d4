//! Decides whether a document is well-formed XML, as far as pictures use XML: elements, quoted attributes and the
//! five entities. Knows nothing of SVG. It panics at the first mistake, as a test should.

use std::collections::BTreeMap;
use std::string::{String, ToString};
use std::vec::Vec;

/// Whether the tags of a document are closed in order, its entities known and its attributes quoted; the number
/// of each element. Written against the XML grammar, as far as these pictures use it.
pub(super) fn elements(document: &str) -> BTreeMap<String, usize> {
    let mut open: Vec<&str> = Vec::new();
    let mut counts = BTreeMap::new();
    let mut rest = document;
    while let Some(start) = rest.find('<') {
        check_text(&rest[..start]);
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closes what is open");
            continue;
        }
        let (tag, empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let name = tag.split(' ').next().unwrap();
        assert!(!name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric()), "{name}");
        check_attributes(&tag[name.len()..]);
        *counts.entry(name.to_string()).or_insert(0) += 1;
        assert!(!open.is_empty() || counts.len() == 1, "one root");
        if !empty {
            open.push(name);
        }
    }
    check_text(rest);
    assert!(open.is_empty(), "{open:?} are not closed");
    counts
}

fn check_text(text: &str) {
    for part in text.split('&').skip(1) {
        let name = part.split(';').next().unwrap();
        assert!(["amp", "lt", "gt", "quot", "apos"].contains(&name), "&{name};");
    }
    assert!(!text.chars().any(|letter| letter.is_control() && letter != '\n'));
}

fn check_attributes(mut attributes: &str) {
    let mut names = Vec::new();
    while !attributes.trim_start().is_empty() {
        let (name, value) = attributes.split_once("=\"").expect("an attribute has a quoted value");
        let name = name.strip_prefix(' ').expect("a space before an attribute");
        assert!(name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-:".contains(letter)), "{name}");
        assert!(!names.contains(&name), "{name} twice");
        names.push(name);
        let (value, rest) = value.split_once('"').unwrap();
        check_text(value);
        attributes = rest;
    }
}

#[test]
#[should_panic(expected = "closes what is open")]
fn crossed_tags_are_found() {
    elements("<a><b></a></b>");
}

#[test]
#[should_panic(expected = "are not closed")]
fn open_tags_are_found() {
    elements("<a><b/>");
}

#[test]
#[should_panic(expected = "&c;")]
fn stray_ampersands_are_found() {
    elements("<a>b &c;</a>");
}

#[test]
#[should_panic(expected = "twice")]
fn repeated_attributes_are_found() {
    elements("<a b=\"1\" b=\"2\"/>");
}
