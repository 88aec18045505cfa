//! `handoff bench weights`: from publishing a version to the rollout's word that it acts with it, over ROS 2.

use crate::app::nodes::wire::{Drops, QUEUE, to_queue, to_topic};
use crate::app::supervise::{Event, Graph};
use crate::app::sweep::Sweep;
use crate::app::{cli, commands, runtime, train};
use crate::config::{Config, Purpose, Seed, UpdateMode};
use crate::contract::Snapshot;
use crate::data::{Ack, Batch, LearnerStatus, RolloutStatus, Table};
use crate::error::{Error, Result};
use crate::learn::HsPpo;
use crate::node::Output;
use crate::node::learner::Learner;
use crate::report::{self, Latency};
use crate::ros::{self, Node, Publisher, msg, srv};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use uuid::Uuid;

/// Sizes of the flat parameters [bytes].
const SIZES: [usize; 3] = [300_000, 1_000_000, 5_000_000];
/// Between two versions.
const PERIOD: Duration = Duration::from_millis(60);
/// Period of the status.
const STATUS: Duration = Duration::from_millis(200);
/// How long a reader is stopped ...
const STALL: Duration = Duration::from_secs(1);
/// ... and how many versions it misses meanwhile.
const MISSED: u64 = 10;
/// The longest that anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Measures all sizes.
pub(in crate::app) fn weights(arguments: &cli::BenchWeights) -> Result<()> {
    if arguments.versions == 0 {
        return Err(Error::invalid("--versions 0 measures nothing: give at least 1"));
    }
    if super::ran_in_a_domain_of_its_own()? {
        return Ok(());
    }
    report::logs::start("bench", None, None)?;
    let sweep = Sweep::new();
    let measured = runtime()?.block_on(async {
        let mut wire = Wire::new()?;
        let mut found = Vec::new();
        for bytes in SIZES {
            found.push(measure(&mut wire, bytes, arguments.versions).await?);
        }
        wire.running.stop()?;
        Ok(found)
    });
    sweep.sweep();
    let found: Vec<Latency> = measured?;
    let json = serde_json::to_string(&found)
        .map_err(|error| Error::invalid(format!("the report cannot be written as JSON: {error}")))?;
    commands::print(&if arguments.json { json } else { report::latencies(&found) })
}

/// The topics of a learner.
struct Wire {
    batches: mpsc::Receiver<Batch>,
    statuses: mpsc::Receiver<RolloutStatus>,
    acks: Output<Ack>,
    status: Output<LearnerStatus>,
    weights: Publisher<msg::PolicyWeights>,
    /// What a rollout gets that pulls, because DDS did not give it the latched one.
    newest: Arc<Mutex<Option<Snapshot>>>,
    running: ros::Running,
}

impl Wire {
    fn new() -> Result<Self> {
        let mut node = Node::start("learner")?;
        let (batches, batches_in) = mpsc::channel(QUEUE);
        let (statuses, statuses_in) = mpsc::channel(QUEUE);
        let (everything, drops) = (ros::everything, Drops::default());
        let transitions = to_queue::<msg::TransitionBatch, Batch>("transitions", batches, &drops);
        node.subscribe("/transitions", everything(), transitions)?;
        let statuses = to_queue::<msg::RolloutStatus, RolloutStatus>("rollout_status", statuses, &drops);
        node.subscribe("/rollout_status", everything(), statuses)?;
        let newest: Arc<Mutex<Option<Snapshot>>> = Arc::default();
        let served = newest.clone();
        node.serve::<srv::GetWeights::Service>("/get_weights", move |_| {
            let weights = served.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Into::into);
            srv::GetWeights::Response { available: weights.is_some(), weights: weights.unwrap_or_default() }
        })?;
        Ok(Self {
            newest,
            batches: batches_in,
            statuses: statuses_in,
            acks: to_topic::<msg::TransitionAck, _>(node.publish("/transition_ack", everything())?),
            status: to_topic::<msg::LearnerStatus, _>(node.publish("/learner_status", everything())?),
            weights: node.publish("/policy_weights", ros::latched())?,
            running: node.spin()?,
        })
    }
}

/// A rollout that acts, and the learner's front without a trainer: every version has the same parameters.
struct Bench<'a> {
    wire: &'a mut Wire,
    front: Learner,
    first: Snapshot,
    version: u64,
    graph: Graph,
    start: Instant,
    said: Option<Instant>,
}

async fn measure(wire: &mut Wire, bytes: usize, versions: usize) -> Result<Latency> {
    // The last size's rollout must have left the graph: Fast DDS gives its port of shared memory to the next one.
    let deadline = Instant::now() + PATIENCE;
    while 0 < wire.weights.readers() && Instant::now() < deadline {
        tokio::time::sleep(STATUS).await;
    }
    let (mut bench, parameters) = Bench::start(wire, bytes)?;
    let outcome = bench.run(versions, parameters * size_of::<f32>()).await;
    bench.graph.stop().await;
    outcome
}

impl<'a> Bench<'a> {
    fn start(wire: &'a mut Wire, bytes: usize) -> Result<(Self, usize)> {
        let mut config = Config::default();
        config.learner.update_mode = UpdateMode::Async;
        config.train.rollouts = 1;
        let floats = |width: usize| -> Result<usize> {
            Ok(Config { hidden: vec![width, width], ..Config::default() }.contract()?.layout().len())
        };
        let mut width = 1;
        while floats(width)? * size_of::<f32>() < bytes {
            width += 1;
        }
        config.hidden = vec![width, width];
        let secs = train::unix_secs();
        let run = std::path::absolute(format!("runs/bench-weights__{secs}__{bytes}")).map_err(Error::io("runs"))?;
        let folder = train::make_folder(&cli::Train { run: Some(run), ..cli::Train::default() }, &mut config)?;

        let contract = Arc::new(config.contract()?);
        let run = Uuid::parse_str(&config.learner.run)
            .map_err(|error| Error::invalid(format!("{:?} is no uuid: {error}", config.learner.run)))?;
        let seed = Seed::root(config.seed).of(Purpose::Parameters);
        let first = HsPpo::new(contract.clone(), &config.learner.hs_ppo, seed)?.snapshot(run, 1, 0);
        let front = Learner::new(run, 1, contract, &config.learner, Table::default());
        let program = std::env::current_exe().map_err(Error::io("the program itself"))?;
        let mut graph = Graph::new(program, Vec::new(), folder.logs(), None);
        for node in train::nodes(&config, folder.path()).into_iter().filter(|node| !node.ends_training) {
            graph.start(node)?;
        }
        let parameters = first.parameters.len();
        Ok((Self { wire, front, first, version: 0, graph, start: Instant::now(), said: None }, parameters))
    }

    async fn run(&mut self, versions: usize, bytes: usize) -> Result<Latency> {
        self.publish()?;
        self.acts_with_newest().await?;
        let mut millis = Vec::new();
        for _ in 0..versions {
            self.idle(PERIOD).await?;
            let begun = Instant::now();
            self.publish()?;
            self.acts_with_newest().await?;
            millis.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        let reader = self.graph.processes().find(|(name, _)| name.starts_with("rollout")).map(|(_, id)| id);
        let reader = reader.ok_or_else(|| Error::invalid("the rollout is gone"))?;
        signal(reader, "STOP")?;
        let missed: Result<()> = async {
            for _ in 0..MISSED {
                self.idle(STALL / MISSED as u32).await?;
                self.publish()?;
            }
            Ok(())
        }
        .await;
        signal(reader, "CONT")?;
        missed?;
        let begun = Instant::now();
        let older = self.acts_with_newest().await?;
        let percentile = |percent| report::stats::percentile(&millis, percent).unwrap_or(f64::NAN);
        Ok(Latency {
            bytes,
            versions,
            p50_millis: percentile(50.0),
            p99_millis: percentile(99.0),
            most_millis: percentile(100.0),
            after_stall_millis: begun.elapsed().as_secs_f64() * 1e3,
            older_after_stall: older,
        })
    }

    fn publish(&mut self) -> Result<()> {
        self.version += 1;
        let snapshot = Snapshot { version: self.version, ..self.first.clone() };
        self.wire.weights.send(&(&snapshot).into())?;
        self.front.published(&snapshot, snapshot.hash());
        *self.wire.newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(snapshot);
        self.said = None;
        Ok(())
    }

    /// Until the rollout says that it acts with the newest version. Returns how many older ones it named before.
    async fn acts_with_newest(&mut self) -> Result<u64> {
        let deadline = Instant::now() + PATIENCE;
        let (mut older, mut last) = (0, self.version - 1);
        while Instant::now() < deadline {
            if let Some(status) = self.step().await? {
                if status.version == self.version && status.run == Some(self.first.run) {
                    return Ok(older);
                }
                older += u64::from(last < status.version);
                last = last.max(status.version);
            }
        }
        Err(Error::invalid(format!(
            "the rollout does not act with version {} within {} s",
            self.version,
            PATIENCE.as_secs()
        )))
    }

    async fn idle(&mut self, duration: Duration) -> Result<()> {
        let until = Instant::now() + duration;
        while Instant::now() < until {
            self.step().await?;
        }
        Ok(())
    }

    /// Takes one message, if there is one, and answers.
    async fn step(&mut self) -> Result<Option<RolloutStatus>> {
        let now = self.start.elapsed();
        let mut heard = None;
        tokio::select! {
            Some(status) = self.wire.statuses.recv() => {
                let _no_rival = self.front.rollout_status(status.clone(), now);
                heard = Some(status);
            }
            Some(batch) = self.wire.batches.recv() => self.front.batch(batch, now),
            () = tokio::time::sleep(Duration::from_millis(2)) => {}
        }
        // There is no trainer: what it would learn from is let go.
        let due = self.front.due(now);
        due.acks.iter().for_each(&mut self.wire.acks);
        if due.announce || self.said.is_none_or(|said| STATUS <= said.elapsed()) {
            (self.wire.status)(&self.front.status());
            self.said = Some(Instant::now());
        }
        if let Event::Restarted(sentence) = self.graph.watch()? {
            return Err(Error::invalid(format!("{sentence}: the measurement is void")));
        }
        Ok(heard)
    }
}

fn signal(process: u32, name: &str) -> Result<()> {
    let status = Command::new("kill").arg(format!("-{name}")).arg(process.to_string()).status();
    match status.map_err(Error::io("kill"))? {
        status if status.success() => Ok(()),
        status => Err(Error::invalid(format!("process {process} cannot be sent SIG{name}: kill said {status}"))),
    }
}
