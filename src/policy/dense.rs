//! Dense layers, and their gradient in closed form: a few operations a layer, where autograd takes dozens.

use crate::defect::defect;
use std::ops::Range;
use tch::Tensor;

/// `x W' + b`, on leaves that view a flat vector.
pub(super) struct Linear {
    pub(super) weight: Tensor,
    pub(super) bias: Tensor,
    /// Where they lie in the flat vector.
    pub(super) at: [Range<usize>; 2],
}

impl Linear {
    pub(super) fn forward(&self, input: &Tensor) -> Tensor {
        input.linear(&self.weight, Some(&self.bias))
    }

    pub(super) fn share(&self) -> Self {
        Self { weight: self.weight.shallow_clone(), bias: self.bias.shallow_clone(), at: self.at.clone() }
    }
}

/// What lies between layers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Activation {
    Tanh,
    Relu,
}

impl Activation {
    pub(super) fn apply(self, features: &mut Tensor) -> Tensor {
        match self {
            Self::Tanh => features.tanh_(),
            Self::Relu => features.relu_(),
        }
    }

    /// The same for one state.
    pub(super) fn apply_alone(self, features: &mut [f32]) {
        match self {
            Self::Tanh => features.iter_mut().for_each(|feature| *feature = feature.tanh()),
            Self::Relu => features.iter_mut().filter(|feature| **feature < 0.0).for_each(|feature| *feature = 0.0),
        }
    }

    /// The gradient before it, of that after it and what came out.
    fn backward(self, above: &Tensor, out: &Tensor) -> Tensor {
        match self {
            Self::Tanh => Tensor::tanh_backward(above, out),
            Self::Relu => out.threshold_backward(above, 0.0),
        }
    }
}

/// A forward pass: the input of each layer, then the output.
pub struct Kept(Vec<Tensor>);

impl Kept {
    /// What came out, `[N, width]`.
    pub fn output(&self) -> &Tensor {
        &self.0[self.0.len() - 1]
    }
}

/// Runs layers with an activation between them.
pub(super) fn forward<'a>(
    layers: impl IntoIterator<Item = &'a Linear>,
    activation: Activation,
    input: &Tensor,
) -> Kept {
    tch::no_grad(|| {
        let mut kept = vec![input.shallow_clone()];
        for (index, layer) in layers.into_iter().enumerate() {
            if 0 < index {
                let _in_place = activation.apply(&mut kept[index]);
            }
            kept.push(layer.forward(&kept[index]));
        }
        Kept(kept)
    })
}

/// Writes the gradient of all weights and biases at their places, given the output's, N x width. Of the outputs `silent`
/// the layers below the last one do not hear.
pub(super) fn backward(
    layers: &[&Linear],
    activation: Activation,
    kept: &Kept,
    output: &[f32],
    silent: Range<i64>,
    gradient: &mut [f32],
) {
    tch::no_grad(|| {
        let mut above = Tensor::from_slice(output).view_as(kept.output());
        for (index, layer) in layers.iter().enumerate().rev() {
            if defect("trunk_detached") && index + 1 < layers.len() {
                break;
            }
            let [weight, bias] = &layer.at;
            let input = &kept.0[index];
            copy(&above.tr().matmul(input), &mut gradient[weight.clone()]);
            copy(&above.sum_dim_intlist([0i64].as_slice(), false, None), &mut gradient[bias.clone()]);
            if index + 1 == layers.len() && !silent.is_empty() {
                let _silenced = above.narrow(1, silent.start, silent.end - silent.start).zero_();
            }
            if 0 < index {
                above = activation.backward(&above.matmul(&layer.weight), input);
            }
        }
    });
}

fn copy(tensor: &Tensor, out: &mut [f32]) {
    tensor.contiguous().copy_data(out, out.len());
}
