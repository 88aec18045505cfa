use super::*;
use std::path::Path;
use std::{fs, io};

fn names(run: &RunDir) -> Vec<u64> {
    run.checkpoints().unwrap().into_iter().map(|(updates, _)| updates).collect()
}

#[test]
fn a_run_folder_is_named_and_laid_out_as_documented() {
    let parent = TempDir::new().unwrap();
    let made = run(&parent);
    assert_eq!(made.path(), parent.path().join("reach__hs_ppo__1__1700000000"));
    assert!(made.path().join("checkpoints").is_dir() && made.path().join("logs").is_dir());
    let opened = RunDir::open(made.path()).unwrap();
    assert_eq!(opened.config_yaml().unwrap(), "learner: {}\n");
    let now = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let again = RunDir::create(parent.path(), "reach", "hs_ppo", 1, now, "").unwrap_err().to_string();
    assert!(again.contains("exists already"), "{again}");
}

#[test]
fn opening_what_is_no_run_folder_says_why() {
    let parent = TempDir::new().unwrap();
    let error = |path: &Path| RunDir::open(path).unwrap_err().to_string();
    assert!(error(&parent.path().join("gone")).starts_with("there is no run folder"));
    assert!(error(parent.path()).ends_with("is no run folder: it has no config.yaml"));
    let file = parent.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(error(&file).ends_with("is a file; a run folder was expected"));
}

#[test]
fn what_the_disk_refuses_is_told_in_a_sentence() {
    let told = |kind: io::ErrorKind| Error::of_run("/a/b")(kind.into()).to_string();
    assert_eq!(
        told(io::ErrorKind::ReadOnlyFilesystem),
        "/a/b is on a read-only file system; a run folder must be writable"
    );
    assert!(told(io::ErrorKind::PermissionDenied).contains("this user may not open /a/b"));
    let full = disk::write(Path::new("/dev/full"), b"x", &|| {}).unwrap_err();
    let full = Error::of_run("/dev/full")(full).to_string();
    assert!(full.contains("no space left to write /dev/full"), "{full}");
}

#[test]
fn a_long_save_tells_that_it_gets_on() {
    let parent = TempDir::new().unwrap();
    let path = parent.path().join("replay");
    let on_disk = std::cell::RefCell::new(Vec::new());
    let bytes: Vec<u8> = (0..2 * disk::PIECE + 5).map(|at| (at / 1000) as u8).collect();
    let written = || on_disk.borrow_mut().push(fs::metadata(&path).unwrap().len() as usize);
    disk::write(&path, &bytes, &written).unwrap();
    assert_eq!(*on_disk.borrow(), [disk::PIECE, 2 * disk::PIECE, 2 * disk::PIECE + 5]);
    assert!(fs::read(&path).unwrap() == bytes);
    let (run, told) = (run(&parent), std::cell::Cell::new(0));
    super::super::save(&run, &checkpoint(10, None), 2, &|| told.set(told.get() + 1)).unwrap();
    assert_eq!(told.get(), 3, "policy, learner, manifest");
}

#[test]
fn each_start_of_the_learner_is_one_life() {
    let parent = TempDir::new().unwrap();
    let run = run(&parent);
    assert_eq!(run.life().unwrap(), 0);
    assert_eq!(run.start_life().unwrap(), 1);
    assert_eq!(RunDir::open(run.path()).unwrap().start_life().unwrap(), 2);
    assert_eq!(run.life().unwrap(), 2);
    fs::write(run.path().join("life"), "two").unwrap();
    assert!(run.start_life().unwrap_err().to_string().contains("holds `two`"));
    fs::write(run.path().join("life"), u32::MAX.to_string()).unwrap();
    assert!(run.start_life().unwrap_err().to_string().contains("all its 2^32 - 1 lives"));
}

#[test]
fn a_folder_is_held_by_one_learner_at_a_time() {
    let parent = TempDir::new().unwrap();
    let run = run(&parent);
    let held = run.hold().unwrap();
    let said = RunDir::open(run.path()).unwrap().hold().unwrap_err().to_string();
    assert!(said.contains(&run.path().display().to_string()) && said.contains("another process"), "{said}");
    drop(held);
    run.hold().unwrap();
}

#[test]
fn learners_that_start_at_once_get_different_lives() {
    let parent = TempDir::new().unwrap();
    let run = run(&parent);
    let mut lives: Vec<u32> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..16).map(|_| scope.spawn(|| run.start_life().unwrap())).collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    lives.sort_unstable();
    assert_eq!(lives, (1..=16).collect::<Vec<_>>());
}

#[test]
fn the_newest_are_kept_and_the_best_is_never_deleted() {
    let parent = TempDir::new().unwrap();
    let run = run(&parent);
    assert_eq!(run.checkpoint(Which::Best).unwrap(), None);
    for (updates, score) in [(10, Some(0.2)), (20, Some(0.9)), (30, None), (40, Some(0.5)), (50, Some(0.6))] {
        save(&run, &checkpoint(updates, score), 2).unwrap();
    }
    assert_eq!(names(&run), [20, 40, 50]);
    let path = |which| RunDir::resolve(run.path(), which).unwrap();
    assert!(path(Which::Newest).ends_with("0000000050") && path(Which::Best).ends_with("0000000020"));
    assert_eq!(RunDir::resolve(&path(Which::Best), Which::Newest).unwrap(), path(Which::Best));
    save(&run, &checkpoint(60, Some(0.95)), 0).unwrap();
    assert_eq!(names(&run), [60]);
}

#[test]
fn saving_the_same_updates_again_replaces_the_checkpoint() {
    let parent = TempDir::new().unwrap();
    let run = run(&parent);
    save(&run, &checkpoint(10, Some(0.2)), 2).unwrap();
    let folder = save(&run, &checkpoint(10, Some(0.3)), 2).unwrap();
    assert_eq!(load(&folder, None).unwrap().score, Some(0.3));
    assert_eq!(fs::read_dir(run.checkpoint_folder()).unwrap().count(), 1);
}

#[test]
fn a_half_written_checkpoint_is_ignored_and_cleared() {
    let parent = TempDir::new().unwrap();
    let run = run(&parent);
    save(&run, &checkpoint(10, None), 2).unwrap();
    let torn = run.checkpoint_folder().join(".writing-0000000020");
    fs::create_dir(&torn).unwrap();
    fs::write(torn.join("manifest.json"), "{").unwrap();
    assert_eq!(names(&run), [10]);
    run.start_life().unwrap();
    assert!(!torn.exists());
}

#[test]
fn a_kill_between_the_two_renames_loses_nothing() {
    let parent = TempDir::new().unwrap();
    let run = run(&parent);
    let folder = save(&run, &checkpoint(10, None), 2).unwrap();
    fs::rename(&folder, run.checkpoint_folder().join(".replaced-0000000010")).unwrap();
    run.start_life().unwrap();
    assert_eq!(load(&folder, None).unwrap(), checkpoint(10, None));
}

#[test]
fn a_full_disk_leaves_the_former_checkpoint_and_no_rubbish() {
    let parent = TempDir::new().unwrap();
    let run = run(&parent);
    save(&run, &checkpoint(10, None), 2).unwrap();
    let files = [("a", vec![1]), ("b", vec![2])];
    let full = |path: &Path, bytes: &[u8]| match path.ends_with("b") {
        true => Err(io::ErrorKind::StorageFull.into()),
        false => disk::write(path, bytes, &|| {}),
    };
    for name in ["0000000010", "0000000020"] {
        let told =
            super::super::checkpoint::install(&run.checkpoint_folder(), name, &files, full).unwrap_err().to_string();
        assert!(told.contains("no space left"), "{told}");
        assert_eq!(fs::read_dir(run.checkpoint_folder()).unwrap().count(), 1);
        assert_eq!(load(&RunDir::resolve(run.path(), Which::Newest).unwrap(), None).unwrap(), checkpoint(10, None));
    }
}
