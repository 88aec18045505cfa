//! The files of a bag: those that its metadata lists and those that lie beside them, unpacked where they must be.

use super::damage::Damage;
use super::metadata::Metadata;
use super::packed::Packed;
use crate::error::{Error, Result};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

const METADATA: &str = "metadata.yaml";

/// What belongs to a bag.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) metadata: Option<Metadata>,
    /// Files in the order of the bag, with their stated numbers of messages.
    pub(super) list: Vec<(PathBuf, Option<u64>)>,
    pub(super) damage: Vec<Damage>,
}

impl Files {
    /// Of a folder or of a single file.
    pub(super) fn find(path: &Path) -> Result<Self> {
        let kind = fs::metadata(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                Error::invalid(format!("{} does not exist: give a bag's folder or file", path.display()))
            }
            _ => Error::io(path)(error),
        })?;
        if !kind.is_dir() {
            return Ok(Self { list: vec![(path.to_owned(), None)], ..Self::default() });
        }
        let mut files = Self::default();
        match Metadata::read(&path.join(METADATA)) {
            Ok(metadata) => files.metadata = Some(metadata),
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                files.lose(
                    path.join(METADATA),
                    "it is missing: the bag is still being recorded, or its recorder was killed".into(),
                    Some(0),
                );
            }
            Err(Error::Invalid(what)) => files.lose(path.join(METADATA), what, Some(0)),
            Err(error) => return Err(error),
        }
        let listed = files.metadata.as_ref().map(|metadata| metadata.files.clone()).unwrap_or_default();
        let mut missing = Vec::new();
        for (name, count) in &listed {
            match locate(path, name) {
                Some(file) => files.list.push((file, *count)),
                None => missing.push((path.join(name), *count)),
            }
        }
        let beside = unlisted(storage_files(path)?, &files.list);
        // where not one that is listed is there, as many others are these by other names
        let renamed = files.list.is_empty() && missing.len() <= beside.len();
        for (file, count) in missing.into_iter().filter(|_| !renamed) {
            files.lose(file, "it is listed, but does not exist".into(), count);
        }
        for file in beside {
            if !renamed && !listed.is_empty() {
                files.lose(file.clone(), format!("{METADATA} does not list it; it is read all the same"), Some(0));
            }
            files.list.push((file, None));
        }
        if files.list.is_empty() && files.metadata.is_none() {
            return Err(Error::invalid(format!(
                "{} is no bag: it holds neither {METADATA} nor an .mcap or .db3 file",
                path.display()
            )));
        }
        let single = files.list.len() == 1 && listed.len() <= 1;
        if let (true, Some(metadata), Some((_, count))) = (single, &files.metadata, files.list.first_mut()) {
            count.get_or_insert(metadata.message_count);
        }
        Ok(files)
    }

    fn lose(&mut self, file: PathBuf, what: String, messages: Option<u64>) {
        self.damage.push(Damage { file, offset: 0, what, bytes: 0, messages });
    }
}

/// A listed file: by its name in the folder, or (before version 4) by its path with the folder; packed or unpacked. Never outside of the
/// folder.
fn locate(folder: &Path, name: &str) -> Option<PathBuf> {
    let name = Path::new(name).file_name()?.to_string_lossy();
    let bare = bare(&name);
    let names = [name.clone().into_owned(), bare.to_owned(), format!("{bare}.zstd"), format!("{bare}.lz4")];
    names.iter().map(|name| folder.join(name)).find(|file| file.is_file())
}

/// A file's name as if it were not packed.
fn bare(name: &str) -> &str {
    name.trim_end_matches(".zstd").trim_end_matches(".lz4")
}

/// Those that are none of the listed ones, packed or unpacked.
fn unlisted(found: Vec<PathBuf>, list: &[(PathBuf, Option<u64>)]) -> Vec<PathBuf> {
    let name = |file: &Path| bare(&file.file_name().unwrap_or_default().to_string_lossy()).to_owned();
    let listed: BTreeSet<String> = list.iter().map(|(file, _)| name(file)).collect();
    found.into_iter().filter(|file| !listed.contains(&name(file))).collect()
}

/// What looks like a storage file, in the order of the numbers at the ends of the names; of one that is there packed and unpacked, the
/// unpacked one.
fn storage_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::io(folder))? {
        let path = entry.map_err(Error::io(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = bare(&name);
        if let Some(stem) = name.strip_suffix(".mcap").or_else(|| name.strip_suffix(".db3")) {
            let number = stem.rsplit('_').next().and_then(|number| number.parse::<u64>().ok());
            found.push((number, name.to_owned(), path));
        }
    }
    found.sort(); // what is not packed comes before what is
    found.dedup_by(|(_, again, _), (_, name, _)| again == name);
    Ok(found.into_iter().map(|(.., path)| path).collect())
}

/// A file as it can be read: itself, or unpacked into a temporary one.
#[derive(Debug)]
pub(super) struct Unpacked {
    temporary: Option<NamedTempFile>,
    path: PathBuf,
    pub(super) damage: Option<Damage>,
}

impl Unpacked {
    pub(super) fn new(path: &Path) -> Result<Self> {
        match Packed::of(&front(path)?) {
            Some(packed) => unpack(path, packed),
            None => Ok(Self { temporary: None, path: path.to_owned(), damage: None }),
        }
    }

    /// Where it can be read.
    pub(super) fn path(&self) -> &Path {
        self.temporary.as_ref().map_or(&self.path, NamedTempFile::path)
    }
}

/// The first 16 bytes, or as many as there are.
pub(super) fn front(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(16).read_to_end(&mut bytes)).map_err(Error::io(path))?;
    Ok(bytes)
}

/// As much as comes out; at most 1,000 times the file and 1 GiB on disk, and a megabyte at a time in memory.
fn unpack(path: &Path, packed: Packed) -> Result<Unpacked> {
    let file = File::open(path).map_err(Error::io(path))?;
    let size = file.metadata().map_err(Error::io(path))?.len();
    let limit = size.saturating_mul(1000).saturating_add(1 << 30);
    let mut source = packed.open(BufReader::new(file)).map_err(Error::io(path))?.take(limit);
    let mut out = NamedTempFile::with_prefix("handoff-bag-").map_err(Error::io(std::env::temp_dir()))?;
    let mut buffer = vec![0; 1 << 20];
    let mut unpacked = 0;
    let what = loop {
        match source.read(&mut buffer) {
            Ok(0) if unpacked == limit => break Some(format!("it unpacks to more than {limit} bytes")),
            Ok(0) => break None,
            Ok(count) => {
                unpacked += count as u64;
                out.write_all(&buffer[..count]).map_err(Error::io(out.path().to_owned()))?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Some(format!("it unpacks to {unpacked} bytes, then not on ({error})")),
        }
    };
    let damage = what.map(|what| Damage { file: path.to_owned(), offset: 0, what, bytes: 0, messages: None });
    Ok(Unpacked { temporary: Some(out), path: path.to_owned(), damage })
}
