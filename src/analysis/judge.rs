//! Recorded decisions under the policies of today: how far they are from one another, and what the critic makes of it.

use super::rows::{Block, Name, Row, Sampled};
use super::trace::{Axis, Mean, Tally, Trace, Worst};
use super::{Divergence, OptionDivergence, Values};
use crate::contract::{Contract, Snapshot};
use crate::error::Result;
use crate::option::{Arrival, Running, arrival_value, beta_effective, transition};
use crate::policy::{Outputs, Policy};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use uuid::Uuid;

/// Snapshots of a bag that are kept, newest last.
const KEPT: usize = 16;
/// Nothing is less likely than this: keeps a KL finite where one policy rules out what the other does.
const RAREST: f64 = 1e-12;

/// Log densities that differ by less are the same: they are recorded as f32 [nat].
const SAME_LOG: f64 = 1e-3;

/// A divergence below this is no moment to look at [nat].
const LEAST: f64 = 1e-3;

/// How the critic was taught.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rewards {
    /// Discount of a control tick.
    pub gamma: f64,
    /// Rewards are divided by this.
    pub scale: f64,
    /// Of a change of option, in scaled rewards.
    pub cost: f64,
}

struct Compared {
    /// Action by the option that acted, option transition by the one that was running on arrival.
    options: Vec<[Tally; 2]>,
    same: Tally,
    trace: Trace,
    worst: Worst,
}

impl Compared {
    fn new(axis: Axis, options: usize) -> Self {
        let options = vec![[Tally::default(); 2]; options];
        Self { options, same: Tally::default(), trace: Trace::new(axis), worst: Worst::new(axis) }
    }

    fn add(&mut self, row: &Row, action: Option<f64>, option: f64) {
        if let (Some([actions, _]), Some(action)) = (self.options.get_mut(usize::from(row.option)), action) {
            actions.add(action);
        }
        // outcomes of p^ are means over what was drawn only where they are gathered by what it depends on
        if let Some([_, options]) = row.running.option.and_then(|running| self.options.get_mut(usize::from(running))) {
            options.add(option);
        }
        let both = action.unwrap_or(0.0) + option;
        self.trace.add(row.at_secs, both);
        if LEAST < both {
            self.worst.add(row.at_secs, both, || format!("{}: {both:.2} nat", place(row)));
        }
    }

    fn finish(self) -> Option<Divergence> {
        let said = !self.trace.is_empty();
        let options = self.options.iter().enumerate().map(|(option, [action, transition])| OptionDivergence {
            option,
            action: action.mean(),
            transition: transition.mean(),
        });
        said.then(|| Divergence {
            options: options.collect(),
            agreement: self.same.mean().map(|same| same.mean),
            worst: self.worst.finish(),
            trace: self.trace,
        })
    }
}

/// What the judge found: recorded against present, present against the other, the critic.
pub(super) type Findings = (Option<Divergence>, Option<Divergence>, Option<Values>);

/// Judges blocks under the present policy.
pub(super) struct Judge {
    contract: Arc<Contract>,
    present: Policy,
    against: Option<Policy>,
    /// The critic has something to say.
    critic: bool,
    rewards: Option<Rewards>,
    /// Of the bag.
    kept: VecDeque<Arc<Snapshot>>,
    /// Lives of runs whose actions are seen to be drawn.
    drawn: BTreeSet<(Uuid, u32)>,
    /// Actions of which that is not known, nor the weights: they say nothing.
    pub(super) untold: u64,
    /// One of them, built.
    logged: Option<(Name, Policy)>,
    now: Compared,
    between: Compared,
    values: Tally,
    td: Tally,
    value_trace: Trace,
    td_trace: Trace,
    worst: Worst,
}

impl Judge {
    pub(super) fn new(axis: Axis, of: &super::walk::Present, against: Option<&Snapshot>) -> Result<Self> {
        let (present, rewards) = (&*of.snapshot, of.rewards);
        let options = present.contract.options.count;
        Ok(Self {
            contract: present.contract.clone(),
            present: Policy::new(present)?,
            against: against.map(Policy::new).transpose()?,
            critic: of.critic,
            rewards,
            kept: VecDeque::new(),
            drawn: BTreeSet::new(),
            untold: 0,
            logged: None,
            now: Compared::new(axis, options),
            between: Compared::new(axis, options),
            values: Tally::default(),
            td: Tally::default(),
            value_trace: Trace::new(axis),
            td_trace: Trace::new(axis),
            worst: Worst::new(axis),
        })
    }

    /// A snapshot of the bag, by which nodes decided.
    pub(super) fn keep(&mut self, snapshot: &Arc<Snapshot>) {
        if KEPT == self.kept.len() {
            self.kept.pop_front();
        }
        self.kept.push_back(snapshot.clone());
    }

    /// The newest weights that were heard of a version.
    pub(super) fn heard(&self, version: u64) -> Option<Name> {
        self.kept.iter().rev().map(|snapshot| name(snapshot)).find(|(.., known)| *known == version)
    }

    /// The weights that decided a row as a policy, if the bag has them; none where they acted at random.
    fn logged(&mut self, by: Name) -> Result<Option<&Policy>> {
        if self.logged.as_ref().is_none_or(|(known, _)| *known != by) {
            let found = self.kept.iter().find(|snapshot| name(snapshot) == by && !snapshot.random_warmup);
            self.logged =
                found.map(|snapshot| Ok::<_, crate::error::Error>((by, Policy::new(snapshot)?))).transpose()?;
        }
        Ok(self.logged.as_ref().map(|(_, policy)| policy))
    }

    /// Whether actions are drawn. On-policy, deviations are the same in all states, and so is the density of the mean action.
    fn drawn(&mut self, block: &Block) {
        let mut densities = BTreeMap::new();
        for row in &block.rows {
            let Some(Sampled { by, log_prob_action, .. }) = &row.sampled else { continue };
            let first = *densities.entry((*by, row.option)).or_insert(*log_prob_action);
            if SAME_LOG < (log_prob_action - first).abs() {
                self.drawn.insert((by.0, by.1));
            }
        }
    }

    /// Looks at a block. Its floats are finite.
    pub(super) fn look(&mut self, block: &Block) -> Result<()> {
        if block.rows.is_empty() {
            return Ok(());
        }
        self.drawn(block);
        let outputs = self.present.outputs(&block.observations)?;
        let against = self.against.as_ref().map(|policy| policy.outputs(&block.observations)).transpose()?;
        let values = if self.critic { self.present.values(&block.observations)? } else { Vec::new() };
        let mut logged: Option<(Name, Option<Outputs>)> = None;
        for (at, row) in block.rows.iter().enumerate() {
            if self.contract.options.count <= usize::from(row.option) {
                continue;
            }
            let law = self.law(&outputs, at, row.running);
            let by = row.sampled.as_ref().map(|sampled| sampled.by);
            let by = by.or(row.published.as_ref().and_then(|published| published.by));
            if let Some(by) = by.filter(|by| logged.as_ref().is_none_or(|(known, _)| known != by)) {
                let policy = self.logged(by)?;
                logged = Some((by, policy.map(|policy| policy.outputs(&block.observations)).transpose()?));
            }
            let before = logged.as_ref().filter(|(known, _)| by == Some(*known));
            let before = before.and_then(|(_, outputs)| outputs.as_ref());
            self.recorded(row, at, &outputs, before, &law);
            if let Some(other) = &against {
                let action = gaussians(&outputs, other, at, usize::from(row.option), self.contract.action_size());
                self.between.add(row, Some(action), kl(&law, &self.law(other, at, row.running)));
            }
            if !values.is_empty() {
                self.critic(row, at, &outputs, &values);
            }
        }
        Ok(())
    }

    /// p^ in a state.
    fn law(&self, outputs: &Outputs, at: usize, running: Running) -> Vec<f64> {
        let logit = running.option.map_or(0.0, |option| outputs.termination(at, usize::from(option)));
        let arrival = Arrival::new(logit, running, &self.contract.options);
        let over: Vec<f64> = outputs.log_over_options(at).iter().map(|log| log.exp()).collect();
        let mut law = vec![0.0; over.len()];
        transition(arrival.beta(), arrival.running, &over, &mut law);
        law
    }

    fn recorded(&mut self, row: &Row, at: usize, outputs: &Outputs, before: Option<&Outputs>, law: &[f64]) {
        let option = usize::from(row.option);
        let exact = |before: &Outputs| gaussians(before, outputs, at, option, self.contract.action_size());
        if let Some(sampled) = &row.sampled {
            // the mean of log (recorded / present) over what was sampled is the KL; over mean actions it is none
            let estimate = || {
                let Sampled { by, proposal, log_prob_action, .. } = sampled;
                let drawn = self.drawn.contains(&(by.0, by.1));
                drawn.then(|| log_prob_action - outputs.log_prob_action(at, option, proposal))
            };
            let action = before.map(exact).or_else(estimate);
            self.untold += u64::from(action.is_none());
            self.now.add(row, action, sampled.log_prob_option - law[option].max(RAREST).ln());
        }
        if let Some(published) = row.published.as_ref().filter(|published| published.over_options.len() == law.len()) {
            let (beta, _) = beta_effective(published.termination_prob, row.running.age, &self.contract.options);
            let mut recorded = vec![0.0; law.len()];
            transition(beta, row.running.option.map(usize::from), &published.over_options, &mut recorded);
            let action = before.map(exact);
            self.now.add(row, action, kl(&recorded, law));
            if let Some(decided) = row.decided {
                self.now.same.add(f64::from(u8::from(decided == row.option)));
            }
        }
    }

    fn critic(&mut self, row: &Row, at: usize, outputs: &Outputs, values: &[f32]) {
        let options = self.contract.options.count;
        let q = |at: usize| -> Vec<f64> {
            values[at * options..(at + 1) * options].iter().map(|&value| f64::from(value)).collect()
        };
        let value = q(at)[usize::from(row.option)];
        self.values.add(value);
        self.value_trace.add(row.at_secs, value);
        let (Some(rewards), Some(reward), Some(next)) = (self.rewards, row.reward, row.next) else { return };
        let beyond = if row.terminated {
            0.0
        } else {
            let law = self.law(outputs, next, row.after);
            arrival_value(&law, &q(next), row.after.option.map(usize::from), rewards.cost)
        };
        let error = reward / rewards.scale + rewards.gamma * beyond - value;
        self.td.add(error);
        self.td_trace.add(row.at_secs, error);
        self.worst.add(row.at_secs, error.abs(), || format!("{}: TD error {error:+.2}", place(row)));
    }

    /// What was found.
    pub(super) fn finish(self) -> Findings {
        let Self { now, between, values, td, value_trace, td_trace, worst, .. } = self;
        let critic = values.mean().map(|values: Mean| Values {
            values,
            td_errors: td.mean(),
            worst: worst.finish(),
            trace: value_trace,
            td_trace,
        });
        (now.finish(), between.finish(), critic)
    }
}

fn name(snapshot: &Snapshot) -> Name {
    (snapshot.run, snapshot.life, snapshot.version)
}

fn place(row: &Row) -> String {
    let (env, episode, tick) = row.place;
    format!("option {}, environment {env}, episode {episode}, tick {tick}", row.option)
}

/// KL of two laws over options [nat].
fn kl(p: &[f64], q: &[f64]) -> f64 {
    let terms = p.iter().zip(q).filter(|(p, _)| 0.0 < **p);
    terms.map(|(p, q)| p * (p / q.max(RAREST)).ln()).sum()
}

/// KL of an option's Gaussians, p || q [nat].
fn gaussians(p: &Outputs, q: &Outputs, at: usize, option: usize, size: usize) -> f64 {
    (0..size)
        .map(|joint| {
            let apart = f64::from(p.mean(at, option)[joint]) - f64::from(q.mean(at, option)[joint]);
            let (p, q) = (p.log_std(at, option)[joint], q.log_std(at, option)[joint]);
            q - p + ((2.0 * p).exp() + apart * apart) / (2.0 * (2.0 * q).exp()) - 0.5
        })
        .sum()
}
