//! When weights may change.

use super::*;
use crate::contract::{Normaliser, Snapshot};
use std::sync::Arc;
use uuid::Uuid;

fn snapshot(life: u32, version: u64) -> Snapshot {
    let contract = contract(Robot::Panda);
    let parameters = vec![0.0; contract.layout().len()];
    Snapshot {
        run: Uuid::from_u128(1),
        life,
        version,
        updates: 0,
        env_steps: 0,
        random_warmup: false,
        normaliser: Normaliser::identity(contract.obs_size(), 10.0),
        contract: Arc::new(contract),
        parameters: parameters.into(),
    }
}

#[test]
fn weights_change_at_a_boundary_only() {
    let mut bench = Bench::ready();
    assert_eq!(bench.guard.offer(&snapshot(1, 1), false).unwrap(), Swap::Now, "disarmed");
    bench.arm();
    assert_eq!(bench.guard.offer(&snapshot(1, 2), false).unwrap(), Swap::AtBoundary);
    assert_eq!(bench.guard.offer(&snapshot(1, 2), true).unwrap(), Swap::Now);
    // also while it holds
    bench.to(&READY).unwrap();
    bench.run(0.3);
    assert_eq!(bench.state(), State::Holding);
    assert_eq!(bench.guard.offer(&snapshot(2, 1), false).unwrap(), Swap::AtBoundary);
}

#[test]
fn weights_that_do_not_fit_are_refused() {
    let mut bench = Bench::armed();
    bench.guard.offer(&snapshot(2, 5), true).unwrap();
    let said = |bench: &mut Bench, snapshot: &Snapshot| bench.guard.offer(snapshot, true).unwrap_err().to_string();
    for (life, version) in [(2, 5), (2, 4), (1, 9)] {
        assert!(said(&mut bench, &snapshot(life, version)).contains("2.5 are in use"));
    }
    let mut other = snapshot(2, 6);
    other.contract = Arc::new(Contract { control_period_secs: 0.5, ..contract(Robot::Panda) });
    assert!(said(&mut bench, &other).contains("control_period_secs is 0.02 in the policy in use and 0.5"));
    let mut broken = snapshot(2, 6);
    broken.parameters = vec![f32::NAN; broken.parameters.len()].into();
    assert!(said(&mut bench, &broken).contains("not finite"));
    let stranger = Snapshot { run: Uuid::from_u128(2), ..snapshot(1, 1) };
    assert!(said(&mut bench, &stranger).contains("disarm first"));
    assert_eq!(bench.count(Reason::Weights), 6);
    bench.guard.disarm();
    bench.run(0.01);
    assert_eq!(bench.guard.offer(&stranger, false).unwrap(), Swap::Now);
    assert_eq!(bench.count(Reason::Weights), 6);
}
