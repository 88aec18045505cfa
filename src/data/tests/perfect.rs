//! A network that loses nothing: everything is delivered once, in order, and learned from.

use super::make::{RUN, contract, fragment, learner_status, origin, rollout_status, secs, stream};
use crate::config::UpdateMode;
use crate::data::{Accept, Act, Admission, Coordinator, Follow, Gather, Hold, Outbox, PhaseEvent, Verdict, Wait, join};

#[test]
fn each_batch_is_admitted_once_in_order_and_freed() {
    let id = stream("r0", 1);
    let mut outbox = Outbox::new(id.clone(), 4, Hold::Consumed);
    let mut admission = Admission::new(RUN, 1, contract());
    outbox.adopt(RUN, 1);
    let mut seqs = Vec::new();
    for n in 0..20 {
        let now = secs(n as f64 * 0.1);
        outbox.push(vec![fragment(0, n * 3, 3, 5, 1)], vec![], origin(1, 0));
        for batch in outbox.due(now) {
            let Verdict::Admitted(batch) = admission.receive(batch, now, Accept::Life) else { panic!("not admitted") };
            admission.consumed(&id, batch.seq);
            seqs.push(batch.seq);
        }
        for ack in admission.acks_due(now) {
            outbox.acknowledge(&ack);
        }
    }
    assert_eq!(seqs, (0..20).collect::<Vec<_>>());
    assert_eq!(outbox.held(), 0);
    let (counters, totals) = (outbox.counters(), admission.totals());
    assert_eq!((counters.recorded, counters.sent, counters.resent, counters.freed), (60, 20, 0, 60));
    assert_eq!((totals.admitted, totals.lost, totals.refused.total(), totals.duplicates), (60, 0, 0, 0));
}

#[test]
fn a_synchronous_run_turns_phases_into_updates() {
    let (id, quota) = (stream("r0", 1), 6);
    let mut outbox = Outbox::new(id.clone(), 4, Hold::Consumed);
    let mut follow = Follow::new(id.clone(), 2, Some(RUN));
    let mut admission = Admission::new(RUN, 1, contract());
    let mut gather = Gather::new(UpdateMode::Sync, 1, 0);
    let mut coordinator = Coordinator::new(RUN, 1, quota, 1);
    let (mut version, mut recorded, mut open, mut updates) = (1, [0_u64; 2], [0_u64; 2], 0);
    coordinator.published(version);
    for n in 0..200 {
        let now = secs(n as f64 * 0.05);
        let status = learner_status(1, version, coordinator.phase(), quota, &coordinator.members());
        follow.status(&status, now);
        outbox.adopt(RUN, 1);
        if follow.wants(RUN, 1, version) {
            follow.holds(1, version, [version as u8; 32], now);
        }
        let act = follow.may_act(outbox.full());
        if let Act::Act(phase) = act {
            for (env, steps) in open.iter_mut().enumerate() {
                if follow.may_step(env) {
                    follow.stepped(env, phase);
                    *steps += 1;
                }
            }
        }
        if open[0] == 4 || (act == Act::Wait(Wait::Quota) && open[0] != 0) {
            let fragments = (0..2).map(|env| fragment(env as u32, recorded[env], open[env], 5, version)).collect();
            outbox.push(fragments, vec![], origin(1, status.phase));
            (0..2).for_each(|env| recorded[env] += open[env]);
            open = [0; 2];
        }
        coordinator.status(rollout_status(&id, 1, version, recorded[0] + recorded[1]));
        for batch in outbox.due(now) {
            match admission.receive(batch, now, coordinator.accept(&id)) {
                Verdict::Admitted(batch) => {
                    coordinator.admitted(&batch);
                    gather.put(batch);
                }
                other => panic!("{other:?}"),
            }
        }
        for (stream, seq) in gather.moved() {
            admission.consumed(&stream, seq);
        }
        for event in coordinator.tick(now) {
            if let PhaseEvent::Complete { .. } = event {
                let rows = join(gather.take(version).unwrap());
                let shapes: Vec<_> = rows.iter().map(|row| (row.fragment.env, row.fragment.steps.len())).collect();
                assert_eq!(shapes, [(0, 6), (1, 6)]);
                assert_eq!(rows[0].fragment, fragment(0, updates * 6, 6, 5, version));
                updates += 1;
                version += 1;
                coordinator.published(version);
            }
        }
        for ack in admission.acks_due(now) {
            outbox.acknowledge(&ack);
        }
    }
    assert!(10 <= updates, "{updates} updates");
    assert_eq!(admission.totals().admitted, updates * 12 + gather.stored());
    assert_eq!(admission.totals().refused.total(), 0);
}
