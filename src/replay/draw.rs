//! Draws: steps by priority, spread over options; whole fragments, evenly.

use super::store::{Kind, Replay, Step, StepId};
use crate::error::{Error, Result};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

/// Options with fewer steps get no share of their own.
const ACTIVE: usize = 64;

/// A drawn step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draw {
    /// Which.
    pub step: StepId,
    /// How likely each draw was to give it.
    pub probability: f64,
}

/// A drawn fragment.
#[derive(Clone, Debug, PartialEq)]
pub struct Picked {
    /// Its first row.
    start: usize,
    /// Its steps.
    pub len: usize,
    /// Some of its steps, spread evenly.
    pub steps: Vec<usize>,
}

impl Replay {
    /// Draws `count` steps in strata of equal probability, the j-th from [j / count, (j + 1) / count) of
    /// `P(i) = (1 - share) p_i / sum p + share / K_active p_i / sum_{option of i} p`:
    /// with probability `share` each option with at least 64 steps is as likely as the others.
    pub fn draw(&self, count: usize, share: f64, rng: &mut ChaCha8Rng) -> Result<Vec<Draw>> {
        if self.is_empty() {
            return Err(Error::invalid("nothing can be drawn from a replay without steps"));
        }
        let active: Vec<usize> = (0..self.counts.len()).filter(|&option| ACTIVE <= self.counts[option]).collect();
        let share = if active.is_empty() { 0.0 } else { share };
        let draws = (0..count).map(|stratum| {
            let at: f64 = (stratum as f64 + rng.random::<f64>()) / count as f64;
            let (option, prefix) = if at < share {
                let place = at / share * active.len() as f64;
                let option = active[(place as usize).min(active.len() - 1)];
                (option, place.fract() * self.buckets[option].total())
            } else {
                self.top.find((at - share) / (1.0 - share) * self.top.total())
            };
            let row = self.find(option, prefix);
            let priority = self.priorities[row];
            let own = active.contains(&option).then(|| priority / self.buckets[option].total() / active.len() as f64);
            let probability = (1.0 - share) * priority / self.top.total() + share * own.unwrap_or(0.0);
            Draw { step: self.id(row), probability }
        });
        Ok(draws.collect())
    }

    /// The row at a running sum of an option's priorities.
    fn find(&self, option: usize, prefix: f64) -> usize {
        let (block, mut left) = self.buckets[option].find(prefix);
        let mut last = block * super::store::BLOCK;
        for (row, priority) in self.steps_of(block, option) {
            last = row;
            if left < priority {
                break;
            }
            left -= priority;
        }
        last
    }

    /// Draws `count` fragments, each as likely as it has steps, and `picks` steps of each: every stored step is as likely
    /// as every other.
    pub fn pick(&self, count: usize, picks: usize, rng: &mut ChaCha8Rng) -> Result<Vec<Picked>> {
        if self.is_empty() {
            return Err(Error::invalid("nothing can be drawn from a replay without steps"));
        }
        let mut step = || loop {
            let row = rng.random_range(0..self.high);
            if self.rows[row].kind == Kind::Step {
                break row;
            }
        };
        let picked = (0..count).map(|_| {
            let row = step();
            let (at, left) = (usize::from(self.rows[row].at), usize::from(self.rows[row].left));
            let len = at + left;
            let steps = (0..picks).map(|pick| (at + pick * len / picks) % len).collect();
            Picked { start: row - at, len, steps }
        });
        Ok(picked.collect())
    }

    /// A step of a drawn fragment.
    pub fn of(&self, picked: &Picked, step: usize) -> Step<'_> {
        self.at(picked.start + step.min(picked.len - 1))
    }

    fn id(&self, row: usize) -> StepId {
        StepId { row: row as u32, generation: self.rows[row].generation }
    }
}

/// Importance weights `(N P(i))^-beta` over their largest (Schaul et al. 2016, section 3.4); `steps` is N.
/// Without the division, beta = 1 makes weighted means over draws unbiased.
pub fn importance(draws: &[Draw], steps: usize, beta: f64) -> Vec<f64> {
    let raw: Vec<f64> = draws.iter().map(|draw| (steps as f64 * draw.probability).powf(-beta)).collect();
    let most = raw.iter().copied().fold(0.0, f64::max);
    raw.iter().map(|weight| weight / most).collect()
}
