//! Bags made to do harm: their lengths, names and definitions cost neither time nor memory beyond what they are.

use super::recording::batch;
use crate::bag::message::BatchMessage;
use crate::bag::{Bag, Schema, Schemas, Survey, decode};
use crate::data::{Batch, Choice, End, Final, Forced, Fragment, StreamId, Transition};
use mcap::WriteOptions;
use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

/// A file with a schema and channels of it.
fn channels(type_name: &str, text: &str, count: usize) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    let mut writer = WriteOptions::new().use_chunks(false).create(&mut out).unwrap();
    let schema = writer.add_schema(type_name, "ros2msg", text.as_bytes()).unwrap();
    for index in 0..count {
        writer.add_channel(schema, &format!("/{index}"), "cdr", &BTreeMap::new()).unwrap();
    }
    writer.finish().unwrap();
    drop(writer);
    out.into_inner()
}

/// All topics have one definition and one type in memory.
fn shared(path: &Path, count: usize) {
    let bag = Bag::open(path).unwrap();
    assert_eq!(bag.topics().len(), count);
    let place = |index: usize| bag.topics()[index].definition.as_ref().unwrap().text.as_ptr();
    assert!((0..count).all(|index| place(index) == place(0)));
    let mut schemas = Schemas::new(&[]);
    let first = schemas.of(&bag.topics()[0]).unwrap();
    assert!(bag.topics().iter().all(|topic| Arc::ptr_eq(&schemas.of(topic).unwrap(), &first)));
}

#[test]
fn a_definition_is_in_memory_once_however_many_topics_have_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcap");
    std::fs::write(&path, channels("a/msg/A", "int8 x", 50)).unwrap();
    shared(&path, 50);
    let path = folder.path().join("a.db3");
    let base = rusqlite::Connection::open(&path).unwrap();
    base.execute_batch(
        "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT, offered_qos_profiles TEXT);
         CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB);
         CREATE TABLE message_definitions(id INTEGER PRIMARY KEY, topic_type TEXT, encoding TEXT, encoded_message_definition TEXT);
         INSERT INTO message_definitions VALUES(1, 'a/msg/A', 'ros2msg', 'int8 x');",
    )
    .unwrap();
    for index in 0..50 {
        base.execute("INSERT INTO topics VALUES(NULL, ?1, 'a/msg/A', 'cdr', '')", [format!("/{index}")]).unwrap();
    }
    drop(base);
    shared(&path, 50);
}

#[test]
fn what_every_topic_repeats_of_a_schema_is_short() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mcap");
    let long = "x".repeat(100_000);
    let survey = |bytes: Vec<u8>| {
        std::fs::write(&path, bytes).unwrap();
        Survey::take(&Bag::open(&path).unwrap(), &[], &mut |_| {}).unwrap()
    };
    // a name, and a line that the reason for refusing it quotes
    for bytes in [channels(&long, "int8 x", 3), channels("a/msg/A", &long, 3)] {
        let survey = survey(bytes);
        assert_eq!(survey.topics.len(), 3);
        for topic in &survey.topics {
            assert!(topic.type_name.len() < 256 && topic.problem.as_ref().unwrap().len() < 400, "{topic:?}");
        }
    }
}

#[test]
fn arrays_of_nothing_are_refused_since_many_of_them_would_take_for_ever() {
    let bar = "=".repeat(80);
    let inner: String = (1..20).map(|level| format!("{bar}\nMSG: a/T{level}\nT{}[1000] x\n", level + 1)).collect();
    let text = format!("T1[1000] x\n{inner}{bar}\nMSG: a/T20\nuint8[0] x\n");
    let sentence = Schema::parse("a/msg/T0", &text).unwrap_err().to_string();
    assert!(sentence.contains("in a/T20") && sentence.contains("uint8[0]"), "{sentence}");
}

/// One step of a made-up stream, which observes so many zeros.
pub(super) fn crafted(seq: u64, obs_size: usize) -> Batch {
    let choice = Choice {
        option_prev: 255,
        option: 0,
        option_terminated: true,
        forced: Forced::Init,
        option_age: 0,
        proposal: vec![],
        action: vec![],
        log_prob_action: 0.0,
        log_prob_option: 0.0,
        log_prob_termination: 0.0,
        log_prob_mixture: 0.0,
        termination_prob: 1.0,
    };
    let step = Transition {
        version: 1,
        episode: 0,
        t: 0,
        stamp_secs: 0.0,
        choice,
        filtered: false,
        intervened: false,
        reward: 0.0,
        end: End::Terminated,
    };
    let finals = vec![Final { step: 0, observation: vec![0.0; obs_size] }];
    let observations = vec![0.0; 2 * obs_size];
    Batch {
        run: uuid::Uuid::nil(),
        life: 1,
        stream: StreamId { rollout: "r0".into(), incarnation: 1 },
        seq,
        base: 0,
        first_step: seq,
        phase: 0,
        contract_hash: [0; 32],
        fragments: vec![Fragment { env: 0, first: seq, obs_size, steps: vec![step], observations, finals }],
        episodes: vec![],
    }
}

#[test]
fn a_fragment_that_observes_nothing_is_refused() {
    let schema = Schema::known("handoff/msg/TransitionBatch").unwrap();
    let read = |obs_size: usize| {
        let message: BatchMessage = decode(&schema, &batch(&crafted(0, obs_size))).unwrap();
        Batch::try_from(message)
    };
    assert!(read(1).is_ok());
    let sentence = read(0).unwrap_err().to_string();
    assert!(sentence.contains("environment 0: obs_size is 0"), "{sentence}");
}

/// The head of a chunk that would end just before the last byte that there can be.
fn endless() -> Vec<u8> {
    let len = u64::MAX - 3;
    let head = [&[6][..], &len.to_le_bytes(), &[0; 32], &(len - 40).to_le_bytes()].concat();
    [mcap::MAGIC, &head].concat()
}

#[test]
fn lengths_up_to_the_largest_number_are_summed_up_to_it() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..2 {
        std::fs::write(folder.path().join(format!("b_{number}.mcap")), endless()).unwrap();
    }
    let survey = Survey::take(&Bag::open(folder.path()).unwrap(), &[], &mut |_| {}).unwrap();
    assert_eq!((survey.messages, survey.lost_bytes), (0, u64::MAX));
    assert!(survey.damage.iter().filter(|damage| u64::MAX / 2 < damage.bytes).count() == 2, "{:?}", survey.damage);
}

#[test]
fn counts_up_to_the_largest_number_are_summed_up_to_it() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..2 {
        let mut bytes = channels("a/msg/A", "int8 x", 1);
        let statistics = statistics(&bytes);
        bytes[statistics..statistics + 8].fill(0xff);
        std::fs::write(folder.path().join(format!("b_{number}.mcap")), bytes).unwrap();
    }
    assert_eq!(Bag::open(folder.path()).unwrap().stated(), Some(u64::MAX));
}

/// Where the statistics have their number of messages.
fn statistics(bytes: &[u8]) -> usize {
    let mut at = 8;
    while bytes[at] != 11 {
        at += 9 + u64::from_le_bytes(bytes[at + 1..at + 9].try_into().unwrap()) as usize;
    }
    at + 9
}
