//! Finds what can still be read of a broken table: by id, jumping over pages that are not there.

use super::read::Key;
use crate::bag::storage::Order;
use rusqlite::Connection;

/// Ids of the messages that can be found within the time span, and the bytes of the pages between them that cannot be read.
/// 16 bytes of memory a message.
pub(super) fn keys(connection: &Connection, order: Order, span_ns: (i64, i64)) -> (Vec<Key>, u64) {
    let mut keys = Vec::new();
    let mut walk = Walk { connection, next: i64::MIN, jumps: 0 };
    while let Some((id, time)) = walk.next() {
        if (span_ns.0..=span_ns.1).contains(&time) {
            keys.push(if order == Order::Time { (time, id) } else { (id, id) });
        }
    }
    let page: u64 =
        connection.pragma_query_value(None, "page_size", |row| row.get::<_, i64>(0)).map_or(0, |size| size as u64);
    (keys, walk.jumps * page)
}

struct Walk<'a> {
    connection: &'a Connection,
    /// Smallest id that has not been looked at.
    next: i64,
    /// Stretches that could not be read; each is one page or more.
    jumps: u64,
}

impl Walk<'_> {
    /// The next message with its time.
    fn next(&mut self) -> Option<(i64, i64)> {
        match self.first_from(self.next) {
            Ok(found) => self.take(found),
            Err(()) => {
                self.jumps += 1;
                let found = self.jump()?;
                self.take(Some(found))
            }
        }
    }

    fn take(&mut self, found: Option<(i64, i64)>) -> Option<(i64, i64)> {
        let (id, time) = found?;
        self.next = id.checked_add(1)?;
        Some((id, time))
    }

    fn first_from(&self, id: i64) -> Result<Option<(i64, i64)>, ()> {
        let found = self
            .connection
            .prepare_cached("SELECT id, timestamp FROM messages WHERE id >= ?1 ORDER BY id LIMIT 1")
            .and_then(|mut statement| {
                statement.query_row([id], |row| Ok((row.get(0)?, row.get::<_, i64>(1).unwrap_or_default())))
            });
        match found {
            Ok(found) => Ok(Some(found)),
            Err(rusqlite::Error::QueryReturnedNoRows) => Ok(None),
            Err(_) => Err(()),
        }
    }

    /// The first message behind a stretch that cannot be read: doubles the step until something is found, then closes in.
    fn jump(&mut self) -> Option<(i64, i64)> {
        let mut bad = self.next.max(0);
        let mut step = 1;
        let mut good = loop {
            let id = bad.checked_add(step)?;
            match self.first_from(id) {
                Ok(Some(found)) => break (id, found),
                Ok(None) => return None,
                Err(()) => {
                    bad = id;
                    step = step.checked_mul(2)?;
                }
            }
        };
        while 1 < good.0 - bad {
            let middle = bad + (good.0 - bad) / 2;
            match self.first_from(middle) {
                Ok(Some(found)) => good = (middle, found),
                _ => bad = middle,
            }
        }
        Some(good.1)
    }
}
