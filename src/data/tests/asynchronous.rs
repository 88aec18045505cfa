//! The asynchronous mode over a bad network with a slow learner: back-pressure, lag, and no deadlock.

use super::make::{RUN, contract, fragment, origin, secs, stream};
use super::network::{Faults, Link};
use crate::config::UpdateMode;
use crate::data::{Accept, Ack, Admission, Batch, Gather, Hold, Outbox, Verdict};
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

/// Ticks of 50 ms: the network heals, then progress is looked for.
const HEALED: u64 = 400;
const LOOK: u64 = 500;
const TICKS: u64 = 700;

#[derive(Clone, Debug)]
struct Script {
    seed: u64,
    faults: Faults,
    batch_steps: u64,
    max_lag: u64,
    /// Ticks of 50 ms that an update takes.
    learning_ticks: u64,
    fragment_steps: u64,
}

fn scripts() -> impl Strategy<Value = Script> {
    let faults =
        (0.0..0.4, 0.0..0.4, 0.0..1.0).prop_map(|(drop, repeat, delay_secs)| Faults { drop, repeat, delay_secs });
    (any::<u64>(), faults, 1..40_u64, 0..3_u64, 1..40_u64, 1..12_u64).prop_map(
        |(seed, faults, batch_steps, max_lag, learning_ticks, fragment_steps)| Script {
            seed,
            faults,
            batch_steps,
            max_lag,
            learning_ticks,
            fragment_steps,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_transition_is_learned_from_dropped_over_the_lag_or_still_under_way(script in scripts()) {
        let mut rng = ChaCha8Rng::seed_from_u64(script.seed);
        let mut outboxes: Vec<_> =
            (0..2).map(|r| Outbox::new(stream(&format!("r{r}"), r), 2, Hold::Consumed)).collect();
        outboxes.iter_mut().for_each(|outbox| outbox.adopt(RUN, 1));
        let mut admission = Admission::new(RUN, 1, contract());
        let mut gather = Gather::new(UpdateMode::Async, script.batch_steps, script.max_lag);
        let (mut data, mut acks): (Link<Batch>, Link<Ack>) = (Link::new(script.faults), Link::new(script.faults));
        let (mut version, mut idle_at, mut looked_at, mut waiting_max) = (1, 0, 0, 0);
        for tick in 0..TICKS {
            let now = secs(tick as f64 * 0.05);
            if tick == HEALED {
                data.heal();
                acks.heal();
            }
            if tick == LOOK {
                looked_at = version;
            }
            for ack in acks.arrived(now) {
                outboxes.iter_mut().for_each(|outbox| outbox.acknowledge(&ack));
            }
            for outbox in &mut outboxes {
                if !outbox.full() {
                    let row = fragment(0, outbox.counters().recorded, script.fragment_steps, 7, version);
                    outbox.push(vec![row], vec![], origin(1, 0));
                }
                for batch in outbox.due(now) {
                    data.send(batch, now, &mut rng);
                }
            }
            for batch in data.arrived(now) {
                if let Verdict::Admitted(batch) = admission.receive(batch, now, Accept::Life) {
                    gather.put(batch);
                }
            }
            if idle_at <= tick
                && let Some(rows) = gather.take(version)
            {
                let steps = || rows.iter().flat_map(|row| &row.fragment.steps);
                prop_assert!(script.batch_steps <= steps().count() as u64);
                prop_assert!(steps().all(|step| version - step.version <= script.max_lag));
                version += 1;
                idle_at = tick + script.learning_ticks;
            }
            for (stream, seq) in gather.moved() {
                admission.consumed(&stream, seq);
            }
            for ack in admission.acks_due(now) {
                acks.send(ack, now, &mut rng);
            }
            waiting_max = waiting_max.max(gather.waiting());
        }
        let (counters, totals) = (gather.counters(), admission.totals());
        prop_assert_eq!(counters.gathered, counters.taken + counters.dropped_lag + gather.stored());
        prop_assert_eq!(totals.lost + totals.refused.total(), 0);
        prop_assert!(waiting_max <= 2 * 2, "what waits outside is bounded by the windows: {}", waiting_max);
        prop_assert!(gather.stored() <= (2 * script.batch_steps).max(script.batch_steps + script.fragment_steps));
        let recorded: u64 = outboxes.iter().map(|outbox| outbox.counters().recorded).sum();
        let freed: u64 = outboxes.iter().map(|outbox| outbox.counters().freed).sum();
        prop_assert!(freed <= counters.gathered && totals.admitted <= recorded);
        prop_assert!(looked_at + 2 <= version, "{} updates in 10 s", version - looked_at);
    }
}
