//! Writes what an evaluation played as a bag of ours: weights and transitions, in simulated time.

use super::evaluate::Play;
use crate::bag::{Folder, Message, Qos, Split, Topic, encode};
use crate::contract::Snapshot;
use crate::data::{Batch, EpisodeStats, Final, Fragment, StreamId};
use crate::error::Result;
use crate::policy::Sampling;
use sha2::{Digest as _, Sha256};
use std::path::Path;

const WEIGHTS: usize = 0;
const TRANSITIONS: usize = 1;

fn topics() -> [Topic; 2] {
    let topic = |name: &str, kind: &str, latched: bool| Topic {
        name: name.into(),
        type_name: format!("handoff/msg/{kind}"),
        format: "cdr".into(),
        offers: vec![Qos { reliable: Some(true), transient_local: Some(latched), depth: Some(1) }],
        type_hash: String::new(),
        definition: None,
    };
    [topic("/policy_weights", "PolicyWeights", true), topic("/transitions", "TransitionBatch", false)]
}

/// The name of what was played: the same for the same policy, seed and sampling, and for nothing else.
fn stream(snapshot: &Snapshot, seed: u64, sampling: Sampling) -> StreamId {
    let mut hasher = Sha256::new();
    hasher.update(snapshot.hash());
    hasher.update(seed.to_le_bytes());
    hasher.update([u8::from(sampling == Sampling::Stochastic)]);
    let hash: [u8; 32] = hasher.finalize().into();
    let incarnation = hash.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    StreamId { rollout: "evaluation".into(), incarnation }
}

/// Writes the bag's folder, which must not exist.
pub fn record(path: &Path, snapshot: &Snapshot, play: &Play, seed: u64, sampling: Sampling) -> Result<()> {
    let mut folder = Folder::create(path, &topics(), Split::default())?;
    match fill(&mut folder, snapshot, play, stream(snapshot, seed, sampling)) {
        Ok(()) => folder.finish(),
        Err(error) => {
            let unwritten = (1 + play.fragments.len() as u64).saturating_sub(folder.messages());
            Err(folder.broken(error, unwritten))
        }
    }
}

fn fill(folder: &mut Folder, snapshot: &Snapshot, play: &Play, stream: StreamId) -> Result<()> {
    let mut write =
        |topic: usize, time_ns: i64, data| folder.write(&Message { topic, time_ns, sent_ns: time_ns, data });
    write(WEIGHTS, 0, encode::weights(snapshot))?;
    let contract_hash = snapshot.contract.hash();
    let mut first_step = 0;
    let last_secs = |fragment: &Fragment| fragment.steps.last().map_or(0.0, |step| step.stamp_secs);
    let mut fragments: Vec<&Fragment> = play.fragments.iter().collect();
    // environments with fewer episodes end earlier
    fragments.sort_by(|a, b| last_secs(a).total_cmp(&last_secs(b)));
    for (seq, fragment) in (0..).zip(fragments) {
        let last_secs = last_secs(fragment);
        let batch = Batch {
            run: snapshot.run,
            life: snapshot.life,
            stream: stream.clone(),
            seq,
            base: seq,
            first_step,
            phase: 0,
            contract_hash,
            episodes: ended(fragment, &play.episodes),
            fragments: vec![fragment.clone()],
        };
        write(TRANSITIONS, (last_secs * 1e9).round() as i64, encode::batch(&batch))?;
        first_step += batch.steps();
    }
    Ok(())
}

/// Those that ended in a fragment.
fn ended(fragment: &Fragment, episodes: &[EpisodeStats]) -> Vec<EpisodeStats> {
    let last = |stats: &&EpisodeStats| {
        let ends = |last: &Final| fragment.steps[last.step].episode == stats.episode;
        stats.env == fragment.env && fragment.finals.iter().any(ends)
    };
    episodes.iter().filter(last).cloned().collect()
}
