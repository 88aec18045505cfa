//! What moves an arm runs before all else on the machine.

use crate::error::{Error, Result};

/// Gives every thread of this process, and those that it will start, this priority of SCHED_FIFO, 1 to 99, as ros2_control's
/// controller manager gives itself; 0 leaves them as they are. Refused where the machine does not permit it.
pub(super) fn prioritise(priority: u32) -> Result<()> {
    if priority == 0 {
        return Ok(());
    }
    let tasks = std::fs::read_dir("/proc/self/task").map_err(Error::io("/proc/self/task"))?;
    for task in tasks.flatten() {
        if let Ok(thread) = task.file_name().to_string_lossy().parse() {
            first_in_first_out(thread, priority)?;
        }
    }
    Ok(())
}

/// The same for the calling thread, and those that it will start.
pub(super) fn prioritise_thread(priority: u32) -> Result<()> {
    first_in_first_out(0, priority)
}

#[expect(
    unsafe_code,
    reason = "no safe crate sets the scheduler of another thread of the process; the call reads one struct"
)]
fn first_in_first_out(thread: libc::pid_t, priority: u32) -> Result<()> {
    let parameters = libc::sched_param { sched_priority: priority as libc::c_int };
    // SAFETY: the struct outlives the call, which keeps nothing of it.
    if unsafe { libc::sched_setscheduler(thread, libc::SCHED_FIFO, &parameters) } == 0 {
        return Ok(());
    }
    match std::io::Error::last_os_error() {
        // A thread that is gone needs no priority.
        gone if gone.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        why => Err(Error::invalid(format!(
            "policy.realtime_priority = {priority} is refused ({why}): beside other work commands may come late; permit it (rtprio in \
             /etc/security/limits.d, or docker run --cap-add=SYS_NICE), or give policy.realtime_priority: 0"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// Priority and scheduler of each thread, as proc(5) numbers the fields of `stat`.
    fn schedulers() -> Vec<(u32, u32)> {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let stat = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("stat")).unwrap();
        let fields = |stat: String| -> Vec<String> {
            stat.rsplit_once(')').unwrap().1.split_whitespace().map(str::to_owned).collect()
        };
        tasks.map(stat).map(fields).map(|fields| (fields[37].parse().unwrap(), fields[38].parse().unwrap())).collect()
    }

    #[test]
    fn every_thread_is_first_where_that_is_permitted_and_else_it_is_said_how_to() {
        let (stay, stop) = channel::<()>();
        let before = std::thread::spawn(move || stop.recv());
        let asked = std::thread::spawn(|| {
            prioritise(0).unwrap();
            assert!(schedulers().iter().all(|&(priority, _)| priority == 0));
            let outcome = prioritise(7);
            // one that is started later
            (outcome, std::thread::spawn(schedulers).join().unwrap())
        });
        let (outcome, schedulers) = asked.join().unwrap();
        match outcome {
            Ok(()) => assert!(schedulers.iter().all(|&of| of == (7, libc::SCHED_FIFO as u32)), "{schedulers:?}"),
            Err(sentence) => assert!(sentence.to_string().contains("policy.realtime_priority = 7"), "{sentence}"),
        }
        assert!(3 <= schedulers.len());
        drop(stay);
        let _gone = before.join();
    }
}
