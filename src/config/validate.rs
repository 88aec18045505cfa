//! Ranges, and what must fit together. Each refusal names the key, the value and what would be right.

use super::{Config, HsPpo, Offline, Osac, Prioritisation};
use crate::error::{Error, Result, range};
use crate::replay::Limiter;
use std::ops::Bound;

/// Refuses namespaces of robots that ROS would not take, and one robot twice.
fn namespaces(told: &str) -> Result<()> {
    if told.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = told.split(',').map(|name| name.trim().trim_matches('/')).collect();
    let starts = |token: &str| token.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let token = |token: &str| starts(token) && token.chars().all(|each| each.is_ascii_alphanumeric() || each == '_');
    for (index, name) in names.iter().enumerate() {
        if !name.split('/').all(token) {
            return Err(Error::invalid(format!(
                "train.namespaces = {told:?}: {name:?} is no namespace; letters, digits and _ are right, as in arm_1,lab/arm_2"
            )));
        }
        if names[..index].contains(name) {
            return Err(Error::invalid(format!(
                "train.namespaces = {told:?} names /{name} twice; a robot has one rollout"
            )));
        }
    }
    Ok(())
}

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
        range("core", self.core, -1..=4095)?;
        range("sim.threads", sim.threads, 0..=1024)?;
        range("sim.told.latency_ticks", sim.told.latency_ticks, 0..=100)?;
        range("sim.told.position_noise_rad", sim.told.position_noise_rad, 0.0..=1.0)?;
        range("sim.told.velocity_noise_rad_per_sec", sim.told.velocity_noise_rad_per_sec, 0.0..=10.0)?;
        range("sim.told.mass_range", sim.told.mass_range, 0.0..=0.9)?;
        range("sim.told.friction_range", sim.told.friction_range, 0.0..=0.9)?;
        range("sim.state_rate_hz", sim.state_rate_hz, 1.0..=1000.0)?;
        range("sim.real_time_factor", sim.real_time_factor, 0.01..=100.0)?;
        range("sim.rounding", sim.rounding, 0.0..=0.1)?;
        self.guard.validate()?;
        crate::link::joint_names(self.robot, &self.policy.joint_prefix)?;
        range("rollout.restarts", rollout.restarts, -1..=i64::MAX)?;
        range("policy.realtime_priority", self.policy.realtime_priority, 0..=99)?;
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
        namespaces(&train.namespaces)?;
        range("train.minutes", train.minutes, 0.0..=1e6)?;
        if learner.max_lag <= train.forced_lag && 0 < train.forced_lag {
            return Err(Error::invalid(format!(
                "train.forced_lag = {} drops all data: learner.max_lag = {}; over {0} is right",
                train.forced_lag, learner.max_lag
            )));
        }
        range("train.eval_episodes", train.eval_episodes, 1..=1_000_000)?;
        range("train.watchdog_secs", train.watchdog_secs, 0.0..=86_400.0)?;
        learner.hs_ppo.validate()?;
        learner.osac.validate()?;
        learner.offline.validate()?;
        if !learner.offline.bags.is_empty() && !self.algo.offline() {
            return Err(Error::invalid(format!(
                "algo = {} learns online; iql and bc learn from bags (learner.offline.bags)",
                self.algo.name()
            )));
        }
        if self.algo.off_policy() {
            // The limiter says what it needs of the slack.
            self.limiter()?;
        }
        Ok(())
    }

    /// What keeps off-policy learning and recording in step; refused where both could wait for each other.
    pub fn limiter(&self) -> Result<Limiter> {
        let osac = &self.learner.osac;
        let arriving = (self.rollout.fragment_steps * self.train.envs) as u64;
        let samples_per_insert = osac.update_to_data * osac.batch_size as f64;
        Limiter::new(samples_per_insert, osac.warmup_steps, osac.slack_steps, arriving, osac.batch_size as u64)
            .map_err(|error| Error::invalid(format!("learner.osac.slack_steps: {error}")))
    }
}

impl Osac {
    fn validate(&self) -> Result<()> {
        let check = |key: &str, value: f64, allowed: (Bound<f64>, Bound<f64>)| {
            range(&format!("learner.osac.{key}"), value, allowed)
        };
        let unit = (Bound::Included(0.0), Bound::Included(1.0));
        let weight = (Bound::Included(0.0), Bound::Included(100.0));
        check("gamma", self.gamma, (Bound::Included(0.0), Bound::Excluded(1.0)))?;
        check("lr", self.lr, positive(1.0))?;
        check("lr_option", self.lr_option, positive(1.0))?;
        range("learner.osac.batch_size", self.batch_size, 1..=1_000_000)?;
        check("update_to_data", self.update_to_data, (Bound::Included(1e-3), Bound::Included(1e3)))?;
        range("learner.osac.actor_batch_size", self.actor_batch_size, 1..=1_000_000)?;
        range("learner.osac.slack_steps", self.slack_steps, 1..=1_000_000_000)?;
        range("learner.osac.warmup_steps", self.warmup_steps, 1..=1_000_000_000)?;
        range("learner.osac.capacity", self.capacity, 2..=1_000_000_000)?;
        range("learner.osac.fragment_steps", self.fragment_steps, 1..=1024)?;
        check("priority_exponent", self.priority_exponent, unit)?;
        check("importance_exponent", self.importance_exponent, unit)?;
        check("option_share", self.option_share, (Bound::Included(0.0), Bound::Excluded(1.0)))?;
        check("tau", self.tau, positive(1.0))?;
        check("huber_delta", self.huber_delta, weight)?;
        check("executed_weight", self.executed_weight, unit)?;
        range("learner.osac.actor_fragments", self.actor_fragments, 1..=self.actor_batch_size)?;
        check("responsibility_floor", self.responsibility_floor, unit)?;
        check("option_entropy_start", self.option_entropy_start, unit)?;
        check("option_entropy_end", self.option_entropy_end, unit)?;
        check("temperature_init", self.temperature_init, positive(100.0))?;
        check("load_balance_coef", self.load_balance_coef, weight)?;
        check("termination_temperature", self.termination_temperature, positive(100.0))?;
        check("deliberation_cost", self.deliberation_cost, weight)?;
        check("termination_bias_init", self.termination_bias_init, (Bound::Included(-6.0), Bound::Included(6.0)))?;
        check("observation_clip", self.observation_clip, positive(1e6))?;
        if !(-20.0..0.0).contains(&self.target_entropy) {
            return Err(Error::invalid(format!(
                "learner.osac.target_entropy = {} for each joint: a negative number, usually -1, is right: actions in \
                 [-1, 1] have at most ln 2 each",
                self.target_entropy
            )));
        }
        let held = (self.capacity as u64).saturating_mul(9) / 10;
        if held < self.warmup_steps.max(self.batch_size as u64) {
            return Err(Error::invalid(format!(
                "learner.osac.capacity = {} holds too little for batch_size = {} and warmup_steps = {}: a tenth more than \
                 the larger is right at least",
                self.capacity, self.batch_size, self.warmup_steps
            )));
        }
        if self.capacity <= self.fragment_steps {
            return Err(Error::invalid(format!(
                "learner.osac.capacity = {} holds no fragment of fragment_steps = {} steps",
                self.capacity, self.fragment_steps
            )));
        }
        if self.prioritisation == Prioritisation::Lap && self.huber_delta == 0.0 {
            return Err(Error::invalid(
                "learner.osac.prioritisation = lap goes with a Huber loss: give huber_delta = 1, or take uniform",
            ));
        }
        Ok(())
    }
}

impl Offline {
    fn validate(&self) -> Result<()> {
        let check = |key: &str, value: f64, allowed: (Bound<f64>, Bound<f64>)| {
            range(&format!("learner.offline.{key}"), value, allowed)
        };
        let share = (Bound::Included(0.0), Bound::Excluded(1.0));
        let weight = (Bound::Included(0.0), Bound::Included(100.0));
        check("validation", self.validation, share)?;
        check("test", self.test, share)?;
        if 1.0 <= self.validation + self.test {
            return Err(Error::invalid(format!(
                "learner.offline.validation = {} and test = {} leave nothing to train with: less than 1 together is right",
                self.validation, self.test
            )));
        }
        range("learner.offline.gradient_steps", self.gradient_steps, 1..=1_000_000_000)?;
        range("learner.offline.update_steps", self.update_steps, 1..=1_000_000)?;
        range("learner.offline.batch_size", self.batch_size, 1..=1_000_000)?;
        check("lr", self.lr, positive(1.0))?;
        check("expectile", self.expectile, (Bound::Included(0.5), Bound::Excluded(1.0)))?;
        check("temperature", self.temperature, weight)?;
        check("option_temperature", self.option_temperature, weight)?;
        check("termination_weight", self.termination_weight, weight)?;
        check("executed_weight", self.executed_weight, (Bound::Included(0.0), Bound::Included(1.0)))?;
        check("tau", self.tau, positive(1.0))
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
