//! Encoded messages to typed values, by the schema of the bag and the names of the fields (serde).
//!
//! A value may take up to 16 times the message's bytes if it is a struct of vectors, and 1,000 times as a [`serde_json::Value`], where an
//! object of one byte takes 700.

use super::cdr::Cursor;
use super::schema::{Count, Field, Kind, Schema};
use crate::error::{Error, Result};
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use std::fmt;

/// Decodes a message. Fields that `T` does not name are passed over; those that it needs and the schema lacks are refused, as
/// are messages that are too short or too long.
pub fn decode<'de, T: Deserialize<'de>>(schema: &'de Schema, message: &'de [u8]) -> Result<T> {
    let refuse = |reason: Failure| Error::invalid(format!("a message of {} is refused: {}", schema.name, reason.0));
    let mut cursor = Cursor::new(message).map_err(|reason| refuse(Failure(reason)))?;
    let value = Value { schema, cursor: &mut cursor, kind: Kind::Struct(0), count: Count::One };
    let decoded = T::deserialize(value).map_err(refuse)?;
    // Writers may pad to a multiple of four.
    if 3 < cursor.left() {
        return Err(refuse(Failure(format!("{} bytes are left over", cursor.left()))));
    }
    Ok(decoded)
}

/// The time that a message begins with [ns], if [`Schema::stamped`].
pub fn stamp_ns(message: &[u8]) -> Option<i64> {
    let mut cursor = Cursor::new(message).ok()?;
    let (sec, nanosec) = (cursor.i32().ok()?, cursor.u32().ok()?);
    Some(i64::from(sec) * 1_000_000_000 + i64::from(nanosec))
}

#[derive(Debug)]
struct Failure(String);

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl de::Error for Failure {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self(reason)
    }
}

/// What comes next, as serde sees it.
struct Value<'a, 'de> {
    schema: &'de Schema,
    cursor: &'a mut Cursor<'de>,
    kind: Kind,
    count: Count,
}

/// The least that one element takes on the wire.
fn smallest(kind: Kind) -> usize {
    match kind {
        Kind::Bool | Kind::I8 | Kind::U8 | Kind::Struct(_) => 1,
        Kind::I16 | Kind::U16 => 2,
        Kind::I32 | Kind::U32 | Kind::F32 | Kind::Text => 4,
        Kind::I64 | Kind::U64 | Kind::F64 => 8,
    }
}

impl<'a, 'de> Value<'a, 'de> {
    fn elements(&mut self) -> Result<usize, Failure> {
        match self.count {
            Count::Sequence => Ok(self.cursor.length(smallest(self.kind))?),
            Count::Fixed(count) => {
                self.cursor.room(count, smallest(self.kind))?;
                Ok(count)
            }
            Count::One => Ok(1),
        }
    }

    fn skip(mut self) -> Result<(), Failure> {
        let count = self.elements()?;
        let Self { schema, cursor, kind, .. } = self;
        match kind {
            Kind::Struct(index) => {
                for _ in 0..count {
                    for field in &schema.structs[index] {
                        Value { schema, cursor: &mut *cursor, kind: field.kind, count: field.count }.skip()?;
                    }
                }
            }
            Kind::Text => {
                for _ in 0..count {
                    let len = cursor.u32()? as usize;
                    cursor.take(len)?;
                }
            }
            kind if 0 < count => {
                cursor.align(smallest(kind))?;
                cursor.take(count * smallest(kind))?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl<'de> Deserializer<'de> for Value<'_, 'de> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Failure> {
        if self.count != Count::One {
            let left = self.elements()?;
            return visitor.visit_seq(Elements { schema: self.schema, cursor: self.cursor, kind: self.kind, left });
        }
        let cursor = self.cursor;
        match self.kind {
            Kind::Bool => visitor.visit_bool(cursor.u8()? != 0),
            Kind::I8 => visitor.visit_i8(cursor.i8()?),
            Kind::U8 => visitor.visit_u8(cursor.u8()?),
            Kind::I16 => visitor.visit_i16(cursor.i16()?),
            Kind::U16 => visitor.visit_u16(cursor.u16()?),
            Kind::I32 => visitor.visit_i32(cursor.i32()?),
            Kind::U32 => visitor.visit_u32(cursor.u32()?),
            Kind::I64 => visitor.visit_i64(cursor.i64()?),
            Kind::U64 => visitor.visit_u64(cursor.u64()?),
            Kind::F32 => visitor.visit_f32(cursor.f32()?),
            Kind::F64 => visitor.visit_f64(cursor.f64()?),
            Kind::Text => visitor.visit_borrowed_str(cursor.text()?),
            Kind::Struct(index) => visitor.visit_map(Fields {
                schema: self.schema,
                cursor,
                fields: self.schema.structs[index].iter(),
                next: None,
            }),
        }
    }

    /// Bytes at once, without a call for each.
    fn deserialize_bytes<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Failure> {
        if self.kind != Kind::U8 || self.count == Count::One {
            return self.deserialize_any(visitor);
        }
        let count = self.elements()?;
        visitor.visit_borrowed_bytes(self.cursor.take(count)?)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.skip()?;
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string
        unit unit_struct seq tuple tuple_struct map struct enum identifier
    }
}

struct Elements<'a, 'de> {
    schema: &'de Schema,
    cursor: &'a mut Cursor<'de>,
    kind: Kind,
    left: usize,
}

impl<'de> SeqAccess<'de> for Elements<'_, 'de> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let value = Value { schema: self.schema, cursor: &mut *self.cursor, kind: self.kind, count: Count::One };
        seed.deserialize(value).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

struct Fields<'a, 'de> {
    schema: &'de Schema,
    cursor: &'a mut Cursor<'de>,
    fields: std::slice::Iter<'de, Field>,
    next: Option<&'de Field>,
}

impl<'de> MapAccess<'de> for Fields<'_, 'de> {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failure> {
        self.next = self.fields.next();
        self.next.map(|field| seed.deserialize(BorrowedStrDeserializer::new(&field.name))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failure> {
        let field = self.next.take().ok_or_else(|| Failure("a value without its name".into()))?;
        let value = Value { schema: self.schema, cursor: &mut *self.cursor, kind: field.kind, count: field.count };
        let named = |reason: Failure| Failure(format!("{}: {reason}", field.name));
        seed.deserialize(value).map_err(named)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.fields.len())
    }
}
