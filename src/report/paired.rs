//! The same episodes twice: in lockstep, and through a link.

use super::{calm, stats};
use serde::Serialize;

/// A yes or no of each episode, twice.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pairs {
    /// Share in lockstep.
    pub lockstep: f64,
    /// Its 95 % Wilson interval.
    pub lockstep_interval: [f64; 2],
    /// Share through the link.
    pub link: f64,
    /// Its 95 % Wilson interval.
    pub link_interval: [f64; 2],
    /// Episodes that succeed in lockstep alone.
    pub only_lockstep: u64,
    /// Episodes that succeed through the link alone.
    pub only_link: u64,
}

impl Pairs {
    /// From the pairs (in lockstep, through the link).
    pub fn new(pairs: impl IntoIterator<Item = (bool, bool)>) -> Self {
        let pairs: Vec<_> = pairs.into_iter().collect();
        let trials = pairs.len() as u64;
        let count = |holds: fn(&(bool, bool)) -> bool| pairs.iter().filter(|pair| holds(pair)).count() as u64;
        let (lockstep, link) = (count(|pair| pair.0), count(|pair| pair.1));
        let share = |count: u64| count as f64 / trials.max(1) as f64;
        Self {
            lockstep: share(lockstep),
            lockstep_interval: stats::wilson(lockstep, trials, stats::Z_95),
            link: share(link),
            link_interval: stats::wilson(link, trials, stats::Z_95),
            only_lockstep: count(|pair| pair.0 && !pair.1),
            only_link: count(|pair| !pair.0 && pair.1),
        }
    }
}

/// Success of a policy in lockstep and through a link, on the same starts and goals.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rehearsal {
    /// The link.
    pub name: String,
    /// Episodes.
    pub episodes: u64,
    /// Success at the end (reach: within 5 cm).
    pub success: Pairs,
    /// The stricter success (reach: within 1 cm).
    pub success_1cm: Pairs,
}

impl Rehearsal {
    /// For a terminal.
    pub fn table(&self) -> String {
        let percent = |share: f64, [low, high]: [f64; 2]| {
            format!("{:.1} % ({:.1} to {:.1})", 100.0 * share, 100.0 * low, 100.0 * high)
        };
        let mut table = calm(&["", "in lockstep", &self.name, "lockstep alone", "link alone"]);
        for (name, pairs) in [("success", &self.success), ("success at 1 cm", &self.success_1cm)] {
            table.add_row([
                name,
                &percent(pairs.lockstep, pairs.lockstep_interval),
                &percent(pairs.link, pairs.link_interval),
                &pairs.only_lockstep.to_string(),
                &pairs.only_link.to_string(),
            ]);
        }
        let episodes = self.episodes;
        format!("{}\n\nThe same {episodes} starts and goals both ways; 95 % intervals (Wilson).", table.trim_fmt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted_by_which_way_they_differ() {
        let pairs = Pairs::new([(true, true), (true, false), (true, false), (false, true), (false, false)]);
        assert_eq!((pairs.lockstep, pairs.link, pairs.only_lockstep, pairs.only_link), (0.6, 0.4, 2, 1));
        // 3 of 5 at 95 %: statsmodels.stats.proportion.proportion_confint(3, 5, method="wilson")
        let [low, high] = pairs.lockstep_interval;
        assert!((low - 0.230_7).abs() < 1e-3 && (high - 0.882_4).abs() < 1e-3, "{low} {high}");
    }
}
