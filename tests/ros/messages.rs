//! Messages against rclpy: field by field there, changed by the other side, and back.

use super::harness::{PATIENCE, Script, alone, wait_for};
use handoff::contract::{ActionMeaning, Architecture, Contract, Field, Network, Normaliser, Options, Snapshot, Told};
use handoff::data::*;
use handoff::robot::Robot;
use handoff::ros::{Node, everything, latched, msg};
use std::sync::{Arc, mpsc};
use uuid::Uuid;

fn transition(t: u32) -> Transition {
    let sign = t as f32;
    Transition {
        version: 40,
        episode: 2,
        t,
        stamp_secs: 0.05,
        choice: Choice {
            option_prev: if t == 0 { NO_OPTION } else { 1 },
            option: 1,
            option_terminated: t == 0,
            forced: if t == 0 { Forced::Init } else { Forced::MaxSteps },
            option_age: t,
            proposal: vec![0.5, -0.5],
            action: vec![sign + 0.25, -sign - 0.25],
            log_prob_action: -1.0,
            log_prob_option: -2.0,
            log_prob_termination: 0.0,
            log_prob_mixture: -3.0,
            termination_prob: 0.125,
        },
        filtered: false,
        intervened: true,
        reward: sign - 0.75,
        end: if t == 0 { End::None } else { End::Truncated },
    }
}

fn batch() -> Batch {
    Batch {
        run: Uuid::from_u128(42),
        life: 3,
        stream: StreamId { rollout: "/arm".into(), incarnation: (1 << 63) + 1 },
        seq: 11,
        base: 9,
        first_step: 100,
        phase: 6,
        contract_hash: std::array::from_fn(|byte| byte as u8),
        fragments: vec![Fragment {
            env: 4,
            first: 50,
            obs_size: 3,
            steps: vec![transition(0), transition(1)],
            observations: (0..9).map(|value| value as f32 / 2.0).collect(),
            finals: vec![Final { step: 1, observation: vec![7.0, 8.0, 9.0] }],
        }],
        episodes: vec![EpisodeStats {
            stamp_secs: 12.5,
            rollout: "/arm".into(),
            env: 4,
            episode: 2,
            version: 40,
            episode_return: -0.5,
            length: 2,
            end: End::Truncated,
            final_error: 0.01,
            success: true,
            success_strict: false,
            first_success_step: 1,
            option_steps: vec![1, 1],
            option_runs: vec![0, 1],
            forced_ends: 1,
        }],
    }
}

/// A policy of 263 kB and odd numbers.
pub(super) fn snapshot(hidden: usize) -> Snapshot {
    let contract = Contract {
        robot: Robot::Panda,
        joints: Robot::Panda.joint_names().to_vec(),
        task: "reach".into(),
        observation: vec![Field { name: "joint_position_rad".into(), len: 7 }],
        action: ActionMeaning::JointDelta { scale_rad: 0.08 },
        control_period_secs: 1.0 / 30.0,
        options: Options { count: 2, min_steps: 2, max_steps: 50 },
        network: Network { architecture: Architecture::OnPolicy, hidden: vec![hidden; 2] },
        told: Told { latency_ticks: 1, position_noise_rad: 1e-4, ..Told::default() },
    };
    let count = contract.layout().len();
    Snapshot {
        run: Uuid::from_u128(42),
        life: 3,
        version: 40,
        updates: 39,
        env_steps: 1 << 40,
        random_warmup: false,
        contract: Arc::new(contract),
        normaliser: Normaliser { mean: vec![0.1; 7], std: vec![0.3; 7], clip: 10.0, count: 1e6 },
        parameters: (0..count).map(|index| (index as f32).sin()).collect(),
    }
}

fn states() -> ArmStates {
    ArmStates {
        sim_life: u64::MAX,
        tick: 5,
        stamp_secs: 0.25,
        bound: Some(StreamId { rollout: "/arm".into(), incarnation: 7 }),
        position: vec![[0.5; STATE_DOF], [1.5; STATE_DOF]],
        velocity: vec![[0.0; STATE_DOF]; 2],
        object_pose: vec![[0.25; 7]; 2],
        told: Told { latency_ticks: 1, ..Told::default() },
    }
}

#[test]
fn rclpy_reads_what_we_write_and_we_read_what_it_writes() {
    alone("ros::messages::rclpy_reads_what_we_write_and_we_read_what_it_writes", &[], || {
        let (batches, weights, commands) = (mpsc::channel(), mpsc::channel(), mpsc::channel());
        let mut node = Node::start("rust").unwrap();
        node.subscribe::<msg::TransitionBatch>("batch/back", everything(), move |m| batches.0.send(m).unwrap())
            .unwrap();
        node.subscribe::<msg::PolicyWeights>("weights/back", latched(), move |m| weights.0.send(m).unwrap()).unwrap();
        node.subscribe::<msg::ArmCommands>("states/back", everything(), move |m| commands.0.send(m).unwrap()).unwrap();
        let batch_out = node.publish::<msg::TransitionBatch>("batch", everything()).unwrap();
        let weights_out = node.publish::<msg::PolicyWeights>("weights", latched()).unwrap();
        let states_out = node.publish::<msg::ArmStates>("states", everything()).unwrap();
        let running = node.spin().unwrap();
        let script = Script::start("echo.py", &[]);

        let snapshot = snapshot(128);
        weights_out.send(&(&snapshot).into()).unwrap();
        wait_for("rclpy's subscriptions", || (batch_out.readers() * states_out.readers() == 1).then_some(()));
        batch_out.send(&(&batch()).into()).unwrap();
        states_out.send(&(&states()).into()).unwrap();

        let mut want = batch();
        want.seq = 12;
        for step in &mut want.fragments[0].steps {
            step.reward *= 2.0;
            step.choice.option_terminated ^= true;
        }
        want.fragments[0].steps[1].end = End::Terminated;
        want.episodes[0].option_runs = vec![1, 2];
        assert_eq!(Batch::try_from(batches.1.recv_timeout(PATIENCE).unwrap()).unwrap(), want);

        let parameters = snapshot.parameters.iter().map(|value| -value).collect();
        let back = Snapshot::try_from(weights.1.recv_timeout(PATIENCE).unwrap()).unwrap();
        assert_eq!(back, Snapshot { version: 41, parameters, ..snapshot });

        let back = ArmCommands::try_from(commands.1.recv_timeout(PATIENCE).unwrap()).unwrap();
        let want = ArmCommands {
            sim_life: u64::MAX,
            tick: 5,
            stream: StreamId { rollout: "/arm".into(), incarnation: 7 },
            operation: vec![Operation::Reset, Operation::Hold],
            position: vec![[1.5; STATE_DOF], [2.5; STATE_DOF]],
            seed: vec![u64::MAX, 0],
        };
        assert_eq!(back, want);
        script.succeeded();
        running.stop().unwrap();
    });
}
