//! Node `sim`.

use super::health;
use super::wire::{Drops, QUEUE, to_queue, to_topic};
use super::{drive, random, start, tell};
use crate::app::cli;
use crate::data::{ArmCommands, ArmStates};
use crate::error::Result;
use crate::node::{Output, Shutdown, Times, simulator};
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
    // What is lost is asked for again by the lockstep itself: best effort saves the acknowledgements.
    node.subscribe("arm_commands", ros::sensor(), to_sim)?;
    let states: Output<ArmStates> = to_topic::<msg::ArmStates, _>(node.publish("arm_states", ros::newest())?);
    let times = Times::default();
    let heard = vec![("arm_commands".into(), ros::sensor())];
    let report =
        health::diagnose(&mut node, heard, times.clone(), drops, Default::default(), arguments.until_stdin_closes)?;
    let (stopper, shutdown) = Shutdown::new();
    drive(arguments, stopper, node, async {
        simulator::run(lockstep, inbox, states, report, &times, shutdown).await;
        tell("sim", &times);
        Ok(())
    })
}
