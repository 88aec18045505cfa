//! Texts of definitions: where a type is found, and what its lines say.
//! Source of the syntax: docs.ros.org, "Interfaces".

use super::standard;
use std::collections::HashMap;
use std::path::PathBuf;

/// Definitions by name, `package/Type`.
pub(super) struct Definitions<'a> {
    own: HashMap<String, &'a str>,
    prefixes: &'a [PathBuf],
}

/// `package/Type` of `package/msg/Type`.
pub(super) fn key(type_name: &str) -> String {
    type_name.replacen("/msg/", "/", 1)
}

impl<'a> Definitions<'a> {
    /// From a definition with those that it needs behind lines of `=`.
    pub(super) fn new(own: Option<(&str, &'a str)>, prefixes: &'a [PathBuf]) -> Self {
        let mut map = HashMap::new();
        if let Some((name, text)) = own {
            let mut name = Some(key(name));
            let (mut begin, mut at) = (0, 0);
            let mut fresh = false; // the line behind a separator names the next definition
            for line in text.split_inclusive('\n') {
                let end = at + line.len();
                let bare = line.trim();
                if is_separator(bare) {
                    if let Some(name) = name.take() {
                        map.entry(name).or_insert(&text[begin..at]);
                    }
                    fresh = true;
                } else if fresh {
                    name = bare.strip_prefix("MSG: ").map(|name| key(name.trim()));
                    (begin, fresh) = (end, false);
                }
                at = end;
            }
            if let Some(name) = name {
                map.entry(name).or_insert(&text[begin..]);
            }
        }
        Self { own: map, prefixes }
    }

    /// The text of a type.
    pub(super) fn find(&self, name: &str) -> Option<String> {
        if let Some(text) = self.own.get(name) {
            return Some((*text).to_owned());
        }
        let (package, kind) = name.split_once('/')?;
        let plain = |word: &str| word.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        let files = self.prefixes.iter().map(|prefix| prefix.join(format!("share/{package}/msg/{kind}.msg")));
        let sourced = || {
            (plain(package) && plain(kind)).then(|| files.map(std::fs::read_to_string).find_map(Result::ok)).flatten()
        };
        standard::text(name).map(str::to_owned).or_else(sourced)
    }
}

fn is_separator(line: &str) -> bool {
    20 <= line.len() && line.bytes().all(|byte| byte == b'=')
}

/// A field as its line says it.
#[derive(Debug, PartialEq)]
pub(super) struct Line<'a> {
    pub(super) name: &'a str,
    /// The type without its array and bounds.
    pub(super) base: &'a str,
    pub(super) array: Option<Array>,
}

/// `[n]`, or `[]` and `[<=n]`.
#[derive(Debug, PartialEq)]
pub(super) enum Array {
    Fixed(usize),
    Sequence,
}

/// The fields of a definition; constants are left out.
pub(super) fn fields(text: &str) -> Result<Vec<Line<'_>>, String> {
    let mut fields = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some((kind, rest)) = line.split_once(char::is_whitespace) else {
            if line.is_empty() {
                continue;
            }
            return Err(format!("the line {line:?} is no field"));
        };
        let name = rest.trim_start().split(char::is_whitespace).next().unwrap_or_default();
        let after = rest.trim_start()[name.len()..].trim_start();
        if name.contains('=') || after.starts_with('=') {
            continue;
        }
        let (base, array) = match kind.split_once('[') {
            None => (kind, None),
            Some((base, bounds)) => {
                let bounds = bounds.strip_suffix(']').ok_or_else(|| format!("{kind:?} is no type"))?;
                let array = if bounds.is_empty() || bounds.starts_with("<=") {
                    Array::Sequence
                } else {
                    // one of nothing is none in ROS, and decoding many that take no byte would not end
                    let count = bounds.parse().ok().filter(|&count| 0 < count);
                    Array::Fixed(count.ok_or_else(|| format!("{kind:?} is no type"))?)
                };
                (base, Some(array))
            }
        };
        let base = base.split("<=").next().unwrap_or_default();
        fields.push(Line { name, base, array });
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_fields_constants_and_comments() {
        let text = "# text\nuint8 A=1\nuint8 B = 2\nstring C=\"a b\"\nstring<=5 a \"x\"\nfloat64[] b # c\nuint8[<=3] c\nuint8[32] d\nint32 e 5\n\n";
        let line = |name, base, array| Line { name, base, array };
        let want = [
            line("a", "string", None),
            line("b", "float64", Some(Array::Sequence)),
            line("c", "uint8", Some(Array::Sequence)),
            line("d", "uint8", Some(Array::Fixed(32))),
            line("e", "int32", None),
        ];
        assert_eq!(fields(text).unwrap(), want);
        assert!(fields("float64[ a").is_err());
        assert!(fields("float64[0] a").is_err());
        assert!(fields("float64").is_err());
    }

    #[test]
    fn definitions_stand_behind_separators_with_either_form_of_name() {
        let bar = "=".repeat(80);
        let text =
            format!("B b\nc/D d\n{bar}\nMSG: a/msg/B\nint8 x\n{bar}\nMSG: c/D\nint8 y\n{bar}\nIDL: e/F\nstruct\n");
        let definitions = Definitions::new(Some(("a/msg/A", &text)), &[]);
        assert_eq!(definitions.find("a/A").unwrap(), "B b\nc/D d\n");
        assert_eq!(definitions.find("a/B").unwrap(), "int8 x\n");
        assert_eq!(definitions.find("c/D").unwrap(), "int8 y\n");
        assert_eq!(definitions.find("e/F"), None);
        assert!(definitions.find("std_msgs/Header").is_some());
    }

    #[test]
    fn sourced_packages_are_looked_through_but_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let prefixes = [folder.path().to_owned()];
        std::fs::create_dir_all(folder.path().join("share/p/msg")).unwrap();
        std::fs::write(folder.path().join("share/p/msg/T.msg"), "int8 x").unwrap();
        std::fs::write(folder.path().join("T.msg"), "int8 x").unwrap();
        let definitions = Definitions::new(None, &prefixes);
        assert_eq!(definitions.find("p/T").unwrap(), "int8 x");
        assert_eq!(definitions.find("p/../../../T"), None);
    }
}
