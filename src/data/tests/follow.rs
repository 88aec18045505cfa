//! The rollout's side of run, life, version and phase.

use super::make::{RUN, learner_status, secs, stream};
use crate::data::{Act, Follow, Heard, LearnerStatus, Wait};
use uuid::Uuid;

const OTHER: Uuid = Uuid::from_u128(8);
const QUOTA: u64 = 2;

fn follow(told: Option<Uuid>) -> Follow {
    Follow::new(stream("r0", 1), 2, told)
}

fn sync(version: u64, phase: u64) -> LearnerStatus {
    learner_status(1, version, phase, QUOTA, &[stream("r0", 1)])
}

/// Follows RUN, life 1, and holds `version`.
fn holding(version: u64) -> Follow {
    let mut follow = follow(None);
    follow.status(&sync(version, 0), secs(0.0));
    follow.holds(1, version, [version as u8; 32], secs(0.0));
    follow
}

#[test]
fn the_first_run_heard_is_followed_and_others_are_reported() {
    let mut follow = follow(None);
    assert_eq!(follow.status(&sync(1, 0), secs(0.0)), Heard::Adopted { run: RUN, life: 1 });
    assert_eq!(follow.status(&sync(1, 0), secs(0.1)), Heard::Same);
    let other = LearnerStatus { run: OTHER, ..sync(9, 0) };
    let Heard::Other(sentence) = follow.status(&other, secs(1.0)) else { panic!() };
    assert!(sentence.contains(&RUN.to_string()) && sentence.contains(&OTHER.to_string()), "{sentence}");
    assert_eq!(follow.learner(), Some((RUN, 1)));
}

#[test]
fn another_run_is_adopted_after_5_seconds_of_silence_and_forgets_what_was_held() {
    let mut follow = holding(3);
    let other = LearnerStatus { run: OTHER, ..sync(1, 0) };
    assert!(matches!(follow.status(&other, secs(4.9)), Heard::Other(_)));
    follow.status(&sync(3, 0), secs(4.9));
    assert!(matches!(follow.status(&other, secs(9.8)), Heard::Other(_)), "it was heard again");
    follow.allow_switch(false);
    assert!(matches!(follow.status(&other, secs(9.9)), Heard::Other(_)), "armed hardware stays");
    follow.allow_switch(true);
    assert_eq!(follow.offered(OTHER, 1, secs(9.9)), Heard::Adopted { run: OTHER, life: 1 });
    assert!(follow.wants(OTHER, 1, 1) && !follow.wants(RUN, 1, 9));
}

#[test]
fn a_rollout_that_was_told_its_run_follows_no_other() {
    let mut follow = follow(Some(RUN));
    let other = LearnerStatus { run: OTHER, ..sync(1, 0) };
    assert!(matches!(follow.status(&other, secs(0.0)), Heard::Other(_)));
    assert!(matches!(follow.offered(OTHER, 1, secs(99.0)), Heard::Other(_)));
    assert_eq!(follow.learner(), None);
    assert_eq!(follow.may_act(false), Act::Wait(Wait::Learner));
}

#[test]
fn a_greater_life_is_adopted_and_voids_the_phase_and_an_older_one_is_over() {
    let mut follow = holding(3);
    follow.status(&sync(3, 2), secs(0.2));
    assert_eq!(follow.may_act(false), Act::Act(2));
    let next = LearnerStatus { life: 2, ..sync(1, 1) };
    assert!(matches!(follow.status(&next, secs(1.1)), Heard::Other(_)), "life 1 may be alive");
    assert_eq!(follow.may_act(false), Act::Act(2));
    assert_eq!(follow.status(&next, secs(1.2)), Heard::Adopted { run: RUN, life: 2 });
    assert_eq!(follow.status(&sync(3, 2), secs(1.3)), Heard::Old);
    assert_eq!(follow.offered(RUN, 1, secs(1.3)), Heard::Old);
    assert_eq!(
        follow.may_act(false),
        Act::Wait(Wait::Weights),
        "version 3 of life 1 is older than version 1 of life 2"
    );
    assert!(follow.wants(RUN, 2, 1) && !follow.wants(RUN, 1, 4));
    follow.holds(2, 1, [1; 32], secs(1.4));
    assert_eq!(follow.may_act(false), Act::Act(1));
}

#[test]
fn it_acts_only_in_a_phase_that_lists_it_with_the_weights_of_the_phase() {
    let mut follow = holding(1);
    assert_eq!(follow.may_act(false), Act::Wait(Wait::Phase));
    follow.status(&LearnerStatus { members: vec![stream("r0", 2)], ..sync(1, 1) }, secs(0.1));
    assert_eq!(follow.may_act(false), Act::Wait(Wait::Phase), "another incarnation is listed");
    follow.status(&sync(1, 1), secs(0.2));
    assert_eq!(follow.may_act(false), Act::Act(1));
    assert_eq!(follow.may_act(true), Act::Wait(Wait::Window));
    follow.status(&LearnerStatus { paused: true, ..sync(1, 1) }, secs(0.3));
    assert_eq!(follow.may_act(false), Act::Wait(Wait::Paused));
    follow.status(&sync(2, 2), secs(0.4));
    assert_eq!(follow.may_act(false), Act::Wait(Wait::Weights));
    follow.holds(1, 2, [2; 32], secs(0.5));
    assert_eq!(follow.may_act(false), Act::Act(2));
}

#[test]
fn each_environment_fills_its_quota_once_a_phase() {
    let mut follow = holding(1);
    follow.status(&sync(1, 1), secs(0.1));
    follow.stepped(0, 1);
    follow.stepped(0, 1);
    assert_eq!((follow.may_step(0), follow.may_step(1), follow.phase_steps()), (false, true, 0));
    follow.stepped(1, 1);
    assert_eq!(follow.may_act(false), Act::Act(1));
    follow.stepped(1, 1);
    assert_eq!(follow.may_act(false), Act::Wait(Wait::Quota));
    follow.status(&sync(1, 1), secs(0.2));
    assert_eq!(follow.phase_steps(), QUOTA, "a repeated status starts nothing");
    follow.status(&sync(1, 0), secs(0.3));
    follow.status(&sync(2, 2), secs(0.4));
    assert_eq!((follow.may_step(0), follow.phase_steps()), (true, 0));
}

#[test]
fn a_step_under_way_when_its_phase_ended_counts_for_none() {
    let mut follow = holding(1);
    follow.status(&sync(1, 1), secs(0.1));
    follow.status(&sync(1, 2), secs(0.2));
    follow.stepped(0, 1);
    follow.stepped(1, 1);
    follow.stepped(0, 2);
    follow.stepped(1, 2);
    assert_eq!((follow.phase_steps(), follow.may_act(false)), (1, Act::Act(2)));
}

#[test]
fn statuses_that_overtake_one_another_change_nothing() {
    let mut follow = holding(2);
    follow.status(&sync(2, 2), secs(0.1));
    follow.stepped(0, 2);
    assert_eq!(follow.status(&sync(1, 1), secs(0.2)), Heard::Old);
    assert_eq!(follow.status(&sync(1, 0), secs(0.2)), Heard::Old);
    assert_eq!(follow.may_act(false), Act::Act(2));
    follow.stepped(0, 2);
    assert!(!follow.may_step(0));
}

#[test]
fn in_the_asynchronous_mode_weights_of_this_life_are_enough() {
    let mut follow = follow(None);
    let status = learner_status(2, 5, 0, 0, &[]);
    follow.status(&status, secs(0.0));
    assert_eq!(follow.may_act(false), Act::Wait(Wait::Weights));
    follow.holds(1, 9, [9; 32], secs(0.0));
    assert_eq!(follow.may_act(false), Act::Wait(Wait::Weights));
    follow.holds(2, 3, [3; 32], secs(0.0));
    assert_eq!(follow.may_act(false), Act::Act(0));
    (0..100).for_each(|_| follow.stepped(0, 0));
    assert!(follow.may_step(0));
    assert_eq!(follow.may_act(true), Act::Wait(Wait::Window));
}

#[test]
fn weights_are_pulled_after_half_a_second_behind_and_every_half_second_from_then_on() {
    let mut follow = holding(1);
    assert!(!follow.pull_due(secs(9.0)));
    follow.status(&sync(2, 0), secs(10.0));
    follow.status(&sync(2, 0), secs(10.2));
    assert!(!follow.pull_due(secs(10.4)));
    assert!(follow.pull_due(secs(10.5)));
    assert!(!follow.pull_due(secs(10.6)));
    assert!(follow.pull_due(secs(11.0)));
    follow.holds(1, 2, [2; 32], secs(11.1));
    assert!(!follow.pull_due(secs(20.0)));
}

#[test]
fn weights_with_another_hash_than_the_learners_are_replaced() {
    let mut follow = follow(None);
    follow.status(&sync(1, 0), secs(0.0));
    follow.holds(1, 1, [77; 32], secs(0.0));
    assert!(follow.pull_due(secs(0.5)) && follow.wants(RUN, 1, 1));
    follow.holds(1, 1, [1; 32], secs(0.6));
    assert!(!follow.pull_due(secs(9.0)) && !follow.wants(RUN, 1, 1));
}

#[test]
fn nothing_is_pulled_before_the_learner_has_weights() {
    let mut follow = follow(None);
    follow.status(&sync(0, 0), secs(0.0));
    assert!(!follow.pull_due(secs(9.0)));
    follow.status(&sync(1, 0), secs(9.0));
    assert!(follow.pull_due(secs(9.5)));
}
