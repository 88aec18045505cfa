//! Twin critics on one flat parameter vector, computed side by side. Their gradients are written out: they are matrix
//! products alone, which go straight to their places.

use crate::contract::Layout;
use crate::policy::floats;
use tch::{Kind, Tensor};

/// Q_1 and Q_2: of an observation and an action, one value an option.
pub(super) struct Twin {
    flat: Tensor,
    gradient: Tensor,
    layers: Vec<Layer>,
}

/// Views of the flat vectors: weight `[2, out, in]` and bias `[2, 1, out]`, and where their gradients go.
struct Layer {
    weight: Tensor,
    bias: Tensor,
    weight_gradient: Tensor,
    bias_gradient: Tensor,
}

/// What came out of each layer, for the way back.
pub(super) struct Pass {
    /// `[N, in]`.
    input: Tensor,
    /// `[2, N, H]` each, after ReLU.
    hidden: Vec<Tensor>,
    /// `[2, N, K]`.
    pub(super) values: Tensor,
}

/// The lesser of the twins' values of own actions, and where it rises.
pub(super) struct Least {
    /// `min_i Q_i(s, o, a_o)`, `[N, K]`.
    pub(super) value: Tensor,
    /// Its gradient by a_o, `[N, K, A]`.
    pub(super) slope: Tensor,
}

impl Twin {
    /// On a copy of `parameters`, flat, in the order of [`Layout::twin_critics`].
    pub(super) fn new(layout: &Layout, parameters: &[f32]) -> Self {
        let flat = Tensor::from_slice(parameters);
        let gradient = flat.zeros_like();
        let view = |of: &Tensor, index: usize| {
            let segment = &layout.segments[index];
            let shape: Vec<i64> = segment.shape.iter().map(|&size| size as i64).collect();
            of.narrow(0, segment.offset as i64, segment.len() as i64).view(&shape[..])
        };
        let layer = |index: usize| Layer {
            weight: view(&flat, index),
            bias: view(&flat, index + 1),
            weight_gradient: view(&gradient, index),
            bias_gradient: view(&gradient, index + 1),
        };
        let layers = (0..layout.segments.len()).step_by(2).map(layer).collect();
        Self { flat, gradient, layers }
    }

    /// Of `[N, D]` and `[N, A]`.
    pub(super) fn pass(&self, input: &Tensor, action: &Tensor) -> Pass {
        let (input, first) = (Tensor::cat(&[input, action], 1), &self.layers[0]);
        let both = input.linear(&first.weight.flatten(0, 1), Some(&first.bias.flatten(0, -1)));
        let (hidden, values) = self.beyond(both.view([input.size()[0], 2, -1]).transpose(0, 1));
        Pass { input, hidden, values }
    }

    /// `min_i Q_i(s, o, a_o)`, `[N, K]`, of `[N, D]` and one action of each option, `[N, K, A]`.
    pub(super) fn least_of_own(&self, input: &Tensor, actions: &Tensor) -> Tensor {
        own(&self.of_pairs(input, actions).1, actions).amin([0i64].as_slice(), false)
    }

    /// The lesser value with its slope. The way back is gone through the lesser twin alone.
    pub(super) fn least(&self, input: &Tensor, actions: &Tensor) -> Least {
        let (hidden, values) = self.of_pairs(input, actions);
        let (value, which) = own(&values, actions).min_dim(0, false);
        let slope = actions.zeros_like();
        let size = actions.size();
        let (obs, options, mut flat) = (input.size()[1], size[1], slope.view([-1, size[2]]));
        let which = which.view(-1);
        for twin in 0..2 {
            let rows = which.eq(twin).nonzero().squeeze_dim(1);
            let weight = |layer: usize| self.layers[layer].weight.get(twin);
            let mut back = weight(hidden.len()).index_select(0, &rows.remainder(options));
            for layer in (0..hidden.len()).rev() {
                back = hidden[layer].get(twin).index_select(0, &rows).threshold_backward(&back, 0.0);
                let weight = weight(layer);
                back = back.mm(&if layer == 0 { weight.narrow(1, obs, size[2]) } else { weight });
            }
            let _ = flat.index_copy_(0, &rows, &back);
        }
        Least { value, slope }
    }

    /// Values of each option's action in the eyes of all options, `[2, N K, K]`, and what is hidden behind them. What the
    /// first layer makes of an observation is worked out once.
    fn of_pairs(&self, input: &Tensor, actions: &Tensor) -> (Vec<Tensor>, Tensor) {
        let first = &self.layers[0];
        let (obs, size) = (input.size()[1], actions.size());
        let weight = first.weight.flatten(0, 1);
        let of_input = input.linear(&weight.narrow(1, 0, obs), Some(&first.bias.flatten(0, -1)));
        let of_action = actions.view([-1, size[2]]).mm(&weight.narrow(1, obs, size[2]).tr());
        let mut both = of_action.view([size[0], size[1], -1]);
        let _ = both.g_add_(&of_input.unsqueeze(1));
        self.beyond(both.view([size[0] * size[1], 2, -1]).transpose(0, 1))
    }

    /// From the outcome of the first layer `[2, N, out]`, which is used up.
    fn beyond(&self, first: Tensor) -> (Vec<Tensor>, Tensor) {
        let mut hidden = Vec::with_capacity(self.layers.len() - 1);
        let mut out = first;
        for layer in &self.layers[1..] {
            let seen = out.relu_();
            out = layer.bias.baddbmm(&seen, &layer.weight.transpose(1, 2), 1.0, 1.0);
            hidden.push(seen);
        }
        (hidden, out)
    }

    /// Takes the gradient by the parameters of a sum over values, of which `of_values` `[2, N, K]` is the gradient.
    pub(super) fn learn(&mut self, pass: &Pass, of_values: Tensor) {
        let mut back = of_values;
        for (index, layer) in self.layers.iter().enumerate().rev() {
            let input = match index {
                0 => pass.input.unsqueeze(0).expand([2, -1, -1], false),
                _ => pass.hidden[index - 1].shallow_clone(),
            };
            let _ = back.transpose(1, 2).bmm_out(&layer.weight_gradient, &input);
            let _ = back.sum_intlist_out(&layer.bias_gradient, [1i64].as_slice(), true, Kind::Float);
            if 0 < index {
                back = input.threshold_backward(&back.bmm(&layer.weight), 0.0);
            }
        }
    }

    /// The parameters, flat.
    pub(super) fn parameters(&self) -> Vec<f32> {
        floats(&self.flat)
    }

    /// Replaces the parameters.
    pub(super) fn load(&mut self, parameters: &[f32]) {
        self.flat.copy_(&Tensor::from_slice(parameters));
    }

    /// Moves the parameters towards another's by the share `tau` of the way (Polyak averaging).
    pub(super) fn follow(&mut self, other: &Self, tau: f64) {
        let _ = self.flat.lerp_(&other.flat, tau);
    }

    /// Writes the gradient that was taken last, flat.
    pub(super) fn take_gradient(&self, gradient: &mut [f32]) {
        self.gradient.copy_data(gradient, gradient.len());
    }
}

/// What each option's own head says of its action, `[2, N, K]`, of `[2, N K, K]`.
fn own(values: &Tensor, actions: &Tensor) -> Tensor {
    let size = actions.size();
    values.view([2, size[0], size[1], size[1]]).diagonal(0, 2, 3)
}
