//! With one option, half-step PPO is PPO: parameters equal those of an independent implementation from the textbook,
//! on libtorch's own modules, optimiser and gradient clipping.

use super::{World, acting, config, learner, norm};
use crate::config::{HsPpo as Config, Seed};
use crate::contract::{Contract, Group};
use crate::data::{End, Fragment};
use crate::learn::hs_ppo::minibatches;
use crate::policy::tests::contract;
use std::collections::HashMap;
use tch::nn::{self, OptimizerConfig as _};
use tch::{Device, Kind, Tensor};

/// PPO as in CleanRL's ppo_continuous_action.py (advantages normalised once over the batch).
struct Textbook {
    store: nn::VarStore,
    tensors: HashMap<String, Tensor>,
    adam: nn::Optimizer,
    config: Config,
    /// All discounted sums of past rewards so far.
    returns: Vec<f64>,
}

impl Textbook {
    fn new(contract: &Contract, parameters: &[f32], config: &Config) -> Self {
        let store = nn::VarStore::new(Device::Cpu);
        let mut tensors = HashMap::new();
        for segment in &contract.layout().segments {
            if matches!(segment.group, Group::Termination | Group::OverOptions) {
                continue;
            }
            let shape: Vec<i64> = segment.shape.iter().map(|&size| size as i64).collect();
            let value = Tensor::from_slice(&parameters[segment.range()]).view(&shape[..]);
            let name = segment.name.replace('.', "_");
            tensors.insert(segment.name.clone(), store.root().var_copy(&name, &value));
        }
        let adam = nn::Adam { eps: 1e-5, ..nn::Adam::default() }.build(&store, config.lr).unwrap();
        Self { store, tensors, adam, config: config.clone(), returns: Vec::new() }
    }

    fn linear(&self, name: &str, input: &Tensor) -> Tensor {
        input.matmul(&self.tensors[&format!("{name}.weight")].tr()) + &self.tensors[&format!("{name}.bias")]
    }

    fn value(&self, input: &Tensor) -> Tensor {
        let features = self.linear("critic.1", &self.linear("critic.0", input).tanh()).tanh();
        self.linear("critic.value", &features).squeeze_dim(1)
    }

    fn log_prob_and_entropy(&self, input: &Tensor, action: &Tensor) -> (Tensor, Tensor) {
        let features = self.linear("actor.1", &self.linear("actor.0", input).tanh()).tanh();
        let mean = self.linear("option.0.mean", &features);
        let std = self.tensors["option.0.log_std"].exp();
        let log = -(action - mean).pow_tensor_scalar(2) / (&std * &std * 2.0)
            - std.log()
            - (2.0 * std::f64::consts::PI).sqrt().ln();
        let entropy = (std.log() + 0.5 + 0.5 * (2.0 * std::f64::consts::PI).ln()).sum(Kind::Float);
        (log.sum_dim_intlist([1i64].as_slice(), false, Kind::Float), entropy)
    }

    fn update(&mut self, rows: &[Fragment], update: u64, mean: &[f32], std: &[f32]) {
        let config = self.config.clone();
        let normalise = |observation: &[f32]| -> Vec<f32> {
            let scaled = observation.iter().zip(mean.iter().zip(std)).map(|(x, (mean, std))| (x - mean) / std);
            scaled.map(|x| x.max(-config.observation_clip as f32).min(config.observation_clip as f32)).collect()
        };
        for row in rows {
            let mut sum = 0.0;
            for step in &row.steps {
                sum = sum * config.gamma + f64::from(step.reward);
                self.returns.push(sum);
                if step.end != End::None {
                    sum = 0.0;
                }
            }
        }
        let average = self.returns.iter().sum::<f64>() / self.returns.len() as f64;
        let variance = self.returns.iter().map(|x| (x - average).powi(2)).sum::<f64>() / self.returns.len() as f64;
        let scale = (variance + 1e-8).sqrt();

        let at = |observation: &[f32]| -> f64 {
            let input = Tensor::from_slice(&normalise(observation)).view([1, -1]);
            tch::no_grad(|| self.value(&input)).double_value(&[0])
        };
        let (mut inputs, mut actions, mut old) = (Vec::new(), Vec::new(), Vec::new());
        let (mut advantages, mut targets) = (Vec::new(), Vec::new());
        for row in rows {
            let mut own = vec![0.0; row.steps.len()];
            let mut carried = 0.0;
            for (t, step) in row.steps.iter().enumerate().rev() {
                let goes_on = if step.end == End::Terminated { 0.0 } else { 1.0 };
                if step.end != End::None {
                    carried = 0.0;
                }
                let next = at(row.next_observation(t));
                let delta = f64::from(step.reward) / scale + config.gamma * next * goes_on - at(row.observation(t));
                carried = delta + config.gamma * config.lam * carried;
                own[t] = carried;
            }
            for (t, step) in row.steps.iter().enumerate() {
                inputs.extend(normalise(row.observation(t)));
                actions.extend_from_slice(&step.choice.proposal);
                old.push(step.choice.log_prob_action);
                advantages.push(own[t]);
                targets.push((own[t] + at(row.observation(t))) as f32);
            }
        }
        let steps = old.len() as i64;
        let (inputs, actions) =
            (Tensor::from_slice(&inputs).view([steps, -1]), Tensor::from_slice(&actions).view([steps, -1]));
        let (old, targets) = (Tensor::from_slice(&old), Tensor::from_slice(&targets));
        let advantages = Tensor::from_slice(&advantages);
        let advantages = (&advantages - advantages.mean(Kind::Double)) / (advantages.std(true) + 1e-8);
        let advantages = advantages.to_kind(Kind::Float);
        for epoch in 0..config.num_learning_epochs {
            for order in minibatches(Seed::root(4), update, epoch, steps as usize, config.minibatch_size) {
                let index = Tensor::from_slice(&order.iter().map(|&row| row as i64).collect::<Vec<_>>());
                let pick = |tensor: &Tensor| tensor.index_select(0, &index);
                let (log_prob, entropy) = self.log_prob_and_entropy(&pick(&inputs), &pick(&actions));
                let ratio = (log_prob - pick(&old)).exp();
                let advantage = pick(&advantages);
                let policy = (-&advantage * &ratio)
                    .maximum(&(-&advantage * ratio.clamp(1.0 - config.clip_param, 1.0 + config.clip_param)))
                    .mean(Kind::Float);
                let value = self.value(&pick(&inputs)).mse_loss(&pick(&targets), tch::Reduction::Mean);
                let loss = policy - entropy * config.entropy_coef + value * config.value_loss_coef;
                self.adam.backward_step_clip_norm(&loss, config.max_grad_norm);
            }
        }
    }
}

#[test]
fn with_one_option_an_update_is_ppos() {
    for (scale, entropy_coef) in [(0.3, 0.0), (0.5, 0.02)] {
        let config =
            Config { entropy_coef, deliberation_cost: 0.5, min_option_steps: 100_000, desired_kl: 0.0, ..config() };
        let contract = contract(1, &[16, 16]);
        let mut learner = learner(&contract, &config, scale);
        let start = learner.state().parameters;
        let mut textbook = Textbook::new(&contract, &start, &config);
        let mut world = World::new(8);
        for version in 1..=3 {
            let rows = world.collect(&acting(&learner, version), 64);
            let snapshot = learner.snapshot(uuid::Uuid::nil(), 1, version);
            textbook.update(&rows, version - 1, &snapshot.normaliser.mean, &snapshot.normaliser.std);
            learner.update(&rows, version).unwrap();
            let ours = learner.state().parameters;
            for segment in &contract.layout().segments {
                let found = &ours[segment.range()];
                let Some(tensor) = textbook.tensors.get(&segment.name) else {
                    assert_eq!(found, &start[segment.range()], "{} does not move", segment.name);
                    continue;
                };
                let want = crate::policy::floats(tensor);
                for (found, want) in found.iter().zip(&want) {
                    assert!((found - want).abs() < 2e-6, "{}: {found}, textbook {want}", segment.name);
                }
            }
            // Go on from the very same place, so that rounding does not pile up over the versions.
            let mut state = learner.state();
            for segment in &contract.layout().segments {
                if let Some(tensor) = textbook.tensors.get(&segment.name) {
                    state.parameters[segment.range()].copy_from_slice(&crate::policy::floats(tensor));
                }
            }
            learner.restore(state).unwrap();
        }
        let moved: Vec<f32> = learner.state().parameters.iter().zip(&start).map(|(now, then)| now - then).collect();
        assert!(norm(&contract, &moved, |group| group == Group::Option(0)) > 1e-2);
        assert_eq!(norm(&contract, &moved, |group| matches!(group, Group::Termination | Group::OverOptions)), 0.0);
        assert_eq!(textbook.store.len(), textbook.tensors.len());
    }
}
