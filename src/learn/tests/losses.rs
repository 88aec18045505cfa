use super::autograd::log_density;
use crate::learn::loss::Clipped;
use tch::{Kind, Tensor};

/// PPO's clip at .2: (ratio, advantage) gives (objective, gradient of the ratio).
#[test]
fn the_clip_table() {
    for (ratio, advantage, objective, slope) in
        [(1.3, 1.0, 1.2, 0.0), (0.7, 1.0, 0.7, 1.0), (1.3, -1.0, -1.3, -1.0), (0.7, -1.0, -0.8, 0.0)]
    {
        let mut found = Clipped::default();
        // Half of a minibatch; the slope is along the log ratio.
        let found_slope = found.add(f64::ln(ratio), advantage, 0.2, 0.5);
        assert!((found.loss + 0.5 * objective).abs() < 1e-12);
        assert!((found_slope + 0.5 * slope * ratio).abs() < 1e-12);
        assert_eq!(found.share, 0.5);
    }
}

/// In eight dimensions the typical density is 1e-5: a log of (density + small) would halve this gradient.
#[test]
fn the_log_density_has_the_score_of_a_gaussian_in_eight_dimensions() {
    let z: Vec<f32> = (0..8).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    for scale in [1.0f32, 6.0] {
        let mean = Tensor::zeros([1, 8], (Kind::Float, tch::Device::Cpu)).set_requires_grad(true);
        let log_std = Tensor::full([1, 8], 0.4, (Kind::Float, tch::Device::Cpu)).set_requires_grad(true);
        let sigma = 0.4f64.exp();
        let proposal = Tensor::from_slice(&z).view([1, 8]) * f64::from(scale) * sigma;
        let log = log_density(&mean, &log_std, &proposal);
        log.sum(Kind::Float).backward();
        let want = 8.0 * (-0.5 * f64::from(scale * scale) - 0.4 - 0.5 * std::f64::consts::TAU.ln());
        assert!((log.double_value(&[0]) - want).abs() < 1e-4, "log density {log}, want {want}");
        for (i, z) in z.iter().enumerate() {
            let z = f64::from(scale * z);
            assert!((mean.grad().double_value(&[0, i as i64]) - z / sigma).abs() < 1e-6 * f64::from(scale));
            assert!((log_std.grad().double_value(&[0, i as i64]) - (z * z - 1.0)).abs() < 1e-5 * f64::from(scale));
        }
    }
}
