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
            if !mapped(&name, &maps) && fs::remove_file(Path::new(&path)).is_ok() {
                tracing::debug!("removed {path}");
            }
        }
    }
}

/// Whether a process maps the file, or the segment or port that it guards: what is guarded is mapped, a guard never is.
/// Without its guard, Fast DDS takes a segment for one of the dead and removes it.
fn mapped(name: &str, maps: &[String]) -> bool {
    let guarded = format!("{FOLDER}/{}", name.strip_suffix("_el").unwrap_or(name));
    maps.iter().any(|map| map.lines().any(|line| line.ends_with(&guarded)))
}

fn segments() -> BTreeSet<String> {
    let names = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    names.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| name.contains("fastrtps")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_of_a_segment_that_lives_is_left_alone() {
        let maps =
            ["7f0 rw-s 00:19 4 /dev/shm/fastrtps_0a1b\n7f1 rw-s 00:19 5 /dev/shm/sem.fastrtps_port7_mutex\n".into()];
        for name in ["fastrtps_0a1b", "fastrtps_0a1b_el", "sem.fastrtps_port7_mutex"] {
            assert!(mapped(name, &maps), "{name}");
        }
        for name in ["fastrtps_0a1", "fastrtps_0a1_el", "fastrtps_port7_el"] {
            assert!(!mapped(name, &maps), "{name}");
        }
    }
}
