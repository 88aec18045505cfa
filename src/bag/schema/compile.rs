//! From names to numbers: a type as structures that refer to one another by index.

use super::definition::{Array, Definitions, fields};
use std::collections::HashMap;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bag) enum Kind {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
    Text,
    Struct(usize),
}

/// How many of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bag) enum Count {
    One,
    Fixed(usize),
    Sequence,
}

/// One field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::bag) struct Field {
    pub(in crate::bag) name: String,
    pub(in crate::bag) kind: Kind,
    pub(in crate::bag) count: Count,
}

/// Structures within structures.
const MAX_DEPTH: usize = 32;

/// The structures of a type, itself first. Refuses what is not defined, refers to itself, or is deeper than 32.
pub(super) fn compile(name: &str, definitions: &Definitions<'_>) -> Result<Vec<Vec<Field>>, String> {
    let mut compiler = Compiler { definitions, done: HashMap::new(), structs: Vec::new(), path: Vec::new() };
    compiler.structure(name)?;
    Ok(compiler.structs)
}

struct Compiler<'a> {
    definitions: &'a Definitions<'a>,
    done: HashMap<String, usize>,
    structs: Vec<Vec<Field>>,
    /// Names of the structures that are being compiled.
    path: Vec<String>,
}

impl Compiler<'_> {
    fn structure(&mut self, name: &str) -> Result<usize, String> {
        if let Some(&index) = self.done.get(name) {
            return Ok(index);
        }
        if self.path.iter().any(|outer| outer == name) {
            return Err(format!("{name} holds itself"));
        }
        if self.path.len() == MAX_DEPTH {
            return Err(format!("{name} lies deeper than {MAX_DEPTH} structures"));
        }
        let text = self.definitions.find(name).ok_or_else(|| format!("{name} is defined nowhere"))?;
        let index = self.structs.len();
        self.structs.push(Vec::new());
        self.path.push(name.to_owned());
        let package = name.split('/').next().unwrap_or_default();
        let mut compiled = Vec::new();
        for line in fields(&text).map_err(|reason| format!("in {name} {reason}"))? {
            let count = match line.array {
                None => Count::One,
                Some(Array::Sequence) => Count::Sequence,
                Some(Array::Fixed(count)) => Count::Fixed(count),
            };
            compiled.push(Field { name: line.name.to_owned(), kind: self.kind(line.base, package)?, count });
        }
        if compiled.is_empty() {
            // DDS has no empty structures: rosidl puts this byte in.
            let name = "structure_needs_at_least_one_member".to_owned();
            compiled.push(Field { name, kind: Kind::U8, count: Count::One });
        }
        self.path.pop();
        self.structs[index] = compiled;
        self.done.insert(name.to_owned(), index);
        Ok(index)
    }

    fn kind(&mut self, base: &str, package: &str) -> Result<Kind, String> {
        Ok(match base {
            "bool" => Kind::Bool,
            "int8" => Kind::I8,
            "uint8" | "byte" | "char" => Kind::U8,
            "int16" => Kind::I16,
            "uint16" => Kind::U16,
            "int32" => Kind::I32,
            "uint32" => Kind::U32,
            "int64" => Kind::I64,
            "uint64" => Kind::U64,
            "float32" => Kind::F32,
            "float64" => Kind::F64,
            "string" => Kind::Text,
            "wstring" => return Err("a wstring, which is not understood".into()),
            "Header" => Kind::Struct(self.structure("std_msgs/Header")?),
            name if name.contains('/') => Kind::Struct(self.structure(&super::key(name))?),
            name => Kind::Struct(self.structure(&format!("{package}/{name}"))?),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::bag::schema::Schema;

    #[test]
    fn what_cannot_be_resolved_is_refused_by_name() {
        let refused = |text: &str| Schema::parse("a/msg/A", text).unwrap_err().to_string();
        assert!(refused("b/Unknown x").contains("b/Unknown is defined nowhere"));
        assert!(refused("A[] x").contains("a/A holds itself"));
        assert!(refused("wstring x").contains("wstring"));
        assert!(refused("float64[-1] x").contains("float64[-1]"));
    }

    #[test]
    fn deep_nesting_is_refused() {
        let bar = "=".repeat(80);
        let inner: String = (1..100).map(|level| format!("{bar}\nMSG: a/T{level}\nT{} x\n", level + 1)).collect();
        let sentence = Schema::parse("a/msg/T0", &format!("T1 x\n{inner}")).unwrap_err().to_string();
        assert!(sentence.contains("deeper than 32"), "{sentence}");
    }

    #[test]
    fn stamps_are_found_in_headers_and_clocks() {
        assert!(Schema::known("sensor_msgs/msg/JointState").unwrap().stamped());
        assert!(Schema::known("rosgraph_msgs/msg/Clock").unwrap().stamped());
        assert!(Schema::known("handoff/msg/EpisodeStats").unwrap().stamped());
        assert!(!Schema::known("handoff/msg/PolicyWeights").unwrap().stamped());
    }
}
