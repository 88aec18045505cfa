//! From a bag that we wrote ourselves to a run that evaluates and goes on, without ROS.

use handoff::analysis::{Recorded, transitions};
use handoff::app::evaluate::{Play, play};
use handoff::app::{offline, recording, serial};
use handoff::bag::{Bag, Purpose, Survey, Verdict};
use handoff::config::{Algo, Config};
use handoff::contract::Snapshot;
use handoff::data::{EpisodeStats, Logged, Part};
use handoff::learn::Dataset;
use handoff::node::trainer::Trainer;
use handoff::policy::Sampling;
use handoff::report::read;
use handoff::report::verdict::{Level, verdicts};
use handoff::run::{self, RunDir, Which};
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;
use uuid::Uuid;

fn config(algo: Algo, options: usize) -> Config {
    let mut config = Config { seed: 2, hidden: vec![16, 16], ..Config::of(algo) };
    config.options.count = options;
    config.sim.threads = 1;
    config.learner.save_interval = 2;
    let offline = &mut config.learner.offline;
    (offline.gradient_steps, offline.update_steps, offline.batch_size) = (60, 20, 64);
    offline.lr = 3e-3;
    config
}

/// Episodes of a policy that has learned nothing, with more noise than others start with.
fn played(options: usize, episodes: usize) -> (Arc<Snapshot>, Play) {
    let mut config = Config { seed: 7, ..config(Algo::HsPpo, options) };
    config.learner.hs_ppo.log_std_init = 0.0;
    let trainer = Trainer::new(&config, Arc::new(config.contract().unwrap()), Uuid::from_u128(9), 1).unwrap();
    let snapshot = trainer.snapshot();
    let play = play(&snapshot, &config, episodes, 3, Sampling::Stochastic).unwrap();
    (snapshot, play)
}

fn bag(folder: &Path, options: usize, episodes: usize) -> (PathBuf, Arc<Snapshot>, Play) {
    let (snapshot, play) = played(options, episodes);
    let path = folder.join(format!("bag{options}"));
    recording::record(&path, &snapshot, &play, 3, Sampling::Stochastic).unwrap();
    (path, snapshot, play)
}

/// Trains in a new folder, or goes on in one that is there.
fn train(config: &Config, run: &Path, bags: &[&Path]) {
    let mut config = config.clone();
    config.learner.run_dir = run.display().to_string();
    config.learner.offline.bags = bags.iter().map(|bag| bag.display().to_string()).collect::<Vec<_>>().join(";");
    let algorithm = offline::algorithm(&config, &[]).unwrap();
    offline::train(&config, algorithm).unwrap();
}

fn newest(run: &Path) -> run::Checkpoint {
    run::load(&RunDir::resolve(run, Which::Newest).unwrap(), None).unwrap()
}

#[test]
fn a_bag_of_ours_holds_the_episodes_that_were_played_and_is_fit_to_learn_from() {
    let folder = tempfile::tempdir().unwrap();
    let (path, snapshot, play) = bag(folder.path(), 3, 20);
    let Recorded { logged, left_out, damage } = transitions(slice::from_ref(&path), &snapshot.contract, &[]).unwrap();
    assert!(left_out.is_empty() && damage.is_empty());
    // a bag is read in order of time; of each environment that is the order in which it was played
    for env in 0..16 {
        let read = logged.iter().map(|logged| &logged.fragment).filter(|fragment| fragment.env == env);
        assert!(read.eq(play.fragments.iter().filter(|fragment| fragment.env == env)), "to the bit");
    }
    let steps: u32 = play.episodes.iter().map(|stats: &EpisodeStats| stats.length).sum();
    assert_eq!(logged.iter().map(|logged| logged.fragment.steps.len()).sum::<usize>(), steps as usize);
    assert_eq!(logged.iter().map(|logged| logged.fragment.finals.len()).sum::<usize>(), 20);
    let survey = Survey::take(&Bag::open(&path).unwrap(), &[], &mut |_| {}).unwrap();
    assert!(Verdict::new(&survey, None, Some(&snapshot.contract)).fit(Purpose::Learning));
    // four environments play twice, twelve once: these end earlier, and come earlier
    assert_eq!(survey.clock_jump_count, 0);
    // another seed is another stream: its episodes are others
    let other = folder.path().join("other");
    recording::record(&other, &snapshot, &play, 4, Sampling::Stochastic).unwrap();
    let other = transitions(&[other], &snapshot.contract, &[]).unwrap();
    let part =
        |recorded: &[Logged]| -> Vec<Part> { recorded.iter().map(|logged| Part::of(logged, 0, 0.5, 0.0)).collect() };
    assert_ne!(part(&other.logged), part(&logged));
}

#[test]
fn what_is_learned_from_a_bag_is_a_run_that_evaluates_resumes_and_goes_on_online() {
    let folder = tempfile::tempdir().unwrap();
    let (path, ..) = bag(folder.path(), 3, 20);
    for algo in [Algo::Bc, Algo::Iql] {
        let config = config(algo, 3);
        let (whole, half) = (folder.path().join(algo.name()), folder.path().join(format!("{}-half", algo.name())));
        train(&config, &whole, &[&path]);
        let rows = read(&whole).unwrap();
        assert_eq!(rows.len(), 3);
        assert!(rows.iter().all(|row| row.values["validation/policy_loss"].is_finite()));
        let tested: Vec<bool> = rows.iter().map(|row| row.values.contains_key("test/policy_loss")).collect();
        assert_eq!(tested, [false, false, true], "once, in the end");
        let loss = |row: usize| rows[row].values["losses/policy_loss"];
        assert!(algo == Algo::Iql || loss(2) < loss(0), "{} {}", loss(0), loss(2));
        let verdict = &verdicts(&rows, &config)[0];
        assert!(verdict.level == Level::Good && verdict.seen.contains("validation"), "{verdict:?}");
        assert!(verdict.seen.contains(&format!("it is {:.3}", rows[2].values["test/policy_loss"])), "{verdict:?}");

        let checkpoint = newest(&whole);
        assert_eq!((checkpoint.snapshot.updates, checkpoint.snapshot.env_steps), (3, 60 * 64));
        let played = play(&Arc::new(checkpoint.snapshot.clone()), &config, 4, 1, Sampling::MeanAction).unwrap();
        assert_eq!(played.episodes.len(), 4);

        let mut part = config.clone();
        part.train.minutes = 1e-9;
        train(&part, &half, &[&path]);
        assert!(newest(&half).snapshot.updates < 3);
        train(&config, &half, &[&path]);
        assert_eq!(newest(&half).snapshot.parameters, checkpoint.snapshot.parameters, "as if it had not stopped");

        let mut online = self::config(Algo::HsPpo, 3);
        online.learner.init_from = whole.display().to_string();
        online.learner.run_dir = folder.path().join(format!("{}-online", algo.name())).display().to_string();
        let (trainer, _) = Trainer::open(&online).unwrap();
        assert_eq!(trainer.snapshot().parameters, checkpoint.snapshot.parameters);
        online.train.envs = 4;
        online.train.env_steps = 1;
        online.train.minutes = 0.0;
        online.learner.run_dir = folder.path().join(format!("{}-on", algo.name())).display().to_string();
        serial::train(&online).unwrap();
        assert!(newest(Path::new(&online.learner.run_dir)).snapshot.updates > 0);
    }
}

#[test]
fn broken_bags_give_what_is_whole_and_say_what_was_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (path, snapshot, _) = bag(folder.path(), 2, 120);
    let whole = transitions(slice::from_ref(&path), &snapshot.contract, &[]).unwrap();
    let bytes = std::fs::read(path.join("bag2_0.mcap")).unwrap();
    let cut = folder.path().join("cut.mcap");
    std::fs::write(&cut, &bytes[..bytes.len() * 8 / 10]).unwrap();
    let some = transitions(slice::from_ref(&cut), &snapshot.contract, &[]).unwrap();
    assert!(!some.damage.is_empty() && some.logged.len() < whole.logged.len());
    assert!(some.logged.iter().zip(&whole.logged).all(|(some, whole)| some == whole), "what is whole is as it was");
    // what is in both bags counts once
    let config = config(Algo::Bc, 2);
    let dataset = |bags: &[PathBuf]| {
        let recorded = transitions(bags, &snapshot.contract, &[]).unwrap();
        let dataset = Dataset::new(&snapshot.contract, &recorded.logged, &config.learner).unwrap();
        [Part::Train, Part::Validation, Part::Test].map(|part| dataset.count(part))
    };
    assert_eq!(dataset(&[cut, path.clone()]), dataset(&[path]));
}

#[test]
fn what_cannot_be_learned_from_is_refused_with_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let (path, snapshot, _) = bag(folder.path(), 2, 20);
    let refusal = |config: &Config, bags: &str| {
        let mut config = config.clone();
        config.learner.offline.bags = bags.into();
        offline::algorithm(&config, &[]).err().unwrap().to_string()
    };
    let bag = path.display().to_string();
    let own = config(Algo::Iql, 2);
    let said = refusal(&config(Algo::Iql, 4), &bag);
    assert!(said.contains("\"count\":4") && said.contains("\"count\":2") && said.contains("--options 2"), "{said}");
    let mut other = own.clone();
    other.control_rate_hz = 10.0;
    let said = refusal(&other, &bag);
    assert!(said.contains("control_period_secs is 0.1 in this configuration and 0.05 in the bag"), "{said}");
    assert!(refusal(&own, "").contains("--offline BAG"));
    assert!(refusal(&own, "/nowhere/bag").contains("/nowhere/bag"));
    let mut all = own.clone();
    (all.learner.offline.validation, all.learner.offline.test) = (1e-9, 0.0);
    let said = refusal(&all, &bag);
    assert!(
        said.contains("none of the 20 recorded episodes falls to the validation") && said.contains("--val 0"),
        "{said}"
    );
    // weights alone
    let alone = folder.path().join("weights");
    let nothing = Play::default();
    recording::record(&alone, &snapshot, &nothing, 1, Sampling::MeanAction).unwrap();
    let said = refusal(&own, &alone.display().to_string());
    assert!(said.contains("holds no transitions") && said.contains("--record"), "{said}");
    // transitions whose weights are not there, of other networks than ours
    let cut = handoff::bag::Cut { topics: vec!["/transitions".into()], ..Default::default() };
    let stripped = folder.path().join("stripped");
    cut.write(&Bag::open(&path).unwrap(), &stripped, &mut |_| {}).unwrap();
    let same = transitions(slice::from_ref(&stripped), &snapshot.contract, &[]).unwrap();
    assert!(same.left_out.is_empty(), "our own contract is known without weights");
    let wide = Config { hidden: vec![32], ..own.clone() };
    let said = refusal(&wide, &stripped.display().to_string());
    assert!(said.contains("whose weights the bag lacks"), "{said}");
    let mut fits = wide;
    fits.learner.offline.bags = bag;
    offline::algorithm(&fits, &[]).unwrap();
    // and online algorithms do not learn from bags, nor those from bags online
    assert!(Trainer::open(&own).err().unwrap().to_string().contains("--offline"));
    let mut online = config(Algo::HsPpo, 2);
    online.learner.offline.bags = "a".into();
    assert!(online.validate().unwrap_err().to_string().contains("iql and bc learn from bags"));
}
