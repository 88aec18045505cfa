//! The messages of a database in order, a few megabytes at a time.

use super::{Sqlite, salvage, whole};
use crate::bag::damage::Damage;
use crate::bag::storage::{Order, Raw, Selection, Stream};
use crate::error::Result;
use bytes::Bytes;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error as Sql, Row};
use std::collections::VecDeque;

/// Payload that is read at once.
const BATCH_BYTES: usize = 4 << 20;

/// Where a message stands: (time, id), or (id, id) in the order of recording.
pub(super) type Key = (i64, i64);

/// How messages are fetched.
enum Source {
    /// In order, from behind the last one.
    Ordered(Connection),
    /// One by one, those that can still be found.
    Salvage(Connection, VecDeque<Key>),
    Done,
}

pub(super) struct Messages {
    file: Sqlite,
    selection: Selection,
    source: Source,
    batch: VecDeque<Raw>,
    last: Option<Key>,
    damage: Vec<Damage>,
    unfit: Unfit,
}

/// Rows that are no messages.
#[derive(Default)]
struct Unfit {
    messages: u64,
    bytes: u64,
}

impl Messages {
    pub(super) fn new(file: Sqlite, selection: Selection) -> Self {
        let mut damage = file.look.damage.clone();
        let source = match file.base.connect() {
            Ok(connection) => Source::Ordered(connection),
            Err(error) => {
                damage.push(whole(&file.path, file.base.bytes, &error));
                Source::Done
            }
        };
        let (batch, unfit) = (VecDeque::new(), Unfit::default());
        let mut messages = Self { file, selection, source, batch, last: None, damage, unfit };
        if !messages.file.sorted && messages.selection.order == Order::Time {
            messages.salvage(None);
        }
        messages
    }

    /// Goes on message by message. `error`: why.
    fn salvage(&mut self, error: Option<Sql>) {
        let Source::Ordered(connection) = std::mem::replace(&mut self.source, Source::Done) else { return };
        let (mut keys, unread) = salvage::keys(&connection, self.selection.order, self.selection.span_ns);
        keys.retain(|key| self.last.is_none_or(|last| last < *key));
        keys.sort_unstable();
        if error.is_some() || 0 < unread {
            let why = error.map(|error| format!(" ({})", super::sentence(&error))).unwrap_or_default();
            let what = format!("pages of the database cannot be read{why}");
            self.damage.push(Damage { file: self.file.path.clone(), offset: 0, what, bytes: unread, messages: None });
        }
        self.source = Source::Salvage(connection, keys.into());
    }

    fn fill(&mut self) {
        while self.batch.is_empty() {
            match &mut self.source {
                Source::Done => return,
                Source::Ordered(_) => match self.ordered() {
                    Ok(true) => {}
                    Ok(false) => self.end(),
                    Err(error) => self.salvage(Some(error)),
                },
                Source::Salvage(connection, keys) => {
                    let Some(key) = keys.pop_front() else {
                        self.end();
                        return;
                    };
                    let found = connection
                        .prepare_cached("SELECT id, timestamp, topic_id, data FROM messages WHERE id = ?1")
                        .and_then(|mut statement| {
                            statement.query_row([key.1], |row| {
                                let (_, item) = take(row, &self.file.ids, &mut self.unfit);
                                let wanted = item.filter(|item| self.selection.wants(item.topic, item.time_ns));
                                Ok(wanted.map(|item| item.raw(Bytes::copy_from_slice(item.data))))
                            })
                        });
                    match found {
                        Ok(raw) => self.batch.extend(raw),
                        Err(_) => self.unfit.messages += 1,
                    }
                }
            }
        }
    }

    /// Reads a batch; false at the end.
    fn ordered(&mut self) -> Result<bool, Sql> {
        let Source::Ordered(connection) = &self.source else { return Ok(false) };
        let (from, to) = self.selection.span_ns;
        let time = self.selection.order == Order::Time;
        let sql = if time {
            "SELECT id, timestamp, topic_id, data FROM messages \
             WHERE (timestamp, id) > (?1, ?2) AND timestamp <= ?3 AND typeof(timestamp) = 'integer' ORDER BY timestamp, id"
        } else {
            "SELECT id, timestamp, topic_id, data FROM messages WHERE id > ?2 AND ?1 IS NOT NULL AND ?3 IS NOT NULL ORDER BY id"
        };
        let start = if time { (from.saturating_sub(1), i64::MAX) } else { (i64::MIN, i64::MIN) };
        let after = self.last.unwrap_or(if from == i64::MIN { (i64::MIN, i64::MIN) } else { start });
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query([after.0, after.1, to])?;
        let (mut payload, mut found, mut seen) = (Vec::new(), Vec::new(), 0);
        let end = loop {
            if BATCH_BYTES < seen {
                break Ok(true);
            }
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => break Ok(0 < seen),
                Err(error) => break Err(error),
            };
            let ((time_ns, id), item) = take(row, &self.file.ids, &mut self.unfit);
            let key = (if time { time_ns } else { id }, id);
            if self.last.is_some_and(|last| key <= last) {
                break Err(Sql::InvalidColumnName("ids that do not grow".into()));
            }
            self.last = Some(key);
            seen += 64;
            if let Some(item) = item.filter(|item| self.selection.wants(item.topic, item.time_ns)) {
                let begin = payload.len();
                payload.extend_from_slice(item.data);
                seen += item.data.len();
                found.push((item.raw(Bytes::new()), begin..payload.len()));
            }
        };
        let payload = Bytes::from(payload);
        self.batch.extend(found.into_iter().map(|(raw, range)| Raw { data: payload.slice(range), ..raw }));
        end
    }

    fn end(&mut self) {
        self.source = Source::Done;
        let Unfit { messages, bytes } = std::mem::take(&mut self.unfit);
        if 0 < messages {
            let what = "rows that are no messages of a topic".into();
            let damage = Damage { file: self.file.path.clone(), offset: 0, what, bytes, messages: Some(messages) };
            self.damage.push(damage);
        }
    }
}

/// A row that is a message.
struct Item<'a> {
    topic: usize,
    time_ns: i64,
    data: &'a [u8],
}

impl Item<'_> {
    fn raw(&self, data: Bytes) -> Raw {
        Raw { topic: self.topic, time_ns: self.time_ns, sent_ns: self.time_ns, data }
    }
}

/// The key of a row, (time, id), and its message unless it is none. `ids`: of the topics, in order.
fn take<'a>(row: &'a Row<'_>, ids: &[i64], unfit: &mut Unfit) -> (Key, Option<Item<'a>>) {
    let id = row.get(0).unwrap_or_default();
    let time = row.get::<_, i64>(1);
    let topic = row.get::<_, i64>(2).ok().and_then(|topic| ids.binary_search(&topic).ok());
    let data = match row.get_ref(3) {
        Ok(ValueRef::Blob(data)) => Some(data),
        _ => None,
    };
    match (time, topic, data) {
        (Ok(time_ns), Some(topic), Some(data)) => ((time_ns, id), Some(Item { topic, time_ns, data })),
        (time, _, data) => {
            unfit.messages += 1;
            unfit.bytes += data.map_or(0, |data| data.len() as u64);
            ((time.unwrap_or(i64::MIN), id), None)
        }
    }
}

impl Stream for Messages {
    fn next(&mut self) -> Result<Option<Raw>> {
        if self.batch.is_empty() {
            self.fill();
        }
        Ok(self.batch.pop_front())
    }

    fn damage(&self) -> &[Damage] {
        &self.damage
    }
}
