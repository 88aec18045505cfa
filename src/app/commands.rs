//! `handoff eval` and `handoff curve`.

use super::evaluate::{self, Play};
use super::rehearse::{Wire, rehearse};
use super::{cli, recording, status};
use crate::config::{self, Config};
use crate::data::EpisodeStats;
use crate::error::{Error, Result};
use crate::policy::Sampling;
use crate::report::{Curve, Evaluation, Pairs, Rehearsal, draw};
use crate::run::{self, RunDir, Which};
use crate::task::Judgement;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

/// Evaluates the policy of a run and prints the outcome.
pub(super) fn eval(arguments: &cli::Eval) -> Result<()> {
    let which = if arguments.best { Which::Best } else { Which::Newest };
    let sampling = if arguments.stochastic { Sampling::Stochastic } else { Sampling::MeanAction };
    if let Some(link) = &arguments.link {
        let rehearsal = rehearsal(arguments, which, link)?;
        let json = || {
            serde_json::to_string(&rehearsal)
                .map_err(|error| Error::invalid(format!("the evaluation cannot be written as JSON: {error}")))
        };
        return print(&if arguments.json { json()? } else { rehearsal.table() });
    }
    let record = arguments.record.as_deref();
    let (evaluation, rate) = evaluation(&arguments.run, which, arguments.episodes, arguments.seed, sampling, record)?;
    if arguments.json {
        let json = serde_json::to_string(&evaluation)
            .map_err(|error| Error::invalid(format!("the evaluation cannot be written as JSON: {error}")))?;
        print(&json)
    } else {
        print(&evaluation.table(rate))
    }
}

/// The end of a training: evaluation table, verdicts and the path of the run.
pub(super) fn report(folder: &Path, config: &Config) -> Result<()> {
    let Some(newest) = RunDir::open(folder)?.checkpoint(Which::Newest)? else {
        return Err(Error::invalid(format!("{} has no checkpoint to evaluate", folder.display())));
    };
    if run::load_snapshot(&newest, None)?.updates == 0 {
        return print(&format!("nothing was learned yet: there is nothing to evaluate\n{}", folder.display()));
    }
    let episodes = config.train.eval_episodes;
    let (evaluation, rate) = evaluation(folder, Which::Newest, episodes, 1, Sampling::MeanAction, None)?;
    print(&format!("{}\n\n{}\n{}", evaluation.table(rate), status::judged(folder)?, folder.display()))
}

/// Draws learning curves.
pub(super) fn curve(arguments: &cli::Curve) -> Result<()> {
    let curves = arguments.runs.iter().map(|run| Curve::read(run)).collect::<Result<Vec<_>>>()?;
    draw(&curves, &arguments.out)?;
    print(&arguments.out.display().to_string())
}

/// The same episodes in lockstep and through a link.
fn rehearsal(arguments: &cli::Eval, which: Which, link: &str) -> Result<Rehearsal> {
    let mut parameters = serde_json::Map::new();
    config::assign(&mut parameters, &format!("policy.link={link}"))?;
    if let Some(other) = arguments.assignments.iter().find(|assignment| !assignment.trim_start().starts_with("guard."))
    {
        return Err(Error::invalid(format!(
            "--set {other} has no effect with --link: there guard.* can be set; all else is the run's"
        )));
    }
    arguments.assignments.iter().try_for_each(|assignment| config::assign(&mut parameters, assignment))?;
    let told = config::from_parameters(parameters.into())?;
    let preset = told.policy.link;
    let cli::Eval { run, episodes, seed, .. } = arguments;
    let run::Checkpoint { snapshot, config, .. } = load(run, which, *episodes)?;
    let snapshot = Arc::new(snapshot);
    let lockstep = evaluate::play(&snapshot, &config, *episodes, *seed, Sampling::MeanAction)?;
    let wire = if arguments.scrambled { Wire::Scrambled } else { Wire::Plain };
    let side_by_side = evaluate::ENVIRONMENTS.min(*episodes);
    let linked = rehearse(&snapshot, &config.sim, (preset, &told.guard), wire, *episodes, side_by_side, *seed)?;
    let pairs = |of: fn(&EpisodeStats) -> bool, to: fn(&Judgement) -> bool| {
        Pairs::new(lockstep.episodes.iter().map(of).zip(linked.iter().map(to)))
    };
    Ok(Rehearsal {
        name: format!("through {}", preset.name()),
        episodes: *episodes as u64,
        success: pairs(|stats| stats.success, |judgement| judgement.success),
        success_1cm: pairs(|stats| stats.success_strict, |judgement| judgement.success_strict),
    })
}

fn load(path: &Path, which: Which, episodes: usize) -> Result<run::Checkpoint> {
    if episodes == 0 {
        return Err(Error::invalid("--episodes 0 evaluates nothing: give at least 1"));
    }
    crate::policy::set_threads(1);
    run::load(&RunDir::resolve(path, which)?, None)
}

fn evaluation(
    path: &Path,
    which: Which,
    episodes: usize,
    seed: u64,
    how: Sampling,
    record: Option<&Path>,
) -> Result<(Evaluation, f64)> {
    let run::Checkpoint { snapshot, config, .. } = load(path, which, episodes)?;
    let snapshot = Arc::new(snapshot);
    let play = evaluate::play(&snapshot, &config, episodes, seed, how)?;
    if let Some(bag) = record {
        recording::record(bag, &snapshot, &play, seed, how)?;
    }
    let Play { episodes, runs, termination_prob, .. } = play;
    let finished = |runs: &Vec<evaluate::OptionRun>| -> Vec<u32> {
        runs.iter().filter(|run| !run.censored).map(|run| run.steps).collect()
    };
    let durations: Vec<Vec<u32>> = runs.iter().map(finished).collect();
    let evaluation = Evaluation::new(&episodes, &durations, &termination_prob)?;
    Ok((evaluation, 1.0 / snapshot.contract.control_period_secs))
}

/// Results go to standard output, and nothing else does. A reader that has seen enough is no error.
pub(super) fn print(text: &str) -> Result<()> {
    match writeln!(std::io::stdout().lock(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::io("standard output")(error)),
        _ => Ok(()),
    }
}
