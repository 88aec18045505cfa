//! Actions that were never carried out, with their densities, in plain numbers.

use crate::policy::Outputs;

/// One action of each option in N states.
pub(super) struct Imagined {
    /// In (-1, 1), N x K x A.
    pub(super) action: Vec<f32>,
    /// log density of the action, the Jacobian of tanh included, N x K.
    pub(super) log_prob: Vec<f64>,
}

/// `a = tanh(u)`, `u = mean + std noise`; noise is normal, N x K x A. With `e = exp(-2 |u|)` it is
/// `tanh |u| = (1 - e) / (1 + e)` and `log(1 - tanh² u) = ln 4 - 2 |u| - 2 ln(1 + e)` for every u.
pub(super) fn imagine(outputs: &Outputs, noise: &[f32]) -> Imagined {
    let (options, width) = (outputs.options(), outputs.action_size());
    let constant = -0.5 * std::f64::consts::TAU.ln() - 4f64.ln();
    let mut imagined = Imagined {
        action: Vec::with_capacity(noise.len()),
        log_prob: Vec::with_capacity(noise.len().checked_div(width).unwrap_or(0)),
    };
    for (at, noise) in noise.chunks_exact(width).enumerate() {
        let (row, option) = (at / options, at % options);
        let (mut density, mut product) = (0.0, 1.0);
        let joints = outputs.mean(row, option).iter().zip(outputs.log_std(row, option)).zip(noise);
        for ((&mean, log_std), &noise) in joints {
            let noise = f64::from(noise);
            let u = f64::from(mean) + log_std.exp() * noise;
            let e = (-2.0 * u.abs()).exp();
            imagined.action.push(((1.0 - e) / (1.0 + e)).copysign(u) as f32);
            density += constant - 0.5 * noise * noise - log_std + 2.0 * u.abs();
            product *= 1.0 + e;
        }
        imagined.log_prob.push(density + 2.0 * product.ln());
    }
    imagined
}
