//! Why the guard stepped in: what is counted, and what a person reads.

use super::Mode;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $key:literal,)*) => {
        /// Why the guard stepped in.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// All of them.
            pub const ALL: [Self; [$($key,)*].len()] = [$(Self::$name,)*];

            /// Its name in reports and diagnostics.
            pub fn key(self) -> &'static str {
                match self { $(Self::$name => $key,)* }
            }
        }
    };
}

reasons! {
    /// A target outside the joints' ranges less the margin.
    Position = "position",
    /// Velocity, acceleration, jerk, or the way to stop, of a joint.
    Rates = "rates",
    /// The speed of the tool centre point.
    TcpSpeed = "tcp_speed",
    /// A target too far from the measured position.
    Leash = "leash",
    /// The tool centre point's box.
    Workspace = "workspace",
    /// The floor.
    Floor = "floor",
    /// The arm's own links.
    SelfCollision = "self_collision",
    /// Not a number, or infinite.
    NonFinite = "non_finite",
    /// Another number of values than names or joints.
    WrongLength = "wrong_length",
    /// A name that is no joint of the arm.
    UnknownName = "unknown_name",
    /// A name that comes twice.
    DuplicateName = "duplicate_name",
    /// A joint without a value.
    MissingName = "missing_name",
    /// A first target far from where the arm stands.
    FarTarget = "far_target",
    /// A target while the arm is not armed.
    NotArmed = "not_armed",
    /// A message or a tick that is not later than the one before.
    OldStamp = "old_stamp",
    /// The robot's state is too old.
    StaleState = "stale_state",
    /// The policy's target is too old.
    StalePolicy = "stale_policy",
    /// Command ticks come too late.
    Overrun = "overrun",
    /// Time went back.
    ClockJump = "clock_jump",
    /// A simulator's clock is expected and was not heard.
    NoClock = "no_clock",
    /// Another node publishes commands.
    SecondWriter = "second_writer",
    /// The arm is not where it is commanded.
    Deviation = "deviation",
    /// The robot stopped itself, or is led by hand.
    RobotMode = "robot_mode",
    /// The robot's mode was not heard.
    NoMode = "no_mode",
    /// Weights that are older, of another contract, or broken.
    Weights = "weights",
    /// A person or a program asked for it.
    Disarmed = "disarmed",
    /// The program ends.
    Shutdown = "shutdown",
}

/// A set of reasons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reasons(u32);

impl Reasons {
    /// With one more.
    pub fn add(&mut self, reason: Reason) {
        self.0 |= 1 << reason as u8;
    }

    pub(super) fn add_if(&mut self, holds: bool, reason: Reason) {
        if holds {
            self.add(reason);
        }
    }

    pub(super) fn remove(&mut self, reason: Reason) {
        self.0 &= !(1 << reason as u8);
    }

    pub(super) fn join(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Whether it holds a reason.
    pub fn contains(self, reason: Reason) -> bool {
        self.0 & (1 << reason as u8) != 0
    }

    /// Whether it holds none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// In the order of [`Reason::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Reason> {
        Reason::ALL.into_iter().filter(move |reason| self.contains(*reason))
    }
}

impl From<Reason> for Reasons {
    fn from(reason: Reason) -> Self {
        let mut reasons = Self::default();
        reasons.add(reason);
        reasons
    }
}

/// How often each reason stepped in: command ticks, or messages refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; Reason::ALL.len()]);

impl Counts {
    /// Times of a reason.
    pub fn of(&self, reason: Reason) -> u64 {
        self.0[reason as usize]
    }

    pub(super) fn count(&mut self, reasons: Reasons) {
        for reason in reasons.iter() {
            self.0[reason as usize] += 1;
        }
    }
}

/// What happened and what to do, in one sentence; `mode` is the robot's.
pub(super) fn advice(reason: Reason, mode: Option<Mode>) -> &'static str {
    match reason {
        Reason::Position => "the target is beyond a joint's range less the margin: the arm stops before it",
        Reason::Rates => {
            "the target is farther than the limits of speed, acceleration and jerk allow: the arm follows later"
        }
        Reason::TcpSpeed => {
            "the tool centre point is at its speed limit: raise guard.tcp_speed_m_per_sec if that is meant"
        }
        Reason::Leash => "the target is farther from the arm than the leash: the arm does not keep up",
        Reason::Workspace => "the workspace ends here: the target lies outside",
        Reason::Floor => "the floor is here: the target lies below",
        Reason::SelfCollision => "the arm would touch itself: the target is not followed",
        Reason::NonFinite => "a message held a number that is not finite and was refused",
        Reason::WrongLength => "a message had another number of values than joints and was refused",
        Reason::UnknownName => "a message named a joint that the arm does not have and was refused",
        Reason::DuplicateName => "a message named a joint twice and was refused",
        Reason::MissingName => "a message lacked a joint of the arm and was refused",
        Reason::FarTarget => "the first target was far from the arm and was refused: start from the guard's reference",
        Reason::NotArmed => "a target came while the arm was not armed and was refused: arm it first",
        Reason::OldStamp => "a message or tick was not later than the one before and was ignored",
        Reason::StaleState => "the robot's state stopped coming: look at its driver and network, then arm again",
        Reason::StalePolicy => "the policy's targets stopped coming: the arm holds until the next one",
        Reason::Overrun => "commands came too late: the arm holds; give this process more of the machine",
        Reason::ClockJump => "time went back, as when a simulation is reset: start a new episode and arm again",
        Reason::NoClock => {
            "use_sim_time is set and no clock is heard: start the simulator, or unset use_sim_time, then arm again"
        }
        Reason::SecondWriter => "another node publishes on the command topic: end it, then arm again",
        Reason::Deviation => "the arm is not where it is commanded: look for what holds it, then arm again",
        Reason::RobotMode => match mode {
            Some(Mode::Reflex) => "the robot stopped itself: clear the way, recover, then arm again",
            Some(Mode::UserStopped) => "the user stop is pressed: release it, recover, then arm again",
            Some(Mode::Guiding) => "the robot is led by hand: let go, recover, then arm again",
            Some(Mode::AutomaticErrorRecovery) => "the robot recovers: wait, recover, then arm again",
            Some(Mode::Other | Mode::Idle | Mode::Move) | None => "the robot stopped: recover, then arm again",
        },
        Reason::NoMode => "the robot's mode is not heard: look at its state topic, then arm again",
        Reason::Weights => "weights were refused: those in use stay",
        Reason::Disarmed => "disarmed on request: arm to go on",
        Reason::Shutdown => "the program ends: the arm was brought to rest",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_added() {
        let mut reasons = Reasons::from(Reason::Leash);
        reasons.add_if(true, Reason::Shutdown);
        reasons.add_if(false, Reason::Floor);
        assert_eq!(reasons.iter().collect::<Vec<_>>(), [Reason::Leash, Reason::Shutdown]);
        reasons.join(Reason::Floor.into());
        reasons.remove(Reason::Leash);
        assert_eq!(reasons.iter().collect::<Vec<_>>(), [Reason::Floor, Reason::Shutdown]);
        assert!(!reasons.is_empty() && Reasons::default().is_empty());
    }

    #[test]
    fn each_reason_is_counted_and_has_its_own_key_and_sentence() {
        let mut counts = Counts::default();
        counts.count(Reason::Position.into());
        counts.count(Reason::Shutdown.into());
        counts.count(Reason::Shutdown.into());
        assert_eq!([Reason::Position, Reason::Rates, Reason::Shutdown].map(|reason| counts.of(reason)), [1, 0, 2]);
        let distinct = |texts: Vec<&str>| texts.iter().collect::<std::collections::BTreeSet<_>>().len();
        assert_eq!(distinct(Reason::ALL.map(Reason::key).to_vec()), Reason::ALL.len());
        assert_eq!(distinct(Reason::ALL.map(|reason| advice(reason, None)).to_vec()), Reason::ALL.len());
    }

    #[test]
    fn a_robot_that_stopped_says_how_to_go_on() {
        let said = |mode| advice(Reason::RobotMode, Some(mode));
        assert!(said(Mode::Reflex).contains("stopped itself"));
        assert!(said(Mode::UserStopped).contains("user stop"));
        assert!(said(Mode::Guiding).contains("by hand"));
        assert!(said(Mode::AutomaticErrorRecovery).contains("wait"));
    }
}
