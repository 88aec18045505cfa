//! A bag: its topics, and its messages over all files in order.

use super::damage::Damage;
use super::files::Files;
use super::metadata::Metadata;
use super::packed::Packed;
use super::part::Part;
use super::storage::{Order, Raw, Selection, Stream, Topic, unpack_limit};
use crate::error::{Error, Result};
use bytes::Bytes;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// A bag that has been looked at. Its files stay closed until they are read.
#[derive(Debug)]
pub struct Bag {
    path: PathBuf,
    metadata: Option<Metadata>,
    topics: Vec<Topic>,
    parts: Vec<Part>,
    /// For each part: index in the bag's topics of each of its topics.
    maps: Vec<Vec<usize>>,
    stated: Vec<Option<u64>>,
    damage: Vec<Damage>,
}

/// Which messages come, and in which order.
#[derive(Clone, Debug)]
pub struct Select {
    /// Indices in [`Bag::topics`]; none: all.
    pub topics: Option<Vec<usize>>,
    /// First time [ns], inclusive.
    pub from_ns: i64,
    /// Last time [ns], inclusive.
    pub to_ns: i64,
    /// The order.
    pub order: Order,
}

impl Default for Select {
    /// Everything, by time.
    fn default() -> Self {
        Self { topics: None, from_ns: i64::MIN, to_ns: i64::MAX, order: Order::Time }
    }
}

/// One recorded message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Index in [`Bag::topics`].
    pub topic: usize,
    /// When it was received [ns since the epoch, or of the clock of the recorder].
    pub time_ns: i64,
    /// When it was sent, as far as the bag tells; else the time of receipt [ns].
    pub sent_ns: i64,
    /// The encoded message. It shares its memory with neighbours: copy what you keep for long.
    pub data: Bytes,
}

impl Bag {
    /// Looks at a folder or a file. Damage is no error; what is no bag at all is refused.
    pub fn open(path: &Path) -> Result<Self> {
        let files = Files::find(path)?;
        let alone = files.list.len() == 1;
        let mut bag = Self {
            path: path.to_owned(),
            metadata: files.metadata,
            topics: Vec::new(),
            parts: Vec::new(),
            maps: Vec::new(),
            stated: Vec::new(),
            damage: files.damage,
        };
        for (file, stated) in files.list {
            let part = Part::open(&file, alone)?;
            bag.maps.push(part.look.topics.iter().map(|topic| bag_topic(&mut bag.topics, topic)).collect());
            bag.stated.push(part.look.stated.or(stated));
            bag.damage.extend(part.look.damage.iter().cloned());
            bag.parts.push(part);
        }
        for (name, type_name, format, offers) in bag.metadata.iter().flat_map(|metadata| &metadata.topics) {
            let (name, type_name, format) = (name.clone(), type_name.clone(), format.clone());
            let topic =
                Topic { name, type_name, format, offers: offers.clone(), type_hash: String::new(), definition: None };
            bag_topic(&mut bag.topics, &topic);
        }
        Ok(bag)
    }

    /// The folder or file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What metadata.yaml says, if there is one.
    pub fn metadata(&self) -> Option<&Metadata> {
        self.metadata.as_ref()
    }

    /// All topics, also those without a message.
    pub fn topics(&self) -> &[Topic] {
        &self.topics
    }

    /// Indices of the topics of a type, e.g. `sensor_msgs/msg/JointState`.
    pub fn topics_of(&self, type_name: &str) -> Vec<usize> {
        (0..self.topics.len()).filter(|&index| self.topics[index].type_name == type_name).collect()
    }

    /// The storages of its files, `mcap` or `sqlite3`.
    pub fn storages(&self) -> BTreeSet<&'static str> {
        self.parts.iter().map(|part| part.storage).collect()
    }

    /// Its files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().map(|part| part.path.as_path())
    }

    /// Messages that its metadata or its files say it holds; none: they do not say.
    pub fn stated(&self) -> Option<u64> {
        let counts = self.stated.iter().try_fold(0u64, |sum, count| Some(sum.saturating_add((*count)?)));
        self.metadata.as_ref().map(|metadata| metadata.message_count).or(counts)
    }

    /// The time of its first message [ns]; none without one. What came before there was a clock has the time 0 (a recorder in simulated
    /// time): it does not count where the clock began more than 10 s later.
    pub fn start_ns(&self) -> Result<Option<i64>> {
        const LATER_NS: i64 = 10_000_000_000;
        let first = |from_ns: i64| {
            let mut messages = self.read(&Select { from_ns, ..Select::default() })?;
            Ok::<_, Error>(messages.read()?.map(|message| message.time_ns))
        };
        match first(i64::MIN)? {
            Some(0) => Ok(first(1)?.filter(|&next| LATER_NS < next).or(Some(0))),
            found => Ok(found),
        }
    }

    /// What a look has found to be lost. Reading may find more: [`Messages::damage`].
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Its messages.
    pub fn read(&self, select: &Select) -> Result<Messages<'_>> {
        let wanted = |topic: usize| select.topics.as_ref().is_none_or(|topics| topics.contains(&topic));
        let selections = self.maps.iter().map(|map| Selection {
            topics: map.iter().map(|&topic| wanted(topic)).collect(),
            span_ns: (select.from_ns, select.to_ns),
            order: select.order,
        });
        let start = |part: &Part| part.look.span_ns.map(|(start, _)| start);
        let mut pending: Vec<usize> = (0..self.parts.len()).collect();
        if select.order == Order::Time {
            pending.sort_by_key(|&part| start(&self.parts[part]).unwrap_or(i64::MIN));
        }
        Ok(Messages {
            bag: self,
            order: select.order,
            selections: selections.collect(),
            pending: pending.into(),
            open: (0..self.parts.len()).map(|_| None).collect(),
            due: BinaryHeap::new(),
            damage: self.damage.iter().cloned().collect(),
        })
    }
}

/// The index of a topic, which is added if it is new, and completed if it says more.
fn bag_topic(topics: &mut Vec<Topic>, topic: &Topic) -> usize {
    let Some(index) = topics.iter().position(|known| known.is(topic)) else {
        topics.push(topic.clone());
        return topics.len() - 1;
    };
    let known = &mut topics[index];
    if known.definition.is_none() {
        known.definition = topic.definition.clone();
    }
    if known.offers.is_empty() {
        known.offers = topic.offers.clone();
    }
    if known.type_hash.is_empty() {
        known.type_hash = topic.type_hash.clone();
    }
    index
}

/// The messages of a bag. Files open when their first message is due, and close after their last.
pub struct Messages<'a> {
    bag: &'a Bag,
    order: Order,
    selections: Vec<Selection>,
    pending: VecDeque<usize>,
    /// For each part its stream and the message that comes next.
    open: Vec<Option<(Box<dyn Stream>, Raw)>>,
    /// (time, part).
    due: BinaryHeap<Reverse<(i64, usize)>>,
    damage: BTreeSet<Damage>,
}

impl Messages<'_> {
    /// The next message; none at the end. An error is one of the system; damage is no error.
    pub fn read(&mut self) -> Result<Option<Message>> {
        loop {
            self.open_due()?;
            let Some(Reverse((_, part))) = self.due.pop() else { return Ok(None) };
            let Some((stream, raw)) = self.open[part].take() else { continue };
            self.advance(part, stream)?;
            let topic = self.bag.maps[part][raw.topic];
            let Raw { time_ns, sent_ns, data, .. } = raw;
            let Some(data) = self.unpacked(part, topic, data) else { continue };
            return Ok(Some(Message { topic, time_ns, sent_ns, data }));
        }
    }

    /// What was lost in all that has been read.
    pub fn damage(&self) -> Vec<Damage> {
        self.damage.iter().cloned().collect()
    }

    fn open_due(&mut self) -> Result<()> {
        while let Some(&part) = self.pending.front() {
            let start = self.bag.parts[part].look.span_ns.map_or(i64::MIN, |(start, _)| start);
            let due = match self.due.peek() {
                None => true,
                Some(Reverse((time, _))) => self.order == Order::Time && start <= *time,
            };
            if !due {
                break;
            }
            self.pending.pop_front();
            let stream = self.bag.parts[part].read(self.selections[part].clone())?;
            self.advance(part, stream)?;
        }
        Ok(())
    }

    /// Takes the next message of a part, or closes it.
    fn advance(&mut self, part: usize, mut stream: Box<dyn Stream>) -> Result<()> {
        match stream.next()? {
            Some(raw) => {
                let key = if self.order == Order::Time { raw.time_ns } else { 0 };
                self.due.push(Reverse((key, part)));
                self.open[part] = Some((stream, raw));
            }
            None => self.damage.extend(stream.damage().iter().cloned()),
        }
        Ok(())
    }

    /// A message that was compressed by itself; none if it is damaged.
    fn unpacked(&mut self, part: usize, topic: usize, data: Bytes) -> Option<Bytes> {
        let Some(packed) = Packed::of(&data).filter(|_| self.bag.topics[topic].format == "cdr") else {
            return Some(data);
        };
        let limit = unpack_limit(data.len() as u64);
        let mut unpacked = Vec::new();
        let what = match packed.open(&data[..]).and_then(|decoder| decoder.take(limit + 1).read_to_end(&mut unpacked)) {
            Ok(count) if count as u64 <= limit => return Some(unpacked.into()),
            Ok(_) => format!("a message that unpacks to more than {limit} bytes"),
            Err(error) => format!("messages that cannot be unpacked ({error})"),
        };
        let file = self.bag.parts[part].path.clone();
        let bytes = data.len() as u64;
        let known = self.damage.iter().find(|damage| damage.file == file && damage.what == what).cloned();
        let mut damage = known.unwrap_or(Damage { file, offset: 0, what, bytes: 0, messages: Some(0) });
        self.damage.remove(&damage);
        damage.bytes += bytes;
        damage.messages = damage.messages.map(|messages| messages + 1);
        self.damage.insert(damage);
        None
    }
}

impl Iterator for Messages<'_> {
    type Item = Result<Message, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}
