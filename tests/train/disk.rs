//! Checkpoints when the learner is killed or the disk is full: the last one is whole, and the reason is one sentence.

use super::harness::{finished, handoff, metrics, train};
use handoff::run::{RunDir, Which, load};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Loads whole, manifest and hashes included.
fn newest_is_whole(run: &Path) -> u64 {
    let folder = RunDir::open(run).unwrap();
    let newest = folder.checkpoint(Which::Newest).unwrap().expect("there is a checkpoint");
    load(&newest, None).unwrap().snapshot.updates
}

#[test]
fn a_learner_killed_at_any_moment_leaves_a_whole_checkpoint_and_goes_on_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    // Every update is a checkpoint, and an update takes a few milliseconds: most kills hit a writer.
    let saves = ["--serial", "--set", "learner.save_interval=1", "--set", "learner.num_steps_per_env=8"];
    finished(train(&run, &[&saves[..], &["--env-steps", "300"]].concat()).output().unwrap());
    let mut updates = newest_is_whole(&run);
    for kill in 0..12u64 {
        let rows = metrics(&run).len();
        let resume = ["train", "--resume", run.to_str().unwrap(), "--serial", "--minutes", "0"];
        let mut child = handoff(&resume).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        // An update is recorded, and then saved: the kill comes at that moment or soon after.
        while metrics(&run).len() == rows {
            assert!(Instant::now() < deadline && child.try_wait().unwrap().is_none(), "no update after kill {kill}");
            std::thread::yield_now();
        }
        // A moment that no two kills share: a prime number of microseconds further each time.
        let moment = Instant::now() + Duration::from_micros(2_503 * kill % 30_011);
        while Instant::now() < moment {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let found = newest_is_whole(&run);
        assert!(updates <= found, "update {found} after {updates}");
        updates = found;
    }
    let resume = ["train", "--resume", run.to_str().unwrap(), "--serial", "--env-steps", "1000"];
    finished(handoff(&resume).output().unwrap());
    assert!(updates < newest_is_whole(&run), "it goes on after the last kill");
}

/// A small file system of its own, gone with this value.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new(kilobytes: u32) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={kilobytes}k");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).output();
        match mount {
            Ok(output) if output.status.success() => Some(Self(folder)),
            other => {
                eprintln!("skipped: no file system can be mounted here: {other:?}");
                None
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_is_told_in_a_sentence_and_leaves_the_last_checkpoint_whole() {
    let Some(disk) = SmallDisk::new(1024) else { return };
    let run = disk.0.path().join("run");
    let saves = ["--serial", "--set", "learner.save_interval=1", "--set", "learner.keep=1000"];
    let output = train(&run, &[&saves[..], &["--minutes", "0"]].concat()).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("there is no space left to write") && err.contains("free some and resume"), "{err}");
    assert!(!err.contains("panicked"), "{err}");
    newest_is_whole(&run);
}

#[test]
fn a_read_only_run_folder_is_refused_in_a_sentence_and_can_be_evaluated() {
    let Some(disk) = SmallDisk::new(4096) else { return };
    let run = disk.0.path().join("run");
    finished(train(&run, &["--serial", "--env-steps", "300"]).output().unwrap());
    let remount = Command::new("mount").args(["-o", "remount,ro"]).arg(disk.0.path()).status().unwrap();
    assert!(remount.success());
    let resume = ["train", "--resume", run.to_str().unwrap(), "--serial", "--env-steps", "600"];
    let output = handoff(&resume).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("read-only file system; a run folder must be writable"), "{err}");
    newest_is_whole(&run);
    finished(handoff(&["eval", run.to_str().unwrap(), "--episodes", "10"]).output().unwrap());
}
