//! The notes of an audit on disk: one JSON line a note, one file a process, below `logs/audit` of the run folder.

use crate::data::audit::Note;
use crate::error::{Error, Result};
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

const FOLDER: &str = "audit";

/// Where one process writes its notes. What was written survives the process, however it ends.
#[derive(Debug)]
pub struct Audit {
    file: File,
    path: PathBuf,
}

impl Audit {
    /// A new file of this process below `logs`, the run's folder of logs.
    pub fn open(logs: &Path, node: &str) -> Result<Self> {
        let folder = logs.join(FOLDER);
        fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        let node = node.trim_matches('/').replace('/', ".");
        let path = folder.join(format!("{node}.{}.jsonl", uuid::Uuid::new_v4().simple()));
        let file = OpenOptions::new().append(true).create_new(true).open(&path).map_err(Error::io(&path))?;
        Ok(Self { file, path })
    }

    /// Writes notes, in one piece.
    pub fn write(&mut self, notes: &[Note]) -> Result<()> {
        let mut lines = Vec::new();
        for note in notes {
            serde_json::to_writer(&mut lines, note)
                .map_err(|error| Error::invalid(format!("a note cannot be written as JSON: {error}")))?;
            lines.push(b'\n');
        }
        self.file.write_all(&lines).map_err(Error::io(&self.path))
    }
}

/// The notes of all processes below `logs`, one list a process; none if there was no audit. A last line that a kill cut
/// is left out.
pub fn read(logs: &Path) -> Result<Vec<Vec<Note>>> {
    let folder = logs.join(FOLDER);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut processes = Vec::new();
    for entry in fs::read_dir(&folder).map_err(Error::io(&folder))? {
        let path = entry.map_err(Error::io(&folder))?.path();
        let text = fs::read_to_string(&path).map_err(Error::io(&path))?;
        let whole = text.rfind('\n').map_or("", |last| &text[..last]);
        let note = |(number, line): (usize, &str)| {
            serde_json::from_str(line)
                .map_err(|error| Error::invalid(format!("{}:{}: no note: {error}", path.display(), number + 1)))
        };
        processes.push(whole.lines().enumerate().map(note).collect::<Result<_>>()?);
    }
    Ok(processes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::StreamId;

    #[test]
    fn each_process_has_its_file_and_a_cut_line_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), [] as [Vec<Note>; 0]);
        let freed = |below| Note::Freed { stream: StreamId { rollout: "r0".into(), incarnation: 1 }, below };
        for life in [[freed(1), freed(2)], [freed(3), freed(4)]] {
            let mut audit = Audit::open(folder.path(), "/r0/rollout").unwrap();
            audit.write(&life[..1]).unwrap();
            audit.write(&life[1..]).unwrap();
            audit.file.write_all(b"{\"note\":\"fre").unwrap();
        }
        let mut found = read(folder.path()).unwrap();
        found.sort_by_key(|notes| notes[0] == freed(3));
        assert_eq!(found, [[freed(1), freed(2)], [freed(3), freed(4)]]);
    }
}
