//! Random data of every kind that travels, drawn by a seed.

use crate::config::UpdateMode;
use crate::contract::{ActionMeaning, Architecture, Contract, Field, Network, Normaliser, Options, Snapshot, Told};
use crate::data::*;
use crate::robot::Robot;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng as Rng;
use std::sync::Arc;
use uuid::Uuid;

pub(super) fn floats(rng: &mut Rng, count: usize) -> Vec<f32> {
    (0..count).map(|_| rng.random_range(-9.0..9.0)).collect()
}

pub(super) fn stream(rng: &mut Rng) -> StreamId {
    StreamId { rollout: format!("/arm_{}", rng.random_range(0..9)), incarnation: rng.random() }
}

pub(super) fn rows<const N: usize>(rng: &mut Rng, count: usize) -> Vec<[f64; N]> {
    (0..count).map(|_| std::array::from_fn(|_| rng.random_range(-3.0..3.0))).collect()
}

pub(super) fn told(rng: &mut Rng) -> Told {
    Told { latency_ticks: rng.random_range(0..4), position_noise_rad: rng.random(), ..Told::default() }
}

pub(super) fn states(rng: &mut Rng) -> ArmStates {
    let envs = rng.random_range(0..5);
    ArmStates {
        sim_life: rng.random(),
        tick: rng.random(),
        stamp_secs: f64::from(rng.random::<u16>()) / 64.0,
        bound: rng.random::<bool>().then(|| stream(rng)),
        position: rows(rng, envs),
        velocity: rows(rng, envs),
        object_pose: if rng.random() { rows(rng, envs) } else { Vec::new() },
        told: told(rng),
    }
}

pub(super) fn commands(rng: &mut Rng) -> ArmCommands {
    let envs = rng.random_range(0..5);
    let operation = |rng: &mut Rng| [Operation::Step, Operation::Reset, Operation::Hold][rng.random_range(0..3)];
    ArmCommands {
        sim_life: rng.random(),
        tick: rng.random(),
        stream: stream(rng),
        operation: (0..envs).map(|_| operation(rng)).collect(),
        position: rows(rng, envs),
        seed: (0..envs).map(|_| rng.random()).collect(),
    }
}

pub(super) fn any_end(rng: &mut Rng) -> End {
    [End::None, End::None, End::Terminated, End::Truncated, End::Aborted][rng.random_range(0..5)]
}

pub(super) fn transition(rng: &mut Rng, action: usize) -> Transition {
    let forced = [Forced::Free, Forced::Init, Forced::MinSteps, Forced::MaxSteps, Forced::Preempted];
    Transition {
        version: rng.random(),
        episode: rng.random(),
        t: rng.random(),
        stamp_secs: rng.random(),
        choice: Choice {
            option_prev: rng.random(),
            option: rng.random(),
            option_terminated: rng.random(),
            forced: forced[rng.random_range(0..5)],
            option_age: rng.random(),
            proposal: floats(rng, action),
            action: floats(rng, action),
            log_prob_action: rng.random(),
            log_prob_option: rng.random(),
            log_prob_termination: rng.random(),
            log_prob_mixture: rng.random(),
            termination_prob: rng.random(),
        },
        filtered: rng.random(),
        intervened: rng.random(),
        reward: rng.random(),
        end: any_end(rng),
    }
}

pub(super) fn fragment(rng: &mut Rng) -> Fragment {
    let (count, obs_size, action) = (rng.random_range(1..6), rng.random_range(1..5), rng.random_range(1..4));
    let steps: Vec<_> = (0..count).map(|_| transition(rng, action)).collect();
    let ends = steps.iter().enumerate().filter(|(_, step)| step.end != End::None).map(|(step, _)| step);
    let finals = ends.map(|step| Final { step, observation: floats(rng, obs_size) }).collect();
    let observations = floats(rng, (count + 1) * obs_size);
    Fragment { env: rng.random(), first: rng.random(), obs_size, steps, observations, finals }
}

pub(super) fn episode(rng: &mut Rng) -> EpisodeStats {
    EpisodeStats {
        stamp_secs: f64::from(rng.random::<u16>()) / 64.0,
        rollout: stream(rng).rollout,
        env: rng.random(),
        episode: rng.random(),
        version: rng.random(),
        episode_return: rng.random(),
        length: rng.random(),
        end: any_end(rng),
        final_error: rng.random(),
        success: rng.random(),
        success_strict: rng.random(),
        first_success_step: rng.random(),
        option_steps: vec![rng.random(); 4],
        option_runs: vec![rng.random(); 4],
        forced_ends: rng.random(),
    }
}

pub(super) fn batch(rng: &mut Rng) -> Batch {
    Batch {
        run: Uuid::from_u128(rng.random()),
        life: rng.random(),
        stream: stream(rng),
        seq: rng.random(),
        base: rng.random(),
        first_step: rng.random(),
        phase: rng.random(),
        contract_hash: rng.random(),
        fragments: (0..rng.random_range(1..4)).map(|_| fragment(rng)).collect(),
        episodes: (0..rng.random_range(0..3)).map(|_| episode(rng)).collect(),
    }
}

pub(super) fn ack(rng: &mut Rng) -> Ack {
    Ack {
        run: Uuid::from_u128(rng.random()),
        life: rng.random(),
        stream: stream(rng),
        received: rng.random(),
        received_mask: rng.random(),
        consumed: rng.random(),
        durable: rng.random(),
        admitted: rng.random(),
        lost: rng.random(),
        refused: Refused {
            malformed: rng.random(),
            nonfinite: rng.random(),
            stale: rng.random(),
            contract: rng.random(),
        },
    }
}

pub(super) fn learner_status(rng: &mut Rng) -> LearnerStatus {
    LearnerStatus {
        run: Uuid::from_u128(rng.random()),
        life: rng.random(),
        version: rng.random(),
        hash: rng.random(),
        update_mode: if rng.random() { UpdateMode::Sync } else { UpdateMode::Async },
        phase: rng.random(),
        quota: rng.random(),
        members: (0..rng.random_range(0..3)).map(|_| stream(rng)).collect(),
        paused: rng.random(),
        activity: "gathering".into(),
        updates: rng.random(),
        env_steps: rng.random(),
        admitted: rng.random(),
        lost: rng.random(),
        refused: rng.random(),
        dropped: rng.random(),
        queue_batches: rng.random(),
        gathered_steps: rng.random(),
    }
}

pub(super) fn rollout_status(rng: &mut Rng) -> RolloutStatus {
    RolloutStatus {
        run: rng.random::<bool>().then(|| Uuid::from_u128(rng.random())),
        life: rng.random(),
        stream: stream(rng),
        version: rng.random(),
        hash: rng.random(),
        phase: rng.random(),
        steps: rng.random(),
        phase_steps: rng.random(),
        num_envs: rng.random(),
        leaving: rng.random(),
        state: "acting".into(),
        in_flight: rng.random(),
        queue_batches: rng.random(),
        aborted_episodes: rng.random(),
        refused_weights: rng.random(),
        held_ticks: rng.random(),
    }
}

pub(super) fn joints(rng: &mut Rng) -> JointState {
    let count = rng.random_range(0..9);
    JointState {
        stamp_secs: f64::from(rng.random::<u16>()) / 64.0,
        names: (0..count).map(|joint| format!("panda_joint{joint}")).collect(),
        position: (0..count).map(|_| rng.random()).collect(),
        velocity: if rng.random() { (0..count).map(|_| rng.random()).collect() } else { Vec::new() },
    }
}

pub(super) fn goal(rng: &mut Rng) -> GoalPose {
    GoalPose {
        stamp_secs: f64::from(rng.random::<u16>()) / 64.0,
        frame: "panda_link0".into(),
        position: rng.random(),
        orientation: [[1.0, 0.0, 0.0, 0.0], [0.5; 4], [0.0, 0.0, -1.0, 0.0]][rng.random_range(0..3)],
    }
}

pub(super) fn option_state(rng: &mut Rng) -> OptionState {
    let options = rng.random_range(1..5);
    OptionState {
        stamp_secs: f64::from(rng.random::<u16>()) / 64.0,
        version: rng.random(),
        env: rng.random(),
        option: rng.random(),
        duration: rng.random(),
        switched: rng.random(),
        termination_prob: rng.random(),
        option_probs: floats(rng, options),
        option_values: floats(rng, options),
    }
}

pub(super) fn snapshot(rng: &mut Rng) -> Snapshot {
    let contract = Contract {
        robot: Robot::Panda,
        joints: Robot::Panda.joint_names().to_vec(),
        task: "reach".into(),
        observation: vec![Field { name: "joint_position_rad".into(), len: 7 }, Field { name: "goal_m".into(), len: 3 }],
        action: ActionMeaning::JointDelta { scale_rad: rng.random() },
        control_period_secs: rng.random(),
        options: Options { count: rng.random_range(1..4), min_steps: 2, max_steps: 50 },
        network: Network { architecture: Architecture::OnPolicy, hidden: vec![rng.random_range(1..6); 2] },
        told: told(rng),
    };
    let parameters = floats(rng, contract.layout().len());
    Snapshot {
        run: Uuid::from_u128(rng.random()),
        life: rng.random(),
        version: rng.random(),
        updates: rng.random(),
        env_steps: rng.random(),
        random_warmup: rng.random(),
        normaliser: Normaliser {
            mean: floats(rng, 10),
            std: (0..10).map(|_| rng.random_range(0.1..9.0)).collect(),
            clip: rng.random_range(1.0..9.0),
            count: rng.random(),
        },
        contract: Arc::new(contract),
        parameters: parameters.into(),
    }
}
