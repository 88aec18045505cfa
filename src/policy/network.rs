//! The networks on one flat parameter vector. Every weight is a leaf that views the vector: nothing is copied, and a
//! gradient of a leaf lies at the leaf's place.

use super::alone::Alone;
use super::dense::{self, Activation, Kept, Linear};
use crate::contract::{Architecture, Contract, Layout};
use crate::error::{Error, Result};
use std::ops::Range;
use std::sync::Arc;
use tch::{Device, Kind, Tensor};

/// log standard deviations are clamped to this (the bounds of SAC, Haarnoja et al. 2018, narrowed below).
pub const LOG_STD_RANGE: (f64, f64) = (-5.0, 2.0);

/// A leaf and its place in the flat vector.
struct Leaf {
    range: Range<usize>,
    tensor: Tensor,
}

/// The critic of a network. It may move to another thread: it shares the leaves, and nothing else, with the network.
pub struct Critic {
    layers: Vec<Linear>,
}

impl Critic {
    /// Q(s, .), `[N, K]`.
    pub fn values(&self, input: &Tensor) -> Tensor {
        let mut layers = self.layers.iter();
        let first = layers.next().map_or_else(|| input.shallow_clone(), |layer| layer.forward(input));
        layers.fold(first, |mut features, layer| layer.forward(&features.tanh_()))
    }

    /// The same without autograd, with what [`Self::backward`] needs.
    pub fn forward(&self, input: &Tensor) -> Kept {
        dense::forward(&self.layers, Activation::Tanh, input)
    }

    /// Writes the gradient of [`Self::range`], given that of the values, N x K.
    pub fn backward(&self, kept: &Kept, values: &[f32], gradient: &mut [f32]) {
        let layers: Vec<&Linear> = self.layers.iter().collect();
        dense::backward(&layers, Activation::Tanh, kept, values, 0..0, gradient);
    }

    /// Where the critic lies in the flat vector.
    pub fn range(&self) -> Range<usize> {
        let places = || self.layers.iter().flat_map(|layer| &layer.at);
        places().map(|at| at.start).min().unwrap_or(0)..places().map(|at| at.end).max().unwrap_or(0)
    }
}

/// Actor of a contract, and the critic that its architecture has.
pub struct Network {
    /// K.
    options: i64,
    /// A.
    action: i64,
    /// Floats of an observation.
    obs: i64,
    flat: Tensor,
    leaves: Vec<Leaf>,
    actor: Vec<Linear>,
    heads: Linear,
    /// On-policy, with its place.
    log_std: Option<(Tensor, Range<usize>)>,
    critic: Option<Critic>,
}

/// The actor's outputs for N states.
pub struct Heads {
    /// Means of the actions before tanh, `[N, K, A]`.
    pub mean: Tensor,
    /// Termination logits, `[N, K]`, not clamped.
    pub termination: Tensor,
    /// Logits of the policy over options, `[N, K]`.
    pub over_options: Tensor,
    /// log standard deviations before tanh, `[N, K, A]`, or `[1, K, A]` where they are the same in all states; not clamped.
    pub log_std: Tensor,
}

/// Takes leaves out of the flat vector by the names of the first and the last segment of a contiguous run.
struct Builder<'a> {
    layout: &'a Layout,
    flat: &'a Tensor,
    leaves: Vec<Leaf>,
    trainable: bool,
}

impl Builder<'_> {
    fn leaf(&mut self, first: &str, last: &str, shape: &[i64]) -> Result<(Tensor, Range<usize>)> {
        let find = |name: &str| {
            let found = self.layout.segments.iter().find(|segment| segment.name == name);
            found.ok_or_else(|| Error::invalid(format!("the layout has no segment {name}")))
        };
        let range = find(first)?.offset..find(last)?.range().end;
        let view = self.flat.narrow(0, range.start as i64, range.len() as i64).view(shape);
        let tensor = view.detach().set_requires_grad(self.trainable);
        self.leaves.push(Leaf { range: range.clone(), tensor: tensor.shallow_clone() });
        Ok((tensor, range))
    }

    fn linear(&mut self, first: &str, last: &str, inputs: i64, outputs: i64) -> Result<Linear> {
        let (weight, weight_at) =
            self.leaf(&format!("{first}.weight"), &format!("{last}.weight"), &[outputs, inputs])?;
        let (bias, bias_at) = self.leaf(&format!("{first}.bias"), &format!("{last}.bias"), &[outputs])?;
        Ok(Linear { weight, bias, at: [weight_at, bias_at] })
    }

    fn trunk(&mut self, name: &str, obs: i64, hidden: &[usize]) -> Result<Vec<Linear>> {
        let widths: Vec<i64> = std::iter::once(obs).chain(hidden.iter().map(|&width| width as i64)).collect();
        let layer = |(layer, pair): (usize, &[i64])| {
            let name = format!("{name}.{layer}");
            self.linear(&name, &name, pair[0], pair[1])
        };
        widths.windows(2).enumerate().map(layer).collect()
    }
}

impl Network {
    /// Builds the networks of `contract` on a copy of `parameters` (flat, in the order of its layout);
    /// `trainable` leaves collect gradients.
    pub fn new(contract: &Contract, parameters: &[f32], trainable: bool) -> Result<Self> {
        let layout = contract.layout();
        if parameters.len() != layout.len() {
            let (found, want) = (parameters.len(), layout.len());
            return Err(Error::invalid(format!("a network of this contract has {want} parameters, not {found}")));
        }
        let (obs, action) = (contract.obs_size() as i64, contract.action_size() as i64);
        let (options, hidden) = (contract.options.count as i64, &contract.network.hidden);
        let features = hidden.last().map_or(obs, |&width| width as i64);
        let flat = Tensor::from_slice(parameters).to_device(Device::Cpu);
        let mut build = Builder { layout: &layout, flat: &flat, leaves: Vec::new(), trainable };
        let last_log_std = format!("option.{}.log_std", options - 1);
        let actor = build.trunk("actor", obs, hidden)?;
        let (heads, log_std, critic) = match contract.network.architecture {
            Architecture::OnPolicy => {
                let heads = build.linear("option.0.mean", "over_options", features, options * (action + 2))?;
                let log_std = build.leaf("option.0.log_std", &last_log_std, &[options, action])?;
                let mut layers = build.trunk("critic", obs, hidden)?;
                layers.push(build.linear("critic.value", "critic.value", features, options)?);
                (heads, Some(log_std), Some(Critic { layers }))
            }
            Architecture::OffPolicy => {
                (build.linear("option.0.mean", &last_log_std, features, options * (2 * action + 2))?, None, None)
            }
        };
        let leaves = build.leaves;
        Ok(Self { options, action, obs, flat, leaves, actor, heads, log_std, critic })
    }

    /// K.
    pub fn options(&self) -> usize {
        self.options as usize
    }

    /// A.
    pub fn action_size(&self) -> usize {
        self.action as usize
    }

    /// `[N, D]` out of N normalised observations, row-major.
    pub fn input(&self, observations: &[f32]) -> Tensor {
        Tensor::from_slice(observations).view([-1, self.obs])
    }

    /// What the actor's trunk makes of `[N, D]`, `[N, H]`.
    pub fn features(&self, input: &Tensor) -> Tensor {
        let first = input.shallow_clone();
        self.actor.iter().fold(first, |features, layer| self.activation().apply(&mut layer.forward(&features)))
    }

    /// On-policy tanh, off-policy ReLU.
    fn activation(&self) -> Activation {
        if self.log_std.is_some() { Activation::Tanh } else { Activation::Relu }
    }

    /// All heads of the actor in one matrix, `[N, K A + 2 K]`: means by option, termination, over options; off-policy
    /// log_std by option after them.
    pub fn heads(&self, features: &Tensor) -> Tensor {
        self.heads.forward(features)
    }

    /// [`Self::heads`] of `[N, D]`.
    pub fn actor(&self, input: &Tensor) -> Tensor {
        self.heads(&self.features(input))
    }

    /// log standard deviations as they are, K x A, not clamped; none off-policy.
    pub fn log_std(&self) -> Option<Vec<f32>> {
        self.log_std.as_ref().map(|(parameter, _)| floats(parameter))
    }

    /// The actor's heads apart.
    pub fn split(&self, heads: &Tensor) -> Heads {
        let (k, a) = (self.options, self.action);
        Heads {
            mean: heads.narrow(1, 0, k * a).view([-1, k, a]),
            termination: heads.narrow(1, k * a, k),
            over_options: heads.narrow(1, k * a + k, k),
            log_std: match &self.log_std {
                Some((parameter, _)) => parameter.unsqueeze(0),
                None => heads.narrow(1, k * a + 2 * k, k * a).view([-1, k, a]),
            },
        }
    }

    /// Q(s, .), `[N, K]`; `[N, 0]` where the critics stay with the learner.
    pub fn critic(&self, input: &Tensor) -> Tensor {
        match &self.critic {
            Some(critic) => critic.values(input),
            None => Tensor::empty([input.size()[0], 0], (Kind::Float, Device::Cpu)),
        }
    }

    /// The critic, on the same leaves; none where the critics stay with the learner.
    pub fn share_critic(&self) -> Option<Critic> {
        let share = |critic: &Critic| Critic { layers: critic.layers.iter().map(Linear::share).collect() };
        self.critic.as_ref().map(share)
    }

    /// [`Self::actor`] for one state, on these parameters.
    pub(super) fn actor_alone(&self, parameters: &Arc<[f32]>) -> Alone {
        Alone::new(parameters, self.actor.iter().chain([&self.heads]), self.activation())
    }

    /// [`Self::critic`] for one state, on these parameters; none where the critics stay with the learner.
    pub(super) fn critic_alone(&self, parameters: &Arc<[f32]>) -> Option<Alone> {
        self.critic.as_ref().map(|critic| Alone::new(parameters, &critic.layers, Activation::Tanh))
    }

    /// [`Self::actor`] without autograd, with what [`Self::backward`] needs.
    pub fn forward(&self, input: &Tensor) -> Kept {
        dense::forward(self.actor.iter().chain([&self.heads]), self.activation(), input)
    }

    /// Writes the actor's gradient at its place, given that of the heads, N x their width, and on-policy of log_std, K x A.
    /// Off-policy neither terminations nor choices shape the trunk.
    pub fn backward(&self, kept: &Kept, heads: &[f32], log_std: &[f32], gradient: &mut [f32]) {
        let layers: Vec<&Linear> = self.actor.iter().chain([&self.heads]).collect();
        let means = self.options * self.action;
        let silent = if self.log_std.is_some() { 0..0 } else { means..means + 2 * self.options };
        dense::backward(&layers, self.activation(), kept, heads, silent, gradient);
        if let Some((_, at)) = &self.log_std {
            gradient[at.clone()].copy_from_slice(log_std);
        }
    }

    /// The parameters, flat.
    pub fn parameters(&self) -> Vec<f32> {
        floats(&self.flat)
    }

    /// Moves the parameters towards another network's by the share `tau` of the way (Polyak averaging).
    pub fn follow(&mut self, other: &Self, tau: f64) {
        tch::no_grad(|| drop(self.flat.lerp_(&other.flat, tau)));
    }

    /// Replaces the parameters.
    pub fn load(&mut self, parameters: &[f32]) {
        tch::no_grad(|| self.flat.copy_(&Tensor::from_slice(parameters)));
    }

    /// Writes the gradient at the leaves' places and clears it; 0 where nothing flowed.
    pub fn take_gradient(&mut self, gradient: &mut [f32]) {
        for leaf in &mut self.leaves {
            let out = &mut gradient[leaf.range.clone()];
            let mut grad = leaf.tensor.grad();
            if grad.defined() {
                grad.copy_data(out, leaf.range.len());
                let _ = grad.zero_();
            } else {
                out.fill(0.0);
            }
        }
    }
}

/// Copies a float tensor out, row-major.
pub(crate) fn floats(tensor: &Tensor) -> Vec<f32> {
    let tensor = tensor.to_kind(Kind::Float).contiguous();
    let mut out = vec![0.0; tensor.numel()];
    tensor.copy_data(&mut out, tensor.numel());
    out
}
