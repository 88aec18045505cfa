//! Shared memory of Fast DDS that killed children left behind. With localhost discovery its shared-memory transport is
//! always on, and a process that is killed cannot clean up; the names carry no process.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const FOLDER: &str = "/dev/shm";

/// What was there before the children started.
pub(super) struct Sweep(BTreeSet<String>);

impl Sweep {
    /// Remembers what is there.
    pub(super) fn new() -> Self {
        Self(segments())
    }

    /// Removes what has come since and no process maps any more. Call it once the children are gone.
    pub(super) fn sweep(&self) {
        let left: Vec<String> = segments().difference(&self.0).cloned().collect();
        if left.is_empty() {
            return;
        }
        let maps: Vec<String> = fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| fs::read_to_string(entry.path().join("maps")).ok())
            .collect();
        for name in left {
            let path = format!("{FOLDER}/{name}");
            let mapped = maps.iter().any(|map| map.lines().any(|line| line.ends_with(&path)));
            if !mapped && fs::remove_file(Path::new(&path)).is_ok() {
                tracing::debug!("removed {path}");
            }
        }
    }
}

fn segments() -> BTreeSet<String> {
    let names = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    names.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| name.contains("fastrtps")).collect()
}
