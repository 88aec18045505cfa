use super::{moved, panda};
use crate::config::Seed;
use crate::contract::Told;
use crate::data::{ArmCommands, ArmStates, Operation, StreamId};
use crate::sim::{Answer, HOME, Lockstep};

const LIFE: u64 = 0xfeed;

fn sim() -> Lockstep {
    Lockstep::new(panda(2, 1, Told { position_noise_rad: 1e-3, ..Told::default() }, false), LIFE)
}

fn stream(rollout: &str, incarnation: u64) -> StreamId {
    StreamId { rollout: rollout.into(), incarnation }
}

fn command(stream: StreamId, states: &ArmStates, operation: Operation) -> ArmCommands {
    ArmCommands {
        sim_life: states.sim_life,
        tick: states.tick,
        stream,
        operation: vec![operation; 2],
        position: vec![moved(&HOME, 0.1, &mut Seed::root(9).rng(states.tick)); 2],
        seed: vec![1, 2],
    }
}

fn refusal(answer: Answer) -> String {
    let Answer::Refused(sentence) = answer else { panic!("{answer:?} is no refusal") };
    sentence
}

#[test]
fn each_command_of_the_current_tick_makes_one_step() {
    let (mut sim, alice) = (sim(), stream("/alice", 1));
    assert_eq!((sim.states().tick, sim.states().stamp_secs, sim.states().bound), (0, 0.0, None));
    assert_eq!(sim.states().told.position_noise_rad, 1e-3);
    for tick in 0..3 {
        let states = sim.states();
        assert_eq!(states.tick, tick);
        assert!((states.stamp_secs - 0.05 * tick as f64).abs() < 1e-12);
        assert_eq!((states.position.len(), states.velocity.len(), states.object_pose.len()), (2, 2, 0));
        assert_eq!(sim.command(0.0, &command(alice.clone(), &states, Operation::Step)), Answer::Stepped);
        assert_ne!(sim.states().position, states.position);
    }
    assert_eq!(sim.states().bound, Some(alice));
    assert_eq!(sim.refused(), 0);
}

#[test]
fn an_old_tick_is_answered_with_the_same_states_and_never_steps_twice() {
    let (mut sim, alice) = (sim(), stream("/alice", 1));
    let first = command(alice.clone(), &sim.states(), Operation::Step);
    assert_eq!(sim.command(0.0, &first), Answer::Stepped);
    let states = sim.states();
    for _ in 0..3 {
        assert_eq!(sim.command(0.1, &first), Answer::Repeat);
        assert_eq!(sim.states(), states);
    }
    let mut ahead = command(alice, &states, Operation::Step);
    ahead.tick = 7;
    let sentence = refusal(sim.command(0.2, &ahead));
    assert!(sentence.contains("tick 7") && sentence.contains("tick 1"), "{sentence}");
    assert_eq!(sim.states(), states);
}

#[test]
fn another_life_is_refused_and_binds_nothing() {
    let mut sim = sim();
    let mut old = command(stream("/alice", 1), &sim.states(), Operation::Step);
    old.sim_life = 0xdead;
    let sentence = refusal(sim.command(0.0, &old));
    assert!(sentence.contains("dead") && sentence.contains("feed"), "{sentence}");
    assert_eq!(sim.states().bound, None);
}

#[test]
fn a_second_stream_is_refused_by_the_name_of_the_first() {
    let mut sim = sim();
    sim.command(0.0, &command(stream("/alice", 1), &sim.states(), Operation::Step));
    let states = sim.states();
    let sentence = refusal(sim.command(4.9, &command(stream("/bob", 1), &states, Operation::Step)));
    assert_eq!(sentence, "this sim serves /alice#00000001, not /bob#00000001");
    let sentence = refusal(sim.command(0.9, &command(stream("/alice", 2), &states, Operation::Step)));
    assert_eq!(sentence, "this sim serves /alice#00000001, not /alice#00000002");
    assert_eq!(sim.states(), states);
    assert_eq!(sim.refused(), 2);
}

#[test]
fn silence_lets_a_new_incarnation_in_after_1_s_and_another_rollout_after_5_s() {
    let mut sim = sim();
    let answer =
        |sim: &mut Lockstep, now, who: StreamId| sim.command(now, &command(who, &sim.states(), Operation::Step));
    assert_eq!(answer(&mut sim, 10.0, stream("/alice", 1)), Answer::Stepped);
    assert!(matches!(answer(&mut sim, 10.99, stream("/alice", 2)), Answer::Refused(_)));
    assert_eq!(answer(&mut sim, 11.0, stream("/alice", 2)), Answer::Stepped);
    assert!(matches!(answer(&mut sim, 11.5, stream("/alice", 1)), Answer::Refused(_)), "the old one is out");
    assert!(matches!(answer(&mut sim, 15.99, stream("/bob", 1)), Answer::Refused(_)));
    assert_eq!(answer(&mut sim, 16.0, stream("/bob", 1)), Answer::Stepped);
    assert_eq!(sim.states().bound, Some(stream("/bob", 1)));
}

#[test]
fn only_a_good_command_of_the_current_tick_takes_over() {
    let mut sim = sim();
    let late = command(stream("/bob", 1), &sim.states(), Operation::Step);
    sim.command(0.0, &command(stream("/alice", 1), &sim.states(), Operation::Step));
    assert!(matches!(sim.command(100.0, &late), Answer::Refused(_)));
    let mut broken = command(stream("/bob", 1), &sim.states(), Operation::Step);
    broken.position[1][0] = f64::NAN;
    assert!(matches!(sim.command(100.0, &broken), Answer::Refused(_)));
    assert_eq!(sim.states().bound, Some(stream("/alice", 1)));
}

#[test]
fn hold_keeps_the_binding_and_the_tick() {
    let (mut sim, alice) = (sim(), stream("/alice", 1));
    sim.command(0.0, &command(alice.clone(), &sim.states(), Operation::Reset));
    let states = sim.states();
    for second in 1..20 {
        let hold = command(alice.clone(), &states, Operation::Hold);
        assert_eq!(sim.command(f64::from(second), &hold), Answer::Held);
        assert_eq!(sim.states(), states);
    }
    assert!(matches!(sim.command(23.9, &command(stream("/bob", 1), &states, Operation::Step)), Answer::Refused(_)));
    assert_eq!(sim.command(24.0, &command(alice, &states, Operation::Step)), Answer::Stepped);
    assert_eq!(sim.states().tick, states.tick + 1);
}

#[test]
fn a_part_that_holds_stands_still_while_the_rest_steps() {
    let (mut sim, alice) = (sim(), stream("/alice", 1));
    let states = sim.states();
    let mut half = command(alice, &states, Operation::Step);
    half.operation[1] = Operation::Hold;
    assert_eq!(sim.command(0.0, &half), Answer::Stepped);
    assert_ne!(sim.states().position[0], states.position[0]);
    assert_eq!(sim.states().position[1], states.position[1]);
}

#[test]
fn a_command_that_is_not_finite_is_refused_and_counted_and_keeps_the_binding() {
    let (mut sim, alice) = (sim(), stream("/alice", 1));
    sim.command(0.0, &command(alice.clone(), &sim.states(), Operation::Step));
    let states = sim.states();
    let mut broken = command(alice.clone(), &states, Operation::Step);
    broken.position[1][2] = f64::INFINITY;
    let sentence = refusal(sim.command(4.0, &broken));
    assert!(sentence.contains("/alice") && sentence.contains("environment 1"), "{sentence}");
    assert_eq!((sim.states(), sim.refused()), (states.clone(), 1));
    let bob = command(stream("/bob", 1), &states, Operation::Step);
    assert!(matches!(sim.command(6.0, &bob), Answer::Refused(_)), "alice was heard 2 s ago");
    assert_eq!(sim.command(6.0, &command(alice, &states, Operation::Step)), Answer::Stepped);
}

#[test]
fn unanswered_states_are_due_every_200_ms() {
    let (mut sim, alice) = (sim(), stream("/alice", 1));
    assert!(sim.due(0.0), "at the start");
    assert!(!sim.due(0.19));
    assert!(sim.due(0.2));
    let first = command(alice.clone(), &sim.states(), Operation::Step);
    assert_eq!(sim.command(0.3, &first), Answer::Stepped);
    assert!(!sim.due(0.45), "published after the step");
    assert_eq!(sim.command(0.46, &first), Answer::Repeat);
    assert!(!sim.due(0.6), "published after the repeat");
    assert_eq!(sim.command(0.65, &command(alice, &sim.states(), Operation::Hold)), Answer::Held);
    assert!(sim.due(0.67), "nothing was published after the hold");
}
