//! A recording with everything that a page shows.

use super::python;
use handoff::analysis::{Present, Rewards, Setup};
use handoff::app::evaluate::play;
use handoff::app::recording::record;
use handoff::bag::{Bag, Folder, Message, Select, Split, Topic};
use handoff::config::{Algo, Config};
use handoff::contract::Snapshot;
use handoff::node::trainer::Trainer;
use handoff::policy::Sampling;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use uuid::Uuid;

/// A policy that has learned nothing.
fn untrained(seed: u64) -> (Config, Arc<Snapshot>) {
    let mut config = Config { seed, hidden: vec![16, 16], ..Config::of(Algo::HsPpo) };
    config.sim.threads = 1;
    let contract = Arc::new(config.contract().unwrap());
    let snapshot = Trainer::new(&config, contract, Uuid::from_u128(9), 1).unwrap().snapshot();
    (config, snapshot)
}

/// An arm with its states, commands, goal, options and guard; and in the same time the weights, transitions and episodes of a rollout, some
/// of whose steps were a person's or changed by a safety layer. How it is looked at: two policies, of which one acted.
pub(super) fn everything(folder: &Path) -> (PathBuf, Setup) {
    let (config, acting) = untrained(7);
    let mut played = play(&acting, &config, 40, 3, Sampling::Stochastic).unwrap();
    for step in played.fragments.iter_mut().flat_map(|fragment| &mut fragment.steps) {
        (step.filtered, step.intervened) = (step.t % 20 == 3, step.t % 50 == 7);
    }
    let (arm, rollout) = (folder.join("arm"), folder.join("rollout"));
    python("arm.py", &[arm.to_str().unwrap(), "everything"]);
    record(&rollout, &acting, &played, 3, Sampling::Stochastic).unwrap();

    let bags = [arm, rollout].map(|path| Bag::open(&path).unwrap());
    let start_ns = bags[0].start_ns().unwrap().unwrap();
    let topics: Vec<Topic> = bags.iter().flat_map(|bag| bag.topics()).cloned().collect();
    let mut messages = Vec::new();
    for (bag, (later_ns, before)) in bags.iter().zip([(0, 0), (start_ns, bags[0].topics().len())]) {
        messages.extend(bag.read(&Select::default()).unwrap().map(|message| {
            let Message { topic, time_ns, sent_ns, data } = message.unwrap();
            Message { topic: topic + before, time_ns: time_ns + later_ns, sent_ns: sent_ns + later_ns, data }
        }));
    }
    messages.sort_by_key(|message| message.time_ns);
    let out = folder.join("bag <&> of everything");
    let mut writer = Folder::create(&out, &topics, Split::default()).unwrap();
    messages.iter().for_each(|message| writer.write(message).unwrap());
    writer.finish().unwrap();

    let rewards = Some(Rewards { gamma: 0.99, scale: 1.0, cost: 0.0 });
    let present = |from: &str, snapshot| Some(Present { from: from.into(), snapshot, critic: true, rewards });
    let (present, against) = (present("runs/now", acting), present("runs/before", untrained(8).1));
    (out, Setup { present, against, ..Setup::default() })
}
