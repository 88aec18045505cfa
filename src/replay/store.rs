//! The store: a ring of rows that holds fragments one behind the other, and the priorities of their steps.

use super::sum_tree::SumTree;
use crate::data::{End, Forced, Fragment};
use crate::defect::defect;
use crate::error::{Error, Result};

/// Rows under one leaf of an option's tree; within it a draw walks.
pub(super) const BLOCK: usize = 16;
/// Added to an error before it becomes a priority, so that no step is out of reach (Schaul et al. 2016, section 3.3).
const PRIORITY_EPS: f64 = 1e-6;

/// Sizes of what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// D.
    pub obs: usize,
    /// A.
    pub action: usize,
    /// K.
    pub options: usize,
    /// Longest fragment [steps]; longer ones are cut.
    pub fragment: usize,
}

/// How an error becomes a priority.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Priority {
    /// All alike.
    Uniform,
    /// `(|error| + 1e-6)^alpha` (Schaul et al. 2016, arXiv 1511.05952, eq. 1).
    Proportional {
        /// Exponent.
        alpha: f64,
    },
    /// `max(|error|^alpha, 1)`: LAP (Fujimoto et al. 2020, arXiv 2007.06049, eq. 8), to go with a Huber loss.
    Lap {
        /// Exponent.
        alpha: f64,
    },
}

impl Priority {
    fn of(self, error: f64) -> f64 {
        match self {
            Self::Uniform => 1.0,
            Self::Proportional { alpha } => (error.abs() + PRIORITY_EPS).powf(alpha),
            Self::Lap { alpha } => error.abs().powf(alpha).max(1.0),
        }
    }
}

/// A stored step, as long as nothing was written over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepId {
    pub(super) row: u32,
    pub(super) generation: u32,
}

/// What a row holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    Free,
    /// A step, and the observation that it answered.
    Step,
    /// The observation where a fragment ends.
    Edge,
}

/// The small numbers of a row; 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) generation: u32,
    pub(super) age: u32,
    /// Rows since the fragment's first.
    pub(super) at: u16,
    /// Rows until the fragment's edge.
    pub(super) left: u16,
    pub(super) option_prev: u8,
    /// `Forced` + 8 (the running option ended) + 16 `End`.
    pub(super) codes: u8,
    pub(super) kind: Kind,
}

/// A step as it is stored. Slices are raw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step<'a> {
    /// What it answered, D floats.
    pub observation: &'a [f32],
    /// Where it led, D floats: the true last observation if the episode ended there.
    pub next_observation: &'a [f32],
    /// Sampled action before tanh, A floats.
    pub proposal: &'a [f32],
    /// What was carried out, A floats in [-1, 1].
    pub action: &'a [f32],
    /// Reward.
    pub reward: f32,
    /// Option that was running on arrival, or [`crate::data::NO_OPTION`].
    pub option_prev: u8,
    /// Option that acted.
    pub option: u8,
    /// The running option ended on arrival.
    pub option_terminated: bool,
    /// Steps that the running option had run on arrival.
    pub option_age: u32,
    /// Where the policy did not choose.
    pub forced: Forced,
    /// How the step leaves its episode.
    pub end: End,
}

/// Steps of a run, the newest of them.
pub struct Replay {
    pub(super) shape: Shape,
    pub(super) priority: Priority,
    pub(super) rows: Vec<Row>,
    /// Of each row, apart: draws walk over these.
    pub(super) options: Vec<u8>,
    pub(super) observations: Vec<f32>,
    pub(super) proposals: Vec<f32>,
    pub(super) actions: Vec<f32>,
    pub(super) rewards: Vec<f32>,
    pub(super) priorities: Vec<f64>,
    /// Of each option: sums over [`BLOCK`] rows.
    pub(super) buckets: Vec<SumTree>,
    /// Totals of the buckets.
    pub(super) top: SumTree,
    /// Steps of each option.
    pub(super) counts: Vec<usize>,
    /// The next row to write.
    pub(super) cursor: usize,
    /// Rows ever written.
    pub(super) high: usize,
    /// The highest priority given so far, which new steps get.
    pub(super) highest: f64,
}

impl Replay {
    /// `capacity` rows: a fragment of n steps takes n + 1. Refuses sizes that hold nothing.
    pub fn new(shape: Shape, capacity: usize, priority: Priority) -> Result<Self> {
        let Shape { obs, action, options, fragment } = shape;
        if fragment == 0 || usize::from(u16::MAX) <= fragment || capacity <= fragment || u32::MAX as usize <= capacity {
            return Err(Error::invalid(format!(
                "a replay of {capacity} rows cannot hold fragments of {fragment} steps, which take one row more"
            )));
        }
        Ok(Self {
            shape,
            priority,
            rows: vec![Row::default(); capacity],
            options: vec![0; capacity],
            observations: vec![0.0; capacity * obs],
            proposals: vec![0.0; capacity * action],
            actions: vec![0.0; capacity * action],
            rewards: vec![0.0; capacity],
            priorities: vec![0.0; capacity],
            buckets: vec![SumTree::new(capacity.div_ceil(BLOCK)); options],
            top: SumTree::new(options),
            counts: vec![0; options],
            cursor: 0,
            high: 0,
            highest: 1.0,
        })
    }

    /// Bytes of a full replay, without small change.
    pub fn bytes(&self) -> usize {
        let floats = [&self.observations, &self.proposals, &self.actions, &self.rewards];
        let tree = 2 * self.rows.len().div_ceil(BLOCK).next_power_of_two();
        floats.map(|floats| 4 * floats.capacity()).iter().sum::<usize>()
            + (size_of::<Row>() + 1) * self.rows.capacity()
            + 8 * self.priorities.capacity()
            + 8 * tree * self.buckets.len()
    }

    /// Steps.
    pub fn len(&self) -> usize {
        self.counts.iter().sum()
    }

    /// Whether there are no steps.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Steps of each option.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// Takes a fragment in, cut where an episode ends and into the longest pieces that are allowed; the oldest give way.
    /// Nothing is joined: no stored fragment crosses an episode, an incarnation or a hold. Refuses other sizes.
    pub fn insert(&mut self, fragment: &Fragment) -> Result<()> {
        let Shape { obs, action, options, .. } = self.shape;
        let fits = fragment.obs_size == obs
            && fragment.steps.iter().all(|step| {
                step.choice.proposal.len() == action
                    && step.choice.action.len() == action
                    && usize::from(step.choice.option) < options
            });
        if !fits {
            return Err(Error::invalid(format!(
                "a fragment of environment {} does not fit the replay: it needs {obs} observed floats, {action} floats an \
                 action and options below {options}",
                fragment.env
            )));
        }
        let mut first = 0;
        for (at, step) in fragment.steps.iter().enumerate() {
            let whole = at + 1 - first == self.shape.fragment || at + 1 == fragment.steps.len();
            if whole || step.end != End::None {
                self.put(fragment, first, at + 1);
                first = at + 1;
            }
        }
        Ok(())
    }

    fn put(&mut self, fragment: &Fragment, first: usize, end: usize) {
        let Shape { obs, action, .. } = self.shape;
        let steps = end - first;
        let start = self.allocate(steps + 1);
        for at in 0..=steps {
            let row = start + at;
            let seen = if at < steps { fragment.observation(first + at) } else { fragment.next_observation(end - 1) };
            self.observations[row * obs..(row + 1) * obs].copy_from_slice(seen);
            let place = Row { at: at as u16, left: (steps - at) as u16, kind: Kind::Edge, ..self.rows[row] };
            self.rows[row] = place;
            let Some(step) = fragment.steps[..end].get(first + at) else { continue };
            self.proposals[row * action..(row + 1) * action].copy_from_slice(&step.choice.proposal);
            self.actions[row * action..(row + 1) * action].copy_from_slice(&step.choice.action);
            self.rewards[row] = step.reward;
            self.options[row] = step.choice.option;
            self.rows[row] = Row {
                age: step.choice.option_age,
                option_prev: step.choice.option_prev,
                codes: step.choice.forced as u8 + 8 * u8::from(step.choice.option_terminated) + 16 * step.end as u8,
                kind: Kind::Step,
                ..place
            };
            self.counts[usize::from(step.choice.option)] += 1;
            self.prioritise(row, self.highest);
        }
    }

    /// Frees the next `rows` rows, with all that was cut by that, and moves the cursor behind them.
    fn allocate(&mut self, rows: usize) -> usize {
        if self.rows.len() < self.cursor + rows {
            (self.cursor..self.rows.len()).for_each(|row| self.free(row));
            self.cursor = 0;
        }
        let start = self.cursor;
        self.cursor += rows;
        (start..self.cursor).for_each(|row| self.free(row));
        let mut row = self.cursor;
        while self.rows.get(row).is_some_and(|cut| cut.kind != Kind::Free && 0 < cut.at) {
            self.free(row);
            row += 1;
        }
        self.high = self.high.max(self.cursor);
        start
    }

    fn free(&mut self, row: usize) {
        let old = self.rows[row];
        self.rows[row] = Row { generation: old.generation.wrapping_add(1), ..Row::default() };
        if old.kind == Kind::Step {
            let option = usize::from(self.options[row]);
            self.counts[option] -= 1;
            self.priorities[row] = 0.0;
            self.sum_block(option, row);
        }
    }

    fn prioritise(&mut self, row: usize, priority: f64) {
        self.priorities[row] = priority;
        self.sum_block(usize::from(self.options[row]), row);
    }

    /// Sums the block of a row anew, for one option.
    pub(super) fn sum_block(&mut self, option: usize, row: usize) {
        let block = row / BLOCK;
        let sum = self.steps_of(block, option).map(|(_, priority)| priority).sum();
        self.buckets[option].set(block, sum);
        self.top.set(option, self.buckets[option].total());
    }

    fn block(&self, block: usize) -> std::ops::Range<usize> {
        block * BLOCK..((block + 1) * BLOCK).min(self.rows.len())
    }

    /// Rows of a block that are steps of an option, with their priorities: those of steps are positive, all others 0.
    pub(super) fn steps_of(&self, block: usize, option: usize) -> impl Iterator<Item = (usize, f64)> {
        let range = self.block(block);
        let rows = self.options[range.clone()].iter().zip(&self.priorities[range.clone()]).zip(range);
        rows.filter(move |&((&of, &priority), _)| usize::from(of) == option && 0.0 < priority)
            .map(|((_, &priority), row)| (row, priority))
    }

    /// Takes the errors of steps as they are now. Returns how many were dropped: their steps were written over meanwhile.
    /// An error that is not finite changes nothing.
    pub fn update(&mut self, steps: &[StepId], errors: &[f64]) -> usize {
        let mut dropped = 0;
        for (step, &error) in steps.iter().zip(errors) {
            let row = step.row as usize;
            if self.rows[row].generation != step.generation || self.rows[row].kind != Kind::Step {
                dropped += 1;
            } else if error.is_finite() {
                let priority = self.priority.of(error);
                let rounded = if defect("highest_priority_rounded") { priority.floor() } else { priority };
                self.highest = self.highest.max(rounded);
                self.prioritise(row, priority);
            }
        }
        dropped
    }

    /// A stored step; none if it was written over.
    pub fn step(&self, id: StepId) -> Option<Step<'_>> {
        let row = self.rows.get(id.row as usize)?;
        (row.generation == id.generation && row.kind == Kind::Step).then(|| self.at(id.row as usize))
    }

    pub(super) fn at(&self, row: usize) -> Step<'_> {
        let Shape { obs, action, .. } = self.shape;
        let small = self.rows[row];
        Step {
            observation: &self.observations[row * obs..(row + 1) * obs],
            next_observation: &self.observations[(row + 1) * obs..(row + 2) * obs],
            proposal: &self.proposals[row * action..(row + 1) * action],
            action: &self.actions[row * action..(row + 1) * action],
            reward: self.rewards[row],
            option_prev: small.option_prev,
            option: self.options[row],
            option_terminated: small.codes & 8 != 0,
            option_age: small.age,
            forced: forced(small.codes),
            end: end(small.codes),
        }
    }
}

fn forced(codes: u8) -> Forced {
    [Forced::Free, Forced::Init, Forced::MinSteps, Forced::MaxSteps, Forced::Preempted][usize::from(codes % 8).min(4)]
}

fn end(codes: u8) -> End {
    [End::None, End::Terminated, End::Truncated, End::Aborted][usize::from(codes / 16).min(3)]
}
