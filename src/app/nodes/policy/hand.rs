//! The hand: what a person asks of it becomes one goal at a time. No policy moves it.

use crate::error::Result;
use crate::guard::{Goal, Gripper, Hand};
use futures::future::OptionFuture;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// How often the time-outs are looked at.
const PERIOD: Duration = Duration::from_millis(50);

/// Does what is wished (true: open, false: grasp) by what `pursue` does, as long as it is polled. What failed or took too long is not
/// tried again without another wish. `now_secs` is a steady clock.
pub(super) async fn run<F: Future<Output = Result<()>>>(
    pursue: impl Fn(Goal) -> F,
    now_secs: impl Fn() -> f64,
    mut wishes: mpsc::Receiver<bool>,
    told: watch::Sender<Hand>,
) {
    let mut beat = tokio::time::interval(PERIOD);
    let (mut gripper, mut wish) = (Gripper::default(), 0.0);
    // of an older goal nothing is to be known any more
    let mut pursued = Box::pin(OptionFuture::from(None));
    loop {
        tokio::select! {
            biased;
            Some((goal, outcome)) = &mut pursued => {
                let outcome: Result<()> = outcome;
                pursued.set(None.into());
                gripper.done(goal, outcome.is_ok());
                if let Err(error) = outcome {
                    tracing::warn!("{error}");
                    wish = 0.0;
                }
            }
            Some(open) = wishes.recv() => wish = if open { 1.0 } else { -1.0 },
            _ = beat.tick() => {}
        }
        let before = gripper.hand();
        if let Some(goal) = gripper.tick(wish, now_secs()) {
            tracing::info!("the hand: {goal:?}");
            let doing = pursue(goal);
            pursued.set(Some(async move { (goal, doing.await) }).into());
        }
        let hand = gripper.hand();
        if before.timeouts < hand.timeouts {
            tracing::warn!("the hand took too long and is stopped; ask again");
            wish = 0.0;
        }
        told.send_if_modified(|before| std::mem::replace(before, hand) != hand);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use std::cell::{Cell, RefCell};

    /// The goals that the hand is sent, and how it stands after the last wish. A wish comes each 5 s.
    fn goals(wishes: &[bool], outcome: fn(Goal) -> Option<Result<()>>) -> (Vec<Goal>, Hand) {
        let (sent, clock) = (RefCell::new(Vec::new()), Cell::new(0.0));
        let pursue = |goal| {
            sent.borrow_mut().push(goal);
            async move {
                tokio::task::yield_now().await;
                match outcome(goal) {
                    Some(outcome) => outcome,
                    None => std::future::pending().await,
                }
            }
        };
        let (wish, wished) = mpsc::channel(1);
        let (told, hand) = watch::channel(Hand::default());
        let person = async {
            for open in wishes {
                clock.set(clock.get() + 5.0);
                wish.send(*open).await.unwrap();
                for _ in 0..20 {
                    tokio::task::yield_now().await; // as often is the hand looked after
                }
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            tokio::select! { () = run(pursue, || clock.get(), wished, told) => {}, () = person => {} }
        });
        let hand = *hand.borrow();
        (sent.into_inner(), hand)
    }

    fn slips(so: bool) -> Result<()> {
        if so { Err(Error::invalid("it slipped")) } else { Ok(()) }
    }

    #[test]
    fn it_homes_once_and_then_does_what_is_wished() {
        let (sent, hand) = goals(&[true, false, false, true, false], |_| Some(Ok(())));
        assert_eq!(sent, [Goal::Home, Goal::Open, Goal::Grasp, Goal::Open, Goal::Grasp]);
        assert_eq!(hand, Hand { holds: true, ..Hand::default() });
    }

    #[test]
    fn what_fails_is_told_and_not_tried_again_by_itself() {
        let (sent, hand) = goals(&[false, true], |goal| Some(slips(goal == Goal::Grasp)));
        assert_eq!(sent, [Goal::Home, Goal::Grasp, Goal::Open]);
        assert_eq!(hand, Hand { failures: 1, ..Hand::default() });
        let (sent, hand) = goals(&[true, true], |goal| Some(slips(goal == Goal::Home)));
        assert_eq!((sent, hand.failures), (vec![Goal::Home, Goal::Home], 2));
    }

    #[test]
    fn what_takes_too_long_is_stopped_and_not_tried_again_by_itself() {
        let never = |goal| (goal != Goal::Open).then_some(Ok(()));
        let (sent, hand) = goals(&[true, true], never);
        assert_eq!(sent, [Goal::Home, Goal::Open, Goal::Stop]);
        assert_eq!(hand, Hand { timeouts: 1, ..Hand::default() });
    }
}
