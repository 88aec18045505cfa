//! `handoff bag info`, `check`, `analyse` and `cut`. Exit code 3: the bag is damaged; what could be read is shown all the same.

use super::cli::{BagCheck, BagCommand, BagCut, BagInfo, BagPurpose};
use super::prefixes;
use crate::bag::{Bag, Cut, Purpose, Survey, Verdict};
use crate::error::{Error, Result};
use crate::report;
use crate::run::{self, RunDir, Which};
use serde::Serialize;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The bag is not fit.
const UNFIT: u8 = 1;
/// The bag is damaged.
const DAMAGED: u8 = 3;

/// Does what is asked of a bag.
pub fn bag(command: &BagCommand) -> Result<ExitCode> {
    match command {
        BagCommand::Info(arguments) => info(arguments),
        BagCommand::Check(arguments) => check(arguments),
        BagCommand::Cut(arguments) => cut(arguments),
        #[cfg(all(feature = "ros", feature = "torch", feature = "sim"))]
        BagCommand::Record(arguments) => {
            print(&super::nodes::record(arguments)?)?;
            Ok(ExitCode::SUCCESS)
        }
        #[cfg(feature = "torch")]
        BagCommand::Analyse(arguments) => analyse(arguments),
    }
}

fn info(arguments: &BagInfo) -> Result<ExitCode> {
    let survey = survey(&arguments.bag)?;
    if arguments.json {
        json(&survey)?
    } else {
        print(&report::bag::survey(&survey))?
    }
    Ok(health(&survey))
}

fn check(arguments: &BagCheck) -> Result<ExitCode> {
    let contract = match &arguments.run {
        Some(run) => Some(run::load(&RunDir::resolve(run, Which::Newest)?, None)?.snapshot.contract),
        None => None,
    };
    let mut survey = survey(&arguments.bag)?;
    survey.check_transitions(&Bag::open(&arguments.bag)?, contract.as_deref(), &prefixes())?;
    let verdict = Verdict::new(&survey, arguments.namespace.as_deref(), contract.as_deref());
    if arguments.json {
        json(&verdict)?
    } else {
        print(&report::bag::verdict(&verdict))?
    }
    let health = health(&survey);
    let purpose = match arguments.purpose {
        BagPurpose::Analysis => Purpose::Analysis,
        BagPurpose::Learning => Purpose::Learning,
    };
    Ok(if verdict.fit(purpose) { health } else { ExitCode::from(UNFIT) })
}

#[cfg(feature = "torch")]
fn analyse(arguments: &super::cli::BagAnalyse) -> Result<ExitCode> {
    use crate::analysis::{self, Setup};
    use crate::policy::Sampling;
    crate::policy::set_threads(1);
    if !arguments.json {
        writable(&arguments.out)?; // before the work
    }
    let setup = Setup {
        namespace: arguments.namespace.clone(),
        present: arguments.run.as_deref().map(present).transpose()?,
        against: arguments.against.as_deref().map(present).transpose()?,
        goal: arguments.goal,
        seed: arguments.seed,
        sampling: if arguments.stochastic { Sampling::Stochastic } else { Sampling::MeanAction },
        prefixes: prefixes(),
    };
    let bag = Bag::open(&arguments.bag)?;
    let mut progress = Progress::new();
    let found = analysis::analyse(&bag, &setup, &mut |_| (), &mut |messages| progress.tell(messages));
    progress.end();
    let found = found?;
    if arguments.json {
        json(&found)?
    } else {
        std::fs::write(&arguments.out, report::analysis::page(&found)?).map_err(Error::io(&arguments.out))?;
        print(&format!("{}\n\n{}", report::analysis::table(&found), arguments.out.display()))?
    }
    Ok(health(&found.survey))
}

/// Refuses a file that cannot be written, and leaves it as it is.
#[cfg(feature = "torch")]
fn writable(file: &Path) -> Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let tried = if file.exists() {
        std::fs::OpenOptions::new().append(true).open(file).map(drop)
    } else {
        tempfile::tempfile_in(folder).map(drop)
    };
    tried.map_err(Error::unwritable(file))
}

/// The policy of a run, and how its critic was taught.
#[cfg(feature = "torch")]
fn present(path: &Path) -> Result<crate::analysis::Present> {
    use crate::analysis::{Present, Rewards};
    let run::Checkpoint { snapshot, config, state, .. } = run::load(&RunDir::resolve(path, Which::Newest)?, None)?;
    let ppo = &config.learner.hs_ppo;
    let scale = crate::learn::reward_scale(&snapshot, &state, ppo);
    let rewards = scale.map(|scale| Rewards { gamma: ppo.gamma, scale: scale.reward, cost: scale.cost });
    let from = path.display().to_string();
    let critic = config.algo != crate::config::Algo::Bc;
    Ok(Present { from, snapshot: std::sync::Arc::new(snapshot), critic, rewards: rewards.filter(|_| critic) })
}

fn cut(arguments: &BagCut) -> Result<ExitCode> {
    let bag = Bag::open(&arguments.bag)?;
    let cut = Cut { from_secs: arguments.from, to_secs: arguments.to, topics: arguments.topics.clone() };
    let mut progress = Progress::new();
    let cutting = cut.write(&bag, &arguments.out, &mut |messages| progress.tell(messages))?;
    progress.end();
    let (out, messages, carried) = (arguments.out.display(), cutting.messages, cutting.carried);
    print(&format!("{out}: {messages} messages, and {carried} latched ones from before"))?;
    for damage in &cutting.damage {
        eprintln!("handoff: {}", shown(&damage.to_string()));
    }
    Ok(if cutting.damage.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DAMAGED) })
}

fn survey(path: &Path) -> Result<Survey> {
    let prefixes = prefixes();
    let mut progress = Progress::new();
    let survey = Survey::take(&Bag::open(path)?, &prefixes, &mut |messages| progress.tell(messages));
    progress.end();
    survey
}

/// Says what was lost, and answers with the code.
fn health(survey: &Survey) -> ExitCode {
    for line in report::bag::damage(survey) {
        eprintln!("handoff: {}", shown(&line));
    }
    if survey.damaged() { ExitCode::from(DAMAGED) } else { ExitCode::SUCCESS }
}

fn json(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(value)
        .map_err(|error| Error::invalid(format!("this cannot be written as JSON: {error}")))?;
    print(&text)
}

/// What a terminal would obey, in names that a bag gives, becomes what it shows.
fn shown(text: &str) -> String {
    text.replace(|letter: char| letter.is_control() && letter != '\n', "\u{fffd}")
}

/// Results go to standard output, and nothing else does. A reader that has seen enough is no error.
fn print(text: &str) -> Result<()> {
    match writeln!(std::io::stdout().lock(), "{}", shown(text)) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::io("standard output")(error)),
        _ => Ok(()),
    }
}

/// Messages so far, rewritten in place on a terminal; nothing when piped.
struct Progress {
    terminal: bool,
    shown: Instant,
    told: bool,
}

impl Progress {
    const PAUSE: Duration = Duration::from_millis(200);

    fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal(), shown: Instant::now(), told: false }
    }

    fn tell(&mut self, messages: u64) {
        if self.terminal && messages.is_multiple_of(1024) && Self::PAUSE < self.shown.elapsed() {
            eprint!("\r{messages} messages ");
            self.shown = Instant::now();
            self.told = true;
        }
    }

    fn end(&self) {
        if self.told {
            eprint!("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bag::{Message, Qos, Topic, Writer};

    /// A bag of ten texts.
    fn make(path: &Path) {
        let offers = vec![Qos { reliable: Some(true), transient_local: Some(false), depth: Some(1) }];
        let (name, type_name, format) = ("/a".into(), "std_msgs/msg/String".into(), "cdr".into());
        let topic = Topic { name, type_name, format, offers, type_hash: String::new(), definition: None };
        let mut writer = Writer::new(path, std::fs::File::create(path).unwrap(), &[topic]).unwrap();
        for time_ns in 0..10 {
            let data = [0, 1, 0, 0, 2, 0, 0, 0, b'x', 0].to_vec().into();
            writer.write(&Message { topic: 0, time_ns, sent_ns: time_ns, data }).unwrap();
        }
        writer.finish().unwrap();
    }

    fn info(bag: &Path, json: bool) -> Result<ExitCode> {
        super::bag(&BagCommand::Info(BagInfo { bag: bag.to_owned(), json }))
    }

    #[test]
    fn a_name_in_a_bag_tells_the_terminal_nothing() {
        assert_eq!(shown("/a\x1b[2J\x07/b\r\u{9b}c\nd ✓"), "/a\u{fffd}[2J\u{fffd}/b\u{fffd}\u{fffd}c\nd ✓");
    }

    #[test]
    fn exit_codes_tell_fine_unfit_damaged_and_a_bad_request_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mcap");
        make(&path);
        assert_eq!(info(&path, false).unwrap(), ExitCode::SUCCESS);
        let check =
            BagCheck { bag: path.clone(), purpose: BagPurpose::Learning, namespace: None, run: None, json: false };
        assert_eq!(super::bag(&BagCommand::Check(check)).unwrap(), ExitCode::from(UNFIT));
        let out = folder.path().join("out");
        let cut = |bag: &Path| BagCut { bag: bag.to_owned(), from: None, to: None, topics: vec![], out: out.clone() };
        assert_eq!(super::bag(&BagCommand::Cut(cut(&path))).unwrap(), ExitCode::SUCCESS);
        assert!(matches!(super::bag(&BagCommand::Cut(cut(&path))), Err(Error::Invalid(_))), "it exists already");
        assert_eq!(info(&out, true).unwrap(), ExitCode::SUCCESS);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
        assert_eq!(info(&path, true).unwrap(), ExitCode::from(DAMAGED));
        assert!(matches!(info(&folder.path().join("none"), false), Err(Error::Invalid(_))));
    }

    #[test]
    #[cfg(feature = "torch")]
    fn a_page_that_cannot_be_written_is_refused_before_the_bag_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let analyse = |out: &Path| {
            let (bag, out) = (folder.path().join("none"), out.to_owned());
            let (run, against, namespace, goal) = (None, None, None, None);
            let (json, seed, stochastic) = (false, 1, false);
            let asked = crate::app::cli::BagAnalyse { bag, run, against, out, json, namespace, goal, seed, stochastic };
            match super::bag(&BagCommand::Analyse(asked)) {
                Err(Error::Invalid(said)) => said,
                other => panic!("{other:?}"),
            }
        };
        assert!(analyse(&folder.path().join("nope/x.html")).contains("nope/x.html cannot be written, as its folder"));
        assert!(analyse(folder.path()).contains("as it is a folder"));
        let page = folder.path().join("x.html");
        assert!(analyse(&page).contains("none does not exist") && !page.exists());
        std::fs::write(&page, "older").unwrap();
        assert!(analyse(&page).contains("none does not exist"));
        assert_eq!(std::fs::read_to_string(&page).unwrap(), "older");
    }
}
