//! One state alone, in plain numbers: to call torch takes longer than such a pass.

use super::dense::{Activation, Linear};
use nalgebra::{DMatrixView, DVector, DVectorView};
use std::ops::Range;
use std::sync::Arc;

/// `W x + b`, by its places in the flat vector.
struct Layer {
    weight: Range<usize>,
    bias: Range<usize>,
}

/// Layers with an activation between them, on a flat parameter vector.
pub(super) struct Alone {
    parameters: Arc<[f32]>,
    layers: Vec<Layer>,
    activation: Activation,
}

impl Alone {
    /// The same layers on the same parameters.
    pub(super) fn new<'a>(
        parameters: &Arc<[f32]>,
        layers: impl IntoIterator<Item = &'a Linear>,
        activation: Activation,
    ) -> Self {
        let place = |layer: &Linear| {
            let [weight, bias] = layer.at.clone();
            Layer { weight, bias }
        };
        Self { parameters: parameters.clone(), layers: layers.into_iter().map(place).collect(), activation }
    }

    /// What comes out.
    pub(super) fn forward(&self, input: &[f32]) -> Vec<f32> {
        let mut features = DVector::from_column_slice(input);
        for (index, layer) in self.layers.iter().enumerate() {
            if 0 < index {
                self.activation.apply_alone(features.as_mut_slice());
            }
            // row-major in the flat vector, so that a column here is what one output weighs its inputs with
            let (weight, bias) = (&self.parameters[layer.weight.clone()], &self.parameters[layer.bias.clone()]);
            let weight = DMatrixView::from_slice(weight, features.len(), bias.len());
            let mut out: DVector<f32> = DVectorView::from_slice(bias, bias.len()).into_owned();
            out.gemv_tr(1.0, &weight, &features, 1.0);
            features = out;
        }
        features.as_slice().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Policy;
    use super::super::tests::{OBS, contract, snapshot};
    use crate::config::Seed;
    use crate::contract::{Architecture, Contract, Network};
    use rand::RngExt as _;
    use std::sync::Arc;

    /// torch is the other implementation: what each state of a batch gets, it gets alone.
    #[test]
    fn a_state_alone_is_answered_as_among_others() {
        for (options, hidden) in [(1, vec![]), (4, vec![16]), (3, vec![5, 64, 7]), (4, vec![256, 256])] {
            for architecture in [Architecture::OnPolicy, Architecture::OffPolicy] {
                let network = Network { architecture, hidden: hidden.clone() };
                let contract = Arc::new(Contract { network, ..Contract::clone(&contract(options, &[])) });
                let policy = Policy::new(&snapshot(&contract, 3, 0.2)).unwrap();
                let mut rng = Seed::root(5).rng(0);
                let states: Vec<f32> = (0..8 * OBS).map(|_| rng.random_range(-3.0..3.0)).collect();
                let (together, values) = (policy.outputs(&states).unwrap(), policy.values(&states).unwrap());
                for (row, state) in states.chunks(OBS).enumerate() {
                    let alone = policy.outputs(state).unwrap();
                    let all = |outputs: &super::super::Outputs, row: usize| {
                        let options = 0..options;
                        let mut all = outputs.log_over_options(row);
                        all.extend(outputs.means(row).iter().map(|&mean| f64::from(mean)));
                        all.extend(options.clone().flat_map(|option| outputs.log_std(row, option).to_vec()));
                        all.extend(options.map(|option| outputs.termination(row, option)));
                        all
                    };
                    for (alone, among) in all(&alone, 0).iter().zip(all(&together, row)) {
                        assert!(
                            (alone - among).abs() < 1e-4 * (1.0 + among.abs()),
                            "{alone} alone, {among} among others"
                        );
                    }
                    let own = policy.values(state).unwrap();
                    for (alone, among) in own.iter().zip(&values[row * own.len()..]) {
                        assert!(
                            (alone - among).abs() < 1e-4 * (1.0 + among.abs()),
                            "{alone} alone, {among} among others"
                        );
                    }
                    assert_eq!(own.len() * 8, values.len());
                }
            }
        }
    }
}
