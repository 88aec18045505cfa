//! One ROS node: what it hears, says, serves and asks, and what it does periodically. Built on the caller's thread,
//! then moved to a thread of its own by [`Node::spin`].

use super::graph::Graph;
use super::names::Names;
use super::parameters::{self, Parameters, Setter};
use super::qos::Qos;
use super::running::{LONGEST_WAIT, Periodic, Pump, Running};
use crate::error::{Error, Result};
use futures::{FutureExt as _, StreamExt as _};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A message type.
pub trait Message: r2r::WrappedTypesupport + Send + 'static {}
impl<M: r2r::WrappedTypesupport + Send + 'static> Message for M {}

/// A service type.
pub trait Service: r2r::WrappedServiceTypeSupport<Request: Send, Response: Send> + Send + 'static {}
impl<S: r2r::WrappedServiceTypeSupport<Request: Send, Response: Send> + Send + 'static> Service for S {}

/// A node under construction. Closures given to it run on its spin thread: they hand over and return.
pub struct Node {
    pub(super) inner: r2r::Node,
    pub(super) pumps: Vec<Pump>,
    pub(super) periodic: Vec<Periodic>,
    pub(super) names: Names,
    shown: Option<Parameters>,
    setters: BTreeMap<String, Setter>,
}

impl Node {
    /// Joins the ROS graph as `name`. Arguments of the process after `--ros-args` may rename it, give it a namespace,
    /// remap its topics and set its parameters.
    pub fn start(name: &str) -> Result<Self> {
        logs_can_be_written(&log_folder(|name| std::env::var(name).ok()))?;
        let context = context().map_err(|why| Error::invalid(format!("ROS does not start: {why}")))?;
        let inner = r2r::Node::create(context, name, "")
            .map_err(|error| Error::invalid(format!("node {name:?} cannot be made: {error}")))?;
        let unnamed = |error| Error::invalid(format!("node {name:?} has no name: {error}"));
        let (node, namespace) = (inner.name().map_err(unnamed)?, inner.namespace().map_err(unnamed)?);
        let names = Names::new(&node, &namespace, std::env::args());
        Ok(Self { inner, pumps: Vec::new(), periodic: Vec::new(), names, shown: None, setters: BTreeMap::new() })
    }

    /// The parameters that it was given: nested objects, `learner.gamma` is `gamma` in `learner`.
    pub fn parameters(&self) -> Result<serde_json::Value> {
        let given = self.inner.params.lock().unwrap_or_else(PoisonError::into_inner);
        parameters::nested(given.iter().map(|(name, parameter)| (name, &parameter.value)))
    }

    /// What `ros2 param` shows: all values that count, defaults included. Without it, those that were given.
    pub fn show_parameters(&mut self, values: &serde_json::Value) {
        self.shown = Some(parameters::dotted(values));
    }

    /// Lets `ros2 param set` change a number, which `heed` may refuse.
    pub fn set_parameter(&mut self, name: &str, heed: impl FnMut(f64) -> Result<()> + Send + 'static) {
        self.setters.insert(name.into(), Box::new(heed));
    }

    /// Its name with namespace, as the graph shows it.
    pub fn full_name(&self) -> Result<String> {
        self.inner.fully_qualified_name().map_err(|error| Error::invalid(format!("the node has no name: {error}")))
    }

    /// A topic's name as the graph shows it: with namespace, after remapping.
    pub fn resolve(&self, topic: &str) -> String {
        self.names.resolve(topic)
    }

    /// Gives every message of a topic to `each`, in order. No message that DDS has kept is lost on the way.
    pub fn subscribe<M: Message>(
        &mut self,
        topic: &str,
        qos: Qos,
        mut each: impl FnMut(M) + Send + 'static,
    ) -> Result<()> {
        let mut stream = self
            .inner
            .subscribe::<M>(topic, qos)
            .map_err(|error| Error::invalid(format!("topic {topic:?} cannot be subscribed: {error}")))?;
        self.pumps.push(Box::new(move || {
            while let Some(Some(message)) = stream.next().now_or_never() {
                each(message);
            }
        }));
        Ok(())
    }

    /// The first message of a topic, a latched one at once; waited for at most `patience`. Nothing else is done meanwhile.
    pub fn first<M: Message>(&mut self, topic: &str, qos: Qos, patience: Duration) -> Result<M> {
        let mut stream = self
            .inner
            .subscribe::<M>(topic, qos)
            .map_err(|error| Error::invalid(format!("topic {topic:?} cannot be subscribed: {error}")))?;
        let end = Instant::now() + patience;
        while Instant::now() < end {
            self.inner.spin_once(LONGEST_WAIT);
            if let Some(Some(message)) = stream.next().now_or_never() {
                return Ok(message);
            }
        }
        Err(Error::invalid(format!("nothing came on {} within {} s", self.resolve(topic), patience.as_secs())))
    }

    /// A publisher of a topic.
    pub fn publish<M: Message>(&mut self, topic: &str, qos: Qos) -> Result<Publisher<M>> {
        let inner = self
            .inner
            .create_publisher::<M>(topic, qos)
            .map_err(|error| Error::invalid(format!("topic {topic:?} cannot be published: {error}")))?;
        Ok(Publisher { topic: topic.into(), inner: Arc::new(Mutex::new(inner)) })
    }

    /// Answers a service.
    pub fn serve<S: Service>(
        &mut self,
        name: &str,
        mut answer: impl FnMut(S::Request) -> S::Response + Send + 'static,
    ) -> Result<()> {
        let mut stream = self
            .inner
            .create_service::<S>(name, Qos::services_default())
            .map_err(|error| Error::invalid(format!("service {name:?} cannot be served: {error}")))?;
        let name = name.to_owned();
        self.pumps.push(Box::new(move || {
            while let Some(Some(mut request)) = stream.next().now_or_never() {
                let response = answer(std::mem::take(&mut request.message));
                if let Err(error) = request.respond(response) {
                    tracing::warn!("service {name} could not answer: {error}");
                }
            }
        }));
        Ok(())
    }

    /// A client of a service.
    pub fn client<S: Service>(&mut self, name: &str) -> Result<Client<S>> {
        let inner = self
            .inner
            .create_client::<S>(name, Qos::services_default())
            .map_err(|error| Error::invalid(format!("service {name:?} cannot be called: {error}")))?;
        Ok(Client { name: name.into(), inner: Arc::new(inner) })
    }

    /// Does something at this period of the steady clock, first after one period. A late turn is not made up for.
    pub fn every(&mut self, period: Duration, run: impl FnMut(&Graph<'_>) + Send + 'static) {
        self.periodic.push(Periodic { period, due: Instant::now() + period, run: Box::new(run) });
    }

    /// Moves the node to its own thread, where it lives until it is stopped.
    pub fn spin(mut self) -> Result<Running> {
        self.serve_parameters()?;
        Running::start(self)
    }

    /// Runs an actor and the node by turns on this thread, until the actor ends. For an actor that lives from message to
    /// message: it has a turn after each, and timers may be late by 20 ms. Needs tokio's clock.
    pub async fn drive<T>(mut self, actor: impl Future<Output = T>) -> Result<T> {
        self.serve_parameters()?;
        super::running::drive(self, actor).await
    }

    fn serve_parameters(&mut self) -> Result<()> {
        let shown = match self.shown.take() {
            Some(shown) => shown,
            None => parameters::dotted(&self.parameters()?),
        };
        let setters = std::mem::take(&mut self.setters);
        parameters::serve(self, shown, setters)
    }
}

/// Where rcl writes its logs (ros2/rcl_logging, rcl_logging_interface: `rcl_logging_get_logging_directory`).
fn log_folder(variable: impl Fn(&str) -> Option<String>) -> PathBuf {
    let told = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || told("HOME").unwrap_or_default();
    let folder = told("ROS_LOG_DIR").or_else(|| Some(told("ROS_HOME")?.join("log")));
    match folder.unwrap_or_else(|| home().join(".ros/log")) {
        short if short.starts_with("~") => home().join(short.strip_prefix("~").unwrap_or(&short)),
        whole => whole,
    }
}

/// rcl aborts the process, or says nothing, where it cannot write its logs.
fn logs_can_be_written(folder: &Path) -> Result<()> {
    let tried = std::fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder));
    tried.map(drop).map_err(|why| {
        Error::invalid(format!(
            "ROS cannot write its logs to {} ({why}): make that folder yours, or set ROS_LOG_DIR to one that is",
            folder.display()
        ))
    })
}

/// The process's ROS context. r2r panics on arguments that rcl refuses; what it says is enough.
fn context() -> Result<r2r::Context, String> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let context = catch_unwind(r2r::Context::create);
    std::panic::set_hook(hook);
    match context {
        Ok(context) => context.map_err(|error| error.to_string()),
        Err(panic) => Err(super::running::said(&*panic).to_owned()),
    }
}

/// Publishes one topic, from any thread; clones publish the same.
pub struct Publisher<M: Message> {
    topic: Arc<str>,
    // r2r's publisher may move between threads but not be shared by them
    inner: Arc<Mutex<r2r::Publisher<M>>>,
}

impl<M: Message> Clone for Publisher<M> {
    fn clone(&self) -> Self {
        Self { topic: self.topic.clone(), inner: self.inner.clone() }
    }
}

impl<M: Message> Publisher<M> {
    /// Hands a message to DDS; fails once the node has stopped.
    pub fn send(&self, message: &M) -> Result<()> {
        let publisher = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        publisher
            .publish(message)
            .map_err(|error| Error::invalid(format!("topic {} could not be published: {error}", self.topic)))
    }

    /// Matched subscriptions; 0 once the node has stopped.
    pub fn readers(&self) -> usize {
        let publisher = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        publisher.get_inter_process_subscription_count().unwrap_or(0)
    }
}

/// Calls one service, from any thread; clones call the same.
pub struct Client<S: Service> {
    name: Arc<str>,
    inner: Arc<r2r::Client<S>>,
}

impl<S: Service> Clone for Client<S> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), inner: self.inner.clone() }
    }
}

impl<S: Service> Client<S> {
    /// Asks once, and waits for the answer at most `patience`. A request that is sent before the server is known goes
    /// unanswered: ask again. Needs tokio's clock.
    pub async fn call(&self, request: &S::Request, patience: Duration) -> Result<S::Response> {
        let refused = |error| Error::invalid(format!("service {} could not be called: {error}", self.name));
        let answer = self.inner.request(request).map_err(refused)?;
        match tokio::time::timeout(patience, AssertUnwindSafe(answer)).await {
            Ok(answer) => answer.map_err(refused),
            Err(_) => Err(Error::invalid(format!("service {} did not answer within {patience:?}", self.name))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_logs_is_that_of_rcl_and_one_that_cannot_be_written_is_named() {
        let folder = |set: &[(&str, &str)]| {
            log_folder(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        let home = ("HOME", "/home/me");
        for (set, found) in [
            (vec![home], "/home/me/.ros/log"),
            (vec![home, ("ROS_LOG_DIR", "")], "/home/me/.ros/log"),
            (vec![home, ("ROS_HOME", "/ros")], "/ros/log"),
            (vec![home, ("ROS_HOME", "/ros"), ("ROS_LOG_DIR", "/logs")], "/logs"),
            (vec![home, ("ROS_LOG_DIR", "~/logs")], "/home/me/logs"),
        ] {
            assert_eq!(folder(&set), Path::new(found), "{set:?}");
        }
        let place = tempfile::tempdir().unwrap();
        logs_can_be_written(&place.path().join("new/log")).unwrap();
        assert!(std::fs::read_dir(place.path().join("new/log")).unwrap().next().is_none(), "nothing is left there");
        std::fs::write(place.path().join("file"), "").unwrap();
        let said = logs_can_be_written(&place.path().join("file/log")).unwrap_err().to_string();
        assert!(said.contains("file/log") && said.contains("ROS_LOG_DIR"), "{said}");
    }
}
