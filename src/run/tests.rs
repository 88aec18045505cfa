use super::*;
use crate::config::Config;
use crate::contract::{ActionMeaning, Architecture, Contract, Field, Network, Normaliser, Options, Snapshot, Told};
use crate::error::Error;
use crate::robot::Robot;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tempfile::TempDir;
use uuid::Uuid;

fn contract() -> Contract {
    Contract {
        robot: Robot::Panda,
        joints: Robot::Panda.joint_names().to_vec(),
        task: "reach".into(),
        observation: vec![Field { name: "joint_position_rad".into(), len: 7 }, Field { name: "goal_m".into(), len: 3 }],
        action: ActionMeaning::JointDelta { scale_rad: 0.08 },
        control_period_secs: 1.0 / 30.0,
        options: Options { count: 2, min_steps: 2, max_steps: 50 },
        network: Network { architecture: Architecture::OnPolicy, hidden: vec![6, 5] },
        told: Told { position_noise_rad: 1e-3, ..Told::default() },
    }
}

fn checkpoint(updates: u64, score: Option<f64>) -> Checkpoint {
    let contract = Arc::new(contract());
    let floats = contract.layout().len();
    let parameters: Vec<f32> = (0..floats).map(|i| (i as f32 + updates as f32).sin() / 3.0).collect();
    let normaliser = Normaliser {
        mean: (0..10).map(|i| i as f32 / 7.0).collect(),
        std: (1..11).map(|i| i as f32 / 3.0).collect(),
        clip: f32::INFINITY,
        count: 1.0 / 3.0,
    };
    let snapshot = Snapshot {
        run: Uuid::from_u128(0x1234),
        life: 3,
        version: u64::MAX,
        updates,
        env_steps: updates * 2048,
        random_warmup: true,
        contract,
        normaliser,
        parameters: parameters.into(),
    };
    let mut state = LearnerState::default();
    state.floats.insert("adam.m".into(), (0..floats).map(|i| 1e-30 * i as f32).collect());
    state.floats.insert("empty".into(), Vec::new());
    state.doubles.insert("return.variance".into(), vec![0.1 + 0.2, -0.0, 1e300]);
    let learner = serde_json::json!({"admission": {"r0#01": {"next": u64::MAX}}, "ratio": 0.1 + 0.2});
    Checkpoint { snapshot, config: Config::default(), score, learner, state }
}

fn run(parent: &TempDir) -> RunDir {
    let now = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    RunDir::create(parent.path(), "reach", "hs_ppo", 1, now, "learner: {}\n").unwrap()
}

fn saved(parent: &TempDir) -> std::path::PathBuf {
    save(&run(parent), &checkpoint(40, Some(0.5)), 3).unwrap()
}

fn names(run: &RunDir) -> Vec<u64> {
    run.checkpoints().unwrap().into_iter().map(|(updates, _)| updates).collect()
}

/// Copies a checkpoint's folder and changes one file of the copy.
fn with_changed(folder: &Path, file: &str, bytes: &[u8]) -> TempDir {
    let copy = TempDir::new().unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
    }
    fs::write(copy.path().join(file), bytes).unwrap();
    copy
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
    let told = |kind: io::ErrorKind| disk::explain(Path::new("/a/b"), kind.into()).to_string();
    assert_eq!(
        told(io::ErrorKind::ReadOnlyFilesystem),
        "/a/b is on a read-only file system; a run folder must be writable"
    );
    assert!(told(io::ErrorKind::PermissionDenied).contains("this user may not open /a/b"));
    let full = disk::write(Path::new("/dev/full"), b"x").unwrap_err();
    let full = disk::explain(Path::new("/dev/full"), full).to_string();
    assert!(full.contains("no space left to write /dev/full"), "{full}");
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
fn a_checkpoint_comes_back_bit_by_bit() {
    let parent = TempDir::new().unwrap();
    let folder = saved(&parent);
    assert!(folder.ends_with("checkpoints/0000000040"));
    let (before, after) = (checkpoint(40, Some(0.5)), load(&folder, Some(&contract())).unwrap());
    assert_eq!(before, after);
    assert_eq!(before.snapshot.hash(), after.snapshot.hash());
    assert_eq!(after.state.doubles["return.variance"][1].to_bits(), (-0.0f64).to_bits());
    assert_eq!(load_snapshot(&folder, None).unwrap(), before.snapshot);
}

#[test]
fn the_same_checkpoint_is_the_same_bytes() {
    let (a, b) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (a, b) = (saved(&a), saved(&b));
    for file in ["policy.safetensors", "learner.safetensors", "manifest.json"] {
        assert_eq!(fs::read(a.join(file)).unwrap(), fs::read(b.join(file)).unwrap(), "{file}");
    }
}

#[test]
fn tensors_are_named_and_shaped_as_the_layout_says() {
    let parent = TempDir::new().unwrap();
    let bytes = fs::read(saved(&parent).join("policy.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(file.tensor("actor.1.weight").unwrap().shape(), [5, 6]);
    assert_eq!(file.tensor("option.1.log_std").unwrap().shape(), [7]);
    let first = file.tensor("actor.0.weight").unwrap();
    assert_eq!(first.shape(), [6, 10]);
    // parameters[i] = sin(i + 40) / 3, row-major from offset 0
    assert_eq!(f32::from_le_bytes(first.data()[44..48].try_into().unwrap()), (11.0f32 + 40.0).sin() / 3.0);
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let parent = TempDir::new().unwrap();
    let folder = saved(&parent);
    for file in ["policy.safetensors", "learner.safetensors", "manifest.json"] {
        let bytes = fs::read(folder.join(file)).unwrap();
        for length in (0..bytes.len()).step_by(64).chain([bytes.len() - 1]) {
            let copy = with_changed(&folder, file, &bytes[..length]);
            let told = load(copy.path(), None).unwrap_err().to_string();
            assert!(told.contains("cut"), "{file} cut at {length}: {told}");
        }
    }
}

#[test]
fn the_tensor_reader_survives_a_cut_without_the_hash_to_guard_it() {
    let parent = TempDir::new().unwrap();
    let folder = saved(&parent);
    let policy = fs::read(folder.join("policy.safetensors")).unwrap();
    let learner = fs::read(folder.join("learner.safetensors")).unwrap();
    for length in 0..policy.len() {
        assert!(tensors::decode_policy(&policy[..length], &contract()).is_err());
    }
    for length in 0..learner.len() {
        assert!(tensors::decode_learner(&learner[..length]).is_err());
    }
}

#[test]
fn an_edited_file_is_refused() {
    let parent = TempDir::new().unwrap();
    let folder = saved(&parent);
    for file in ["policy.safetensors", "learner.safetensors"] {
        let mut bytes = fs::read(folder.join(file)).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        let told = load(with_changed(&folder, file, &bytes).path(), None).unwrap_err().to_string();
        assert!(told.contains(file) && told.contains("it was edited"), "{told}");
    }
    let manifest = fs::read_to_string(folder.join("manifest.json")).unwrap();
    for (from, to) in [("\"updates\": 40", "\"updates\": 41"), ("0.08", "0.09"), ("\"gamma\": 0.95", "\"gamma\": 0.5")]
    {
        let edited = manifest.replace(from, to);
        assert_ne!(edited, manifest, "{from} is not in the manifest");
        let told = load(with_changed(&folder, "manifest.json", edited.as_bytes()).path(), None).unwrap_err();
        assert!(told.to_string().contains("was edited"), "{told}");
    }
}

#[test]
fn another_format_is_refused_before_anything_else_is_read() {
    let parent = TempDir::new().unwrap();
    let copy = with_changed(&saved(&parent), "manifest.json", br#"{"format": 2, "pages": []}"#);
    let told = load(copy.path(), None).unwrap_err().to_string();
    assert!(told.contains("has format 2") && told.contains("reads format 1"), "{told}");
}

#[test]
fn a_foreign_contract_is_refused_with_both_values() {
    let parent = TempDir::new().unwrap();
    let ours = Contract { control_period_secs: 0.05, ..contract() };
    let error = load(&saved(&parent), Some(&ours)).unwrap_err();
    assert!(matches!(error, Error::Contract(_)));
    let told = error.to_string();
    assert!(told.contains("control_period_secs is 0.05 in this configuration"), "{told}");
    assert!(told.contains(&(1.0f64 / 30.0).to_string()) && told.contains("0000000040"), "{told}");
}

#[test]
fn simulated_noise_is_told_and_never_compared() {
    let parent = TempDir::new().unwrap();
    let ours = Contract { told: Told::default(), ..contract() };
    let loaded = load(&saved(&parent), Some(&ours)).unwrap();
    assert_eq!(loaded.snapshot.contract.told.position_noise_rad, 1e-3);
}

#[test]
fn an_absurd_contract_allocates_nothing() {
    let parent = TempDir::new().unwrap();
    let bytes = fs::read(saved(&parent).join("policy.safetensors")).unwrap();
    let options = Options { count: usize::MAX, ..contract().options };
    let told = tensors::decode_policy(&bytes, &Contract { options, ..contract() }).unwrap_err().to_string();
    assert!(told.contains("options; no more than 255"), "{told}");
    let network = Network { hidden: vec![65_536; 64], ..contract().network };
    let told = tensors::decode_policy(&bytes, &Contract { network, ..contract() }).unwrap_err().to_string();
    assert!(told.contains("`actor.0.weight` is F32 [6, 10]; the contract needs F32 [65536, 10]"), "{told}");
}

#[test]
fn what_could_not_act_is_not_saved() {
    let parent = TempDir::new().unwrap();
    let run = run(&parent);
    let mut bad = checkpoint(1, None);
    bad.snapshot.normaliser.std[3] = 0.0;
    assert!(save(&run, &bad, 3).is_err());
    let mut bad = checkpoint(1, None);
    bad.state.floats.insert("adam.v".into(), vec![1.0, f32::NAN]);
    assert!(save(&run, &bad, 3).unwrap_err().to_string().contains("`adam.v` holds a float that is not finite"));
    assert!(save(&run, &checkpoint(1, Some(f64::NAN)), 3).is_err());
    assert!(names(&run).is_empty());
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
        false => disk::write(path, bytes),
    };
    for name in ["0000000010", "0000000020"] {
        let told = checkpoint::install(&run.checkpoint_folder(), name, &files, full).unwrap_err().to_string();
        assert!(told.contains("no space left"), "{told}");
        assert_eq!(fs::read_dir(run.checkpoint_folder()).unwrap().count(), 1);
        assert_eq!(load(&RunDir::resolve(run.path(), Which::Newest).unwrap(), None).unwrap(), checkpoint(10, None));
    }
}

#[test]
fn an_option_that_this_program_does_not_know_is_named_by_its_path() {
    let parent = TempDir::new().unwrap();
    let folder = saved(&parent);
    let mut manifest = Manifest::read(&folder).unwrap();
    manifest.config["learner"]["speed"] = serde_json::json!(3);
    let copy = with_changed(&folder, "manifest.json", &manifest.encode().unwrap());
    let told = load(copy.path(), None).unwrap_err().to_string();
    assert!(told.contains("learner") && told.contains("speed"), "{told}");
    assert_eq!(load_snapshot(copy.path(), None).unwrap(), checkpoint(40, None).snapshot);
}
