use super::*;
use crate::config::Algo;
use crate::contract::Normaliser;
use crate::data::Vectors;
use tempfile::TempDir;

const ALGORITHMS: [Algo; 6] = [Algo::HsPpo, Algo::Ppo, Algo::Osac, Algo::Sac, Algo::Iql, Algo::Bc];

/// With one option, so that the contracts of a family are the same.
fn config(algo: Algo) -> Config {
    let mut config = Config { hidden: vec![4], ..Config::of(algo) };
    config.options.count = 1;
    config
}

/// Saves a checkpoint of an algorithm, and gives its folder.
fn saved(parent: &TempDir, config: &Config) -> std::path::PathBuf {
    let folder = RunDir::create_at(&parent.path().join(config.algo.name()), "").unwrap();
    let contract = config.contract().unwrap();
    let snapshot = Snapshot {
        run: Uuid::nil(),
        life: 1,
        version: 1,
        updates: 1,
        env_steps: 1,
        random_warmup: false,
        normaliser: Normaliser::identity(contract.obs_size(), 10.0),
        parameters: vec![0.1; contract.layout().len()].into(),
        contract: Arc::new(contract),
    };
    let state = Vectors::default();
    let config = config.clone();
    let checkpoint = Checkpoint { snapshot, config, score: None, learner: json!({}), state, replay: None };
    run::save(&folder, &checkpoint, 1, &|| ()).unwrap()
}

/// Contracts alone do not tell: a clone has the networks of half-step PPO.
#[test]
fn a_checkpoint_is_gone_on_from_by_its_own_algorithm_alone() {
    for theirs in ALGORITHMS {
        let parent = TempDir::new().unwrap();
        let folder = saved(&parent, &config(theirs));
        for ours in ALGORITHMS {
            let config = config(ours);
            let loaded = load(&folder, &config.contract().unwrap(), &config);
            let flat = |one, other| (theirs, ours) == (one, other) || (ours, theirs) == (one, other);
            if theirs == ours || flat(Algo::HsPpo, Algo::Ppo) || flat(Algo::Osac, Algo::Sac) {
                assert_eq!(loaded.unwrap().config.algo, theirs);
                continue;
            }
            let told = loaded.unwrap_err().to_string();
            let names = [theirs, ours].map(|algo| told.contains(&format!("algo = {}", algo.name())));
            assert!(names == [true, true], "{theirs:?} to {ours:?}: {told}");
            assert_eq!(told.contains("--init-from"), !ours.offline(), "{told}");
        }
    }
}
