//! The steps of an update, and the minibatches of them.

use super::estimate::Estimated;
use super::gather::Gathered;
use crate::data::Forced;
use crate::defect::defect;
use crate::policy::Outputs;
use std::sync::Arc;
use tch::Tensor;

/// Numbers of a step, in the columns of [`Batch::columns`].
#[derive(Clone, Copy)]
pub(super) enum Column {
    /// log density of the proposal, proximal.
    LogProbAction,
    /// log p^(option), proximal.
    LogProbOption,
    /// Option weight x min(rho bar, rho^L) x A_L: constants of the action's objective.
    AdvantageAction,
    /// min(rho bar, rho^H) x A_H; 0 where pre-empted.
    AdvantageOption,
    /// V-trace target of Q(s, o).
    Target,
    /// Option weight.
    Weight,
    /// 1 where the option was drawn from P for sure (start, pre-emption, d_max).
    Drawn,
    /// 1 where the policy chose, and the running option acts on.
    FreeSame,
    /// 1 where the policy chose another option.
    FreeOther,
}

/// Columns of a step.
pub(super) const COLUMNS: usize = 9;

/// Steps in rows; they stand for as long as an update descends.
pub(super) struct Batch {
    /// `[N, D]`, normalised.
    pub(super) input: Tensor,
    /// All that is no input of a network.
    pub(super) steps: Arc<Steps>,
}

/// Steps in rows, in plain numbers.
pub(super) struct Steps {
    /// N, the option that acted.
    pub(super) option: Vec<usize>,
    /// N, the option that ran on arrival; 0 where none did.
    pub(super) running: Vec<usize>,
    /// N x A.
    pub(super) proposal: Vec<f32>,
    /// N x [`COLUMNS`].
    pub(super) columns: Vec<f32>,
    /// Proximal means, N x K x A, where options are anchored.
    pub(super) anchor: Option<Vec<f32>>,
}

/// Some of the steps of a batch.
pub(super) struct Minibatch {
    /// `[B, D]`, normalised.
    pub(super) input: Tensor,
    /// B rows of `steps`.
    pub(super) rows: Arc<[usize]>,
    /// The whole batch's.
    pub(super) steps: Arc<Steps>,
}

impl Batch {
    /// Lays the update's steps out.
    pub(super) fn new(
        gathered: &Gathered<'_>,
        estimated: &Estimated,
        outputs: &Outputs,
        weights: &[f64],
        input: &Tensor,
        anchored: bool,
        decoupled: bool,
    ) -> Self {
        let count = gathered.steps.len();
        let mut columns = vec![0.0f32; count * COLUMNS];
        for (row, columns) in columns.chunks_exact_mut(COLUMNS).enumerate() {
            let step = gathered.steps[row];
            let (arrival, estimate) = (&estimated.arrivals[row], &estimated.estimates[row]);
            let weight = weights[usize::from(step.choice.option)];
            let mut set = |column: Column, value: f64| columns[column as usize] = value as f32;
            // what lags is weighed outside of the clip, or counts inside of it
            let [rho_action, rho_option] =
                if decoupled { [estimate.rho_action, estimate.rho_option] } else { [1.0; 2] };
            let inside = |log_rho: f64| if decoupled { 0.0 } else { log_rho };
            let twice = if defect("correction_inside_the_clip") { estimated.log_rho_action[row] } else { 0.0 };
            let log_prob_action = estimated.log_prob_action[row] - inside(estimated.log_rho_action[row]);
            set(Column::LogProbAction, log_prob_action - twice);
            set(Column::LogProbOption, estimated.log_prob_option[row] - inside(estimated.log_rho_option[row]));
            set(Column::AdvantageAction, weight * rho_action * estimated.advantage_action[row]);
            if step.choice.forced != Forced::Preempted {
                set(Column::AdvantageOption, rho_option * estimated.advantage_option[row]);
            }
            set(Column::Target, estimate.target);
            set(Column::Weight, weight);
            let same = arrival.running == Some(usize::from(step.choice.option));
            match arrival.forced {
                Forced::Free if same => set(Column::FreeSame, 1.0),
                Forced::Free => set(Column::FreeOther, 1.0),
                Forced::MinSteps => {}
                Forced::Init | Forced::MaxSteps | Forced::Preempted => set(Column::Drawn, 1.0),
            }
        }
        let option: Vec<usize> = gathered.steps.iter().map(|step| usize::from(step.choice.option)).collect();
        let running = estimated.arrivals.iter().map(|arrival| arrival.running.unwrap_or(0)).collect();
        let steps = Steps {
            running: if defect("ends_the_new_option") { option.clone() } else { running },
            option,
            proposal: gathered.steps.iter().flat_map(|step| &step.choice.proposal).copied().collect(),
            columns,
            anchor: anchored.then(|| (0..count).flat_map(|row| outputs.means(row)).copied().collect()),
        };
        Self { input: input.narrow(0, 0, count as i64), steps: Arc::new(steps) }
    }

    /// Steps.
    pub(super) fn len(&self) -> usize {
        self.steps.option.len()
    }

    /// The steps of an index.
    pub(super) fn select(&self, rows: &[usize]) -> Minibatch {
        let index: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
        Minibatch {
            input: self.input.index_select(0, &Tensor::from_slice(&index)),
            rows: rows.into(),
            steps: self.steps.clone(),
        }
    }
}

impl Steps {
    /// A number of a step.
    pub(super) fn column(&self, row: usize, column: Column) -> f64 {
        f64::from(self.columns[row * COLUMNS + column as usize])
    }

    /// A floats.
    pub(super) fn proposal(&self, row: usize) -> &[f32] {
        let action = self.proposal.len() / self.option.len();
        &self.proposal[row * action..(row + 1) * action]
    }
}

impl Minibatch {
    /// The same steps, for another thread.
    pub(super) fn share(&self) -> Self {
        Self { input: self.input.shallow_clone(), rows: self.rows.clone(), steps: self.steps.clone() }
    }
}

/// The options with too little data.
pub(super) struct Anchor {
    /// Which.
    pub(super) options: Vec<usize>,
    /// Of all options before the update, K x A.
    pub(super) log_std: Vec<f64>,
}
