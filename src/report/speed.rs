//! The outcome of a benchmark of training.

use super::calm;
use serde::Serialize;
use std::collections::BTreeMap;

/// One way of running the same actors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Speed {
    /// Environment steps a second while learning.
    pub env_steps_per_sec: f64,
    /// Steps behind that.
    pub env_steps: u64,
    /// Time behind that [s].
    pub secs: f64,
    /// Versions between acting and learning: least, mean, most.
    pub lag: [f64; 3],
    /// Transitions, by what became of them, in the order in which they are told.
    pub transitions: Vec<(String, u64)>,
    /// Shares of time by actor and activity.
    pub time: BTreeMap<String, BTreeMap<String, f64>>,
    /// Processors that each kind of thread kept busy on average.
    pub busy: BTreeMap<String, f64>,
    /// Memory of all processes together, shared pages once [bytes].
    pub memory_bytes: u64,
    /// Open file descriptors.
    pub descriptors: u64,
    /// Files of DDS in shared memory.
    pub shared_files: u64,
    /// Their size [bytes].
    pub shared_bytes: u64,
}

/// What each column of a table is called, and what is in it.
type Column<'a> = (&'a str, &'a Speed);

/// Columns side by side: rates, lag, transitions, memory.
pub fn speeds(columns: &[Column<'_>]) -> String {
    let header: Vec<&str> = std::iter::once("while learning").chain(columns.iter().map(|(name, _)| *name)).collect();
    let mut table = calm(&header);
    let mut row = |name: &str, cell: &dyn Fn(&Speed) -> String| {
        let cells = columns.iter().map(|(_, speed)| cell(speed));
        table.add_row(std::iter::once(name.to_owned()).chain(cells).collect::<Vec<_>>());
    };
    row("env steps/s", &|speed| format!("{:.0}", speed.env_steps_per_sec));
    row("env steps", &|speed| speed.env_steps.to_string());
    row("seconds", &|speed| format!("{:.1}", speed.secs));
    row("lag min / mean / max", &|speed| {
        let [min, mean, max] = speed.lag;
        format!("{min:.0} / {mean:.2} / {max:.0}")
    });
    let names: Vec<String> = columns
        .first()
        .map_or_else(Vec::new, |(_, speed)| speed.transitions.iter().map(|(name, _)| name.clone()).collect());
    for (index, name) in names.iter().enumerate() {
        let count = |speed: &Speed| speed.transitions.get(index).map_or("-".into(), |(_, count)| count.to_string());
        row(&format!("transitions {name}"), &count);
    }
    row("memory", &|speed| format!("{:.2} GiB", speed.memory_bytes as f64 / (1u64 << 30) as f64));
    row("file descriptors", &|speed| speed.descriptors.to_string());
    row("/dev/shm", &|speed| {
        format!("{} files, {:.1} MiB", speed.shared_files, speed.shared_bytes as f64 / (1u64 << 20) as f64)
    });
    table.trim_fmt()
}

/// Where the time of each actor goes [%].
pub fn times(columns: &[Column<'_>]) -> String {
    let header: Vec<&str> = ["actor", "time for"].into_iter().chain(columns.iter().map(|(name, _)| *name)).collect();
    let mut table = calm(&header);
    let of =
        |speed: &Speed, actor: &str, activity: &str| speed.time.get(actor).and_then(|by| by.get(activity)).copied();
    let mut names: Vec<(&String, &String)> = Vec::new();
    for (_, speed) in columns {
        names.extend(speed.time.iter().flat_map(|(actor, by)| by.keys().map(move |activity| (actor, activity))));
    }
    names.sort();
    names.dedup();
    for (actor, activity) in names {
        let shares = columns
            .iter()
            .map(|(_, speed)| of(speed, actor, activity).map_or("-".into(), |share| format!("{:.1} %", 100.0 * share)));
        table.add_row([actor.clone(), activity.clone()].into_iter().chain(shares).collect::<Vec<_>>());
    }
    table.trim_fmt()
}

/// How many processors each kind of thread keeps busy.
pub fn busy(columns: &[Column<'_>]) -> String {
    let header: Vec<&str> = std::iter::once("processors busy").chain(columns.iter().map(|(name, _)| *name)).collect();
    let mut table = calm(&header);
    let mut threads: Vec<&String> = columns.iter().flat_map(|(_, speed)| speed.busy.keys()).collect();
    threads.sort();
    threads.dedup();
    for thread in threads {
        let cells =
            columns.iter().map(|(_, speed)| speed.busy.get(thread).map_or("-".into(), |busy| format!("{busy:.2}")));
        table.add_row(std::iter::once(thread.clone()).chain(cells).collect::<Vec<_>>());
    }
    let total = columns.iter().map(|(_, speed)| format!("{:.2}", speed.busy.values().sum::<f64>()));
    table.add_row(std::iter::once("all".to_owned()).chain(total).collect::<Vec<_>>());
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speed(rate: f64, transport: Option<f64>) -> Speed {
        let mut sim: BTreeMap<String, f64> = [("physics".to_owned(), 0.75)].into();
        sim.extend(transport.map(|share| ("transport".to_owned(), share)));
        Speed {
            env_steps_per_sec: rate,
            env_steps: 12_345,
            secs: 1.5,
            lag: [0.0, 1.25, 3.0],
            transitions: vec![("recorded".into(), 7), ("lost".into(), 0)],
            time: [("sim".to_owned(), sim)].into(),
            busy: [("sim".to_owned(), 0.5), ("ros".to_owned(), 0.25)].into(),
            memory_bytes: 3 << 29,
            descriptors: 40,
            shared_files: 6,
            shared_bytes: 3 << 19,
        }
    }

    #[test]
    fn tables_show_the_ways_side_by_side() {
        let (ros, channels) = (speed(9000.4, Some(0.05)), speed(9500.0, None));
        let columns = [("ROS 2", &ros), ("channels", &channels)];
        let words = |table: &str, start: &str| -> Vec<String> {
            let line = table.lines().find(|line| line.trim().starts_with(start)).unwrap().to_owned();
            line.split("  ").map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        let table = speeds(&columns);
        assert_eq!(words(&table, "env steps/s"), ["env steps/s", "9000", "9500"]);
        assert_eq!(words(&table, "lag"), ["lag min / mean / max", "0 / 1.25 / 3", "0 / 1.25 / 3"]);
        assert_eq!(words(&table, "transitions lost"), ["transitions lost", "0", "0"]);
        assert_eq!(words(&table, "memory")[1], "1.50 GiB");
        assert_eq!(words(&table, "/dev/shm")[1], "6 files, 1.5 MiB");
        let table = times(&columns);
        assert!(table.contains("75.0 %") && table.lines().any(|line| line.contains("transport") && line.contains('-')));
        assert_eq!(words(&busy(&columns), "all"), ["all", "0.75", "0.75"]);
    }
}
