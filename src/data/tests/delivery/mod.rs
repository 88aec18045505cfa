//! Outbox and admission over a bad network, with restarts of either side: every transition is accounted for.

mod world;

use super::make::{RUN, secs};
use super::network::Faults;
use crate::data::{Accept, Hold};
use proptest::prelude::*;
use world::{BAD_TICKS, Script, WINDOW, World};

fn scripts(hold: Hold, accept: Accept) -> impl Strategy<Value = Script> {
    let ticks = || proptest::collection::vec(0..BAD_TICKS, 0..4);
    let faults =
        (0.0..0.5, 0.0..0.5, 0.0..1.5).prop_map(|(drop, repeat, delay_secs)| Faults { drop, repeat, delay_secs });
    (any::<u64>(), faults, ticks(), ticks(), ticks(), 0.0..0.3).prop_map(
        move |(seed, faults, learner_kills, rollout_kills, cuts, poison)| Script {
            seed,
            faults,
            hold,
            accept,
            learner_kills,
            rollout_kills,
            cuts,
            poison,
            forge: 0.0,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn recorded_is_admitted_refused_or_lost(script in scripts(Hold::Consumed, Accept::Run)) {
        let killed = !script.learner_kills.is_empty();
        let rollouts_killed = !script.rollout_kills.is_empty();
        let mut world = World::new(script).run();
        world.check()?;
        prop_assert!(killed || world.lost() == 0, "only a killed learner loses");
        let recorded: u64 = world.recorded_steps();
        let account = world.account();
        prop_assert_eq!(account.recorded, recorded);
        prop_assert!(rollouts_killed || account.memory == 0, "only a killed rollout takes something with it");
    }

    #[test]
    fn a_forger_costs_nobody_a_transition(
        script in scripts(Hold::Consumed, Accept::Life).prop_map(|script| Script {
            forge: 0.2,
            faults: Faults { drop: 0.0, repeat: 0.0, delay_secs: script.faults.delay_secs / 10.0 },
            cuts: Vec::new(),
            learner_kills: Vec::new(),
            rollout_kills: Vec::new(),
            ..script
        })
    ) {
        let mut world = World::new(script).run();
        world.check()?;
        let account = world.account();
        prop_assert_eq!((account.lost, account.memory), (0, 0));
        prop_assert_eq!(account.recorded, account.stored + account.refused);
    }

    #[test]
    fn on_policy_data_of_an_older_life_is_refused_and_counted(script in scripts(Hold::Consumed, Accept::Life)) {
        let killed = !script.learner_kills.is_empty();
        let mut world = World::new(script).run();
        world.check()?;
        prop_assert!(killed || world.admission.totals().refused.stale == 0);
        world.account();
    }

    #[test]
    fn what_hardware_holds_until_it_is_durable_survives_a_killed_learner(
        script in scripts(Hold::Durable { capacity: 1000 }, Accept::Run)
            .prop_map(|script| Script { rollout_kills: Vec::new(), ..script })
    ) {
        let mut world = World::new(script).run();
        world.check()?;
        prop_assert_eq!(world.lost(), 0);
        prop_assert_eq!(world.account().memory, 0);
    }
}

#[test]
fn a_hopeless_network_shows_no_progress_and_loses_nothing() {
    let faults = Faults { drop: 1.0, ..Faults::NONE };
    let script = Script {
        seed: 1,
        faults,
        hold: Hold::Consumed,
        accept: Accept::Run,
        learner_kills: vec![],
        rollout_kills: vec![],
        cuts: vec![],
        poison: 0.0,
        forge: 0.0,
    };
    let mut world = World::new(script);
    world.rollouts[0].outbox.adopt(RUN, 1);
    world.rollouts[0].life = 1;
    (0..400).for_each(|_| world.tick(true));
    let outbox = &world.rollouts[0].outbox;
    assert_eq!((outbox.held(), outbox.in_flight()), (WINDOW, WINDOW));
    assert_eq!(outbox.counters().recorded, outbox.held_steps());
    // 20 s: sends at 0, 1, 3, 7, 11, 15, 19 s after the first one.
    assert!(outbox.counters().resent <= 6 * WINDOW as u64, "{}", outbox.counters().resent);
    assert_eq!(secs(20.0), world.now);
    assert_eq!(world.admission.totals().admitted, 0);
}
