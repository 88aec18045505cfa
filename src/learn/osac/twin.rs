//! Twin critics on one flat parameter vector, computed side by side.

use crate::contract::Layout;
use crate::policy::floats;
use std::ops::Range;
use tch::Tensor;

/// Weight `[2, out, in]` and bias `[2, 1, out]`.
type Layer = (Tensor, Tensor);

/// Q_1 and Q_2: of an observation and an action, one value an option.
pub(super) struct Twin {
    flat: Tensor,
    leaves: Vec<(Range<usize>, Tensor)>,
    /// Collect gradients.
    layers: Vec<Layer>,
    /// The same numbers; let gradients through to the input alone.
    frozen: Vec<Layer>,
}

impl Twin {
    /// On a copy of `parameters`, flat, in the order of [`Layout::twin_critics`].
    pub(super) fn new(layout: &Layout, parameters: &[f32]) -> Self {
        let flat = Tensor::from_slice(parameters);
        let view = |index: usize| {
            let segment = &layout.segments[index];
            let shape: Vec<i64> = segment.shape.iter().map(|&size| size as i64).collect();
            flat.narrow(0, segment.offset as i64, segment.len() as i64).view(&shape[..]).detach()
        };
        let pairs = || (0..layout.segments.len()).step_by(2);
        let frozen = pairs().map(|index| (view(index), view(index + 1))).collect();
        let trainable = |index: usize| view(index).set_requires_grad(true);
        let layers: Vec<Layer> = pairs().map(|index| (trainable(index), trainable(index + 1))).collect();
        let tensors = layers.iter().flat_map(|(weight, bias)| [weight.shallow_clone(), bias.shallow_clone()]);
        let leaves = layout.segments.iter().map(|segment| segment.range()).zip(tensors).collect();
        Self { flat, leaves, layers, frozen }
    }

    /// `[2, N, K]` of `[N, D]` and `[N, A]`.
    pub(super) fn values(&self, input: &Tensor, action: &Tensor) -> Tensor {
        forward(&self.layers, &Tensor::cat(&[input, action], 1))
    }

    /// Q_i(s, o, a_o), `[2, N, K]`, of `[N, D]` and one action of each option, `[N, K, A]`. No gradient reaches the
    /// critics.
    pub(super) fn of_own_actions(&self, input: &Tensor, actions: &Tensor) -> Tensor {
        let size = actions.size();
        let (rows, options) = (size[0], size[1]);
        let input = input.unsqueeze(1).expand([-1, options, -1], false);
        let pairs = Tensor::cat(&[input, actions.shallow_clone()], 2);
        let all = forward(&self.frozen, &pairs.view([rows * options, -1]));
        all.view([2, rows, options, options]).diagonal(0, 2, 3)
    }

    /// The parameters, flat.
    pub(super) fn parameters(&self) -> Vec<f32> {
        floats(&self.flat)
    }

    /// Replaces the parameters.
    pub(super) fn load(&mut self, parameters: &[f32]) {
        tch::no_grad(|| self.flat.copy_(&Tensor::from_slice(parameters)));
    }

    /// Moves the parameters towards another's by the share `tau` of the way (Polyak averaging).
    pub(super) fn follow(&mut self, other: &Self, tau: f64) {
        tch::no_grad(|| drop(self.flat.lerp_(&other.flat, tau)));
    }

    /// Writes the gradient at the leaves' places and clears it; 0 where nothing flowed.
    pub(super) fn take_gradient(&mut self, gradient: &mut [f32]) {
        for (range, leaf) in &mut self.leaves {
            let out = &mut gradient[range.clone()];
            let mut grad = leaf.grad();
            if grad.defined() {
                grad.copy_data(out, range.len());
                let _ = grad.zero_();
            } else {
                out.fill(0.0);
            }
        }
    }
}

fn forward(layers: &[Layer], input: &Tensor) -> Tensor {
    let rows = input.unsqueeze(0).expand([2, -1, -1], false);
    let last = layers.len() - 1;
    layers.iter().enumerate().fold(rows, |rows, (index, (weight, bias))| {
        let mut out = rows.bmm(&weight.transpose(1, 2)) + bias;
        if index < last { out.relu_() } else { out }
    })
}
