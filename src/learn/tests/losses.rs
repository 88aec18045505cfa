use super::{acting, config, fresh, together};
use crate::learn::batch::Anchor;
use crate::learn::loss::{anchored, clipped, log_density};
use crate::option::transition;
use crate::policy::Network;
use tch::{Kind, Tensor};

/// PPO's clip at .2: (ratio, advantage) gives (objective, gradient of the ratio).
#[test]
fn the_clip_table() {
    for (ratio, advantage, objective, slope) in
        [(1.3, 1.0, 1.2, 0.0), (0.7, 1.0, 0.7, 1.0), (1.3, -1.0, -1.3, -1.0), (0.7, -1.0, -0.8, 0.0)]
    {
        let ratio = Tensor::from_slice(&[ratio]).set_requires_grad(true);
        let found = clipped(&ratio, &Tensor::from_slice(&[advantage]), 0.2);
        found.sum(Kind::Double).backward();
        assert!((found.double_value(&[0]) - objective).abs() < 1e-12);
        assert!((ratio.grad().double_value(&[0]) - slope).abs() < 1e-12);
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

/// KL of Gaussians of mean .1 and -.2, sigma .5 and .8, both ways.
#[test]
fn the_anchor_is_the_divergence_of_gaussians() {
    let (a, b) = ((0.1f32, 0.5f32), (-0.2f32, 0.8f32));
    for ((before, after), want) in [((a, b), 0.23562863), ((b, a), 0.48999638)] {
        let matrix = |value: f32| Tensor::from_slice(&[value]).view([1, 1]);
        let anchor = Anchor { options: vec![0], log_std: matrix(before.1.ln()) };
        let mean = |value: f32| matrix(value).unsqueeze(0);
        let found = anchored(&mean(after.0), &matrix(after.1.ln()), &mean(before.0), &anchor).double_value(&[]);
        assert!((found - want).abs() < 1e-6, "{found} is not {want}");
    }
}

/// KL(mean p^ || uniform), each step's law in plain numbers.
#[test]
fn the_load_balance_is_that_of_the_law_by_hand() {
    const K: usize = 4;
    let config = config();
    let (learner, rows) = fresh(K, &config);
    let prepared = learner.prepare(&rows, 1).unwrap();
    let count = prepared.gathered.steps.len();
    let mut mean = [0.0; K];
    for (row, arrival) in prepared.estimated.arrivals.iter().enumerate() {
        let over: Vec<f64> = prepared.outputs.log_over_options(row).iter().map(|log| log.exp()).collect();
        let mut law = [0.0; K];
        transition(arrival.beta(), arrival.running, &over, &mut law);
        mean.iter_mut().zip(law).for_each(|(mean, law)| *mean += law / count as f64);
    }
    let want: f64 = mean.iter().map(|share| share * (share * K as f64).ln()).sum();
    let snapshot = acting(&learner, 1);
    let network = Network::new(snapshot.contract(), &learner.state().parameters, true).unwrap();
    let losses = together(&network, &prepared.batch, &prepared.anchor, &config);
    let found = losses.options.unwrap().load_balance.double_value(&[]);
    assert!((found - want).abs() < 1e-5 && 1e-3 < want, "{found} is not {want}");
}
