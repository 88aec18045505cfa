//! Opens a database without changing it, and without losing what its write-ahead log holds.

use crate::bag::damage::Damage;
use crate::bag::storage::unpack_limit;
use crate::error::{Error, Result};
use rusqlite::limits::Limit;
use rusqlite::{Connection, Error as Sql, OpenFlags};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A database file, or a copy of it.
#[derive(Debug)]
pub(super) struct Base {
    path: PathBuf,
    /// Of the user's file.
    pub(super) bytes: u64,
    head: Option<Head>,
    /// A copy beside a copy of its log, to be worked in; or without the last page where that is not whole.
    copy: Option<TempDir>,
}

/// Sizes in the header of a database (sqlite.org/fileformat2.html, 1.3).
#[derive(Clone, Copy, Debug)]
struct Head {
    page: u64,
    pages: u64,
}

impl Head {
    fn read(path: &Path) -> Option<Self> {
        let mut head = [0; 100];
        File::open(path).ok()?.read_exact_at(&mut head, 0).ok()?;
        let page = match u16::from_be_bytes([head[16], head[17]]) {
            1 => 65536,
            size => u64::from(size),
        };
        let counted = head[24..28] == head[92..96]; // else an old writer has not kept the count
        let pages = u64::from(u32::from_be_bytes([head[28], head[29], head[30], head[31]]));
        (counted && page.is_power_of_two()).then_some(Self { page, pages })
    }
}

impl Base {
    pub(super) fn new(stored: &Path) -> Result<Self> {
        let bytes = fs::metadata(stored).map_err(Error::io(stored))?.len();
        let logs: Vec<PathBuf> =
            ["-wal", "-journal"].iter().map(|suffix| beside(stored, suffix)).filter(|log| is_filled(log)).collect();
        let head = Head::read(stored);
        // SQLite would read the rest of a page that is not whole as zeros.
        let whole = head.map_or(bytes, |head| bytes - bytes % head.page);
        if logs.is_empty() && whole == bytes {
            return Ok(Self { path: stored.to_owned(), bytes, head, copy: None });
        }
        let folder = TempDir::with_prefix("handoff-bag-").map_err(Error::io(std::env::temp_dir()))?;
        let place = |file: &Path| folder.path().join(file.file_name().unwrap_or_default());
        for log in &logs {
            fs::copy(log, place(log)).map_err(Error::io(log))?;
        }
        let path = place(stored);
        let (file, copy) =
            (File::open(stored).map_err(Error::io(stored))?, File::create(&path).map_err(Error::io(&path))?);
        io::copy(&mut file.take(whole), &mut &copy).map_err(Error::io(&path))?;
        Ok(Self { path, bytes, head, copy: Some(folder) })
    }

    /// A connection that never writes to the user's file. A shortened file is opened all the same: its missing pages are
    /// found when they are read.
    pub(super) fn connect(&self) -> Result<Connection, Sql> {
        let connection = if self.copy.is_some() {
            Connection::open_with_flags(
                &self.path,
                OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
            )?
        } else {
            // Without a log nobody writes: no lock is needed, and a folder that cannot be written to will do.
            let name = self.path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            Connection::open_with_flags(format!("file:{name}?immutable=1"), flags)?
        };
        let limit = i32::try_from(unpack_limit(self.bytes)).unwrap_or(i32::MAX);
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, limit)?;
        connection.pragma_update(None, "writable_schema", true)?;
        connection.pragma_update(None, "cache_size", -16384)?; // KiB
        Ok(connection)
    }

    /// Bytes that the header promises and the file has not.
    pub(super) fn missing(&self, name: &Path) -> Option<Damage> {
        let missing = self.head.map_or(0, |head| (head.page * head.pages).saturating_sub(self.bytes));
        let what = "the database is shorter than it says".into();
        (0 < missing).then(|| Damage {
            file: name.to_owned(),
            offset: self.bytes,
            what,
            bytes: missing,
            messages: None,
        })
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn is_filled(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| 0 < metadata.len())
}

/// What SQLite said, without the statement.
pub(super) fn sentence(error: &Sql) -> String {
    match error {
        Sql::SqlInputError { msg, .. } => msg.clone(),
        Sql::SqliteFailure(_, Some(message)) => message.clone(),
        error => error.to_string(),
    }
}
