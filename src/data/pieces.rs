//! Cuts what a rollout flushes into batches that fit the wire.

use super::{End, EpisodeStats, Final, Fragment};

/// Most bytes of one batch on the wire, as far as [`pieces`] can cut.
pub const MAX_BATCH_BYTES: usize = 200_000;

/// Fragments and the episodes that ended in them, for one batch.
pub(super) type Piece = (Vec<Fragment>, Vec<EpisodeStats>);

/// Bytes of a step without its vectors, and of a fragment's or an episode's fixed part: msg/Fragment.msg and
/// msg/EpisodeStats.msg in CDR, with room for alignment.
const STEP_BYTES: usize = 72;
const FRAGMENT_BYTES: usize = 256;
const EPISODE_BYTES: usize = 128;

/// Splits into pieces of at most `max_bytes`; a fragment that is larger alone is cut between its steps.
/// An episode's statistics travel with the last fragment of its environment.
pub(super) fn pieces(fragments: Vec<Fragment>, mut episodes: Vec<EpisodeStats>, max_bytes: usize) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut filled = max_bytes;
    let mut whole: Vec<Fragment> = Vec::new();
    for fragment in fragments {
        cut(fragment, max_bytes, &mut whole);
    }
    let mut rest = whole.into_iter().peekable();
    while let Some(fragment) = rest.next() {
        let last_of_env = rest.peek().is_none_or(|next| next.env != fragment.env);
        let (with_it, others) = episodes.into_iter().partition(|stats| last_of_env && stats.env == fragment.env);
        episodes = others;
        let bytes = fragment_bytes(&fragment) + episode_bytes(&with_it);
        match pieces.last_mut() {
            Some((fragments, stats)) if filled + bytes <= max_bytes => {
                fragments.push(fragment);
                stats.extend(with_it);
                filled += bytes;
            }
            _ => {
                pieces.push((vec![fragment], with_it));
                filled = bytes;
            }
        }
    }
    if !episodes.is_empty() {
        match pieces.last_mut() {
            Some((_, stats)) => stats.extend(episodes),
            None => pieces.push((Vec::new(), episodes)),
        }
    }
    pieces
}

fn fragment_bytes(fragment: &Fragment) -> usize {
    let actions = fragment.steps.first().map_or(0, |step| step.choice.proposal.len() + step.choice.action.len());
    let floats = fragment.observations.len() + fragment.finals.len() * (fragment.obs_size + 1);
    FRAGMENT_BYTES + fragment.steps.len() * (STEP_BYTES + 4 * actions) + 4 * floats
}

fn episode_bytes(episodes: &[EpisodeStats]) -> usize {
    episodes.iter().map(|stats| EPISODE_BYTES + 4 * (stats.option_steps.len() + stats.option_runs.len())).sum()
}

fn cut(fragment: Fragment, max_bytes: usize, into: &mut Vec<Fragment>) {
    if fragment_bytes(&fragment) <= max_bytes || fragment.steps.len() < 2 {
        return into.push(fragment);
    }
    let half = fragment.steps.len() / 2;
    let (head, tail) = split(fragment, half);
    cut(head, max_bytes, into);
    cut(tail, max_bytes, into);
}

/// The first `at` steps, and the rest; both hold the observation between them.
fn split(mut head: Fragment, at: usize) -> (Fragment, Fragment) {
    let steps = head.steps.split_off(at);
    let observations = head.observations[at * head.obs_size..].to_vec();
    head.observations.truncate((at + 1) * head.obs_size);
    let (finals, later): (Vec<Final>, Vec<Final>) = head.finals.into_iter().partition(|last| last.step < at);
    head.finals = finals;
    let finals = later.into_iter().map(|last| Final { step: last.step - at, ..last }).collect();
    let first = head.first + at as u64;
    let tail = Fragment { env: head.env, first, obs_size: head.obs_size, steps, observations, finals };
    (head, tail)
}

/// One row out of contiguous fragments: the inverse of [`split`]. `head` must be continued by `tail`
/// ([`continues`]); the observation between them is the tail's, which knows it.
pub(super) fn append(head: &mut Fragment, tail: Fragment) {
    let at = head.steps.len();
    head.observations.truncate(at * head.obs_size);
    head.observations.extend(tail.observations);
    head.finals.extend(tail.finals.into_iter().map(|last| Final { step: last.step + at, ..last }));
    head.steps.extend(tail.steps);
}

/// Whether `tail` goes on where `head` stops, without a step or a hold between them.
pub(super) fn continues(head: &Fragment, tail: &Fragment) -> bool {
    let seam = match (head.steps.last(), tail.steps.first()) {
        (Some(last), Some(next)) => super::check::follows(last, next),
        _ => false,
    };
    seam && head.env == tail.env
        && head.obs_size == tail.obs_size
        && head.first + head.steps.len() as u64 == tail.first
        && (head.steps.last().is_some_and(|last| last.end != End::None) || head.last_row() == tail.first_row())
}
