"""The training graph: simulators, rollouts, one learner.

ros2 launch handoff train.launch.py options:=4 envs:=16 rollouts:=2 minutes:=6
"""

import os
import time

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, EmitEvent, LogInfo, OpaqueFunction, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

# name, default, description, parameter
ARGUMENTS = [
    ("config", "", "ROS parameter file; the arguments below override it where they are given", None),
    ("task", "", "what to learn", "task"),
    ("algo", "", "how to learn: hs_ppo or ppo", "algo"),
    ("options", "", "number of options, K", "options.count"),
    ("seed", "", "seed of every random draw", "seed"),
    ("minutes", "", "time to train, from the first environment step [min]", "train.minutes"),
    ("env_steps", "", "environment steps to train", "train.env_steps"),
    ("update_mode", "", "sync or async", "learner.update_mode"),
    ("envs", "16", "environments, over all rollouts", "train.envs"),
    ("rollouts", "2", "rollout nodes, each with its own simulator", "train.rollouts"),
    ("run", "", "run folder; default: runs/<task>__<time>", None),
]


def number_or_text(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def graph(context):
    given = {name: LaunchConfiguration(name).perform(context) for name, *_ in ARGUMENTS}
    parameters = {key: number_or_text(given[name]) for name, _, _, key in ARGUMENTS if key and given[name]}
    if "train.minutes" in parameters:
        parameters["train.minutes"] = float(parameters["train.minutes"])
    elif "train.env_steps" in parameters:
        parameters["train.minutes"] = 0.0
    shared = ([given["config"]] if given["config"] else []) + [parameters]
    run = given["run"] or os.path.join("runs", f"{given['task'] or 'reach'}__{time.strftime('%Y%m%d-%H%M%S')}")
    rollouts, envs = int(given["rollouts"]), int(given["envs"])
    if not 1 <= rollouts <= envs:
        raise ValueError(f"rollouts:={rollouts} must be at least 1 and at most envs:={envs}")

    learner = Node(
        package="handoff",
        executable="learner",
        name="learner",
        parameters=shared + [{"learner.run_dir": os.path.abspath(run), "learner.min_rollouts": rollouts}],
        output="screen",
    )
    nodes = [learner]
    for index in range(rollouts):
        share = envs // rollouts + (index < envs % rollouts)
        own = {
            "rollout.id": f"r{index}",
            "rollout.index": index,
            "rollout.num_envs": share,
            "sim.threads": 1,
        }
        for name in ("sim", "rollout"):
            nodes.append(
                Node(
                    package="handoff",
                    executable=name,
                    name=name,
                    namespace=f"r{index}",
                    parameters=shared + [own],
                    output="screen",
                    respawn=True,
                    respawn_delay=1.0,
                )
            )
    done = RegisterEventHandler(
        OnProcessExit(target_action=learner, on_exit=[EmitEvent(event=Shutdown(reason="the learner has finished"))])
    )
    return [LogInfo(msg=f"run folder: {os.path.abspath(run)}"), done, *nodes]


def generate_launch_description():
    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=description)
        for name, default, description, _ in ARGUMENTS
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=graph)])
