//! Plays episodes with a snapshot in the embedded simulator, without ROS: the same rollout machine, in one loop.

use crate::config::{Config, Purpose, Seed, Sim};
use crate::contract::Snapshot;
use crate::data::{EpisodeStats, Forced, Fragment, StreamId};
use crate::error::Result;
use crate::node::rollout::{Permit, Rollout};
use crate::policy::Sampling;
use crate::sim::{Arms, Lockstep};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Environments that play side by side; a fixed number, so that the same seed plays the same episodes.
pub const ENVIRONMENTS: usize = 16;
/// Ticks between two looks at what was recorded.
const TICKS: usize = 64;

/// One run of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionRun {
    /// Control ticks.
    pub steps: u32,
    /// The episode ended before the option did.
    pub censored: bool,
    /// d_max ended it.
    pub forced: bool,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Play {
    /// Exactly as many episodes as were asked for.
    pub episodes: Vec<EpisodeStats>,
    /// What was recorded of them, in order of time, 16 environments side by side.
    pub fragments: Vec<Fragment>,
    /// K: runs of each option.
    pub runs: Vec<Vec<OptionRun>>,
    /// K: mean termination probability on arrival with the option running; NaN where it never ran.
    pub termination_prob: Vec<f64>,
}

/// Plays `episodes` episodes in the simulator of `config`. Starts, goals, options and terminations hang below `seed` alone.
pub fn play(snapshot: &Arc<Snapshot>, config: &Config, episodes: usize, seed: u64, sampling: Sampling) -> Result<Play> {
    let contract = &snapshot.contract;
    let num_envs = episodes.min(ENVIRONMENTS);
    let task = crate::task::find(&contract.task)?;
    let sim = Sim { threads: 0, ..config.sim.clone() };
    let period = contract.control_period_secs;
    let arms = Arms::new(num_envs, contract.robot, &sim, period, task.cube())?.led(config.lead())?;
    let mut lockstep = Lockstep::new(arms, 0);
    let stream = StreamId { rollout: "evaluation".into(), incarnation: 0 };
    let seed = Seed::root(seed).of(Purpose::Evaluation);
    let mut rollout = Rollout::new(contract.clone(), num_envs, stream, seed, sampling)?.leashed(config.leash_rad());
    rollout.install(snapshot.clone())?;
    let share = |env: u32| (episodes / num_envs + usize::from((env as usize) < episodes % num_envs)) as u64;
    let (mut finished, mut fragments) = (Vec::new(), Vec::new());
    while finished.len() < episodes {
        for _ in 0..TICKS {
            let states = lockstep.states();
            rollout.arrive(&states)?;
            let commands = rollout.answer(&states, Permit::Act(&|_| true))?;
            lockstep.command(0.0, &commands);
        }
        let (recorded, ended) = rollout.take();
        fragments.extend(recorded);
        finished.extend(ended.into_iter().filter(|stats| stats.episode < share(stats.env)));
    }
    finished.sort_by_key(|stats| (stats.episode, stats.env));
    let fragments: Vec<Fragment> =
        fragments.into_iter().filter_map(|fragment| up_to(share(fragment.env), fragment)).collect();
    let (runs, termination_prob) = runs(&fragments, contract.options.count);
    Ok(Play { episodes: finished, fragments, runs, termination_prob })
}

/// The steps of the first episodes of an environment; none where it has none of them.
fn up_to(episodes: u64, mut fragment: Fragment) -> Option<Fragment> {
    let kept = fragment.steps.iter().take_while(|step| step.episode < episodes).count();
    fragment.steps.truncate(kept);
    fragment.observations.truncate((kept + 1) * fragment.obs_size);
    fragment.finals.retain(|last| last.step < kept);
    (0 < kept).then_some(fragment)
}

/// Follows the options through the fragments of each environment, in order.
fn runs(fragments: &[Fragment], options: usize) -> (Vec<Vec<OptionRun>>, Vec<f64>) {
    let mut runs = vec![Vec::new(); options];
    let mut arrivals = vec![(0.0, 0u64); options];
    let mut open: BTreeMap<u32, (u64, usize, u32)> = BTreeMap::new();
    for fragment in fragments {
        for step in &fragment.steps {
            let option = usize::from(step.choice.option);
            if step.choice.option_terminated {
                if let Some((episode, before, steps)) = open.remove(&fragment.env) {
                    let forced = step.choice.forced == Forced::MaxSteps;
                    runs[before].push(OptionRun { steps, censored: episode != step.episode, forced });
                }
                open.insert(fragment.env, (step.episode, option, 1));
            } else if let Some((_, _, steps)) = open.get_mut(&fragment.env) {
                *steps += 1;
            }
            if step.choice.forced != Forced::Init {
                let (sum, count) = &mut arrivals[usize::from(step.choice.option_prev)];
                (*sum, *count) = (*sum + f64::from(step.choice.termination_prob), *count + 1);
            }
        }
    }
    for (_, option, steps) in open.into_values() {
        runs[option].push(OptionRun { steps, censored: true, forced: false });
    }
    (runs, arrivals.into_iter().map(|(sum, count)| sum / count as f64).collect())
}
