//! Logs: lines for people on stderr, and JSON lines with node and sequence number in a file.

use crate::error::{Error, Result};
use serde_json::{Map, Value, json};
use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal as _, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Registry, fmt};

/// Starts logging for this process: lines for people on stderr, and, with a folder, JSON lines in `<folder>/<node>.jsonl`.
/// `filter` is a level or tracing directives (`info`, `handoff::data=debug`); without it `RUST_LOG` counts, then `info`.
/// Refuses a filter that it cannot read, a file that it cannot write, and a second call.
pub fn start(node: &str, folder: Option<&Path>, filter: Option<&str>) -> Result<()> {
    start_with(node, folder, filter, None)
}

/// A further place for the lines.
pub type Place = Box<dyn Layer<Registry> + Send + Sync>;

/// As [`start`], with a further place.
pub fn start_with(node: &str, folder: Option<&Path>, filter: Option<&str>, place: Option<Place>) -> Result<()> {
    let spec = filter.map(str::to_owned).or_else(|| std::env::var("RUST_LOG").ok()).filter(|spec| !spec.is_empty());
    let spec = spec.unwrap_or_else(|| "info".into());
    let filter = EnvFilter::try_new(&spec).map_err(|error| {
        Error::invalid(format!("`{spec}` is no log filter ({error}); try `info` or `handoff=debug`"))
    })?;
    let terminal = io::stderr().is_terminal();
    let people = fmt::layer()
        .with_writer(move || Lines { terminal })
        .with_ansi(terminal)
        .with_target(false)
        .with_timer(fmt::time::uptime())
        .compact();
    let file = folder.map(|folder| JsonLines::open(node, folder)).transpose()?;
    tracing_subscriber::registry()
        .with(place)
        .with(filter)
        .with(people)
        .with(file)
        .try_init()
        .map_err(|_| Error::invalid("this process logs already; logging can be started once"))
}

/// stderr; on a terminal each line first erases the progress line, which is drawn again soon after.
struct Lines {
    terminal: bool,
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut stderr = io::stderr().lock();
        if self.terminal {
            stderr.write_all(b"\r\x1b[2K")?;
        }
        stderr.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// One JSON object a line: `seq` (from 0 in this process, without a gap), `stamp_secs` (Unix time), `node`, `level`,
/// `target`, `message`, `spans` (outermost first) and the event's own fields under `fields`.
struct JsonLines {
    node: String,
    state: Mutex<State>,
}

struct State {
    file: File,
    seq: u64,
}

impl JsonLines {
    fn open(node: &str, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let name = node.trim_matches('/').replace('/', ".");
        let path = folder.join(format!("{name}.jsonl"));
        let file = OpenOptions::new().append(true).create(true).open(&path).map_err(Error::io(&path))?;
        Ok(Self { node: node.into(), state: Mutex::new(State { file, seq: 0 }) })
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for JsonLines {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let message = fields.0.remove("message").unwrap_or_default();
        let spans: Vec<&str> = context
            .event_scope(event)
            .into_iter()
            .flat_map(|scope| scope.from_root())
            .map(|span| span.name())
            .collect();
        let stamp_secs = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        let metadata = event.metadata();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let line = json!({
            "seq": state.seq,
            "stamp_secs": stamp_secs,
            "node": self.node,
            "level": metadata.level().as_str(),
            "target": metadata.target(),
            "message": message,
            "spans": spans,
            "fields": fields.0,
        });
        state.seq += 1;
        // a log that cannot be written must not stop the arm; the gap in `seq` tells of it
        let _ = state.file.write_all(format!("{line}\n").as_bytes());
    }
}

#[derive(Default)]
struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name().into(), json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().into(), json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().into(), json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().into(), json!(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().into(), json!(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().into(), json!(format!("{value:?}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_one_numbered_object_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let layer = JsonLines::open("/arm_1/rollout", folder.path()).unwrap();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let _span = tracing::info_span!("phase", number = 3).entered();
            tracing::info!(steps = 128u64, "a phase opened");
            tracing::warn!(ratio = 0.5, reason = ?Some("stale"), "refused\nbatch");
        });
        let text = fs::read_to_string(folder.path().join("arm_1.rollout.jsonl")).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((&lines[0]["seq"], &lines[1]["seq"]), (&json!(0), &json!(1)));
        assert_eq!((&lines[0]["node"], &lines[0]["level"]), (&json!("/arm_1/rollout"), &json!("INFO")));
        assert_eq!((&lines[0]["message"], &lines[0]["fields"]), (&json!("a phase opened"), &json!({"steps": 128})));
        assert_eq!((&lines[0]["spans"], &lines[1]["message"]), (&json!(["phase"]), &json!("refused\nbatch")));
        assert_eq!(lines[1]["fields"], json!({"ratio": 0.5, "reason": "Some(\"stale\")"}));
        assert!(lines[0]["stamp_secs"].as_f64().unwrap() > 1.6e9);
    }

    #[test]
    fn logging_starts_once_and_needs_a_readable_filter() {
        let told = start("learner", None, Some("handoff=loud")).unwrap_err().to_string();
        assert!(told.starts_with("`handoff=loud` is no log filter"), "{told}");
        start("learner", None, Some("warn")).unwrap();
        assert!(start("learner", None, Some("warn")).unwrap_err().to_string().contains("logs already"));
    }
}
