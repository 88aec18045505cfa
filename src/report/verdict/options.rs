//! Options: used or not, ending or not, different or not; and the noise of their actions.

use super::{Level, Seen, Verdict, name_options, percent, values};
use crate::report::stats;

/// One option has more than this of the steps: the others are gone.
const COLLAPSE: f64 = 0.9;
/// An option with less of the steps is out of use.
const UNUSED: f64 = 0.01;
/// A termination probability over this ends the option at every chance; logits are clamped to +-6, at 0.9975.
const ALWAYS: f64 = 0.9;
/// One below this never does, within the longest durations in use; the clamp is at 0.0025.
const NEVER: f64 = 0.01;
/// `(max_o Q - min_o Q) / std(Q)` below this: the options are clones.
const CLONES: f64 = 0.02;
/// Records over which they must have been.
const LONG: usize = 20;
/// Standard deviation of an action before tanh below which nothing new is tried.
const NARROW: f64 = 0.05;

pub(super) fn verdicts(seen: &Seen<'_>) -> Vec<Verdict> {
    let mut all = Vec::new();
    if 1 < seen.config.option_count() {
        all.extend(shares(seen));
        all.extend(terminations(seen));
        all.extend(clones(seen));
    }
    all.extend(entropy(seen));
    all
}

/// A metric of each option over the recent rows; none unless all have it.
fn each(seen: &Seen<'_>, what: &str) -> Option<Vec<f64>> {
    (0..seen.config.option_count()).map(|option| seen.mean(&format!("options/{option}/{what}"))).collect()
}

fn those(values: &[f64], holds: impl Fn(usize, f64) -> bool) -> Vec<usize> {
    values.iter().enumerate().filter(|(option, value)| holds(*option, **value)).map(|(option, _)| option).collect()
}

fn shares(seen: &Seen<'_>) -> Option<Verdict> {
    let shares = each(seen, "share")?;
    let more_use = if seen.off_policy() {
        let osac = &seen.config.learner.osac;
        format!(
            "raise learner.osac.load_balance_coef ({}) or learner.osac.option_entropy_end ({})",
            osac.load_balance_coef, osac.option_entropy_end
        )
    } else {
        let ppo = &seen.config.learner.hs_ppo;
        format!(
            "raise learner.hs_ppo.load_balance_coef ({}) or learner.hs_ppo.option_entropy_coef ({})",
            ppo.load_balance_coef, ppo.option_entropy_coef
        )
    };
    let fewer = format!("take fewer options.count ({})", shares.len());
    let rich = those(&shares, |_, share| COLLAPSE < share);
    if let [rich] = rich[..] {
        return Some(Verdict {
            about: "option collapse",
            level: Level::Bad,
            seen: format!("Option {rich} has {} of the steps.", percent(shares[rich])),
            change: format!("{more_use}, or {fewer}"),
        });
    }
    let unused = those(&shares, |_, share| share < UNUSED);
    let highest = unused.iter().map(|&option| shares[option]).fold(0.0, f64::max);
    let most = match unused.len() {
        _ if highest == 0.0 => "no steps".into(),
        1 => format!("{} of the steps", percent(highest)),
        _ => format!("at most {} of the steps each", percent(highest)),
    };
    (!unused.is_empty()).then(|| Verdict {
        about: "unused options",
        level: Level::Look,
        seen: format!("Of {} options, {} had {most}.", shares.len(), name_options(&unused)),
        change: format!("{more_use}, or {fewer}"),
    })
}

/// Of the options in use.
fn terminations(seen: &Seen<'_>) -> Vec<Verdict> {
    let (Some(betas), Some(shares)) = (each(seen, "beta_mean"), each(seen, "share")) else { return Vec::new() };
    let config = seen.config;
    // Where d_min and d_max leave no choice there is no probability to judge.
    if config.options.max_steps <= config.options.min_steps {
        return Vec::new();
    }
    let used = those(&shares, |_, share| UNUSED <= share);
    let key = |what: &str| format!("learner.{}.{what}", if seen.off_policy() { "osac" } else { "hs_ppo" });
    let (cost, bias) = if seen.off_policy() {
        (config.learner.osac.deliberation_cost, config.learner.osac.termination_bias_init)
    } else {
        (config.learner.hs_ppo.deliberation_cost, config.learner.hs_ppo.termination_bias_init)
    };
    let verdict = |about, which: &[usize], sentence: String, change: String| {
        let level = if which.len() == used.len() { Level::Bad } else { Level::Look };
        (!which.is_empty()).then_some(Verdict { about, level, seen: sentence, change })
    };
    let mean = |which: &[usize]| {
        stats::mean(&which.iter().map(|&option| betas[option]).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    };
    let always = those(&betas, |option, beta| used.contains(&option) && ALWAYS < beta);
    let never = those(&betas, |option, beta| used.contains(&option) && beta < NEVER);
    let ends = |which: &[usize]| if which.len() == 1 { "ends" } else { "end" };
    let at_one = verdict(
        "terminations at 1",
        &always,
        format!(
            "At every chance {} {}: the mean probability is {:.3}.",
            name_options(&always),
            ends(&always),
            mean(&always)
        ),
        format!("raise {} ({cost}) or options.min_steps ({})", key("deliberation_cost"), config.options.min_steps),
    );
    let at_zero = verdict(
        "terminations at 0",
        &never,
        format!(
            "By choice {} hardly ever {}: the mean probability is {:.4}; what ends it is options.max_steps ({}).",
            name_options(&never),
            ends(&never),
            mean(&never),
            config.options.max_steps
        ),
        format!("lower {} ({cost}), or raise {} ({bias})", key("deliberation_cost"), key("termination_bias_init")),
    );
    at_one.into_iter().chain(at_zero).collect()
}

fn clones(seen: &Seen<'_>) -> Option<Verdict> {
    let spreads = values(seen.rows, "options/spread");
    let long = (spreads.len() / 3).max(LONG);
    let lately = spreads.len().checked_sub(long).map(|start| &spreads[start..])?;
    let spread = stats::percentile(lately, 90.0).filter(|spread| *spread < CLONES)?;
    let change = if seen.off_policy() {
        let osac = &seen.config.learner.osac;
        format!(
            "lower learner.osac.responsibility_floor ({}) and raise learner.osac.executed_weight ({})",
            osac.responsibility_floor, osac.executed_weight
        )
    } else {
        format!("raise options.min_steps ({}), so that a choice matters for longer", seen.config.options.min_steps)
    };
    Some(Verdict {
        about: "clones",
        level: Level::Look,
        seen: format!(
            "The values of the options differ by {spread:.3} of their std or less for {long} updates: they are alike."
        ),
        change: format!("{change}; or train without options"),
    })
}

/// The noise of the actions is gone before the task is learned.
fn entropy(seen: &Seen<'_>) -> Option<Verdict> {
    if !seen.unsolved() {
        return None;
    }
    let joints = seen.config.robot.joint_names().len() as f64;
    let entropy = seen.mean("losses/entropy")? / joints;
    let verdict = |seen, change| Verdict { about: "entropy collapse", level: Level::Bad, seen, change };
    if seen.off_policy() {
        let osac = &seen.config.learner.osac;
        return (entropy < osac.target_entropy - 1.0).then(|| {
            verdict(
                format!(
                    "The entropy of the actions is {entropy:.2} for each joint, far below its target of {}.",
                    osac.target_entropy
                ),
                format!(
                    "raise learner.osac.temperature_init ({}), or lower learner.osac.lr ({})",
                    osac.temperature_init, osac.lr
                ),
            )
        });
    }
    // A Gaussian's entropy is log std + (1 + log 2 pi) / 2.
    let std = (entropy - 0.5 * (1.0 + std::f64::consts::TAU.ln())).exp();
    let ppo = &seen.config.learner.hs_ppo;
    (std < NARROW).then(|| {
        verdict(
            format!("The std of the actions is down to {std:.3} before the task is learned: nothing new is tried."),
            format!(
                "raise learner.hs_ppo.entropy_coef ({}) or learner.hs_ppo.log_std_init ({})",
                ppo.entropy_coef, ppo.log_std_init
            ),
        )
    })
}
