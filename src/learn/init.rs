//! Initial parameters: orthogonal, as the PPO implementations have it.

use crate::config::{self, Purpose, Seed};
use crate::contract::{Contract, Group};
use nalgebra::DMatrix;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

/// Last layers start small, so that options start alike and the first actions near 0.
const HEAD_GAIN: f64 = 0.01;

/// Flat parameters: orthogonal weights (gain sqrt 2 before tanh, [`HEAD_GAIN`] in the heads), zero biases but the
/// terminations', and the given log_std. Each segment draws from its own generator.
pub(super) fn parameters(contract: &Contract, config: &config::HsPpo, seed: Seed) -> Vec<f32> {
    let layout = contract.layout();
    let mut parameters = vec![0.0; layout.len()];
    for (index, segment) in layout.segments.iter().enumerate() {
        let out = &mut parameters[segment.range()];
        match (&segment.shape[..], segment.group) {
            ([rows, columns], group) => {
                let trunk =
                    group == Group::Trunk || segment.name.starts_with("critic.") && !segment.name.contains("value");
                let gain = if trunk { 2f64.sqrt() } else { HEAD_GAIN };
                let mut rng = seed.of(Purpose::Parameters).rng(index as u64);
                out.copy_from_slice(&orthogonal(*rows, *columns, gain, &mut rng));
            }
            (_, Group::Option(_)) if segment.name.ends_with("log_std") => out.fill(config.log_std_init as f32),
            (_, Group::Termination) => out.fill(config.termination_bias_init as f32),
            _ => {}
        }
    }
    parameters
}

/// A matrix with orthonormal rows or columns, whichever are fewer, times `gain`; row-major
/// (Saxe et al. 2014, as `torch.nn.init.orthogonal_`: QR of a normal matrix, signs from R's diagonal).
fn orthogonal(rows: usize, columns: usize, gain: f64, rng: &mut ChaCha8Rng) -> Vec<f32> {
    let (long, short) = (rows.max(columns), rows.min(columns));
    let normal = DMatrix::from_fn(long, short, |_, _| rng.sample::<f64, _>(StandardNormal));
    let (mut q, r) = normal.qr().unpack();
    for column in 0..short {
        if r[(column, column)] < 0.0 {
            q.column_mut(column).neg_mut();
        }
    }
    let entry = |row: usize, column: usize| if rows < columns { q[(column, row)] } else { q[(row, column)] };
    (0..rows * columns).map(|at| (gain * entry(at / columns, at % columns)) as f32).collect()
}
