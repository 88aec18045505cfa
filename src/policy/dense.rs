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

/// A forward pass: the input of each layer, then the output.
pub struct Kept(Vec<Tensor>);

impl Kept {
    /// What came out, `[N, width]`.
    pub fn output(&self) -> &Tensor {
        &self.0[self.0.len() - 1]
    }
}

/// Runs layers with tanh between them.
pub(super) fn forward<'a>(layers: impl IntoIterator<Item = &'a Linear>, input: &Tensor) -> Kept {
    tch::no_grad(|| {
        let mut kept = vec![input.shallow_clone()];
        for (index, layer) in layers.into_iter().enumerate() {
            if 0 < index {
                let _in_place = kept[index].tanh_();
            }
            kept.push(layer.forward(&kept[index]));
        }
        Kept(kept)
    })
}

/// Writes the gradient of all weights and biases at their places, given the output's, N x width.
pub(super) fn backward(layers: &[&Linear], kept: &Kept, output: &[f32], gradient: &mut [f32]) {
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
            if 0 < index {
                above = Tensor::tanh_backward(&above.matmul(&layer.weight), input);
            }
        }
    });
}

fn copy(tensor: &Tensor, out: &mut [f32]) {
    tensor.contiguous().copy_data(out, out.len());
}
