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
    /// The critic.
    Critic,
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
    pub fn new(contract: &Contract) -> Self {
        let Architecture::OnPolicy = contract.network.architecture;
        let (obs, action, options) = (contract.obs_size(), contract.action_size(), contract.options.count);
        let hidden = &contract.network.hidden;
        let features = hidden.last().copied().unwrap_or(obs);
        let mut layout = Self { segments: Vec::new() };
        layout.trunk("actor", obs, hidden, Group::Trunk);
        let mut heads: Vec<(String, usize, Group)> =
            (0..options).map(|k| (format!("option.{k}.mean"), action, Group::Option(k))).collect();
        heads.push(("termination".into(), options, Group::Termination));
        heads.push(("over_options".into(), options, Group::OverOptions));
        for (name, outputs, group) in &heads {
            layout.push(format!("{name}.weight"), vec![*outputs, features], *group);
        }
        for (name, outputs, group) in &heads {
            layout.push(format!("{name}.bias"), vec![*outputs], *group);
        }
        for option in 0..options {
            layout.push(format!("option.{option}.log_std"), vec![action], Group::Option(option));
        }
        layout.trunk("critic", obs, hidden, Group::Critic);
        layout.linear("critic.value", features, options, Group::Critic);
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
