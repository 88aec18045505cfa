//! The hand: what a person asks of it becomes one goal at a time. No policy moves it.

use crate::error::Result;
use crate::guard::{Goal, Gripper, Hand};
use futures::future::OptionFuture;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// How often the time-outs are looked at.
const PERIOD: Duration = Duration::from_millis(50);

/// Does what is wished (true: open, false: grasp) by what `pursue` does, as long as it is polled. What failed is not tried again
/// without another wish.
pub(super) async fn run<F: Future<Output = Result<()>>>(
    pursue: impl Fn(Goal) -> F,
    mut wishes: mpsc::Receiver<bool>,
    told: watch::Sender<Hand>,
) {
    let (start, mut beat) = (Instant::now(), tokio::time::interval(PERIOD));
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
        if let Some(goal) = gripper.tick(wish, start.elapsed().as_secs_f64()) {
            tracing::info!("the hand: {goal:?}");
            let doing = pursue(goal);
            pursued.set(Some(async move { (goal, doing.await) }).into());
        }
        let hand = gripper.hand();
        told.send_if_modified(|before| std::mem::replace(before, hand) != hand);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use std::cell::RefCell;

    /// The goals that the hand is sent, and how it stands after the last wish.
    fn goals(wishes: &[bool], fails: fn(Goal) -> bool) -> (Vec<Goal>, Hand) {
        let sent = RefCell::new(Vec::new());
        let pursue = |goal| {
            sent.borrow_mut().push(goal);
            async move {
                tokio::task::yield_now().await;
                if fails(goal) { Err(Error::invalid("it slipped")) } else { Ok(()) }
            }
        };
        let (wish, wished) = mpsc::channel(1);
        let (told, hand) = watch::channel(Hand::default());
        let person = async {
            for open in wishes {
                wish.send(*open).await.unwrap();
                for _ in 0..20 {
                    tokio::task::yield_now().await; // as often is the hand looked after
                }
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            tokio::select! { () = run(pursue, wished, told) => {}, () = person => {} }
        });
        let hand = *hand.borrow();
        (sent.into_inner(), hand)
    }

    #[test]
    fn it_homes_once_and_then_does_what_is_wished() {
        let (sent, hand) = goals(&[true, false, false, true, false], |_| false);
        assert_eq!(sent, [Goal::Home, Goal::Open, Goal::Grasp, Goal::Open, Goal::Grasp]);
        assert_eq!(hand, Hand { holds: true, ..Hand::default() });
    }

    #[test]
    fn what_fails_is_told_and_not_tried_again_by_itself() {
        let (sent, hand) = goals(&[false, true], |goal| goal == Goal::Grasp);
        assert_eq!(sent, [Goal::Home, Goal::Grasp, Goal::Open]);
        assert_eq!(hand, Hand { failures: 1, ..Hand::default() });
        let (sent, hand) = goals(&[true, true], |goal| goal == Goal::Home);
        assert_eq!((sent, hand.failures), (vec![Goal::Home, Goal::Home], 2));
    }
}
