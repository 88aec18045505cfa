//! What processes take, read from `/proc`: memory, file descriptors, shared memory of Fast DDS, time on the processors.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where Fast DDS keeps its segments.
const SHARED: &str = "/dev/shm";
/// Between two looks: the kernel walks all mappings of a process for its memory.
const PERIOD: Duration = Duration::from_secs(2);

/// At one moment, or the most that was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Usage {
    /// Memory of all processes together, shared pages once (proportional set size) [bytes].
    pub(super) memory_bytes: u64,
    /// Open file descriptors of all processes.
    pub(super) descriptors: u64,
    /// Files of Fast DDS in `/dev/shm`.
    pub(super) shared_files: u64,
    /// Their size [bytes].
    pub(super) shared_bytes: u64,
}

impl Usage {
    /// Of these processes; one that is gone counts nothing.
    pub(super) fn look(processes: &[u32]) -> Self {
        let (shared_files, shared_bytes) = segments(Path::new(SHARED));
        Self {
            memory_bytes: processes.iter().filter_map(|&id| memory(&folder(id))).sum(),
            descriptors: processes
                .iter()
                .filter_map(|&id| Some(fs::read_dir(folder(id).join("fd")).ok()?.count() as u64))
                .sum(),
            shared_files,
            shared_bytes,
        }
    }

    /// The larger of each.
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            memory_bytes: self.memory_bytes.max(other.memory_bytes),
            descriptors: self.descriptors.max(other.descriptors),
            shared_files: self.shared_files.max(other.shared_files),
            shared_bytes: self.shared_bytes.max(other.shared_bytes),
        }
    }
}

/// Time on the processors [s], by [`thread`]s of one name together.
type Processor = BTreeMap<String, f64>;

/// Looks at processes every now and then.
#[derive(Default)]
pub(super) struct Sampler {
    first: Option<(Instant, Processor)>,
    last: Option<(Instant, Processor)>,
    most: Usage,
}

impl Sampler {
    /// Looks, if it is time to, at processes by kind; where the kind is empty, threads bear the names of actors.
    pub(super) fn look(&mut self, processes: &[(String, u32)]) {
        let now = Instant::now();
        if self.last.as_ref().is_some_and(|(last, _)| now < *last + PERIOD) {
            return;
        }
        let mut used = Processor::new();
        processes.iter().for_each(|(kind, id)| processor(kind, *id, &mut used));
        let ids: Vec<u32> = processes.iter().map(|(_, id)| *id).collect();
        self.most = self.most.max(Usage::look(&ids));
        self.first.get_or_insert_with(|| (now, used.clone()));
        self.last = Some((now, used));
    }

    /// The most of each that was seen.
    pub(super) fn usage(&self) -> Usage {
        self.most
    }

    /// Processors that were busy on average between the first look and the last, by thread.
    pub(super) fn busy(&self) -> BTreeMap<String, f64> {
        let (Some((from, before)), Some((to, after))) = (&self.first, &self.last) else { return BTreeMap::new() };
        let secs = to.duration_since(*from).as_secs_f64();
        let busy =
            |(name, used): (&String, &f64)| (name.clone(), (used - before.get(name).copied().unwrap_or(0.0)) / secs);
        after.iter().map(busy).filter(|(_, busy)| 0.0 < *busy).collect()
    }
}

/// Adds what the threads of a process have used since they started.
fn processor(kind: &str, process: u32, into: &mut Processor) {
    for task in fs::read_dir(folder(process).join("task")).into_iter().flatten().flatten() {
        let read = |file: &str| fs::read_to_string(task.path().join(file)).unwrap_or_default();
        // Documentation/scheduler/sched-stats.rst: time on a cpu, time waiting for one [ns], slices
        let Some(nanos) = read("schedstat").split(' ').next().and_then(|nanos| nanos.parse::<u64>().ok()) else {
            continue;
        };
        let name = read("comm");
        *into.entry(thread(kind, name.trim_end())).or_default() += nanos as f64 * 1e-9;
    }
}

/// What a thread counts as: an actor by its kind, `trainer`, `critic`, `ros` (conversion, executor) or `dds`.
fn thread(kind: &str, name: &str) -> String {
    match name {
        "ros" | "trainer" | "critic" => name,
        _ if name.starts_with("dds.") => "dds",
        _ if kind.is_empty() => name.trim_end_matches(|last: char| last.is_ascii_digit()),
        _ => kind,
    }
    .to_owned()
}

fn folder(process: u32) -> PathBuf {
    Path::new("/proc").join(process.to_string())
}

/// PSS [bytes].
fn memory(process: &Path) -> Option<u64> {
    pss(&fs::read_to_string(process.join("smaps_rollup")).ok()?)
}

fn pss(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

fn segments(folder: &Path) -> (u64, u64) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let of_dds = entries.filter(|entry| entry.file_name().to_string_lossy().contains("fastrtps"));
    of_dds.fold((0, 0), |(files, bytes), entry| (files + 1, bytes + entry.metadata().map_or(0, |file| file.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rollups_sum_is_read_in_bytes() {
        let rollup = "55d0c0 ---p 00000000 00:00 0 [rollup]\nRss:   2048 kB\nPss:   1024 kB\nPss_Dirty:  10 kB\n";
        assert_eq!(pss(rollup), Some(1024 * 1024));
        assert_eq!(pss("Rss: 1 kB\n"), None);
    }

    #[test]
    fn only_the_segments_of_fast_dds_count() {
        let folder = tempfile::tempdir().unwrap();
        for (name, size) in [("fastrtps_1", 10), ("sem.fastrtps_port7413_mutex", 5), ("other", 100)] {
            fs::write(folder.path().join(name), vec![0; size]).unwrap();
        }
        assert_eq!(segments(folder.path()), (2, 15));
    }

    #[test]
    fn this_process_has_memory_descriptors_and_used_a_processor() {
        let own = std::process::id();
        let usage = Usage::look(&[own, u32::MAX]);
        // Less than all memory of any machine, more than the text of this test; standard input, output and error.
        assert!((1 << 20..1 << 45).contains(&usage.memory_bytes) && 3 <= usage.descriptors, "{usage:?}");
        let mut used = Processor::new();
        processor("test", own, &mut used);
        assert_eq!(used.keys().collect::<Vec<_>>(), ["test"]);
        assert!(0.0 < used["test"]);
    }

    #[test]
    fn busy_processors_are_time_used_over_time_passed() {
        let start = Instant::now();
        let used = |sim, ros| [("sim".to_owned(), sim), ("ros".to_owned(), ros)].into();
        let mut sampler = Sampler { first: Some((start, used(1.0, 2.0))), ..Sampler::default() };
        sampler.last = Some((start + Duration::from_secs(4), used(4.0, 2.0)));
        assert_eq!(sampler.busy(), [("sim".to_owned(), 0.75)].into());
    }

    #[test]
    fn threads_are_known_by_their_names() {
        let names = ["ros", "trainer", "dds.shm.7411", "handoff", "sim-0"];
        assert_eq!(names.map(|name| thread("sim", name)), ["ros", "trainer", "dds", "sim", "sim"]);
        assert_eq!(["sim12", "rollout0", "learner"].map(|name| thread("", name)), ["sim", "rollout", "learner"]);
    }
}
