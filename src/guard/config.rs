//! What can be set, with defaults for a first run on hardware.

use crate::error::{Error, Result, range};
use serde::{Deserialize, Serialize};

/// Settings of the guard. The default is for hardware: a fifth of the limits, slow at the tool centre point, robot mode required.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Commands per second, 10 to 1000 [Hz].
    pub command_rate_hz: f64,
    /// Share of the tables' velocity, acceleration and jerk, over 0 and at most 1. [`super::Guard::set_scale`] changes it in motion.
    pub scale: f64,
    /// Commands keep this distance from the ends of the joints' ranges, 0.02 to 0.5 [rad].
    pub position_margin_rad: f64,
    /// Highest speed of the tool centre point, 0.01 to 3 [m/s]; 80 % of it are used.
    pub tcp_speed_m_per_sec: f64,
    /// Targets are drawn to within this distance of the measured position, 0.01 to 1 [rad]; at twice as much between command
    /// and measurement the arm is stopped.
    pub leash_rad: f64,
    /// How late a moving target is followed, in control periods of the policy, 0 to 5; 0: as fast as the limits allow.
    pub smoothing_periods: f64,
    /// The tool centre point stays inside this box: lowest x, y, z [m, base frame].
    pub workspace_min_m: [f64; 3],
    /// Highest x, y, z [m, base frame].
    pub workspace_max_m: [f64; 3],
    /// Height of the floor, -2 to 2 [m, base frame].
    pub floor_m: f64,
    /// Distance that links and hand keep from the floor, 0 to 0.5 [m].
    pub floor_margin_m: f64,
    /// Distance that links and hand keep from one another, 0 to 0.2 [m].
    pub self_margin_m: f64,
    /// A robot state older than this ends the motion, 0.003 to 1 [s]. One to three periods of the state are right.
    pub state_timeout_secs: f64,
    /// A policy target older than this leads to a hold, 0.003 to 5, at least 1.5 control periods [s].
    pub policy_timeout_secs: f64,
    /// Whether a robot mode is required: then none is no permission.
    pub require_mode: bool,
    /// A robot mode older than this is none, 0.01 to 10 [s].
    pub mode_timeout_secs: f64,
    /// Whether time comes from a simulator's clock.
    pub use_sim_time: bool,
    /// A simulator's clock that was not heard for this long is none, 0.1 to 60 [s].
    pub clock_timeout_secs: f64,
    /// A command tick that comes this late leads to a hold, 0.001 to 1 [s].
    pub late_secs: f64,
    /// Share of late ticks that leads to a hold, over 0 and at most 1; half as much ends it.
    pub late_ratio: f64,
    /// Joints faster than this are not at rest: the arm is not armed, 0.001 to 0.5 [rad/s].
    pub rest_speed_rad_per_sec: f64,
    /// Recoveries within `recovery_window_secs` after which a person must acknowledge, 1 to 100.
    pub max_recoveries: u32,
    /// 1 to 3600 [s].
    pub recovery_window_secs: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            command_rate_hz: 1000.0,
            scale: 0.2,
            position_margin_rad: 0.1,
            tcp_speed_m_per_sec: 0.25,
            leash_rad: 0.2,
            smoothing_periods: 1.0,
            workspace_min_m: [-0.85, -0.85, 0.0],
            workspace_max_m: [0.85, 0.85, 1.2],
            floor_m: 0.0,
            floor_margin_m: 0.02,
            self_margin_m: 0.02,
            state_timeout_secs: 0.1,
            policy_timeout_secs: 0.2,
            require_mode: true,
            mode_timeout_secs: 1.0,
            use_sim_time: false,
            clock_timeout_secs: 2.0,
            late_secs: 0.02,
            late_ratio: 0.2,
            rest_speed_rad_per_sec: 0.02,
            max_recoveries: 3,
            recovery_window_secs: 60.0,
        }
    }
}

impl Config {
    /// For a simulator: the whole of the limits, no robot mode, the simulator's clock.
    pub fn simulation() -> Self {
        Self {
            scale: 1.0,
            tcp_speed_m_per_sec: 1.7, // the Panda's (frankaemika/docs, control_parameters)
            require_mode: false,
            use_sim_time: true,
            late_secs: 0.2,
            ..Self::default()
        }
    }

    /// Length of a command tick [s].
    pub fn tick_secs(&self) -> f64 {
        1.0 / self.command_rate_hz
    }

    /// Refuses values out of range, with the key, the value and what would be right.
    pub fn validate(&self) -> Result<()> {
        range("guard.command_rate_hz", self.command_rate_hz, 10.0..=1000.0)?;
        check_scale(self.scale)?;
        range("guard.position_margin_rad", self.position_margin_rad, 0.02..=0.5)?;
        range("guard.tcp_speed_m_per_sec", self.tcp_speed_m_per_sec, 0.01..=3.0)?;
        range("guard.leash_rad", self.leash_rad, 0.01..=1.0)?;
        range("guard.smoothing_periods", self.smoothing_periods, 0.0..=5.0)?;
        for (axis, name) in ["x", "y", "z"].iter().enumerate() {
            let (low, high) = (self.workspace_min_m[axis], self.workspace_max_m[axis]);
            range(&format!("guard.workspace_min_m ({name})"), low, -2.0..=2.0)?;
            range(&format!("guard.workspace_max_m ({name})"), high, -2.0..=2.0)?;
            if high <= low {
                return Err(Error::invalid(format!(
                    "guard.workspace_min_m = {low} is not below guard.workspace_max_m = {high} along {name}: nothing is inside"
                )));
            }
        }
        range("guard.floor_m", self.floor_m, -2.0..=2.0)?;
        range("guard.floor_margin_m", self.floor_margin_m, 0.0..=0.5)?;
        range("guard.self_margin_m", self.self_margin_m, 0.0..=0.2)?;
        range("guard.state_timeout_secs", self.state_timeout_secs, 0.003..=1.0)?;
        range("guard.policy_timeout_secs", self.policy_timeout_secs, 0.003..=5.0)?;
        range("guard.mode_timeout_secs", self.mode_timeout_secs, 0.01..=10.0)?;
        range("guard.clock_timeout_secs", self.clock_timeout_secs, 0.1..=60.0)?;
        range("guard.late_secs", self.late_secs, 0.001..=1.0)?;
        range("guard.late_ratio", self.late_ratio, 0.001..=1.0)?;
        range("guard.rest_speed_rad_per_sec", self.rest_speed_rad_per_sec, 0.001..=0.5)?;
        range("guard.max_recoveries", self.max_recoveries, 1..=100)?;
        range("guard.recovery_window_secs", self.recovery_window_secs, 1.0..=3600.0)
    }
}

/// Refuses a scale of the limits that is not over 0 and at most 1.
pub(super) fn check_scale(scale: f64) -> Result<()> {
    range("guard.scale", scale, 0.001..=1.0)
}
