//! Ranges, and what must fit together. Each refusal names the key, the value and what would be right.

use super::{Config, HsPpo};
use crate::error::{Error, Result};
use std::fmt::Debug;
use std::ops::{Bound, RangeBounds};

impl Config {
    /// Refuses values out of range and combinations that cannot work.
    pub fn validate(&self) -> Result<()> {
        let Self { options, sim, rollout, learner, train, .. } = self;
        range("control_rate_hz", self.control_rate_hz, 1.0..=1000.0)?;
        range("action.scale", self.action.scale, positive(10.0))?;
        range("options.count", options.count, 1..=64)?;
        range("options.min_steps", options.min_steps, 1..=1000)?;
        range("options.max_steps", options.max_steps, 1..=100_000)?;
        if options.max_steps < options.min_steps {
            return Err(Error::invalid(format!(
                "options.min_steps = {} is more than options.max_steps = {}: an option could never end in time",
                options.min_steps, options.max_steps
            )));
        }
        range("hidden", self.hidden.len(), 1..=8)?;
        for &width in &self.hidden {
            range("hidden", width, 1..=4096)?;
        }
        range("sim.timestep_secs", sim.timestep_secs, 1e-5..=0.02)?;
        let substeps = 1.0 / self.control_rate_hz / sim.timestep_secs;
        if substeps.round() < 1.0 || 1e-6 < (substeps - substeps.round()).abs() {
            return Err(Error::invalid(format!(
                "sim.timestep_secs = {} does not divide the control period of {} s: that is {substeps:.3} steps",
                sim.timestep_secs,
                1.0 / self.control_rate_hz
            )));
        }
        range("sim.threads", sim.threads, 0..=1024)?;
        range("sim.told.latency_ticks", sim.told.latency_ticks, 0..=100)?;
        range("sim.told.position_noise_rad", sim.told.position_noise_rad, 0.0..=1.0)?;
        range("sim.told.velocity_noise_rad_per_sec", sim.told.velocity_noise_rad_per_sec, 0.0..=10.0)?;
        range("sim.told.mass_range", sim.told.mass_range, 0.0..=0.9)?;
        range("sim.told.friction_range", sim.told.friction_range, 0.0..=0.9)?;
        range("rollout.num_envs", rollout.num_envs, 1..=4096)?;
        range("rollout.fragment_steps", rollout.fragment_steps, 1..=1024)?;
        range("rollout.window", rollout.window, 1..=8)?;
        range("learner.min_rollouts", learner.min_rollouts, 1..=1024)?;
        range("learner.num_steps_per_env", learner.num_steps_per_env, 2..=100_000)?;
        range("learner.batch_steps", learner.batch_steps, 2..=10_000_000)?;
        range("learner.save_interval", learner.save_interval, 1..=1_000_000)?;
        range("learner.keep", learner.keep, 1..=10_000)?;
        range("learner.torch_threads", learner.torch_threads, 1..=256)?;
        for (key, uuid) in [("learner.run", &learner.run), ("rollout.run", &rollout.run)] {
            if !uuid.is_empty() && uuid::Uuid::parse_str(uuid).is_err() {
                return Err(Error::invalid(format!(
                    "{key} = {uuid:?} is no uuid: leave it empty or give a run's uuid"
                )));
            }
        }
        range("train.rollouts", train.rollouts, 1..=256)?;
        range("train.envs", train.envs, train.rollouts..=65_536)?;
        range("train.minutes", train.minutes, 0.0..=1e6)?;
        range("train.eval_episodes", train.eval_episodes, 1..=1_000_000)?;
        range("train.watchdog_secs", train.watchdog_secs, 0.0..=86_400.0)?;
        learner.hs_ppo.validate()
    }
}

impl HsPpo {
    fn validate(&self) -> Result<()> {
        let check = |key: &str, value: f64, allowed: (Bound<f64>, Bound<f64>)| {
            range(&format!("learner.hs_ppo.{key}"), value, allowed)
        };
        let unit = (Bound::Included(0.0), Bound::Included(1.0));
        let weight = (Bound::Included(0.0), Bound::Included(100.0));
        check("gamma", self.gamma, (Bound::Included(0.0), Bound::Excluded(1.0)))?;
        check("lam", self.lam, unit)?;
        check("lam_option", self.lam_option, unit)?;
        check("lr", self.lr, positive(1.0))?;
        check("lr_final", self.lr_final, (Bound::Included(0.0), Bound::Included(1.0)))?;
        check("lr_option_scale", self.lr_option_scale, weight)?;
        range("learner.hs_ppo.num_learning_epochs", self.num_learning_epochs, 1..=1000)?;
        range("learner.hs_ppo.minibatch_size", self.minibatch_size, 2..=1_000_000)?;
        check("clip_param", self.clip_param, positive(1.0))?;
        check("option_clip_param", self.option_clip_param, positive(1.0))?;
        check("value_loss_coef", self.value_loss_coef, weight)?;
        check("entropy_coef", self.entropy_coef, weight)?;
        check("option_entropy_coef", self.option_entropy_coef, weight)?;
        check("load_balance_coef", self.load_balance_coef, weight)?;
        check("anchor_coef", self.anchor_coef, weight)?;
        check("deliberation_cost", self.deliberation_cost, weight)?;
        check("max_grad_norm", self.max_grad_norm, positive(1e6))?;
        check("desired_kl", self.desired_kl, weight)?;
        check("desired_option_kl", self.desired_option_kl, weight)?;
        check("rho_clip", self.rho_clip, positive(1e6))?;
        check("log_std_init", self.log_std_init, (Bound::Included(-5.0), Bound::Included(2.0)))?;
        check("termination_bias_init", self.termination_bias_init, (Bound::Included(-6.0), Bound::Included(6.0)))?;
        check("observation_clip", self.observation_clip, positive(1e6))
    }
}

fn positive(most: f64) -> (Bound<f64>, Bound<f64>) {
    (Bound::Excluded(0.0), Bound::Included(most))
}

fn range<T: PartialOrd + Debug>(key: &str, value: T, allowed: impl RangeBounds<T>) -> Result<()> {
    if allowed.contains(&value) {
        return Ok(());
    }
    let edge = |bound: Bound<&T>, closed: &str, open: &str| match bound {
        Bound::Included(edge) => format!("{closed} {edge:?}"),
        Bound::Excluded(edge) => format!("{open} {edge:?}"),
        Bound::Unbounded => "anything".into(),
    };
    Err(Error::invalid(format!(
        "{key} = {value:?} is out of range: it must be {} and {}",
        edge(allowed.start_bound(), "at least", "over"),
        edge(allowed.end_bound(), "at most", "under")
    )))
}
