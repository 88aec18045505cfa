//! One line that says how a training stands: rewritten in place on a terminal, a plain line now and then when piped.

use std::fmt::Write as _;
use std::io::{self, Write};

/// What is known now; what is not known yet is left out of the line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// Time trained [s].
    pub wall_secs: f64,
    /// Environment steps a second over the last 10 s.
    pub steps_per_sec: f64,
    /// Environment steps learned from.
    pub env_steps: u64,
    /// Updates made.
    pub updates: u64,
    /// Share of the last episodes that ended in success.
    pub success: Option<f64>,
    /// Share of the last episodes that ended in the stricter success.
    pub success_strict: Option<f64>,
    /// Mean return of the last episodes.
    pub episode_return: Option<f64>,
    /// Share of the steps for each option; shown if there are several.
    pub option_shares: Vec<f64>,
    /// Largest lag of the last update [versions]; none in the synchronous mode.
    pub lag: Option<u64>,
    /// Losses by name.
    pub losses: Vec<(String, f64)>,
    /// What else a person should know, e.g. what is waited for; empty: nothing.
    pub note: String,
}

/// The line, e.g. `02:05  12.3k steps/s  1.54M steps  750 updates  success 94 % (1 cm 71 %)  return -12.3
/// options ▆▂▃▁ 52 11 25 12 %  lag 2  value 0.12`.
pub fn line(status: &Status) -> String {
    let secs = status.wall_secs.max(0.0) as u64;
    let mut line = String::new();
    if secs >= 3600 {
        let _ = write!(line, "{}:", secs / 3600);
    }
    let _ = write!(line, "{:02}:{:02}", secs / 60 % 60, secs % 60);
    let mut part = |text: String| {
        line.push_str("  ");
        line.push_str(&text);
    };
    part(format!("{} steps/s", short(status.steps_per_sec)));
    part(format!("{} steps", short(status.env_steps as f64)));
    part(format!("{} update{}", status.updates, if status.updates == 1 { "" } else { "s" }));
    if let Some(success) = status.success {
        let strict = status.success_strict.map(|strict| format!(" (1 cm {:.0} %)", 100.0 * strict));
        part(format!("success {:.0} %{}", 100.0 * success, strict.unwrap_or_default()));
    }
    if let Some(episode_return) = status.episode_return {
        part(format!("return {episode_return:.2}"));
    }
    if 1 < status.option_shares.len() {
        let bars: String = status.option_shares.iter().map(|&share| bar(share)).collect();
        let shares: Vec<String> = status.option_shares.iter().map(|share| format!("{:.0}", 100.0 * share)).collect();
        part(format!("options {bars} {} %", shares.join(" ")));
    }
    if let Some(lag) = status.lag {
        part(format!("lag {lag}"));
    }
    for (name, loss) in &status.losses {
        part(format!("{name} {loss:.3}"));
    }
    if !status.note.is_empty() {
        part(status.note.clone());
    }
    line
}

/// A share as one of eight bars.
fn bar(share: f64) -> char {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    BARS[((share * 8.0) as usize).min(7)]
}

/// Three figures and a unit: 950, 12.3k, 1.54M.
fn short(count: f64) -> String {
    let (scaled, unit) = match count {
        ..999.5 => return format!("{count:.0}"),
        ..999_500.0 => (count / 1e3, "k"),
        ..999_500_000.0 => (count / 1e6, "M"),
        _ => (count / 1e9, "G"),
    };
    let decimals = match scaled {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{scaled:.decimals$}{unit}")
}

/// Seconds between two lines when piped.
const PLAIN_SECS: f64 = 10.0;
/// Seconds between two redraws on a terminal.
const TERMINAL_SECS: f64 = 0.1;

/// Shows the line.
#[derive(Debug)]
pub struct Progress<W> {
    out: W,
    terminal: bool,
    shown_secs: Option<f64>,
}

impl<W: Write> Progress<W> {
    /// Over `out`, in place if it is a terminal.
    pub fn new(out: W, terminal: bool) -> Self {
        Self { out, terminal, shown_secs: None }
    }

    /// Shows the line if the last one is old enough. `now_secs` is a steady clock.
    pub fn update(&mut self, now_secs: f64, status: &Status) -> io::Result<()> {
        let pause = if self.terminal { TERMINAL_SECS } else { PLAIN_SECS };
        match self.shown_secs {
            Some(shown) if now_secs - shown < pause => Ok(()),
            _ => self.show(now_secs, status),
        }
    }

    /// Shows the last line and leaves it there.
    pub fn finish(mut self, now_secs: f64, status: &Status) -> io::Result<()> {
        self.show(now_secs, status)?;
        if self.terminal { writeln!(self.out) } else { Ok(()) }
    }

    fn show(&mut self, now_secs: f64, status: &Status) -> io::Result<()> {
        self.shown_secs = Some(now_secs);
        if self.terminal {
            // to the start of the line, erase it, no wrapping at the right edge (DECAWM) while it is written
            write!(self.out, "\r\x1b[2K\x1b[?7l{}\x1b[?7h", line(status))?;
        } else {
            writeln!(self.out, "{}", line(status))?;
        }
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> Status {
        Status {
            wall_secs: 125.9,
            steps_per_sec: 12_345.0,
            env_steps: 1_536_000,
            updates: 750,
            success: Some(0.94),
            success_strict: Some(0.712),
            episode_return: Some(-12.345),
            option_shares: vec![0.7, 0.05, 0.25, 0.0],
            lag: Some(2),
            losses: vec![("value".into(), 0.1234)],
            note: String::new(),
        }
    }

    #[test]
    fn the_line_says_all_that_is_known() {
        assert_eq!(
            line(&status()),
            "02:05  12.3k steps/s  1.54M steps  750 updates  success 94 % (1 cm 71 %)  return -12.35  \
             options ▆▁▃▁ 70 5 25 0 %  lag 2  value 0.123"
        );
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let status =
            Status { wall_secs: 3661.0, updates: 1, note: "waiting for 1 of 2 rollouts".into(), ..Status::default() };
        assert_eq!(line(&status), "1:01:01  0 steps/s  0 steps  1 update  waiting for 1 of 2 rollouts");
        let flat = Status { option_shares: vec![1.0], ..Status::default() };
        assert!(!line(&flat).contains("options"));
    }

    #[test]
    fn numbers_keep_three_figures() {
        for (count, text) in [
            (999.4, "999"),
            (999.5, "1.00k"),
            (9_994.0, "9.99k"),
            (9_996.0, "10.0k"),
            (99_960.0, "100k"),
            (999_499.0, "999k"),
            (999_500.0, "1.00M"),
            (2.5e9, "2.50G"),
        ] {
            assert_eq!(short(count), text);
        }
    }

    #[test]
    fn a_terminal_line_is_rewritten_and_ended_once() {
        let mut out = Vec::new();
        let mut progress = Progress::new(&mut out, true);
        for now in [0.0, 0.05, 0.2] {
            progress.update(now, &status()).unwrap();
        }
        progress.finish(0.21, &status()).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("\r\x1b[2K").count(), 3);
        assert_eq!(text.matches('\n').count(), 1);
        assert!(text.ends_with("\x1b[?7h\n"));
    }

    #[test]
    fn a_pipe_gets_a_plain_line_every_ten_seconds() {
        let mut out = Vec::new();
        let mut progress = Progress::new(&mut out, false);
        for now in 0..25 {
            progress.update(f64::from(now), &status()).unwrap();
        }
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, format!("{}\n", line(&status())).repeat(3));
    }
}
