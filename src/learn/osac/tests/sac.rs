//! With one option every loss is SAC's, against an implementation of its own: one network a critic, plain matrices, the
//! log density from the change of variables, the temperature's loss through autograd.

use super::{ALPHAS, OBS, Parameters, ROWS, config, critics_layout, drawn, off_policy, picked};
use crate::config::Osac as Config;
use crate::contract::{Contract, Layout};
use crate::learn::osac::actor::{actor_losses, temperature_gradient};
use crate::learn::osac::losses::{critic_loss, targets};
use tch::{Kind, Tensor};

/// Weights and biases of a network, leaves of their own.
struct Plain(Vec<(Tensor, Tensor)>);

impl Plain {
    /// Critic `which` of the flat twins.
    fn critic(layout: &Layout, flat: &[f32], which: usize) -> Self {
        let half = |index: usize| {
            let segment = &layout.segments[index];
            let size = segment.len() / 2;
            let floats = &flat[segment.offset + which * size..][..size];
            let rows = segment.shape[1] as i64;
            Tensor::from_slice(floats)
                .view(if index.is_multiple_of(2) { [rows, -1] } else { [-1, 1] })
                .set_requires_grad(true)
        };
        Self((0..layout.segments.len()).step_by(2).map(|index| (half(index), half(index + 1))).collect())
    }

    fn forward(&self, input: &Tensor) -> Tensor {
        let last = self.0.len() - 1;
        let mut rows = input.tr();
        for (index, (weight, bias)) in self.0.iter().enumerate() {
            rows = weight.matmul(&rows) + bias.view([-1, 1]);
            if index < last {
                rows = rows.clamp_min(0.0);
            }
        }
        rows.tr()
    }
}

/// Trunk, then one matrix for the mean and one for log std.
struct Actor {
    trunk: Vec<(Tensor, Tensor)>,
    mean: (Tensor, Tensor),
    log_std: (Tensor, Tensor),
}

impl Actor {
    fn new(contract: &Contract, flat: &[f32]) -> Self {
        let layout = contract.layout();
        let leaf = |name: String| {
            let segment = layout.segments.iter().find(|segment| segment.name == name).unwrap();
            let shape: Vec<i64> = segment.shape.iter().map(|&size| size as i64).collect();
            Tensor::from_slice(&flat[segment.range()]).view(&shape[..]).set_requires_grad(true)
        };
        let pair = |name: &str| (leaf(format!("{name}.weight")), leaf(format!("{name}.bias")));
        let trunk = (0..contract.network.hidden.len()).map(|layer| pair(&format!("actor.{layer}"))).collect();
        Self { trunk, mean: pair("option.0.mean"), log_std: pair("option.0.log_std") }
    }

    /// An action and its log density.
    fn sample(&self, input: &Tensor, noise: &Tensor) -> (Tensor, Tensor) {
        let affine = |input: &Tensor, (weight, bias): &(Tensor, Tensor)| input.matmul(&weight.tr()) + bias;
        let features = self.trunk.iter().fold(input.shallow_clone(), |rows, layer| affine(&rows, layer).relu());
        let (mean, log_std) = (affine(&features, &self.mean), affine(&features, &self.log_std).clamp(-5.0, 2.0));
        let u = &mean + log_std.exp() * noise;
        let action = u.tanh();
        let z = (u - mean) / log_std.exp();
        let normal = z.square() / -2.0 - log_std - std::f64::consts::TAU.sqrt().ln();
        let log_prob =
            (normal - (action.square() * -1.0 + 1.0).log()).sum_dim_intlist([1i64].as_slice(), true, Kind::Float);
        (action, log_prob)
    }

    fn gradients(&self, contract: &Contract) -> Vec<f32> {
        let layout = contract.layout();
        let mut flat = vec![0.0; layout.len()];
        let mut put = |name: &str, (weight, bias): &(Tensor, Tensor)| {
            for (part, leaf) in [("weight", weight), ("bias", bias)] {
                let segment = layout.segments.iter().find(|segment| segment.name == format!("{name}.{part}")).unwrap();
                leaf.grad().copy_data(&mut flat[segment.range()], segment.len());
            }
        };
        self.trunk.iter().enumerate().for_each(|(layer, pair)| put(&format!("actor.{layer}"), pair));
        put("option.0.mean", &self.mean);
        put("option.0.log_std", &self.log_std);
        flat
    }
}

fn close(found: &[f32], want: &[f32], what: &str) {
    assert_eq!(found.len(), want.len());
    let scale = want.iter().fold(1e-3f32, |most, value| most.max(value.abs()));
    for (index, (found, want)) in found.iter().zip(want).enumerate() {
        assert!((found - want).abs() < 2e-5 * scale, "{what}[{index}]: {found} is not {want}");
    }
}

#[test]
fn one_option_is_soft_actor_critic() {
    let contract = off_policy(1, &[16, 8]);
    let parameters = Parameters::new(&contract);
    let layout = critics_layout(&contract);
    let (batch, picked) = (drawn(&contract), picked(&contract));
    let config = Config { huber_delta: 0.0, ..config() };
    let alpha = ALPHAS.action;
    let matrix = |floats: &[f32]| Tensor::from_slice(floats).view([ROWS as i64, -1]);
    let singles = |doubles: &[f64]| doubles.iter().map(|&double| double as f32).collect::<Vec<_>>();
    let column = |doubles: &[f64]| matrix(&singles(doubles));
    let both = |input: &Tensor, action: &Tensor| Tensor::cat(&[input, action], 1);

    // Haarnoja et al. 2018, arXiv 1812.05905, eq. 5 to 9.
    let actor = Actor::new(&contract, &parameters.actor);
    let critics = [0, 1].map(|which| Plain::critic(&layout, &parameters.critics, which));
    let slow = [0, 1].map(|which| Plain::critic(&layout, &parameters.slow_critics, which));
    let (next_action, next_log_prob) = actor.sample(&batch.next, &matrix(&batch.noise));
    let next = both(&batch.next, &next_action);
    let soft = slow[0].forward(&next).minimum(&slow[1].forward(&next)) - &next_log_prob * alpha;
    let want = (column(&batch.reward) + column(&batch.discount) * soft).detach();
    let here = both(&batch.input, &batch.action);
    let loss = |critic: &Plain| {
        let square = (critic.forward(&here) - &want).square() * 0.5 * column(&batch.weight);
        square.mean(Kind::Float)
    };
    let want_critic_loss = loss(&critics[0]) + loss(&critics[1]);
    want_critic_loss.backward();

    let mut networks = parameters.networks(&contract);
    let found = targets(&networks, &batch, ALPHAS, &config);
    close(&singles(&found), &crate::policy::floats(&want), "target");
    let critic = critic_loss(&mut networks.critics, &batch, &found, &config);
    close(&[critic.loss as f32], &[want_critic_loss.double_value(&[]) as f32], "critic loss");
    let error = |critic: &Plain| (critic.forward(&here) - &want).abs();
    let want_errors = (error(&critics[0]) + error(&critics[1])) / 2.0;
    close(&singles(&critic.errors), &crate::policy::floats(&want_errors.detach()), "error");
    let mut gradient = vec![0.0; parameters.critics.len()];
    networks.critics.take_gradient(&mut gradient);
    for (index, segment) in layout.segments.iter().enumerate() {
        let size = segment.len() / 2;
        for (which, critic) in critics.iter().enumerate() {
            let (weight, bias) = &critic.0[index / 2];
            let want = crate::policy::floats(&if index.is_multiple_of(2) { weight.grad() } else { bias.grad() });
            close(&gradient[segment.offset + which * size..][..size], &want, &segment.name);
        }
    }

    let (action, log_prob) = actor.sample(&picked.input, &matrix(&picked.noise));
    let pair = both(&picked.input, &action);
    let q = critics[0].forward(&pair).minimum(&critics[1].forward(&pair));
    let want_loss = (&log_prob * alpha - q).mean(Kind::Float);
    want_loss.backward();
    let mut gradient = vec![0.0; parameters.actor.len()];
    let losses = actor_losses(&networks, &picked, ALPHAS, &config, &mut gradient);
    assert!(losses.options.is_none());
    close(&[losses.policy as f32], &[want_loss.double_value(&[]) as f32], "actor loss");
    close(&gradient, &actor.gradients(&contract), "actor gradient");

    // The temperature: J(alpha) = -log alpha (log pi + target), as Stable-Baselines3 has it.
    let log_alpha = Tensor::from_slice(&[alpha.ln() as f32]).set_requires_grad(true);
    let target = -(contract.action_size() as f64);
    (-(&log_alpha * (log_prob.detach() + target))).mean(Kind::Float).backward();
    let found = temperature_gradient(&losses, (target, 0.0));
    close(&found[..1], &crate::policy::floats(&log_alpha.grad()), "temperature");
    assert_eq!(found[1], 0.0);
    assert_eq!(batch.input.size(), [ROWS as i64, OBS as i64]);
}
