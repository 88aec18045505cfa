//! What episodes say about a policy: success with its interval, return, length, and how the options are used.

use super::stats;
use crate::data::{End, EpisodeStats};
use crate::error::{Error, Result};
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use serde::{Deserialize, Serialize};

/// Outcome of an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Share of episodes that ended in success (reach: within 5 cm).
    pub success: f64,
    /// Its 95 % Wilson interval.
    pub success_interval: [f64; 2],
    /// Share of episodes that ended in the stricter success (reach: within 1 cm).
    pub success_1cm: f64,
    /// Its 95 % Wilson interval.
    pub success_1cm_interval: [f64; 2],
    /// Mean undiscounted return.
    pub return_mean: f64,
    /// Mean of the first control tick inside success; an episode that never was there counts with its length.
    pub length_mean: f64,
    /// Episodes that count; aborted ones do not.
    pub episodes: u64,
    /// Episodes that a fault ended.
    pub aborted: u64,
    /// Runs of an option that d_max ended.
    pub forced_ends: u64,
    /// Their share among the runs that ended before their episode.
    pub forced_share: f64,
    /// One for each option.
    pub options: Vec<OptionUse>,
}

/// How one option was used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OptionUse {
    /// Share of the control ticks.
    pub share: f64,
    /// Median length of its finished runs [control ticks]; none if no run finished.
    pub median_duration: Option<f64>,
    /// Mean termination probability on arrival; none if it never ran.
    pub beta_mean: Option<f64>,
}

impl Evaluation {
    /// From finished episodes, and for each of the K options the lengths of its finished runs [control ticks] and its mean
    /// termination probability (NaN: never asked). Refuses no valid episode, and numbers of options that differ.
    pub fn new(episodes: &[EpisodeStats], durations: &[Vec<u32>], beta_means: &[f64]) -> Result<Self> {
        let valid: Vec<&EpisodeStats> = episodes.iter().filter(|episode| episode.end != End::Aborted).collect();
        if valid.is_empty() {
            let aborted = episodes.len();
            return Err(Error::invalid(format!(
                "an evaluation needs a valid episode; it has 0, and {aborted} aborted"
            )));
        }
        let options = durations.len();
        let differs = |found: usize| found != options;
        if differs(beta_means.len()) || valid.iter().any(|episode| differs(episode.option_steps.len())) {
            let found = valid.iter().map(|episode| episode.option_steps.len()).find(|&found| differs(found));
            return Err(Error::invalid(format!(
                "an evaluation has durations of {options} options, termination probabilities of {}, steps of {}",
                beta_means.len(),
                found.unwrap_or(options)
            )));
        }
        let trials = valid.len() as u64;
        let count = |counts: fn(&EpisodeStats) -> bool| valid.iter().filter(|episode| counts(episode)).count() as u64;
        let (success, strict) = (count(|episode| episode.success), count(|episode| episode.success_strict));
        let mean =
            |value: fn(&EpisodeStats) -> f64| valid.iter().map(|episode| value(episode)).sum::<f64>() / trials as f64;
        let steps = |option: usize| valid.iter().map(|episode| u64::from(episode.option_steps[option])).sum::<u64>();
        let all: u64 = (0..options).map(steps).sum();
        let forced_ends: u64 = valid.iter().map(|episode| u64::from(episode.forced_ends)).sum();
        let ends: u64 = valid.iter().flat_map(|episode| &episode.option_runs).map(|&runs| u64::from(runs)).sum();
        let used = |(option, (durations, beta)): (usize, (&Vec<u32>, &f64))| {
            let durations: Vec<f64> = durations.iter().copied().map(f64::from).collect();
            OptionUse {
                share: steps(option) as f64 / all.max(1) as f64,
                median_duration: stats::median(&durations),
                beta_mean: beta.is_finite().then_some(*beta),
            }
        };
        Ok(Self {
            success: success as f64 / trials as f64,
            success_interval: stats::wilson(success, trials, stats::Z_95),
            success_1cm: strict as f64 / trials as f64,
            success_1cm_interval: stats::wilson(strict, trials, stats::Z_95),
            return_mean: mean(|episode| episode.episode_return.into()),
            length_mean: mean(|episode| episode.first_success_step.into()),
            episodes: trials,
            aborted: episodes.len() as u64 - trials,
            forced_ends,
            forced_share: forced_ends as f64 / ends.max(1) as f64,
            options: durations.iter().zip(beta_means).enumerate().map(used).collect(),
        })
    }

    /// For a terminal: the outcome, then the options. `control_rate_hz` turns ticks into seconds.
    pub fn table(&self, control_rate_hz: f64) -> String {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let interval = |[low, high]: [f64; 2]| format!("{:.1} to {:.1} %", 100.0 * low, 100.0 * high);
        let secs = |ticks: f64| format!("{:.2} s", ticks / control_rate_hz);
        let mut outcome = calm(&["outcome", "", "95 % interval"]);
        outcome.add_row(["success", &percent(self.success), &interval(self.success_interval)]);
        outcome.add_row(["success at 1 cm", &percent(self.success_1cm), &interval(self.success_1cm_interval)]);
        outcome.add_row(["return", &format!("{:.2}", self.return_mean), ""]);
        outcome.add_row(["first success", &secs(self.length_mean), ""]);
        outcome.add_row(["episodes", &self.episodes.to_string(), ""]);
        if 0 < self.aborted {
            outcome.add_row(["aborted, left out", &self.aborted.to_string(), ""]);
        }
        let mut options = calm(&["option", "share", "median run", "termination"]);
        for (index, option) in self.options.iter().enumerate() {
            options.add_row([
                index.to_string(),
                percent(option.share),
                option.median_duration.map_or("-".into(), secs),
                option.beta_mean.map_or("-".into(), |beta| format!("{beta:.3}")),
            ]);
        }
        let forced = match self.forced_ends {
            0 => String::new(),
            1 => "\n1 run was ended by its longest duration.".into(),
            many => format!("\n{many} runs were ended by their longest duration."),
        };
        format!("{}\n\n{}{forced}", outcome.trim_fmt(), options.trim_fmt())
    }
}

/// A table with one line, numbers to the right.
/// A table with little ink; all columns but the first to the right.
pub(super) fn calm(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'))).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn episode(success: bool, episode_return: f32, option_steps: [u32; 2], end: End) -> EpisodeStats {
        EpisodeStats {
            stamp_secs: 0.0,
            rollout: "r0".into(),
            env: 0,
            episode: 0,
            version: 1,
            episode_return,
            length: option_steps.iter().sum(),
            end,
            final_error: 0.03,
            success,
            success_strict: success && episode_return > -1.0,
            first_success_step: if success { 3 } else { option_steps.iter().sum() },
            option_steps: option_steps.to_vec(),
            option_runs: vec![1, 1],
            forced_ends: 1,
        }
    }

    fn evaluation() -> Evaluation {
        let episodes = [
            episode(true, -0.5, [10, 30], End::Truncated),
            episode(true, -1.5, [20, 0], End::Terminated),
            episode(false, -4.0, [30, 10], End::Truncated),
            episode(false, -100.0, [99, 99], End::Aborted),
        ];
        Evaluation::new(&episodes, &[vec![5, 10, 9, 9], vec![]], &[0.25, f64::NAN]).unwrap()
    }

    #[test]
    fn the_outcome_is_counted_over_valid_episodes() {
        let found = evaluation();
        assert_eq!((found.success, found.success_1cm, found.episodes, found.aborted), (2.0 / 3.0, 1.0 / 3.0, 3, 1));
        assert_eq!((found.return_mean, found.forced_ends), (-2.0, 3));
        assert!((found.length_mean - 46.0 / 3.0).abs() < 1e-12);
        assert_eq!(found.forced_share, 0.5);
        assert_eq!(found.success_interval, stats::wilson(2, 3, stats::Z_95));
        assert_eq!(found.options[0], OptionUse { share: 0.6, median_duration: Some(9.0), beta_mean: Some(0.25) });
        assert_eq!(found.options[1], OptionUse { share: 0.4, median_duration: None, beta_mean: None });
    }

    #[test]
    fn its_json_has_the_agreed_keys() {
        let json = serde_json::to_value(evaluation()).unwrap();
        for key in ["success", "success_1cm", "return_mean", "length_mean", "episodes", "forced_ends"] {
            assert!(json[key].is_number(), "{key}");
        }
        assert_eq!(json["options"][0], serde_json::json!({"share": 0.6, "median_duration": 9.0, "beta_mean": 0.25}));
        assert!(json["options"][1]["median_duration"].is_null());
        assert_eq!(serde_json::from_value::<Evaluation>(json).unwrap(), evaluation());
    }

    #[test]
    fn its_table_says_what_it_counts_in_plain_words() {
        let table = evaluation().table(20.0);
        let line = |word: &str| table.lines().find(|line| line.trim().starts_with(word)).unwrap().to_owned();
        // wilson(2, 3) = [0.2077, 0.9385]
        assert!(line("success ").contains("66.7 %") && line("success ").contains("20.8 to 93.9 %"), "{table}");
        assert!(line("first success").contains("0.77 s"), "{table}");
        assert!(line("0 ").contains("60.0 %") && line("0 ").contains("0.45 s"), "{table}");
        assert!(line("1 ").contains('-'), "{table}");
        assert!(table.ends_with("3 runs were ended by their longest duration."), "{table}");
    }

    #[test]
    fn nothing_to_evaluate_is_an_error() {
        let aborted = [episode(true, 0.0, [1, 1], End::Aborted)];
        let told = Evaluation::new(&aborted, &[vec![], vec![]], &[0.0, 0.0]).unwrap_err().to_string();
        assert_eq!(told, "an evaluation needs a valid episode; it has 0, and 1 aborted");
        let valid = [episode(true, 0.0, [1, 1], End::Terminated)];
        let told = Evaluation::new(&valid, &[vec![]], &[0.0]).unwrap_err().to_string();
        assert!(told.contains("durations of 1 options") && told.ends_with("steps of 2"), "{told}");
    }
}
