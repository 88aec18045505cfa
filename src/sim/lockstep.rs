//! The simulator's side of the lockstep protocol: pure, the time is an argument.

use super::{Arms, EnvState};
use crate::data::{ArmCommands, ArmStates, Operation};
use crate::error::{Error, Result};

/// States that nobody answers are sent again after this [s].
const REPEAT_SECS: f64 = 0.2;
/// A new incarnation of the bound rollout takes over after this silence [s].
const TAKE_OVER_SAME_SECS: f64 = 1.0;
/// Another rollout takes over after this silence [s].
const TAKE_OVER_OTHER_SECS: f64 = 5.0;

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The environments moved: publish the new states.
    Stepped,
    /// Only HOLD: nothing moved, the same tick waits for its command. [`Lockstep::due`] tells when to publish again.
    Held,
    /// An old tick, whose answer was lost: publish the same states again.
    Repeat,
    /// Not obeyed; the sentence says why.
    Refused(String),
}

/// Serves N arms to one rollout, a command for each states. A command of the current tick binds the simulator to its stream
/// where it is free or its stream has fallen silent.
pub struct Lockstep {
    arms: Arms,
    states: ArmStates,
    heard_secs: f64,
    sent_secs: f64,
    refused: u64,
}

impl Lockstep {
    /// `sim_life` is random, new for each start.
    pub fn new(arms: Arms, sim_life: u64) -> Self {
        let states = ArmStates {
            sim_life,
            tick: 0,
            stamp_secs: 0.0,
            bound: None,
            position: Vec::new(),
            velocity: Vec::new(),
            object_pose: Vec::new(),
            told: arms.told().clone(),
        };
        let mut lockstep =
            Self { arms, states, heard_secs: f64::NEG_INFINITY, sent_secs: f64::NEG_INFINITY, refused: 0 };
        lockstep.read();
        lockstep
    }

    /// What to publish now. For one tick and one bound stream it is always the same.
    pub fn states(&self) -> ArmStates {
        self.states.clone()
    }

    /// The environments' states, for [`Self::set_state`].
    pub fn state(&self) -> Result<Vec<EnvState>> {
        (0..self.arms.num_envs()).map(|env| self.arms.state(env)).collect()
    }

    /// Goes on from the states of as many environments of the same configuration.
    pub fn set_state(&mut self, states: &[EnvState]) -> Result<()> {
        if states.len() != self.arms.num_envs() {
            let (found, want) = (states.len(), self.arms.num_envs());
            return Err(Error::invalid(format!("{found} environments were saved; this simulator has {want}")));
        }
        for (env, state) in states.iter().enumerate() {
            self.arms.set_state(env, state)?;
        }
        self.read();
        Ok(())
    }

    /// Commands refused so far.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Whether the states shall be published because nobody answered them for 200 ms. The caller then publishes, as it does
    /// after [`Answer::Stepped`] and [`Answer::Repeat`]; `now_secs` is of a clock that never jumps.
    pub fn due(&mut self, now_secs: f64) -> bool {
        let due = now_secs - self.sent_secs >= REPEAT_SECS;
        if due {
            self.sent_secs = now_secs;
        }
        due
    }

    /// Takes a command at `now_secs` of the same clock.
    pub fn command(&mut self, now_secs: f64, commands: &ArmCommands) -> Answer {
        let answer = match self.admit(now_secs, commands) {
            Ok(answer) => answer,
            Err(sentence) => {
                self.refused += 1;
                Answer::Refused(sentence)
            }
        };
        if matches!(answer, Answer::Stepped | Answer::Repeat) {
            self.sent_secs = now_secs;
        }
        answer
    }

    fn admit(&mut self, now_secs: f64, commands: &ArmCommands) -> Result<Answer, String> {
        let (life, tick, stream) = (self.states.sim_life, self.states.tick, &commands.stream);
        if commands.sim_life != life {
            return Err(format!(
                "a command of {stream} is for life {:016x} of this sim, which now lives {life:016x}",
                commands.sim_life
            ));
        }
        let bound = self.states.bound.as_ref() == Some(stream);
        if bound {
            self.heard_secs = now_secs;
        } else if let Some(served) = &self.states.bound {
            let same_rollout = served.rollout == stream.rollout;
            let silence_secs = now_secs - self.heard_secs;
            if silence_secs < if same_rollout { TAKE_OVER_SAME_SECS } else { TAKE_OVER_OTHER_SECS } {
                return Err(format!("this sim serves {served}, not {stream}"));
            }
        }
        if commands.tick != tick && !(bound && commands.tick < tick) {
            return Err(format!("a command of {stream} answers tick {}; this sim is at tick {tick}", commands.tick));
        }
        if commands.tick < tick {
            return Ok(Answer::Repeat);
        }
        // refused before anything moves
        self.arms
            .step(&commands.operation, &commands.position, &commands.seed)
            .map_err(|error| format!("a command of {stream} is refused: {error}"))?;
        self.heard_secs = now_secs;
        self.states.bound = Some(stream.clone());
        if commands.operation.iter().all(|operation| *operation == Operation::Hold) {
            return Ok(Answer::Held);
        }
        self.states.tick += 1;
        self.read();
        Ok(Answer::Stepped)
    }

    fn read(&mut self) {
        let states = &mut self.states;
        states.stamp_secs = states.tick as f64 * self.arms.control_period_secs();
        (states.position, states.velocity) = self.arms.measure();
        states.object_pose = self.arms.object_pose();
    }
}
