//! The steps of an update as tensors.

use super::estimate::Estimated;
use super::gather::Gathered;
use crate::data::Forced;
use crate::policy::Outputs;
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

/// Steps as tensors; the first dimension is the step.
pub(super) struct Batch {
    /// `[N, D]`, normalised.
    pub(super) input: Tensor,
    /// `[N]`, the option that acted.
    pub(super) option: Tensor,
    /// `[N]`, the option that ran on arrival; 0 where none did.
    pub(super) running: Tensor,
    /// `[N, A]`.
    pub(super) proposal: Tensor,
    /// `[N, COLUMNS]`.
    pub(super) columns: Tensor,
    /// Proximal means `[N, K, A]`, where options are anchored.
    pub(super) anchor: Option<Tensor>,
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
    ) -> Self {
        let count = gathered.steps.len();
        let mut columns = vec![0.0f32; count * COLUMNS];
        for (row, columns) in columns.chunks_exact_mut(COLUMNS).enumerate() {
            let step = gathered.steps[row];
            let (arrival, estimate) = (&estimated.arrivals[row], &estimated.estimates[row]);
            let weight = weights[usize::from(step.choice.option)];
            let mut set = |column: Column, value: f64| columns[column as usize] = value as f32;
            set(Column::LogProbAction, estimated.log_prob_action[row]);
            set(Column::LogProbOption, estimated.log_prob_option[row]);
            set(Column::AdvantageAction, weight * estimate.rho_action * estimated.advantage_action[row]);
            if step.choice.forced != Forced::Preempted {
                set(Column::AdvantageOption, estimate.rho_option * estimated.advantage_option[row]);
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
        let proposals: Vec<f32> = gathered.steps.iter().flat_map(|step| &step.choice.proposal).copied().collect();
        let option: Vec<i64> = gathered.steps.iter().map(|step| i64::from(step.choice.option)).collect();
        let running: Vec<i64> = estimated.arrivals.iter().map(|arrival| arrival.running.unwrap_or(0) as i64).collect();
        let steps = count as i64;
        Self {
            input: input.narrow(0, 0, steps),
            option: Tensor::from_slice(&option),
            running: Tensor::from_slice(&running),
            proposal: Tensor::from_slice(&proposals).view([steps, -1]),
            columns: Tensor::from_slice(&columns).view([steps, COLUMNS as i64]),
            anchor: anchored.then(|| outputs.means().narrow(0, 0, steps)),
        }
    }

    /// The same tensors.
    pub(super) fn share(&self) -> Self {
        Self {
            input: self.input.shallow_clone(),
            option: self.option.shallow_clone(),
            running: self.running.shallow_clone(),
            proposal: self.proposal.shallow_clone(),
            columns: self.columns.shallow_clone(),
            anchor: self.anchor.as_ref().map(Tensor::shallow_clone),
        }
    }

    /// The steps of an index `[B]`.
    pub(super) fn select(&self, index: &Tensor) -> Self {
        let pick = |tensor: &Tensor| tensor.index_select(0, index);
        Self {
            input: pick(&self.input),
            option: pick(&self.option),
            running: pick(&self.running),
            proposal: pick(&self.proposal),
            columns: pick(&self.columns),
            anchor: self.anchor.as_ref().map(pick),
        }
    }

    /// `[N]`.
    pub(super) fn column(&self, column: Column) -> Tensor {
        self.columns.select(1, column as i64)
    }
}

/// The options with too little data, and their proximal log_std `[K, A]`.
pub(super) struct Anchor {
    /// Which.
    pub(super) options: Vec<i64>,
    /// Before the update.
    pub(super) log_std: Tensor,
}
