//! Types of messages, from the definitions of a bag or our own.

mod compile;
mod definition;
mod standard;

pub(super) use compile::{Count, Field, Kind};

use super::storage::{Definition, Topic};
use crate::error::{Error, Result};
use definition::{Definitions, key};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Letters of a reason, which may quote the bag; every topic of a type repeats it.
const LONGEST_REASON: usize = 300;

/// Types of topics, each made once, however many topics share it.
pub struct Schemas<'a> {
    prefixes: &'a [PathBuf],
    /// By name and place of the definition, which is kept so that no other one comes to lie there.
    known: HashMap<(String, usize), Known>,
}

type Known = (Option<Arc<Definition>>, Result<Arc<Schema>, String>);

impl<'a> Schemas<'a> {
    /// `prefixes`: as for [`Schema::of`].
    pub fn new(prefixes: &'a [PathBuf]) -> Self {
        Self { prefixes, known: HashMap::new() }
    }

    /// As [`Schema::of`].
    pub fn of(&mut self, topic: &Topic) -> Result<Arc<Schema>> {
        Schema::require_cdr(topic)?;
        let place = topic.definition.as_ref().map_or(0, |definition| Arc::as_ptr(definition) as usize);
        let (_, found) = self
            .known
            .entry((topic.type_name.clone(), place))
            .or_insert_with(|| (topic.definition.clone(), Schema::resolve(topic, self.prefixes).map(Arc::new)));
        found.clone().map_err(|reason| Error::invalid(format!("{} has the type {reason}", topic.name)))
    }
}

/// A type with everything that it is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// Its name, e.g. `sensor_msgs/msg/JointState`.
    pub name: String,
    /// Structures; the first is the type itself.
    pub(super) structs: Vec<Vec<Field>>,
}

impl Schema {
    /// From the definition that the bag has of a topic's type, completed by those that we know and by the `.msg` files of the
    /// packages below `prefixes` (AMENT_PREFIX_PATH). Refuses other encodings than CDR and types that cannot be resolved.
    pub fn of(topic: &Topic, prefixes: &[PathBuf]) -> Result<Self> {
        Self::require_cdr(topic)?;
        Self::resolve(topic, prefixes).map_err(|reason| Error::invalid(format!("{} has the type {reason}", topic.name)))
    }

    fn require_cdr(Topic { name, format, .. }: &Topic) -> Result<()> {
        if format == "cdr" {
            return Ok(());
        }
        Err(Error::invalid(format!("{name} is encoded as {format:?}; only \"cdr\" is understood")))
    }

    /// The type, or its name and why not.
    fn resolve(Topic { type_name, definition, .. }: &Topic, prefixes: &[PathBuf]) -> Result<Self, String> {
        let own = definition.as_ref().filter(|definition| definition.encoding == "ros2msg");
        let definitions =
            Definitions::new(own.map(|definition| (type_name.as_str(), definition.text.as_str())), prefixes);
        let other = definition
            .as_ref()
            .map(|definition| definition.encoding.as_str())
            .filter(|&encoding| encoding != "ros2msg");
        Self::compile(type_name, definitions).map_err(|reason| {
            let hint = other.map(|encoding| format!(" (the bag defines it in {encoding}, which is not understood)"));
            let reason = format!("{type_name}: {reason}{}", hint.unwrap_or_default());
            reason.chars().take(LONGEST_REASON).collect()
        })
    }

    /// From the text of a definition alone; what it lacks must be among the types that we know.
    pub fn parse(type_name: &str, text: &str) -> Result<Self> {
        Self::compile(type_name, Definitions::new(Some((type_name, text)), &[]))
            .map_err(|reason| Error::invalid(format!("{type_name}: {reason}")))
    }

    /// One of the types that we know: those of handoff, and what they are made of.
    pub fn known(type_name: &str) -> Result<Self> {
        Self::compile(type_name, Definitions::new(None, &[]))
            .map_err(|reason| Error::invalid(format!("{type_name}: {reason}")))
    }

    /// The definition of a type that we know, with those that it needs.
    pub(super) fn definition(type_name: &str) -> Option<String> {
        let mut names = vec![key(type_name)];
        let mut text = standard::text(&names[0])?.to_owned();
        let mut at = 0;
        while at < names.len() {
            let package = names[at].split('/').next().unwrap_or_default().to_owned();
            for line in definition::fields(standard::text(&names[at])?).ok()? {
                let full = if line.base.contains('/') { key(line.base) } else { format!("{package}/{}", line.base) };
                if let (false, Some(inner)) = (names.contains(&full), standard::text(&full)) {
                    text += &format!("\n{}\nMSG: {full}\n{inner}", "=".repeat(80));
                    names.push(full);
                }
            }
            at += 1;
        }
        Some(text)
    }

    fn compile(type_name: &str, definitions: Definitions<'_>) -> Result<Self, String> {
        Ok(Self { name: type_name.to_owned(), structs: compile::compile(&key(type_name), &definitions)? })
    }

    /// Whether its messages begin with a stamp: a header, or a time.
    pub fn stamped(&self) -> bool {
        let first = |index: usize| self.structs.get(index).and_then(|fields| fields.first());
        let time = |index: usize| {
            let fields = self.structs.get(index).map(Vec::as_slice);
            matches!(fields, Some([sec, nanosec]) if (sec.name.as_str(), sec.kind) == ("sec", Kind::I32)
                && (nanosec.name.as_str(), nanosec.kind) == ("nanosec", Kind::U32))
        };
        match first(0) {
            Some(Field { kind: Kind::Struct(index), count: Count::One, .. }) => {
                time(*index)
                    || matches!(first(*index), Some(Field { kind: Kind::Struct(inner), count: Count::One, .. }) if time(*inner))
            }
            _ => false,
        }
    }
}
