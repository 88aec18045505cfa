//! `handoff bag record`: writes what is published into a bag.

use super::until_stopped;
use crate::app::cli::{self, BagRecord};
use crate::bag::{Folder, Message, Qos, Split, Topic};
use crate::error::{Error, Result};
use crate::node::Shutdown;
use crate::ros::{Heard, Node, tap};
use serde::Deserialize;
use std::sync::mpsc;

/// What is recorded where nothing else is said.
const SHIPPED: &str = include_str!("../../../configs/record.yaml");

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "/**")]
    nodes: Nodes,
}

#[derive(Deserialize)]
struct Nodes {
    #[serde(rename = "ros__parameters")]
    parameters: Parameters,
}

#[derive(Deserialize)]
struct Parameters {
    record: Record,
    storage: Storage,
}

#[derive(Deserialize)]
struct Record {
    topic_types: Vec<String>,
}

#[derive(Deserialize)]
struct Storage {
    max_bagfile_size: u64,
}

/// Records until it is stopped. What was written stays readable however it ends.
pub(in crate::app) fn record(arguments: &BagRecord) -> Result<String> {
    let document: Document = serde_saphyr::from_str(SHIPPED)
        .map_err(|error| Error::invalid(format!("configs/record.yaml is not as expected: {error}")))?;
    let Parameters { record, storage } = document.nodes.parameters;
    let megabytes = arguments.split_mb.map(|megabytes| megabytes.saturating_mul(1_000_000));
    let span_ns = arguments.split_secs.map(|secs| (secs * 1e9) as i64);
    if span_ns.is_some_and(|span_ns| span_ns < 1) {
        return Err(Error::invalid("--split-secs must be more than 0"));
    }
    let split = Split { bytes: Some(megabytes.unwrap_or(storage.max_bagfile_size).max(1)), span_ns };
    let node = Node::start("recorder")?;
    crate::report::logs::start(&node.full_name()?, None, None)?;
    let mut folder = Folder::create(&arguments.out, &[], split)?;
    let (topics, all) = (arguments.topics.clone(), arguments.all);
    let wanted = move |name: &str, kind: &str| {
        if topics.is_empty() {
            all || record.topic_types.iter().any(|known| known == kind)
        } else {
            topics.iter().any(|topic| topic == name)
        }
    };
    let (stopper, shutdown) = Shutdown::new();
    let (done, outcome) = mpsc::channel();
    let (told, ended) = tokio::sync::oneshot::channel();
    let work = move || {
        let mut unwritten = 0;
        let recorded = tap(node, &wanted, &|| shutdown.requested(), &mut |heard| {
            let message = matches!(heard, Heard::Message(..));
            take(&mut folder, heard).inspect_err(|_| unwritten += u64::from(message))
        });
        let messages = folder.messages();
        let ended = match recorded {
            Err(error @ Error::Io { .. }) => Err(folder.broken(error, unwritten)),
            recorded => recorded.and(folder.finish()),
        };
        let _waited_for = done.send(ended.map(|()| messages));
        let _waited_for = told.send(());
    };
    std::thread::Builder::new()
        .name("recorder".into())
        .spawn(work)
        .map_err(|error| Error::invalid(format!("no thread can record: {error}")))?;
    until_stopped(&cli::Node { until_stdin_closes: arguments.until_stdin_closes }, stopper, async {
        let _ended_or_died = ended.await;
        Ok(())
    })?;
    let messages = outcome.recv().map_err(|_| Error::invalid("the recorder died"))??;
    Ok(format!("{}: {messages} messages", arguments.out.display()))
}

fn take(folder: &mut Folder, heard: Heard) -> Result<()> {
    match heard {
        Heard::Topic(name, type_name, offers) => {
            tracing::info!("records {name} ({type_name})");
            let offers = offers.iter().map(|offer| Qos {
                reliable: Some(offer.reliable),
                transient_local: Some(offer.transient_local),
                depth: offer.depth,
            });
            let (format, offers) = ("cdr".into(), offers.collect());
            let topic = Topic { name, type_name, format, offers, type_hash: String::new(), definition: None };
            folder.declare(&topic).map(drop)
        }
        Heard::Message(topic, time_ns, data) => {
            folder.write(&Message { topic, time_ns, sent_ns: time_ns, data: data.into() })
        }
    }
}
