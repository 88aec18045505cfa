//! sqlite3 files of rosbag2, storage versions 1 to 4, with what a write-ahead log still holds, whole or broken.

mod open;
mod read;
mod salvage;

use super::damage::Damage;
use super::qos;
use super::storage::{Definition, Look, Selection, Stream, Topic};
use crate::error::Result;
use open::{Base, sentence};
use rusqlite::{Connection, Error as Sql};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A sqlite3 file that has been looked at.
#[derive(Clone, Debug)]
pub(super) struct Sqlite {
    path: PathBuf,
    base: Arc<Base>,
    look: Look,
    /// Id in the file of each topic.
    ids: Vec<i64>,
    /// Messages can be had by time without sorting them first.
    sorted: bool,
}

impl Sqlite {
    pub(super) const MAGIC: &[u8] = b"SQLite format 3\0";

    /// `path` is the file as the user knows it; `stored` where it can be read.
    pub(super) fn open(path: &Path, stored: &Path) -> Result<Self> {
        let base = Base::new(stored)?;
        let mut damage: Vec<Damage> = base.missing(path).into_iter().collect();
        let (mut look, mut ids, mut sorted) = (Look::default(), Vec::new(), false);
        match base.connect().and_then(|connection| read_topics(&connection)) {
            Ok(found) => (look.topics, ids, look.span_ns, sorted) = found,
            Err(error) => damage.push(whole(path, base.bytes, &error)),
        }
        look.damage = damage;
        Ok(Self { path: path.to_owned(), base: Arc::new(base), look, ids, sorted })
    }

    pub(super) fn look(&self) -> Look {
        self.look.clone()
    }

    pub(super) fn read(&self, selection: Selection) -> Result<Box<dyn Stream>> {
        Ok(Box::new(read::Messages::new(self.clone(), selection)))
    }
}

/// The file cannot be used at all.
fn whole(path: &Path, bytes: u64, error: &Sql) -> Damage {
    let what = format!("the database cannot be read ({})", sentence(error));
    Damage { file: path.to_owned(), offset: 0, what, bytes, messages: None }
}

type Topics = (Vec<Topic>, Vec<i64>, Option<(i64, i64)>, bool);

/// Topics with their ids, first and last time, and whether there is an index by time.
fn read_topics(connection: &Connection) -> Result<Topics, Sql> {
    let has = |table: &str, column: &str| {
        connection.query_row("SELECT count(*) FROM pragma_table_info(?1) WHERE name = ?2", [table, column], |row| {
            row.get::<_, i64>(0)
        })
    };
    let offers = if has("topics", "offered_qos_profiles")? == 1 { "offered_qos_profiles" } else { "''" };
    let hash = if has("topics", "type_description_hash")? == 1 { "type_description_hash" } else { "''" };
    let definitions = has("message_definitions", "encoded_message_definition")? == 1;
    let sql = format!("SELECT id, name, type, serialization_format, {offers}, {hash} FROM topics ORDER BY id");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let (mut topics, mut ids) = (Vec::new(), Vec::new());
    let mut known: BTreeMap<String, Option<Arc<Definition>>> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let text = |column: usize| row.get::<_, Option<String>>(column).map(Option::unwrap_or_default);
        let type_name = text(2)?;
        if definitions && !known.contains_key(&type_name) {
            known.insert(type_name.clone(), definition(connection, &type_name)?.map(Arc::new));
        }
        ids.push(row.get(0)?);
        topics.push(Topic {
            name: text(1)?,
            definition: known.get(&type_name).cloned().flatten(),
            type_name,
            format: text(3)?,
            offers: qos::parse(&text(4)?),
            type_hash: text(5)?,
        });
    }
    let span = connection.query_row(
        "SELECT (SELECT min(timestamp) FROM messages), (SELECT max(timestamp) FROM messages)",
        [],
        |row| Ok(row.get::<_, Option<i64>>(0)?.zip(row.get::<_, Option<i64>>(1)?)),
    );
    // Where they cannot be had, the file may begin and end at any time.
    let span_ns = span.unwrap_or(Some((i64::MIN, i64::MAX)));
    let indexed = connection.query_row(
        "SELECT count(*) FROM pragma_index_list('messages') AS list, pragma_index_info(list.name) AS info \
         WHERE info.seqno = 0 AND info.name = 'timestamp'",
        [],
        |row| row.get::<_, i64>(0),
    );
    Ok((topics, ids, span_ns, indexed.is_ok_and(|count| 0 < count)))
}

fn definition(connection: &Connection, type_name: &str) -> Result<Option<Definition>, Sql> {
    let sql = "SELECT encoding, encoded_message_definition FROM message_definitions WHERE topic_type = ?1 ORDER BY id";
    let found =
        connection.query_row(sql, [type_name], |row| Ok(Definition { encoding: row.get(0)?, text: row.get(1)? }));
    match found {
        Ok(definition) => Ok(Some(definition).filter(|definition| !definition.text.is_empty())),
        Err(Sql::QueryReturnedNoRows) => Ok(None),
        Err(error) => Err(error),
    }
}
