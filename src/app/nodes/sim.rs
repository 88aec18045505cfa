//! Node `sim`.

use super::health;
use super::wire::{Drops, QUEUE, to_queue, to_topic};
use super::{random, run, start};
use crate::app::cli;
use crate::data::{ArmCommands, ArmStates};
use crate::error::Result;
use crate::node::{Output, Shutdown, simulator};
use crate::ros::{self, msg};
use crate::sim::{Arms, Lockstep};
use tokio::sync::mpsc;

/// Node `sim`: the embedded arm, in lockstep.
pub(in crate::app) fn sim(arguments: &cli::Node) -> Result<()> {
    let (mut node, config) = start("sim")?;
    let contract = config.contract()?;
    let task = crate::task::find(&config.task)?;
    let period = contract.control_period_secs;
    let arms = Arms::new(config.rollout.num_envs, config.robot, &config.sim, period, task.cube())?;
    let lockstep = Lockstep::new(arms, random());
    let (commands, inbox) = mpsc::channel::<ArmCommands>(QUEUE);
    let drops = Drops::default();
    let to_sim = to_queue::<msg::ArmCommands, _>("arm_commands", commands, &drops);
    node.subscribe("arm_commands", ros::newest(), to_sim)?;
    let states: Output<ArmStates> = to_topic::<msg::ArmStates, _>(node.publish("arm_states", ros::newest())?);
    let heard = vec![("arm_commands".into(), ros::newest())];
    let report = health::diagnose(&mut node, heard, drops, arguments.until_stdin_closes)?;
    let running = node.spin()?;
    let (stopper, shutdown) = Shutdown::new();
    run(arguments, stopper, running, async {
        simulator::run(lockstep, inbox, states, report, shutdown).await;
        Ok(())
    })
}
