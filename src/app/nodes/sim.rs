//! Node `sim`.

use super::health;
use super::wire::{Drops, QUEUE, Queue, joints, to_queue, to_topic};
use super::{drive, random, run, start, start_with, tell};
use crate::app::cli;
use crate::config::{Config, SimMode};
use crate::data::{ArmCommands, ArmStates};
use crate::error::Result;
use crate::link::Preset;
use crate::node::{Output, Shutdown, Times, paced, simulator};
use crate::ros::{self, Node, msg, srv};
use crate::sim::{Arms, Lockstep, Paced};
use tokio::sync::mpsc;

/// Node `sim`: the embedded arm, in lockstep or paced.
pub(in crate::app) fn sim(arguments: &cli::Sim) -> Result<()> {
    let (node, config) = if arguments.paced { start_with("sim", &["sim.mode=paced".into()]) } else { start("sim") }?;
    match config.sim.mode {
        SimMode::Lockstep => in_lockstep(&arguments.node, node, &config),
        SimMode::Paced => in_its_own_time(&arguments.node, node, &config),
    }
}

fn in_lockstep(arguments: &cli::Node, mut node: Node, config: &Config) -> Result<()> {
    let contract = config.contract()?;
    let task = crate::task::find(&config.task)?;
    let period = contract.control_period_secs;
    let arms =
        Arms::new(config.rollout.num_envs, config.robot, &config.sim, period, task.cube())?.led(config.lead())?;
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

fn in_its_own_time(arguments: &cli::Node, mut node: Node, config: &Config) -> Result<()> {
    let paced = Paced::new(config.robot, &config.sim)?;
    let link = Preset::Sim.link();
    let (commands, commands_in) = mpsc::channel(QUEUE);
    let drops = Drops::default();
    let (mut commands, unreadable) = (Queue::new(link.commands, commands, &drops), drops.clone());
    node.subscribe(link.commands, ros::everything(), move |message: msg::JointState| match joints(message) {
        Ok(command) => commands.put(command),
        Err(error) => {
            unreadable.count(link.commands, "unreadable");
            tracing::warn!("a joint command was refused: {error}");
        }
    })?;
    let (reset, resets) = mpsc::channel(1);
    node.serve::<srv::Trigger::Service>("~/reset", move |_| {
        let success = reset.try_send(()).is_ok();
        let message = if success { "at the ready pose, at time 0" } else { "a reset is under way" };
        srv::Trigger::Response { success, message: message.into() }
    })?;
    let clock = if config.sim.clock { Some(node.publish::<msg::Clock>("/clock", ros::newest())?) } else { None };
    let times = Times::default();
    let heard = vec![(link.commands.into(), ros::everything())];
    let report =
        health::diagnose(&mut node, heard, times.clone(), drops, Default::default(), arguments.until_stdin_closes)?;
    let wires = paced::Wires {
        commands: commands_in,
        resets,
        states: to_topic::<msg::JointState, _>(node.publish(link.states, ros::newest())?),
        clock: Box::new(move |secs: &f64| {
            let told = clock.as_ref().map_or(Ok(()), |clock| clock.send(&msg::Clock { clock: ros::stamp(*secs) }));
            if let Err(error) = told {
                tracing::error!("{error}");
            }
        }),
        report,
        times: times.clone(),
    };
    let (stopper, shutdown) = Shutdown::new();
    let factor = config.sim.real_time_factor;
    run(arguments, stopper, node.spin()?, async {
        let done = paced::run(paced, factor, wires, shutdown).await;
        tell("sim", &times);
        done
    })
}
