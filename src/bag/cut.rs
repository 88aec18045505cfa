//! A part of a bag as a bag of its own.

use super::damage::Damage;
use super::folder::{Folder, Split, depth};
use super::reader::{Bag, Message, Select};
use super::storage::{Order, Topic};
use crate::error::{Error, Result};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

/// What to cut out.
#[derive(Clone, Debug, Default)]
pub struct Cut {
    /// Begins here, seconds from the first message of the bag.
    pub from_secs: Option<f64>,
    /// Ends before here, seconds from the first message of the bag.
    pub to_secs: Option<f64>,
    /// Names of topics; empty: all.
    pub topics: Vec<String>,
}

/// What has been cut out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cutting {
    /// Messages of the span.
    pub messages: u64,
    /// Latched messages from before the span, carried over to its start.
    pub carried: u64,
    /// What could not be read.
    pub damage: Vec<Damage>,
}

impl Cut {
    /// Writes the bag's folder `out`. The last messages of latched topics before the span come first, with the time of its
    /// start, so that what replays the part has what late subscribers would have. `progress` is told the messages written.
    pub fn write(&self, bag: &Bag, out: &Path, progress: &mut dyn FnMut(u64)) -> Result<Cutting> {
        let kept = self.kept(bag)?;
        let mut damage = BTreeSet::new();
        let mut first = |select: &Select| {
            let mut messages = bag.read(select)?;
            let first = messages.read()?.map(|message| message.time_ns);
            damage.extend(messages.damage());
            Ok::<_, Error>(first)
        };
        let first_kept_ns = first(&Select { topics: Some(kept.clone()), ..Select::default() })?;
        let start_ns = bag.start_ns()?;
        let (from_ns, to_ns) = self.span_ns(start_ns.unwrap_or(0))?;
        if let (Some(start_ns), Some(from_secs)) = (start_ns, self.from_secs)
            && first(&Select { from_ns, ..Select::default() })?.is_none()
        {
            let secs = length_secs(bag, start_ns)?;
            return Err(Error::invalid(format!("--from {from_secs} lies behind the end: the bag is {secs:.1} s long")));
        }
        let topics: Vec<Topic> = kept.iter().map(|&index| bag.topics()[index].clone()).collect();
        let mut folder = Folder::create(out, &topics, Split::default())?;
        let place = |topic: usize| kept.iter().position(|&kept| kept == topic).unwrap_or(usize::MAX);
        let mut carried = 0;
        if first_kept_ns.is_some_and(|first_ns| first_ns < from_ns) {
            for message in latched(bag, &kept, from_ns, &mut damage)? {
                if let Err(error) = folder.write(&Message { topic: place(message.topic), time_ns: from_ns, ..message })
                {
                    return Err(folder.broken(error, 1));
                }
                carried += 1;
            }
        }
        // as it was recorded, so that a clock that jumps does so in the part as well
        let select = Select { topics: Some(kept.clone()), from_ns, to_ns, order: Order::Recorded };
        let mut messages = bag.read(&select)?;
        while let Some(message) = messages.read()? {
            if let Err(error) = folder.write(&Message { topic: place(message.topic), ..message }) {
                return Err(folder.broken(error, 1));
            }
            progress(folder.messages());
        }
        damage.extend(messages.damage());
        let written = folder.messages() - carried;
        folder.finish()?;
        let mut damage: Vec<Damage> = damage.into_iter().collect();
        damage.dedup_by(|more, less| {
            let place = |damage: &Damage| (damage.file.clone(), damage.offset, damage.what.clone());
            let same = place(more) == place(less);
            if same {
                std::mem::swap(more, less); // the read that met most of it
            }
            same
        });
        Ok(Cutting { messages: written, carried, damage })
    }

    /// Indices of the wanted topics. Refuses names that the bag does not have.
    fn kept(&self, bag: &Bag) -> Result<Vec<usize>> {
        let names = || bag.topics().iter().map(|topic| topic.name.as_str());
        if let Some(unknown) = self.topics.iter().find(|wanted| !names().any(|name| name == wanted.as_str())) {
            let known: Vec<&str> = names().collect();
            return Err(Error::invalid(format!(
                "no topic {unknown} in {}; it has {}",
                bag.path().display(),
                known.join(", ")
            )));
        }
        let wanted = |index: &usize| self.topics.is_empty() || self.topics.contains(&bag.topics()[*index].name);
        Ok((0..bag.topics().len()).filter(wanted).collect())
    }

    /// First and last time [ns].
    fn span_ns(&self, start_ns: i64) -> Result<(i64, i64)> {
        let at = |what: &str, secs: Option<f64>| match secs {
            None => Ok(None),
            Some(secs) if (0.0..9e9).contains(&secs) => Ok(Some(start_ns.saturating_add((secs * 1e9).round() as i64))),
            Some(secs) => Err(Error::invalid(format!("{what} {secs} is no time in seconds from the start of the bag"))),
        };
        let from_ns = at("--from", self.from_secs)?.unwrap_or(i64::MIN);
        let to_ns = at("--to", self.to_secs)?.map_or(i64::MAX, |to| to - 1);
        if to_ns < from_ns {
            let (from, to) = (self.from_secs.unwrap_or(0.0), self.to_secs.unwrap_or(0.0));
            return Err(Error::invalid(format!("--from {from} is not before --to {to}")));
        }
        Ok((from_ns, to_ns))
    }
}

/// From its first message to its last [s].
fn length_secs(bag: &Bag, start_ns: i64) -> Result<f64> {
    let mut messages = bag.read(&Select::default())?;
    let mut end_ns = start_ns;
    while let Some(message) = messages.read()? {
        end_ns = end_ns.max(message.time_ns);
    }
    Ok(end_ns.saturating_sub(start_ns) as f64 * 1e-9)
}

/// The last messages of latched topics before a time: as many of each as its publishers keep for late subscribers.
fn latched(bag: &Bag, kept: &[usize], before_ns: i64, damage: &mut BTreeSet<Damage>) -> Result<Vec<Message>> {
    let topics: Vec<usize> = kept.iter().copied().filter(|&index| bag.topics()[index].latched()).collect();
    if topics.is_empty() {
        return Ok(Vec::new());
    }
    let mut last: BTreeMap<usize, VecDeque<Message>> = BTreeMap::new();
    let select = Select { topics: Some(topics), to_ns: before_ns.saturating_sub(1), ..Select::default() };
    let mut messages = bag.read(&select)?;
    while let Some(message) = messages.read()? {
        let queue = last.entry(message.topic).or_default();
        if queue.len() == depth(&bag.topics()[message.topic]) {
            queue.pop_front();
        }
        queue.push_back(Message { data: Bytes::copy_from_slice(&message.data), ..message });
    }
    damage.extend(messages.damage());
    Ok(last.into_values().flatten().collect())
}
