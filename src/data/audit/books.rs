//! The check: every transition has one fate, and what a rollout forgot is known to the learner.

use super::{Note, Span, Step, Taken};
use crate::data::StreamId;
use crate::error::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Transitions by what became of them: `recorded = stored + refused + lost + voided + memory`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Recorded by all rollouts.
    pub recorded: u64,
    /// Admitted by the learner.
    pub stored: u64,
    /// Refused by the learner.
    pub refused: u64,
    /// Counted as lost by the learner.
    pub lost: u64,
    /// Given up by the rollout: another run was adopted, or its memory was full.
    pub voided: u64,
    /// In a rollout's memory when it ended or died: never sent, or sent without a verdict.
    pub memory: u64,
    /// Learned from, in all lives.
    pub learned: u64,
}

impl fmt::Display for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { recorded, stored, refused, lost, voided, memory, learned } = self;
        write!(
            formatter,
            "{recorded} recorded = {stored} stored + {refused} refused + {lost} lost + {voided} given up + {memory} in \
             memory at an end; {learned} learned from"
        )
    }
}

#[derive(Default)]
struct Rollout {
    recorded: BTreeMap<(u32, u64), Step>,
    /// Batches by number: place in the stream, and rows.
    numbered: BTreeMap<u64, (u64, Vec<Span>)>,
    voided: Vec<(u64, Vec<Span>)>,
    freed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Stored,
    Refused,
}

/// What the learner's present state stands for.
#[derive(Default)]
struct Judged {
    verdicts: BTreeMap<u64, Verdict>,
    lost: Vec<(u64, u64)>,
    presumed: (u64, u64),
}

/// Checks the notes of all processes of a run, one list a process, each in its order. Refuses with a sentence what was
/// recorded, judged or learned from twice, stored otherwise than recorded, forgotten by a rollout without a verdict, or
/// counted otherwise than noted.
pub fn account(processes: &[Vec<Note>]) -> Result<Account> {
    let mut rollouts: BTreeMap<StreamId, Rollout> = BTreeMap::new();
    let mut lives: BTreeMap<u32, &[Note]> = BTreeMap::new();
    for notes in processes {
        if let Some(Note::Begun { life, .. }) = notes.first() {
            if lives.insert(*life, notes).is_some() {
                return Err(Error::invalid(format!("two learners had life {life}")));
            }
        } else {
            notes.iter().try_for_each(|note| write_down(note, &mut rollouts))?;
        }
    }
    rollouts.iter().try_for_each(|(stream, rollout)| check_rollout(stream, rollout))?;
    let mut judged: BTreeMap<StreamId, Judged> = BTreeMap::new();
    let mut account = Account::default();
    for notes in lives.values() {
        account.learned += live(notes, &rollouts, &mut judged)?;
    }
    for (stream, rollout) in &rollouts {
        close(stream, rollout, judged.get(stream), &mut account)?;
    }
    let totals = lives.values().next_back().and_then(|notes| notes.last());
    if let Some(Note::Totals { admitted, refused, lost }) = totals
        && (*admitted, *refused, *lost) != (account.stored, account.refused, account.lost)
    {
        return Err(Error::invalid(format!(
            "the learner counts {admitted} admitted, {refused} refused, {lost} lost; by ids it is {} stored, {} refused, {} lost",
            account.stored, account.refused, account.lost
        )));
    }
    Ok(account)
}

fn write_down(note: &Note, rollouts: &mut BTreeMap<StreamId, Rollout>) -> Result<()> {
    match note {
        Note::Recorded { stream, steps } => {
            let rollout = rollouts.entry(stream.clone()).or_default();
            for step in steps {
                if rollout.recorded.insert((step.env, step.index), *step).is_some() {
                    return Err(Error::invalid(format!(
                        "{stream} recorded step {} of env {} twice",
                        step.index, step.env
                    )));
                }
            }
        }
        Note::Numbered { stream, seq, first_step, rows } => {
            let rollout = rollouts.entry(stream.clone()).or_default();
            if rollout.numbered.insert(*seq, (*first_step, rows.clone())).is_some() {
                return Err(Error::invalid(format!("{stream} has two batches {seq}")));
            }
        }
        Note::Voided { stream, first_step, rows } => {
            rollouts.entry(stream.clone()).or_default().voided.push((*first_step, rows.clone()));
        }
        Note::Freed { stream, below } => {
            let rollout = rollouts.entry(stream.clone()).or_default();
            rollout.freed = rollout.freed.max(*below);
        }
        other => return Err(Error::invalid(format!("a rollout noted {other:?}"))),
    }
    Ok(())
}

/// What is in a batch was recorded, once; batches follow one another in the stream.
fn check_rollout(stream: &StreamId, rollout: &Rollout) -> Result<()> {
    let mut seen = BTreeSet::new();
    let mut ends: Vec<(u64, u64)> = Vec::new();
    // What was voided after it had a number is among both; its place tells.
    let places: BTreeMap<u64, &Vec<Span>> =
        rollout.numbered.values().chain(&rollout.voided).map(|(place, rows)| (*place, rows)).collect();
    for (place, rows) in places {
        for span in rows {
            for offset in 0..span.steps {
                let key = (span.env, span.first + offset);
                let recorded = rollout.recorded.get(&key);
                let first =
                    offset != 0 || recorded.is_some_and(|step| (step.episode, step.t) == (span.episode, span.t));
                if recorded.is_none() || !first || !seen.insert(key) {
                    return Err(Error::invalid(format!(
                        "{stream} has step {} of env {} in a batch at {place}: it was not recorded so, or is in two",
                        key.1, key.0
                    )));
                }
            }
        }
        ends.push((place, place + length(rows)));
    }
    match ends.windows(2).find(|pair| pair[0].1 != pair[1].0) {
        Some(pair) => Err(Error::invalid(format!("{stream} goes on at {} after {}", pair[1].0, pair[0].1))),
        None => Ok(()),
    }
}

fn length(rows: &[Span]) -> u64 {
    rows.iter().map(|span| span.steps).sum()
}

/// One life of the learner. Returns the transitions that it learned from.
fn live(
    notes: &[Note],
    rollouts: &BTreeMap<StreamId, Rollout>,
    judged: &mut BTreeMap<StreamId, Judged>,
) -> Result<u64> {
    let mut stored: BTreeSet<(&StreamId, u32, u64)> = BTreeSet::new();
    let mut learned: BTreeSet<(&StreamId, u32, u64)> = BTreeSet::new();
    for note in notes {
        match note {
            Note::Begun { streams, .. } => take_up(streams, judged),
            Note::Stored { stream, seq, first_step, rows } => {
                let numbered = rollouts.get(stream).and_then(|rollout| rollout.numbered.get(seq));
                if numbered != Some(&(*first_step, rows.clone())) {
                    return Err(Error::invalid(format!("batch {seq} of {stream} is stored otherwise than recorded")));
                }
                judge(judged, stream, *seq, Verdict::Stored)?;
                stored.extend(ids(stream, rows));
            }
            Note::Refused { stream, seq, .. } => judge(judged, stream, *seq, Verdict::Refused)?,
            Note::Lost { stream, from, to } => judged.entry(stream.clone()).or_default().lost.push((*from, *to)),
            Note::Learned { stream, rows } => {
                if let Some((_, env, index)) = ids(stream, rows).find(|id| !stored.contains(id) || !learned.insert(*id))
                {
                    return Err(Error::invalid(format!(
                        "step {index} of env {env} of {stream} was learned from twice, or without being stored"
                    )));
                }
            }
            Note::Totals { .. } => {}
            other => return Err(Error::invalid(format!("a learner noted {other:?}"))),
        }
    }
    Ok(learned.len() as u64)
}

fn ids<'a>(stream: &'a StreamId, rows: &'a [Span]) -> impl Iterator<Item = (&'a StreamId, u32, u64)> {
    rows.iter().flat_map(move |span| (0..span.steps).map(move |offset| (stream, span.env, span.first + offset)))
}

fn judge(judged: &mut BTreeMap<StreamId, Judged>, stream: &StreamId, seq: u64, verdict: Verdict) -> Result<()> {
    match judged.entry(stream.clone()).or_default().verdicts.insert(seq, verdict) {
        Some(_) => Err(Error::invalid(format!("batch {seq} of {stream} has two verdicts"))),
        None => Ok(()),
    }
}

fn take_up(streams: &[Taken], judged: &mut BTreeMap<StreamId, Judged>) {
    judged.retain(|stream, _| streams.iter().any(|taken| taken.stream == *stream));
    for taken in streams {
        let mine = judged.entry(taken.stream.clone()).or_default();
        mine.verdicts.retain(|seq, _| *seq < taken.below || taken.others.contains(seq));
        mine.lost.retain(|(_, to)| *to <= taken.position);
        mine.presumed = (taken.position, taken.presumed);
    }
}

fn close(stream: &StreamId, rollout: &Rollout, judged: Option<&Judged>, account: &mut Account) -> Result<()> {
    account.recorded += rollout.recorded.len() as u64;
    let numbered: BTreeSet<u64> = rollout.numbered.values().map(|(place, _)| *place).collect();
    let voided: BTreeMap<u64, u64> = rollout.voided.iter().map(|(place, rows)| (*place, length(rows))).collect();
    let never_numbered: u64 =
        voided.iter().filter(|(place, _)| !numbered.contains(place)).map(|(_, steps)| steps).sum();
    account.voided += never_numbered;
    let mut placed = never_numbered;
    for (seq, (place, rows)) in &rollout.numbered {
        let steps = length(rows);
        placed += steps;
        let within =
            |(from, to): (u64, u64)| (*place..place + steps).filter(|at| from <= *at && *at < to).count() as u64;
        let lost: u64 = judged.map_or(0, |judged| judged.lost.iter().map(|range| within(*range)).sum());
        let presumed = judged.map_or(0, |judged| within(judged.presumed));
        match judged.and_then(|judged| judged.verdicts.get(seq)) {
            Some(_) if 0 < lost => {
                return Err(Error::invalid(format!("batch {seq} of {stream} has a verdict, and is counted as lost")));
            }
            _ if steps < lost => return Err(Error::invalid(format!("batch {seq} of {stream} is lost twice"))),
            Some(Verdict::Stored) => account.stored += steps,
            Some(Verdict::Refused) => account.refused += steps,
            None if lost.max(presumed) == steps => account.lost += steps,
            None if voided.contains_key(place) => account.voided += steps,
            None if *seq < rollout.freed => {
                return Err(Error::invalid(format!(
                    "{stream} has forgotten batch {seq}; the learner knows nothing of it"
                )));
            }
            None => account.memory += steps,
        }
    }
    account.memory += rollout.recorded.len() as u64 - placed;
    Ok(())
}
