//! The learner's check on its rollouts: one row in a thousand is decided again under the version that it names.

use crate::contract::Snapshot;
use crate::data::Gathered;
use crate::policy::log_prob_error;
use crate::report::verdict::{LOG_PROB_CAUSES, LOG_PROB_LIMIT};
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// Rows for one that is checked; the first one that can be is checked, too.
const EVERY: u64 = 1000;
/// Newest versions that are kept.
const KEPT: usize = 16;

/// A sentence that, once said, stays; readable from any thread.
#[derive(Clone, Debug, Default)]
pub struct Alarm(Arc<OnceLock<String>>);

impl Alarm {
    /// What was said.
    pub fn said(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct SelfCheck {
    kept: VecDeque<Snapshot>,
    /// Older versions may be another life's.
    since: u64,
    /// Rows to let pass before the next check.
    skip: u64,
    largest: Option<f64>,
    alarm: Alarm,
}

impl SelfCheck {
    /// After a resume: versions up to `since` may have been made twice, and are let pass.
    pub(super) fn since(self, since: u64) -> Self {
        Self { since, ..self }
    }

    /// Set once there is a difference.
    pub(super) fn alarm(&self) -> Alarm {
        self.alarm.clone()
    }

    /// Looks at the rows of an update; `newest` is the version that was published last. Returns the largest difference
    /// so far.
    pub(super) fn look(&mut self, rows: &[Gathered], newest: Snapshot) -> Option<f64> {
        if self.since < newest.version {
            self.kept.push_back(newest);
            self.kept.drain(..self.kept.len().saturating_sub(KEPT));
        }
        for row in rows {
            if 0 < self.skip {
                self.skip -= 1;
            } else if let Some(error) = self.check(row) {
                self.skip = EVERY - 1;
                // A metric has to be finite.
                self.largest = Some(self.largest.unwrap_or(0.0).max(error).min(f64::from(f32::MAX)));
            }
        }
        self.largest
    }

    /// None where no version of the row is kept.
    fn check(&self, row: &Gathered) -> Option<f64> {
        let errors = self.kept.iter().map(|snapshot| log_prob_error(snapshot, &row.fragment));
        let (errors, refused): (Vec<_>, Vec<_>) = errors.partition(Result::is_ok);
        if let Some(Err(error)) = refused.first() {
            tracing::warn!("a row of {} cannot be checked: {error}", row.stream);
        }
        let error = errors.into_iter().filter_map(|error| error.ok().flatten()).reduce(f64::max)?;
        if LOG_PROB_LIMIT < error && self.alarm.said().is_none() {
            let sentence = format!(
                "a log-probability that {} recorded differs by {error:.1e} from what its version gives: {LOG_PROB_CAUSES}",
                row.stream
            );
            tracing::error!("{sentence}");
            let _set_once = self.alarm.0.set(sentence);
        }
        Some(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Architecture, Contract};
    use crate::data::{End, Forced, Fragment, StreamId, Transition};
    use crate::option::Running;
    use crate::policy::tests::{OBS, contract, draws, snapshot};
    use crate::policy::{Policy, Sampling};

    const STEPS: usize = 40;

    /// What `acting` decides on observations that go through `seen`, with the proposals through `done`.
    fn row(acting: &Snapshot, seen: impl Fn(&mut [f32]), done: impl Fn(&mut Vec<f32>)) -> Gathered {
        let policy = Policy::new(acting).unwrap();
        let mut running = Running::default();
        let observations: Vec<f32> = (0..(STEPS + 1) * OBS).map(|at| (at as f32 * 0.7).sin()).collect();
        let mut steps = Vec::new();
        for t in 0..STEPS {
            let mut observation = observations[t * OBS..(t + 1) * OBS].to_vec();
            seen(&mut observation);
            let decided =
                policy.decide(&observation, &[running], &mut draws(1, t as u64), Sampling::Stochastic).unwrap();
            let mut decision = decided[0].clone();
            done(&mut decision.choice.proposal);
            running = decision.next;
            steps.push(Transition {
                version: acting.version,
                episode: 0,
                t: t as u32,
                stamp_secs: 0.0,
                choice: decision.choice,
                filtered: false,
                intervened: false,
                reward: 0.0,
                end: End::None,
            });
        }
        let mut forced: Vec<Forced> = steps.iter().map(|step| step.choice.forced).collect();
        forced.dedup();
        assert!(3 < forced.len(), "the row sees free and forced decisions");
        let fragment = Fragment { env: 0, first: 0, obs_size: OBS, steps, observations, finals: vec![] };
        Gathered { stream: StreamId { rollout: "r0".into(), incarnation: 1 }, seq: 0, fragment }
    }

    fn version(contract: &Arc<Contract>, version: u64) -> Snapshot {
        Snapshot { version, ..snapshot(contract, version, 0.4) }
    }

    fn published() -> Snapshot {
        version(&contract(3, &[16]), 7)
    }

    fn look(row: Gathered) -> (f64, Alarm) {
        let mut check = SelfCheck::default();
        (check.look(&[row], published()).unwrap(), check.alarm())
    }

    #[test]
    fn what_the_version_decided_is_found_again_to_rounding() {
        let (error, alarm) = look(row(&published(), |_| {}, |_| {}));
        assert!(error < 1e-5, "{error}");
        assert_eq!(alarm.said(), None);
        let mut warming = published();
        warming.random_warmup = true;
        let mut check = SelfCheck::default();
        let error = check.look(&[row(&warming, |_| {}, |_| {})], warming.clone()).unwrap();
        assert!(error < 1e-5, "random actions: {error}");
        let mut off_policy = (*contract(3, &[16])).clone();
        off_policy.network.architecture = Architecture::OffPolicy;
        let off_policy = version(&Arc::new(off_policy), 7);
        let error = SelfCheck::default().look(&[row(&off_policy, |_| {}, |_| {})], off_policy.clone()).unwrap();
        assert!(error < 1e-5, "stds that depend on the state: {error}");
    }

    #[test]
    fn another_normaliser_permuted_joints_and_other_weights_are_caught() {
        let mut shifted = published();
        shifted.normaliser.mean[1] += 0.01;
        let mut older = published();
        older.parameters = version(&contract(3, &[16]), 6).parameters;
        for (what, row) in [
            ("normaliser", row(&shifted, |_| {}, |_| {})),
            ("weights", row(&older, |_| {}, |_| {})),
            ("observed joints", row(&published(), |observation| observation.swap(0, 1), |_| {})),
            ("moved joints", row(&published(), |_| {}, |proposal| proposal.swap(0, 1))),
        ] {
            let (error, alarm) = look(row);
            assert!(LOG_PROB_LIMIT < error, "{what}: {error}");
            let said = alarm.said().unwrap().to_owned();
            assert!(said.contains("r0#00000001") && said.contains("normaliser"), "{said}");
        }
    }

    #[test]
    fn one_row_in_a_thousand_is_checked_and_the_largest_difference_stays() {
        let (right, wrong) = (row(&published(), |_| {}, |_| {}), row(&published(), |seen| seen.swap(0, 1), |_| {}));
        let mut rows = vec![wrong; 1002];
        rows[0] = right.clone();
        let mut check = SelfCheck::default();
        assert!(check.look(&rows[..1000], published()).unwrap() < 1e-5, "999 rows pass unseen");
        let largest = check.look(&rows[1000..], published()).unwrap();
        assert!(LOG_PROB_LIMIT < largest);
        check.skip = 0;
        assert_eq!(check.look(&[right], published()), Some(largest));
    }

    #[test]
    fn rows_of_versions_that_are_gone_or_may_be_another_lifes_pass() {
        let contract = contract(3, &[16]);
        let old = row(&version(&contract, 1), |_| {}, |_| {});
        let mut check = SelfCheck::default();
        for number in 1..=17 {
            check.look(&[], version(&contract, number));
        }
        assert_eq!(check.look(std::slice::from_ref(&old), version(&contract, 18)), None, "versions 3 to 18 are kept");
        let mut resumed = SelfCheck::default().since(1);
        assert_eq!(resumed.look(&[old], version(&contract, 1)), None);
        let fresh = row(&version(&contract, 2), |_| {}, |_| {});
        assert!(
            resumed.look(&[fresh], version(&contract, 2)).unwrap() < 1e-5,
            "what cannot be checked uses up no turn"
        );
    }
}
