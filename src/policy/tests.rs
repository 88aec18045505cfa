use super::{Outputs, Policy, Sampling};
use crate::config::Seed;
use crate::contract::{
    ActionMeaning, Architecture, Contract, Field, Network as Networks, Normaliser, Options, Snapshot, Told,
};
use crate::data::{Forced, NO_OPTION};
use crate::option::Running;
use crate::robot::Robot;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use std::sync::Arc;
use uuid::Uuid;

pub(crate) const OBS: usize = 3;

/// A small contract of `options` options on 3 observed floats and 2 joints. One thread of torch's: tests run side by side.
pub(crate) fn contract(options: usize, hidden: &[usize]) -> Arc<Contract> {
    tch::set_num_threads(1);
    Arc::new(Contract {
        robot: Robot::Panda,
        joints: vec!["a".into(), "b".into()],
        task: "test".into(),
        observation: vec![Field { name: "position_rad".into(), len: OBS }],
        action: ActionMeaning::JointDelta { scale_rad: 0.1 },
        control_period_secs: 0.05,
        options: Options { count: options, min_steps: 2, max_steps: 6 },
        network: Networks { architecture: Architecture::OnPolicy, hidden: hidden.to_vec() },
        told: Told::default(),
    })
}

/// A snapshot whose parameters are normal draws times `scale`.
pub(crate) fn snapshot(contract: &Arc<Contract>, seed: u64, scale: f32) -> Snapshot {
    let mut rng = Seed::root(seed).rng(0);
    let mut draw = || scale * rng.sample::<f32, _>(StandardNormal);
    Snapshot {
        run: Uuid::nil(),
        life: 1,
        version: 1,
        updates: 0,
        env_steps: 0,
        random_warmup: false,
        contract: Arc::clone(contract),
        normaliser: Normaliser::identity(contract.obs_size(), 10.0),
        parameters: (0..contract.layout().len()).map(|_| draw()).collect(),
    }
}

pub(crate) fn draws(count: usize, tick: u64) -> Vec<ChaCha8Rng> {
    (0..count).map(|env| Seed::root(3).child(env as u64).rng(tick)).collect()
}

fn running(option: u8, age: u32) -> Running {
    Running { option: Some(option), age }
}

fn policy(options: usize) -> Policy {
    Policy::new(&snapshot(&contract(options, &[16]), 1, 0.6)).unwrap()
}

#[test]
fn options_are_drawn_by_the_law_that_is_recorded() {
    let policy = Policy::new(&snapshot(&contract(3, &[16]), 1, 0.3)).unwrap();
    let count = 40_000;
    let observations = [0.3, -0.8, 0.5].repeat(count);
    for start in [Running::default(), running(1, 3)] {
        let decisions =
            policy.decide(&observations, &vec![start; count], &mut draws(count, 0), Sampling::Stochastic).unwrap();
        for option in 0..3u8 {
            let mine: Vec<_> = decisions.iter().filter(|decision| decision.choice.option == option).collect();
            let share = mine.len() as f64 / count as f64;
            let want = f64::from(mine[0].choice.log_prob_option.exp());
            let sigma = (want * (1.0 - want) / count as f64).sqrt();
            assert!((share - want).abs() < 4.0 * sigma, "option {option}: drawn {share}, recorded {want}");
            assert!(0.02 < want, "the test sees every option");
        }
        let ended = decisions.iter().filter(|decision| decision.choice.option_terminated).count() as f64 / count as f64;
        let beta = f64::from(decisions[0].choice.termination_prob);
        assert!((ended - beta).abs() < 4.0 * (0.25 / count as f64).sqrt(), "ended {ended}, beta {beta}");
    }
}

#[test]
fn proposals_have_the_recorded_density() {
    let policy = policy(1);
    let count = 20_000;
    let observations = [0.3, -0.8, 0.5].repeat(count);
    let decisions = policy
        .decide(&observations, &vec![Running::default(); count], &mut draws(count, 0), Sampling::Stochastic)
        .unwrap();
    let outputs = policy.outputs(&observations[..OBS]).unwrap();
    let (mut sum, mut squares) = (0.0, 0.0);
    for decision in &decisions {
        let z = (f64::from(decision.choice.proposal[1]) - f64::from(outputs.mean(0, 0)[1]))
            / outputs.log_std(0, 0)[1].exp();
        sum += z;
        squares += z * z;
    }
    let count = count as f64;
    assert!((sum / count).abs() < 4.0 / count.sqrt());
    assert!((squares / count - 1.0).abs() < 4.0 * (2.0 / count).sqrt());
    let entropy: f64 =
        outputs.log_std(0, 0).iter().map(|log_std| log_std + 0.5 * (std::f64::consts::TAU.ln() + 1.0)).sum();
    let mean: f64 = decisions.iter().map(|decision| f64::from(decision.choice.log_prob_action)).sum::<f64>() / count;
    assert!((mean + entropy).abs() < 4.0 / count.sqrt(), "mean log density {mean}, entropy {entropy}");
}

#[test]
fn an_environment_decides_alike_whatever_stands_beside_it() {
    let policy = policy(4);
    let observations: Vec<f32> = (0..5 * OBS).map(|float| (float as f32 * 0.7).sin()).collect();
    let runs = [Running::default(), running(0, 2), running(1, 5), running(2, 3), running(3, 1)];
    let together = policy.decide(&observations, &runs, &mut draws(5, 9), Sampling::Stochastic).unwrap();
    for env in 0..5 {
        let mut own = vec![draws(5, 9)[env].clone()];
        let row = &observations[env * OBS..(env + 1) * OBS];
        let alone = &policy.decide(row, &runs[env..=env], &mut own, Sampling::Stochastic).unwrap()[0];
        assert_eq!((alone.choice.option, alone.next), (together[env].choice.option, together[env].next));
        for (a, b) in alone.choice.proposal.iter().zip(&together[env].choice.proposal) {
            assert!((a - b).abs() < 1e-5);
        }
    }
}

#[test]
fn forced_steps_say_so_and_carry_no_termination_probability() {
    let policy = policy(3);
    let observations = [0.1; 4 * OBS];
    let runs = [Running::default(), running(1, 1), running(1, 2), running(1, 6)];
    let decisions = policy.decide(&observations, &runs, &mut draws(4, 0), Sampling::Stochastic).unwrap();
    let forced: Vec<Forced> = decisions.iter().map(|decision| decision.choice.forced).collect();
    assert_eq!(forced, [Forced::Init, Forced::MinSteps, Forced::Free, Forced::MaxSteps]);
    let [init, early, free, late] = &decisions[..] else { panic!() };
    assert_eq!((init.choice.option_prev, init.choice.option_terminated, init.choice.option_age), (NO_OPTION, true, 0));
    assert_eq!((init.next.age, init.choice.log_prob_termination, init.choice.termination_prob), (1, 0.0, 1.0));
    assert_eq!((early.choice.option, early.choice.option_terminated, early.next), (1, false, running(1, 2)));
    assert_eq!((early.choice.log_prob_option, early.choice.log_prob_termination), (0.0, 0.0));
    assert!(free.choice.log_prob_termination < 0.0);
    assert_eq!((late.choice.option_terminated, late.next.age, late.choice.log_prob_termination), (true, 1, 0.0));
    assert!((late.choice.log_prob_option - late.over_options[usize::from(late.choice.option)].ln()).abs() < 1e-6);
}

#[test]
fn mean_action_changes_the_action_and_nothing_of_the_options() {
    let policy = policy(3);
    let observations = [0.4; OBS * 50];
    let runs = vec![running(2, 4); 50];
    let sampled = policy.decide(&observations, &runs, &mut draws(50, 1), Sampling::Stochastic).unwrap();
    let mean = policy.decide(&observations, &runs, &mut draws(50, 1), Sampling::MeanAction).unwrap();
    let outputs = policy.outputs(&observations).unwrap();
    for (env, (sampled, mean)) in sampled.iter().zip(&mean).enumerate() {
        assert_eq!(
            (sampled.choice.option, sampled.choice.option_terminated),
            (mean.choice.option, mean.choice.option_terminated)
        );
        assert_eq!(mean.choice.proposal, outputs.mean(env, usize::from(mean.choice.option)));
        assert_eq!(mean.choice.action, mean.choice.proposal.iter().map(|u| u.tanh()).collect::<Vec<_>>());
        assert_ne!(sampled.choice.proposal, mean.choice.proposal);
    }
}

#[test]
fn the_mixture_sums_the_options_by_their_law() {
    let policy = policy(3);
    let observation = [0.4, 0.1, -0.3];
    let decision = &policy.decide(&observation, &[running(2, 4)], &mut draws(1, 1), Sampling::Stochastic).unwrap()[0];
    let outputs = policy.outputs(&observation).unwrap();
    let beta = f64::from(decision.choice.termination_prob);
    let density: f64 = (0..3)
        .map(|o| {
            let stays = if o == 2 { 1.0 - beta } else { 0.0 };
            let law = stays + beta * f64::from(decision.over_options[o]);
            law * outputs.log_prob_action(0, o, &decision.choice.proposal).exp()
        })
        .sum();
    assert!((density.ln() - f64::from(decision.choice.log_prob_mixture)).abs() < 1e-5);
}

/// tanh-Gaussian: mean .3, log_std -.5, u .8 gives a = .66403677 and log density -.17721664 with tanh's Jacobian.
#[test]
fn the_log_density_is_the_gaussians() {
    let contract = contract(1, &[4]);
    let mut snapshot = snapshot(&contract, 1, 0.0);
    let mut parameters = snapshot.parameters.to_vec();
    for segment in &contract.layout().segments {
        match segment.name.as_str() {
            "option.0.mean.bias" => parameters[segment.range()].fill(0.3),
            "option.0.log_std" => parameters[segment.range()].fill(-0.5),
            _ => {}
        }
    }
    snapshot.parameters = parameters.into();
    let outputs = Policy::new(&snapshot).unwrap().outputs(&[0.0; OBS]).unwrap();
    let both = outputs.log_prob_action(0, 0, &[0.8, 0.8]);
    let jacobian = |u: f64| 2.0 * (2f64.ln() - u - (-2.0 * u).exp().ln_1p());
    assert!((both / 2.0 - jacobian(0.8) + 0.17721664).abs() < 1e-7);
    assert!((0.8f64.tanh() - 0.66403677).abs() < 1e-8);
    assert!((jacobian(12.0) + 22.6137056).abs() < 1e-7);
}

#[test]
fn one_option_has_no_option_level() {
    let decisions = policy(1)
        .decide(&[0.2; OBS * 2], &[Running::default(), running(0, 3)], &mut draws(2, 0), Sampling::Stochastic)
        .unwrap();
    for decision in decisions {
        assert_eq!((decision.choice.option, decision.choice.log_prob_option), (0, 0.0));
        assert_eq!(decision.choice.log_prob_mixture, decision.choice.log_prob_action);
    }
}

#[test]
fn what_is_not_finite_is_refused_by_environment() {
    let policy = policy(2);
    let mut observations = [0.2; OBS * 3];
    observations[OBS * 2 + 1] = f32::NAN;
    let error = policy.decide(&observations, &[Running::default(); 3], &mut draws(3, 0), Sampling::Stochastic);
    let text = error.unwrap_err().to_string();
    assert!(text.contains("environment 2") && text.contains("float 1"), "{text}");
    assert!(policy.values(&observations).is_err());
    let error = policy.decide(&[0.0; OBS], &[running(2, 1)], &mut draws(1, 0), Sampling::Stochastic);
    assert!(error.unwrap_err().to_string().contains("option 2"));
    assert!(policy.decide(&[0.0; OBS], &[], &mut draws(1, 0), Sampling::Stochastic).is_err());
    assert!(policy.decide(&[0.0; OBS + 1], &[Running::default()], &mut draws(1, 0), Sampling::Stochastic).is_err());
}

#[test]
fn a_snapshot_that_cannot_act_is_refused() {
    let contract = contract(2, &[8]);
    let good = snapshot(&contract, 1, 0.5);
    let with = |value: f32| {
        let mut parameters = good.parameters.to_vec();
        parameters[7] = value;
        Snapshot { parameters: parameters.into(), ..good.clone() }
    };
    assert!(Policy::new(&with(1.0)).is_ok());
    assert!(Policy::new(&with(f32::INFINITY)).is_err());
    let huge = Snapshot { parameters: vec![f32::MAX; good.parameters.len()].into(), ..good.clone() };
    assert!(Policy::new(&huge).err().unwrap().to_string().contains("actor"));
    let short = Snapshot { parameters: good.parameters[1..].into(), ..good };
    assert!(Policy::new(&short).is_err());
}

#[test]
fn the_snapshots_normaliser_is_applied() {
    let contract = contract(2, &[8]);
    let plain = snapshot(&contract, 1, 0.5);
    let normaliser = Normaliser { mean: vec![1.0, -2.0, 0.5], std: vec![2.0, 0.5, 1.0], clip: 3.0, count: 9.0 };
    let scaled = Policy::new(&Snapshot { normaliser, ..plain.clone() }).unwrap();
    let plain = Policy::new(&plain).unwrap();
    assert_eq!(scaled.values(&[3.0, 9.0, 0.0]).unwrap(), plain.values(&[1.0, 3.0, -0.5]).unwrap());
}

/// The heads that `Outputs` reads lie where the layout says: compare with plain loops over the named segments.
#[test]
fn the_forward_pass_reads_the_layouts_segments() {
    let contract = contract(3, &[5, 4]);
    let snapshot = snapshot(&contract, 2, 0.7);
    let policy = Policy::new(&snapshot).unwrap();
    let layout = contract.layout();
    let segment = |name: &str| {
        let segment = layout.segments.iter().find(|segment| segment.name == name).unwrap();
        &snapshot.parameters[segment.range()]
    };
    let linear = |name: &str, input: &[f32]| -> Vec<f32> {
        let rows = segment(&format!("{name}.weight")).chunks(input.len());
        let dot = |row: &[f32]| row.iter().zip(input).map(|(w, x)| w * x).sum::<f32>();
        rows.zip(segment(&format!("{name}.bias"))).map(|(row, bias)| dot(row) + bias).collect()
    };
    let tanh = |values: Vec<f32>| values.into_iter().map(f32::tanh).collect::<Vec<_>>();
    let observation = [0.3, -0.6, 0.9];
    let features = tanh(linear("actor.1", &tanh(linear("actor.0", &observation))));
    let outputs: Outputs = policy.outputs(&observation).unwrap();
    let near = |found: f64, want: f64| assert!((found - want).abs() < 1e-5, "found {found}, want {want}");
    for option in 0..3 {
        let mean = linear(&format!("option.{option}.mean"), &features);
        for (found, want) in outputs.mean(0, option).iter().zip(mean) {
            near(f64::from(*found), f64::from(want));
        }
        near(outputs.termination(0, option), f64::from(linear("termination", &features)[option]));
        let logits = linear("over_options", &features);
        let total = logits.iter().map(|logit| logit.exp()).sum::<f32>().ln();
        near(outputs.log_over_options(0)[option], f64::from(logits[option] - total));
        let log_std = segment(&format!("option.{option}.log_std"));
        for (found, want) in outputs.log_std(0, option).iter().zip(log_std) {
            near(*found, f64::from(*want));
        }
    }
    let critic = tanh(linear("critic.1", &tanh(linear("critic.0", &observation))));
    for (found, want) in policy.values(&observation).unwrap().iter().zip(linear("critic.value", &critic)) {
        near(f64::from(*found), f64::from(want));
    }
}

/// Off-policy: ReLU, and a head for log_std.
#[test]
fn an_off_policy_snapshot_acts_with_its_own_heads() {
    let network = Networks { architecture: Architecture::OffPolicy, hidden: vec![5, 4] };
    let contract = Arc::new(Contract { network, ..(*contract(3, &[])).clone() });
    let snapshot = snapshot(&contract, 2, 0.7);
    let policy = Policy::new(&snapshot).unwrap();
    let layout = contract.layout();
    let linear = |name: &str, input: &[f32]| -> Vec<f32> {
        let segment = |part: &str| {
            let segment = layout.segments.iter().find(|segment| segment.name == format!("{name}.{part}")).unwrap();
            &snapshot.parameters[segment.range()]
        };
        let dot = |row: &[f32]| row.iter().zip(input).map(|(w, x)| w * x).sum::<f32>();
        segment("weight").chunks(input.len()).zip(segment("bias")).map(|(row, bias)| dot(row) + bias).collect()
    };
    let relu = |values: Vec<f32>| values.into_iter().map(|value| value.max(0.0)).collect::<Vec<_>>();
    let observations = [[0.3, -0.6, 0.9], [-1.0, 0.2, 0.4]];
    let outputs = policy.outputs(&observations.concat()).unwrap();
    for (row, observation) in observations.iter().enumerate() {
        let features = relu(linear("actor.1", &relu(linear("actor.0", observation))));
        for option in 0..3 {
            let near = |found: f64, want: f32| assert!((found - f64::from(want)).abs() < 1e-5, "{found} is not {want}");
            for (found, want) in
                outputs.mean(row, option).iter().zip(linear(&format!("option.{option}.mean"), &features))
            {
                near(f64::from(*found), want);
            }
            let log_std = linear(&format!("option.{option}.log_std"), &features);
            for (found, want) in outputs.log_std(row, option).iter().zip(log_std) {
                near(*found, want.clamp(-5.0, 2.0));
            }
            near(outputs.termination(row, option), linear("termination", &features)[option]);
        }
    }
    assert!(policy.values(&observations[0]).unwrap().is_empty(), "the critics stay with the learner");
}

#[test]
fn a_random_warm_up_acts_uniformly_and_says_so() {
    let warm = Snapshot { random_warmup: true, ..snapshot(&contract(2, &[8]), 1, 0.5) };
    let policy = Policy::new(&warm).unwrap();
    let count = 20_000;
    let observations = [0.3, -0.8, 0.5].repeat(count);
    let start = vec![Running::default(); count];
    let decisions = policy.decide(&observations, &start, &mut draws(count, 0), Sampling::Stochastic).unwrap();
    let mut bins = [0.0; 10];
    for decision in &decisions {
        let action = f64::from(decision.choice.action[0]);
        bins[(5.0 * (action + 1.0)) as usize] += 1.0;
        // Uniform on [-1, 1]²: 1/4 an action; du = da / (1 - a²).
        let want: f64 = decision.choice.action.iter().map(|&a| ((1.0 - f64::from(a).powi(2)) / 2.0).ln()).sum();
        if decision.choice.action.iter().all(|a| a.abs() < 0.99) {
            assert!((f64::from(decision.choice.log_prob_action) - want).abs() < 1e-3);
        }
        assert_eq!(decision.choice.log_prob_mixture, decision.choice.log_prob_action, "all options act alike");
    }
    let chi: f64 = bins.iter().map(|bin: &f64| (bin - 2000.0).powi(2) / 2000.0).sum();
    assert!(chi < 27.9, "chi squared {chi}: 99.9 % are below with 9 degrees of freedom");
    let mean = policy.decide(&observations[..OBS], &start[..1], &mut draws(1, 0), Sampling::MeanAction).unwrap();
    assert_eq!(
        mean[0].choice.proposal,
        policy.outputs(&observations[..OBS]).unwrap().mean(0, usize::from(mean[0].choice.option))
    );
}
