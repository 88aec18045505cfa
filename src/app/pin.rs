//! Which core a process may use.

use crate::error::{Error, Result};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

/// Keeps this process, with the threads that it has and will have, on a core, counted from 0; any for -1.
pub(super) fn pin(core: i64) -> Result<()> {
    let Ok(core) = usize::try_from(core) else { return Ok(()) };
    let tasks = std::fs::read_dir("/proc/self/task").map_err(Error::io("/proc/self/task"))?;
    for task in tasks.flatten() {
        let id = task.file_name().to_string_lossy().parse().ok().and_then(Pid::from_raw);
        // A thread that is gone needs no core.
        if id.is_some() {
            on(id, core)?;
        }
    }
    Ok(())
}

/// Keeps the calling thread on a core, counted from 0; any for -1.
pub(super) fn pin_thread(core: i64) -> Result<()> {
    usize::try_from(core).map_or(Ok(()), |core| on(None, core))
}

/// The core of a rollout and its simulator, which take turns: the same for both, -1 unless they shall be pinned.
pub(super) fn of_pair(pinned: bool, index: usize) -> i64 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if pinned { (index % cores) as i64 } else { -1 }
}

fn on(thread: Option<Pid>, core: usize) -> Result<()> {
    let refused = |why: &str| Error::invalid(format!("core = {core} cannot be used: {why}"));
    if CpuSet::MAX_CPU <= core {
        return Err(refused("there are never so many"));
    }
    let mut set = CpuSet::new();
    set.set(core);
    match sched_setaffinity(thread, &set) {
        Err(rustix::io::Errno::SRCH) | Ok(()) => Ok(()),
        Err(error) => Err(refused(&error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> String {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        line.trim().to_owned()
    }

    #[test]
    fn a_thread_stays_on_its_core_and_a_missing_core_is_named() {
        let first = allowed().split([',', '-']).next().unwrap().to_owned();
        let own = first.clone();
        std::thread::spawn(move || {
            let before = allowed();
            pin_thread(-1).unwrap();
            assert_eq!(allowed(), before);
            pin_thread(own.parse().unwrap()).unwrap();
            assert_eq!(allowed(), own);
        })
        .join()
        .unwrap();
        for core in [CpuSet::MAX_CPU - 1, CpuSet::MAX_CPU] {
            let told = pin_thread(core as i64).unwrap_err().to_string();
            assert!(told.starts_with(&format!("core = {core} cannot be used: ")), "{told}");
        }
    }

    #[test]
    fn pairs_share_the_cores_in_turn() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        assert_eq!(of_pair(false, 3), -1);
        assert_eq!([0, cores, 2 * cores].map(|index| of_pair(true, index)), [0, 0, 0]);
    }
}
