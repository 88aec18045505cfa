//! Learning or not: the course of the return, and of the success where the task has one.

use super::{Level, Seen, Verdict, percent, values};
use crate::config::Algo;
use crate::report::{names, stats};

/// Records with finished episodes that a judgement needs, and parts that they are cut into.
const PARTS: usize = 10;
/// From here on a task counts as learned.
const LEARNED: f64 = 0.95;
/// A difference that is more than chance, in standard deviations.
const CLEAR: f64 = 3.0;
/// Episodes behind each recorded return.
const EPISODES: f64 = 100.0;
/// Records after which no progress is bad news.
const PATIENCE: usize = 50;

/// The course of the return in ten parts. The noise of a difference is that of two means of 100 episodes, and at least
/// what second differences show, which a steady course leaves at 0: the variance of `a - 2 b + c` is 6 times a part's.
struct Course {
    begin: f64,
    middle: f64,
    now: f64,
    best: f64,
    range: f64,
    noise: f64,
}

impl Course {
    fn new(returns: &[f64], episode_std: f64) -> Option<Self> {
        let edge = |part: usize| part * returns.len() / PARTS;
        let parts: Vec<f64> =
            (0..PARTS).map(|part| stats::mean(&returns[edge(part)..edge(part + 1)])).collect::<Option<_>>()?;
        let pairs: Vec<f64> = parts.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
        let bends: Vec<f64> = parts.windows(3).map(|three| (three[0] - 2.0 * three[1] + three[2]).powi(2)).collect();
        let highest = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Self {
            begin: pairs[0],
            middle: pairs[PARTS / 2],
            now: pairs[PARTS - 2],
            best: highest(&pairs),
            range: highest(&parts) - parts.iter().copied().fold(f64::INFINITY, f64::min),
            noise: (stats::mean(&bends)? / 6.0).sqrt().max(episode_std * (2.0 / EPISODES).sqrt()),
        })
    }

    fn clearly(&self, difference: f64) -> bool {
        (CLEAR * self.noise).max(1e-9) < difference
    }
}

pub(super) fn learning(seen: &Seen<'_>) -> Verdict {
    let verdict = |level, seen: String, change: String| Verdict { about: "learning", level, seen, change };
    if seen.config.algo.offline() {
        let (level, sentence, change) = from_bags(seen);
        return verdict(level, sentence, change);
    }
    let returns = values(seen.rows, names::RETURN);
    let episode_std = stats::mean(&values(seen.rows, names::RETURN_STD)).unwrap_or(0.0);
    let Some(course) = Course::new(&returns, episode_std).filter(|_| PARTS <= returns.len()) else {
        let (updates, judged) = (seen.rows.len(), returns.len());
        let sentence = format!(
            "Too early to say: finished episodes are in {judged} of {updates} records; it takes {PARTS} of them."
        );
        return verdict(Level::Look, sentence, String::new());
    };
    let tail = &seen.rows[seen.rows.len() - (seen.rows.len() / PARTS).max(1)..];
    let success = stats::mean(&values(tail, names::SUCCESS));
    let strict = stats::mean(&values(tail, names::SUCCESS_STRICT));
    let strict = strict.map(|strict| format!(", the stricter success {}", percent(strict))).unwrap_or_default();
    if let Some(success) = success.filter(|success| LEARNED <= *success) {
        let sentence = format!("Learned: success is {}{strict}; the return is {:.2}.", percent(success), course.now);
        return verdict(Level::Good, sentence, String::new());
    }
    let success = success.map(|success| format!("; success is {}", percent(success))).unwrap_or_default();
    let Course { begin, middle, now, best, range, .. } = course;
    if course.clearly(best - now) && 0.25 * range < best - now {
        let sentence = format!("Getting worse: the return fell from {best:.2} to {now:.2}{success}.");
        let change = format!("lower {}; the best checkpoint is kept: eval --best", lr(seen));
        return verdict(Level::Bad, sentence, change);
    }
    if course.clearly(now - begin) {
        let rose = format!("the return rose from {begin:.2} to {now:.2}{success}");
        return if 0.1 * (now - begin) <= now - middle {
            verdict(Level::Good, format!("Learning: {rose}."), String::new())
        } else {
            verdict(
                Level::Look,
                format!("Stands still: {rose}, but lately it gained {:.2}.", now - middle),
                lever(seen),
            )
        };
    }
    let level = if returns.len() < PATIENCE { Level::Look } else { Level::Bad };
    verdict(level, format!("Not learning: the return was {begin:.2} and is {now:.2}{success}."), lever(seen))
}

/// The course of the validation's loss; the return is not known before it is evaluated.
fn from_bags(seen: &Seen<'_>) -> (Level, String, String) {
    let losses = values(seen.rows, "validation/policy_loss");
    let Some((first, last)) = losses.first().zip(losses.last()) else {
        return (
            Level::Look,
            "Learned from bags without a validation: only an evaluation tells.".into(),
            String::new(),
        );
    };
    let (at, best) = losses
        .iter()
        .enumerate()
        .fold((0, f64::INFINITY), |best, (at, &loss)| if loss < best.1 { (at + 1, loss) } else { best });
    let test = values(seen.rows, "test/policy_loss").last().copied();
    let test =
        test.map(|test| format!("; on the test, which was kept for the end, it is {test:.3}")).unwrap_or_default();
    let course =
        format!("the actor's loss on the validation went from {first:.3} to {last:.3}, at best {best:.3}{test}");
    // of what a clone gained, this much is lost again; with weights that grow, as in iql, losses of different times do not compare
    if seen.config.algo == Algo::Bc && 0.1 * (first - best).max(1e-9) < last - best {
        let steps = at as u64 * seen.config.learner.offline.update_steps;
        let change = format!(
            "learner.offline.gradient_steps = {steps} would have stopped there ({})",
            seen.config.learner.offline.gradient_steps
        );
        return (Level::Look, format!("Learned from bags, too long: {course}."), change);
    }
    (Level::Good, format!("Learned from bags: {course}."), String::new())
}

fn lr(seen: &Seen<'_>) -> String {
    let learner = &seen.config.learner;
    if seen.off_policy() {
        format!("learner.osac.lr ({})", learner.osac.lr)
    } else {
        format!("learner.hs_ppo.lr ({})", learner.hs_ppo.lr)
    }
}

/// What holds learning up, by what else the metrics show.
fn lever(seen: &Seen<'_>) -> String {
    let learner = &seen.config.learner;
    if seen.off_policy() {
        let osac = &learner.osac;
        return if seen.mean("losses/gradient_steps").is_none_or(|steps| steps == 0.0) {
            format!("no gradient step was made lately: lower learner.osac.warmup_steps ({})", osac.warmup_steps)
        } else {
            format!("raise learner.osac.update_to_data ({}), or try half of {}", osac.update_to_data, lr(seen))
        };
    }
    let ppo = &learner.hs_ppo;
    let mean = |name: &str| seen.mean(name).unwrap_or(f64::NAN);
    let (clipped, kl) = (mean("losses/clipfrac"), mean("losses/approx_kl"));
    let explained = mean("losses/explained_variance");
    if 0.35 < clipped || 0.05 < kl {
        return format!(
            "{} of the ratios are clipped at a KL of {kl:.3}: lower {}, or set learner.hs_ppo.desired_kl ({})",
            percent(clipped),
            lr(seen),
            ppo.desired_kl
        );
    }
    if explained < 0.2 {
        return format!(
            "the critic explains {explained:.2} of the returns' variance: raise learner.hs_ppo.value_loss_coef ({}), or \
             lower learner.hs_ppo.gamma ({})",
            ppo.value_loss_coef, ppo.gamma
        );
    }
    if let Some(rate) = seen.newest("charts/learning_rate").filter(|rate| *rate <= 0.25 * ppo.lr) {
        return format!(
            "the learning rate has fallen to {rate:.1e}: raise learner.hs_ppo.lr_anneal_steps ({})",
            ppo.lr_anneal_steps
        );
    }
    let more = if seen.asynchronous() {
        format!("learner.batch_steps ({})", learner.batch_steps)
    } else {
        format!("learner.num_steps_per_env ({})", learner.num_steps_per_env)
    };
    format!("try twice or half of {}, and more steps an update: {more}", lr(seen))
}
