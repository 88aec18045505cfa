//! The flow of data: its age, who waits for whom, what is skipped, lost or refused, and whether both sides agree.

use super::{Level, Seen, Verdict, percent, values};
use crate::report::names;

/// Effective sample size over the number of samples below which data is too old.
const ESS: f64 = 0.5;
/// Mean lag of remembered data that tells of rollouts without new weights [versions].
const FAR: f64 = 100.0;
/// Share of the data that may be dropped unlearned.
const DROPPED: f64 = 0.05;
/// Share of the learner's time over which waiting is starving.
const STARVES: f64 = 0.8;
/// Share of the learner's time below which it has none to spare.
const NO_SPARE: f64 = 0.1;
/// Updates before shares of time mean anything.
const SETTLED: usize = 10;
/// Share of lost or refused transitions that is bad.
const BAD: f64 = 0.01;
/// Log-probabilities that differ by more are of another policy; float32 rounding stays below 1e-5.
pub const LOG_PROB_LIMIT: f64 = 1e-4;
/// Why rollout and learner can disagree on a log-probability.
pub const LOG_PROB_CAUSES: &str = "the rollout's observations, joint order, normaliser or weights are not those of the \
                                   version that it names, or it runs another build";

pub(super) fn verdicts(seen: &Seen<'_>) -> Vec<Verdict> {
    [staleness(seen), dropped(seen), waiting(seen), skipped(seen), lost(seen), refused(seen), disagreement(seen)]
        .into_iter()
        .flatten()
        .collect()
}

fn staleness(seen: &Seen<'_>) -> Option<Verdict> {
    let learner = &seen.config.learner;
    let lag = seen.mean("lag/mean")?;
    if seen.off_policy() {
        return (FAR < lag).then(|| Verdict {
            about: "staleness",
            level: Level::Look,
            seen: format!("New steps are {lag:.0} versions old in the mean: rollouts act without the newest weights."),
            change: format!("raise learner.batch_steps ({}), for fewer versions", learner.batch_steps),
        });
    }
    let [action, option] = ["lag/ess_action", "lag/ess_option"].map(|name| seen.mean(name).unwrap_or(1.0));
    let (least, which) = if option < action { (option, "options") } else { (action, "actions") };
    let change = if seen.asynchronous() {
        format!(
            "lower learner.max_lag ({}), raise learner.batch_steps ({}), or set learner.update_mode to sync",
            learner.max_lag, learner.batch_steps
        )
    } else {
        "learner.update_mode is sync, where data cannot lag: see disagreement, and the logs of the rollouts".into()
    };
    (least < ESS).then(|| Verdict {
        about: "staleness",
        level: Level::Bad,
        seen: format!(
            "At a mean lag of {lag:.1} versions, the ratios of the {which} leave {} of the data.",
            percent(least)
        ),
        change,
    })
}

fn dropped(seen: &Seen<'_>) -> Option<Verdict> {
    let share = seen.grown("stream/dropped") / seen.grown("stream/admitted").max(1.0);
    let learner = &seen.config.learner;
    (DROPPED < share).then(|| Verdict {
        about: "dropped data",
        level: Level::Look,
        seen: format!("{} of the transitions were dropped unlearned lately.", percent(share)),
        change: if seen.asynchronous() {
            format!(
                "they were over learner.max_lag ({}): raise it or learner.batch_steps ({}), or lower train.rollouts ({})",
                learner.max_lag, learner.batch_steps, seen.config.train.rollouts
            )
        } else {
            "rollouts fell silent in the middle of a phase: see their logs".into()
        },
    })
}

fn waiting(seen: &Seen<'_>) -> Option<Verdict> {
    let share = seen.newest("time/waiting_share").filter(|_| SETTLED <= seen.rows.len())?;
    let (train, learner) = (&seen.config.train, &seen.config.learner);
    let (work, now) = if seen.off_policy() {
        ("learner.osac.update_to_data", learner.osac.update_to_data)
    } else {
        ("learner.hs_ppo.num_learning_epochs", learner.hs_ppo.num_learning_epochs as f64)
    };
    if STARVES < share {
        return Some(Verdict {
            about: "starving learner",
            level: Level::Look,
            seen: format!("The learner waited for steps in {} of its time.", percent(share)),
            change: format!(
                "raise train.rollouts ({}) or train.envs ({}) while cores are free; else {work} ({now})",
                train.rollouts, train.envs
            ),
        });
    }
    // Off-policy the limiter holds rollouts to the ratio that is wanted. Asynchronous data is used although it lags, until it is too old.
    let wasteful = !seen.asynchronous() || staleness(seen).is_some() || dropped(seen).is_some();
    (share < NO_SPARE && !seen.off_policy() && wasteful).then(|| Verdict {
        about: "starving rollouts",
        level: Level::Look,
        seen: format!("The learner was at work in {} of its time: rollouts wait for it.", percent(1.0 - share)),
        change: format!(
            "lower {work} ({now}), or raise learner.hs_ppo.minibatch_size ({})",
            learner.hs_ppo.minibatch_size
        ),
    })
}

fn skipped(seen: &Seen<'_>) -> Option<Verdict> {
    const NAME: &str = "losses/skipped_minibatches";
    // On-policy each update counts anew; off-policy the count goes on.
    let (all, lately) = if seen.off_policy() {
        (seen.newest(NAME)?, seen.grown(NAME))
    } else {
        (values(seen.rows, NAME).iter().sum(), values(seen.recent(), NAME).iter().sum())
    };
    let lr = if seen.off_policy() {
        format!("learner.osac.lr ({})", seen.config.learner.osac.lr)
    } else {
        let ppo = &seen.config.learner.hs_ppo;
        format!("learner.hs_ppo.lr ({}) or learner.hs_ppo.max_grad_norm ({})", ppo.lr, ppo.max_grad_norm)
    };
    (0.0 < all).then(|| Verdict {
        about: "skipped minibatches",
        level: if 0.0 < lately { Level::Bad } else { Level::Look },
        seen: format!("Loss or gradient was not finite in {all:.0} minibatches, {lately:.0} of them lately."),
        change: format!("lower {lr}; rewards far from 1 do this, too"),
    })
}

fn lost(seen: &Seen<'_>) -> Option<Verdict> {
    counted(
        seen,
        "stream/lost",
        "lost transitions",
        "were lost on their way",
        "a process was killed, or messages were dropped: see the logs; what a killed rollout held nobody has",
    )
}

fn refused(seen: &Seen<'_>) -> Option<Verdict> {
    counted(
        seen,
        "stream/refused",
        "refused transitions",
        "were refused",
        "the learner's log has each reason: of another contract, malformed, not finite, or of a life that is over",
    )
}

/// A count of transitions that should be 0, against those admitted.
fn counted(seen: &Seen<'_>, name: &str, about: &'static str, what: &str, change: &str) -> Option<Verdict> {
    let count = seen.newest(name).filter(|count| 0.0 < *count)?;
    let share = count / (count + seen.newest("stream/admitted").unwrap_or(0.0));
    Some(Verdict {
        about,
        level: if BAD < share { Level::Bad } else { Level::Look },
        seen: format!("{count:.0} transitions {what}: {} of all.", percent(share)),
        change: change.into(),
    })
}

fn disagreement(seen: &Seen<'_>) -> Option<Verdict> {
    let largest = values(seen.rows, names::LOG_PROB_ERROR).into_iter().fold(0.0, f64::max);
    (LOG_PROB_LIMIT < largest).then(|| Verdict {
        about: "disagreement",
        level: Level::Bad,
        seen: format!(
            "A recorded log-probability differs by {largest:.1e} from what its version gives; {LOG_PROB_LIMIT:.0e} is \
             the most that rounding explains."
        ),
        change: LOG_PROB_CAUSES.into(),
    })
}
