use super::*;
use crate::error::Error;
use std::fs;
use std::path::Path;

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
    assert!(run.checkpoints().unwrap().is_empty());
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
