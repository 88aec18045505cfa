//! What a policy would do otherwise than another, and what a critic says.

use super::*;

#[test]
fn transitions_diverge_by_nothing_from_the_policy_that_made_them() {
    let acting = snapshot(1, 0.0);
    let bag = recorded(&transitions(&acting, 1000));
    let (found, _) =
        analysed(&bag, &Setup { present: present(&acting), against: present(&acting), ..Setup::default() });
    for divergence in [found.now.unwrap(), found.between.unwrap()] {
        for one in divergence.options.iter().filter(|one| one.transition.is_some()) {
            let (action, transition) = (one.action.unwrap(), one.transition.unwrap());
            assert!(action.rms < 1e-5 && transition.rms < 1e-5, "{one:?}");
        }
    }
    assert_eq!(found.options.unwrap().steps, 1000);
}

#[test]
fn what_was_sampled_and_what_is_worked_out_are_the_same_divergence() {
    let (acting, other) = (snapshot(1, 0.0), snapshot(2, 0.15));
    let bag = recorded(&transitions(&acting, 4000));
    let (sampled, _) = analysed(&bag, &Setup { present: present(&other), ..Setup::default() });
    let setup = Setup { present: present(&acting), against: present(&other), ..Setup::default() };
    let (exact, _) = analysed(&bag, &setup);
    let agree = |sampled: Mean, exact: Mean| {
        assert!(0.0 < exact.mean);
        // 1.96 standard errors are the margin; three of them are 1.53 margins
        assert!((sampled.mean - exact.mean).abs() < 2.0 * (sampled.margin + exact.margin), "{sampled:?} {exact:?}");
    };
    for (sampled, exact) in sampled.now.unwrap().options.iter().zip(&exact.between.unwrap().options) {
        agree(sampled.action.unwrap(), exact.action.unwrap());
        agree(sampled.transition.unwrap(), exact.transition.unwrap());
    }
}

#[test]
fn divergences_and_td_errors_are_as_worked_out_by_hand() {
    let (acting, other) = (constant(0.0, [0.0; 4], 2.0), constant(0.3, [1.0, 0.0, 0.0, 0.0], 0.0));
    let bag = recorded(&transitions(&acting, 500));
    let rewards = Some(Rewards { gamma: 0.9, scale: 0.25, cost: 0.0 });
    let acting = Present { rewards, ..present(&acting).unwrap() };
    let (found, _) = analysed(&bag, &Setup { present: Some(acting), against: present(&other), ..Setup::default() });
    for one in &found.between.as_ref().unwrap().options {
        // 7 joints, means 0.3 apart, standard deviations 1: 7 · 0.09 / 2
        assert!((one.action.unwrap().mean - 0.315).abs() < 1e-6, "{one:?}");
    }
    // where nothing runs, p^ is P: log 4 + log of the logits' normaliser, less the mean logit, less log 4
    let at_starts = ((3.0 + 1f64.exp()) / 4.0).ln() - 0.25;
    let worst = &found.between.unwrap().worst[0];
    assert!((worst.score - (0.315 + at_starts)).abs() < 1e-6, "{worst:?}");
    let critic = found.critic.unwrap();
    assert!((critic.values.mean - 2.0).abs() < 1e-6);
    // 0.5 / 0.25 + 0.9 · 2 - 2 = 1.8, and 0 where nothing comes after: 10 of 500
    let errors = critic.td_errors.unwrap();
    assert!((errors.mean - 1.8 * 490.0 / 500.0).abs() < 1e-6, "{errors:?}");
}

#[test]
fn a_critic_that_has_not_learned_says_nothing() {
    let acting = constant(0.0, [0.0; 4], 2.0);
    let bag = recorded(&transitions(&acting, 50));
    let clone = Present { critic: false, ..present(&acting).unwrap() };
    let (found, _) = analysed(&bag, &Setup { present: Some(clone), ..Setup::default() });
    assert!(found.critic.is_none() && found.now.is_some());
    assert!(found.notes.iter().any(|note| note.contains("the critic of a clone")), "{:?}", found.notes);
}
