//! What a batch must be, one defect at a time.

use super::make::{contract, fragment, origin, stream};
use crate::data::{Batch, End, EpisodeStats, Forced, NO_OPTION, Refusal, check};

fn stats() -> EpisodeStats {
    EpisodeStats {
        stamp_secs: 1.0,
        rollout: "r0".into(),
        env: 0,
        episode: 0,
        version: 1,
        episode_return: -4.0,
        length: 4,
        end: End::Truncated,
        final_error: 0.1,
        success: false,
        success_strict: false,
        first_success_step: 4,
        option_steps: vec![4, 0, 0],
        option_runs: vec![1, 0, 0],
        forced_ends: 0,
    }
}

/// Two environments; the first one's episode ends at its step 3.
fn batch() -> Batch {
    Batch {
        run: origin(1, 0).run,
        life: 1,
        stream: stream("r0", 1),
        seq: 3,
        base: 2,
        first_step: 10,
        phase: 0,
        contract_hash: contract().hash(),
        fragments: vec![fragment(0, 0, 6, 4, 1), fragment(1, 8, 2, 4, 1)],
        episodes: vec![stats()],
    }
}

fn verdict(spoil: impl FnOnce(&mut Batch)) -> Result<(), Refusal> {
    let mut batch = batch();
    spoil(&mut batch);
    check(&batch, &contract(), &contract().hash())
}

#[track_caller]
fn malformed(part_of_sentence: &str, spoil: impl FnOnce(&mut Batch)) {
    let verdict = verdict(spoil);
    let Err(Refusal::Malformed(sentence)) = &verdict else { panic!("{verdict:?}") };
    assert!(sentence.contains(part_of_sentence), "{sentence}");
}

#[track_caller]
fn not_finite(spoil: impl FnOnce(&mut Batch)) {
    let verdict = verdict(spoil);
    assert!(matches!(verdict, Err(Refusal::NonFinite(_))), "{verdict:?}");
}

#[test]
fn a_sound_batch_passes() {
    assert_eq!(verdict(|_| {}), Ok(()));
    assert_eq!(verdict(|batch| batch.fragments.clear()), Ok(()), "statistics alone");
}

#[test]
fn another_contract_is_named_with_both_hashes() {
    let Err(Refusal::Contract(sentence)) = verdict(|batch| batch.contract_hash = [0xab; 32]) else { panic!() };
    assert!(sentence.contains("abababab") && sentence.contains(&hex::encode(&contract().hash()[..4])), "{sentence}");
}

#[test]
fn the_header_must_place_the_batch() {
    malformed("lowest held", |batch| batch.base = 4);
    malformed("beyond what can be counted", |batch| batch.first_step = u64::MAX);
    malformed("beyond what can be counted", |batch| (batch.seq, batch.base) = (u64::MAX, 0));
    malformed("holds nothing", |batch| (batch.fragments, batch.episodes) = (vec![], vec![]));
}

#[test]
fn shapes_must_fit_the_contract() {
    malformed("has no steps", |batch| batch.fragments[0].steps.clear());
    malformed("observes 3 floats; the contract has 2", |batch| batch.fragments[0].obs_size = 3);
    malformed("13 floats of observations; 6 steps need 14", |batch| {
        batch.fragments[0].observations.pop();
    });
    malformed("proposal", |batch| batch.fragments[0].steps[2].choice.proposal.push(0.0));
    malformed("action", |batch| batch.fragments[0].steps[2].choice.action.clear());
    malformed("count 2 and 3 options", |batch| {
        batch.episodes[0].option_steps.pop();
    });
}

#[test]
fn codes_must_make_sense() {
    malformed("no such option", |batch| batch.fragments[0].steps[1].choice.option = 3);
    malformed("no such former option", |batch| batch.fragments[0].steps[1].choice.option_prev = 3);
    malformed("no former option", |batch| batch.fragments[0].steps[1].choice.option_prev = NO_OPTION);
    malformed("no former option", |batch| batch.fragments[0].steps[1].choice.forced = Forced::Init);
    malformed("drawn at the start", |batch| {
        let start = &mut batch.fragments[0].steps[0];
        (start.choice.forced, start.choice.option_prev) = (Forced::Free, 1);
    });
    malformed("of age 0", |batch| batch.fragments[0].steps[0].choice.option_age = 1);
    malformed("without ending", |batch| batch.fragments[0].steps[1].choice.option = 2);
    malformed("least duration", |batch| {
        let step = &mut batch.fragments[0].steps[1];
        (step.choice.option_terminated, step.choice.forced) = (true, Forced::MinSteps);
    });
    malformed("longest duration", |batch| batch.fragments[0].steps[1].choice.forced = Forced::MaxSteps);
    for (age, forced) in [(0, Forced::Free), (1, Forced::MinSteps), (1000, Forced::Free), (999, Forced::MaxSteps)] {
        malformed("the age of the option", |batch| {
            let choice = &mut batch.fragments[0].steps[1].choice;
            (choice.option_age, choice.forced, choice.option_terminated) = (age, forced, forced == Forced::MaxSteps);
        });
    }
    assert_eq!(verdict(|batch| batch.fragments[0].steps[1].choice.forced = Forced::Preempted), Ok(()));
    malformed("have no end", |batch| batch.episodes[0].end = End::None);
}

#[test]
fn steps_must_follow_one_another() {
    malformed("goes from episode 0 t 1", |batch| batch.fragments[0].steps[2].t = 3);
    malformed("goes from episode 0 t 1", |batch| batch.fragments[0].steps[2].episode = 1);
    malformed("(Truncated) to episode 0", |batch| batch.fragments[0].steps[4].episode = 0);
    malformed("goes back to step 5 after 6", |batch| {
        batch.fragments[1].env = 0;
        batch.fragments[1].first = 5;
    });
}

#[test]
fn each_end_has_its_last_observation() {
    malformed("do not stand at its ends", |batch| batch.fragments[0].finals.clear());
    malformed("do not stand at its ends", |batch| batch.fragments[0].finals[0].step = 2);
    malformed("do not stand at its ends", |batch| {
        let again = batch.fragments[0].finals[0].clone();
        batch.fragments[0].finals.push(again);
    });
    malformed("has not 2 floats", |batch| batch.fragments[0].finals[0].observation.push(0.0));
}

#[test]
fn every_number_must_be_finite() {
    not_finite(|batch| batch.fragments[1].observations[5] = f32::NAN);
    not_finite(|batch| batch.fragments[0].finals[0].observation[1] = f32::INFINITY);
    not_finite(|batch| batch.fragments[0].steps[1].reward = f32::NAN);
    not_finite(|batch| batch.fragments[0].steps[1].choice.proposal[0] = f32::NEG_INFINITY);
    not_finite(|batch| batch.fragments[0].steps[1].choice.action[0] = f32::NAN);
    not_finite(|batch| batch.fragments[0].steps[1].stamp_secs = f64::NAN);
    not_finite(|batch| batch.fragments[0].steps[1].choice.log_prob_action = f32::NAN);
    not_finite(|batch| batch.fragments[0].steps[1].choice.log_prob_option = f32::NEG_INFINITY);
    not_finite(|batch| batch.fragments[0].steps[1].choice.log_prob_termination = f32::NAN);
    not_finite(|batch| batch.fragments[0].steps[1].choice.log_prob_mixture = f32::NAN);
    not_finite(|batch| batch.fragments[0].steps[1].choice.termination_prob = f32::NAN);
    not_finite(|batch| batch.episodes[0].episode_return = f32::NAN);
    not_finite(|batch| batch.episodes[0].final_error = f32::NAN);
    not_finite(|batch| batch.episodes[0].stamp_secs = f64::INFINITY);
}

#[test]
fn what_is_finite_and_absurd_is_refused_with_the_value_and_the_bound() {
    for absurd in [1.1e6, -3e38] {
        not_finite(|batch| batch.fragments[1].observations[5] = absurd);
        not_finite(|batch| batch.fragments[0].finals[0].observation[1] = absurd);
        not_finite(|batch| batch.fragments[0].steps[1].choice.action[0] = absurd);
        not_finite(|batch| batch.episodes[0].episode_return = absurd);
    }
    let Err(Refusal::NonFinite(told)) = verdict(|batch| batch.fragments[0].steps[1].reward = 2e6) else { panic!() };
    assert!(
        told.ends_with("the reward of env 0 episode 0 t 1 holds 2000000; a finite number of at most 1000000 is right")
    );
    assert_eq!(verdict(|batch| batch.fragments[0].steps[1].reward = -1e6), Ok(()));
}
