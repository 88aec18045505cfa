//! The flat parameter vector: which segment means what. One layout for learner, rollout, checkpoint and bag.

use super::{Architecture, Contract};

/// Which part of the policy a segment belongs to; the optimiser's masks and learning rates go by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// The actor's trunk, shared by all heads.
    Trunk,
    /// Action mean and log_std of one option.
    Option(usize),
    /// Termination logits.
    Termination,
    /// Logits of the policy over options.
    OverOptions,
    /// The critic, or critics.
    Critic,
    /// Temperatures of entropies; the learner's alone.
    Temperature,
}

/// One tensor inside the flat vector, row-major.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// e.g. `actor.0.weight`.
    pub name: String,
    /// Shape; weights are `[out, in]` as in PyTorch.
    pub shape: Vec<usize>,
    /// First float in the flat vector.
    pub offset: usize,
    /// What it belongs to.
    pub group: Group,
}

impl Segment {
    /// Floats.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has no floats.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its place in the flat vector.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.offset..self.offset + self.len()
    }
}

/// All segments, in the order of the flat vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Without gaps, from offset 0.
    pub segments: Vec<Segment>,
}

impl Layout {
    /// The layout of a contract's networks.
    ///
    /// On-policy: `actor.<i>.{weight,bias}` (tanh trunk); then the actor's heads, all weights `[.., H]` and after them
    /// all biases, so that they are one matrix: `option.<k>.mean` (A rows) for each option, `termination` (K),
    /// `over_options` (K); `option.<k>.log_std` (A) for each option; `critic.<i>.{weight,bias}` (tanh trunk of its own)
    /// and `critic.value.{weight,bias}` `[K, H]`/`[K]`.
    ///
    /// Off-policy: `actor.<i>` (ReLU trunk) and the heads as above, followed by `option.<k>.log_std` (A rows) for each
    /// option, which are heads here; no critic.
    pub fn new(contract: &Contract) -> Self {
        let on_policy = contract.network.architecture == Architecture::OnPolicy;
        let (obs, action, options) = (contract.obs_size(), contract.action_size(), contract.options.count);
        let hidden = &contract.network.hidden;
        let features = hidden.last().copied().unwrap_or(obs);
        let mut layout = Self { segments: Vec::new() };
        layout.trunk("actor", obs, hidden, Group::Trunk);
        let mut heads: Vec<(String, usize, Group)> =
            (0..options).map(|k| (format!("option.{k}.mean"), action, Group::Option(k))).collect();
        heads.push(("termination".into(), options, Group::Termination));
        heads.push(("over_options".into(), options, Group::OverOptions));
        if !on_policy {
            heads.extend((0..options).map(|k| (format!("option.{k}.log_std"), action, Group::Option(k))));
        }
        for (name, outputs, group) in &heads {
            layout.push(format!("{name}.weight"), vec![*outputs, features], *group);
        }
        for (name, outputs, group) in &heads {
            layout.push(format!("{name}.bias"), vec![*outputs], *group);
        }
        if on_policy {
            for option in 0..options {
                layout.push(format!("option.{option}.log_std"), vec![action], Group::Option(option));
            }
            layout.trunk("critic", obs, hidden, Group::Critic);
            layout.linear("critic.value", features, options, Group::Critic);
        }
        layout
    }

    /// The layout of twin critics of `inputs` floats (an observation and an action) to one value an option, both in one:
    /// `critic.<i>.weight` `[2, out, in]` and `critic.<i>.bias` `[2, 1, out]`, the last of them the values.
    pub fn twin_critics(inputs: usize, hidden: &[usize], options: usize) -> Self {
        let mut layout = Self { segments: Vec::new() };
        let mut width = inputs;
        for (layer, &next) in hidden.iter().chain([&options]).enumerate() {
            layout.push(format!("critic.{layer}.weight"), vec![2, next, width], Group::Critic);
            layout.push(format!("critic.{layer}.bias"), vec![2, 1, next], Group::Critic);
            width = next;
        }
        layout
    }

    /// The layout of the temperatures: of the actions, of the policy over options.
    pub fn temperatures() -> Self {
        let mut layout = Self { segments: Vec::new() };
        layout.push("temperature".into(), vec![2], Group::Temperature);
        layout
    }

    /// Floats of the flat vector.
    pub fn len(&self) -> usize {
        self.segments.last().map_or(0, |segment| segment.range().end)
    }

    /// Whether there are no segments.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    fn trunk(&mut self, name: &str, inputs: usize, hidden: &[usize], group: Group) {
        let mut width = inputs;
        for (layer, &next) in hidden.iter().enumerate() {
            self.linear(&format!("{name}.{layer}"), width, next, group);
            width = next;
        }
    }

    fn linear(&mut self, name: &str, inputs: usize, outputs: usize, group: Group) {
        self.push(format!("{name}.weight"), vec![outputs, inputs], group);
        self.push(format!("{name}.bias"), vec![outputs], group);
    }

    fn push(&mut self, name: String, shape: Vec<usize>, group: Group) {
        let offset = self.len();
        self.segments.push(Segment { name, shape, offset, group });
    }
}
