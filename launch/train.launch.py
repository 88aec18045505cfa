"""The training graph: simulators, rollouts, one learner.

ros2 launch handoff train.launch.py options:=4 envs:=32 rollouts:=2 minutes:=6
ros2 launch handoff train.launch.py link:=isaac namespaces:=robot_1,robot_2       # on the robots of a simulator that runs
ros2 launch handoff train.launch.py learner:=false first:=2 peers:=192.168.1.10   # more rollouts, on another host
"""

import os
import time

from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
    SetEnvironmentVariable,
)
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

# name, default, description, parameter
ARGUMENTS = [
    ("config", "", "ROS parameter file; the arguments below override it where they are given", None),
    ("task", "", "what to learn", "task"),
    ("algo", "", "how to learn: hs_ppo, ppo, osac or sac", "algo"),
    ("options", "", "number of options, K", "options.count"),
    ("seed", "", "seed of every random draw", "seed"),
    ("minutes", "", "time to train, from the first environment step [min]", "train.minutes"),
    ("env_steps", "", "environment steps to train", "train.env_steps"),
    ("update_mode", "", "sync or async", "learner.update_mode"),
    ("envs", "32", "environments, over all rollouts", "train.envs"),
    ("rollouts", "2", "rollout nodes, each with its own simulator", "train.rollouts"),
    ("link", "", "on robots that speak so: sim (paced ones, which start too), isaac, isaac_moveit, crisp, franka_fr3", "policy.link"),
    ("namespaces", "", "with a link: namespaces of the robots, apart by commas, one rollout each", None),
    ("run", "", "run folder; default: runs/<task>__<algo>__<seed>__<time>", None),
    ("learner", "true", "false: only rollouts and simulators, for a learner elsewhere", None),
    ("first", "0", "number of the first rollout here; no two rollouts of a run may have the same", None),
    ("record", "", "bag to record into, by configs/record.yaml (needs rosbag2)", None),
    ("peers", "", "addresses of the other hosts, apart by `;`: docs/two-machines.md", None),
    ("discovery_server", "", "address of a Fast DDS discovery server, ip:port, instead of peers", None),
]


def number_or_text(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def recorder(bag):
    """rosbag2's recorder, if a bag is asked for."""
    if not bag:
        return []
    settings = os.path.join(os.path.dirname(__file__), "..", "configs", "record.yaml")
    return [
        Node(
            package="rosbag2_transport",
            executable="recorder",
            name="recorder",
            parameters=[settings, {"storage.uri": os.path.abspath(bag)}],
            output="screen",
        )
    ]


def graph(context):
    given = {name: LaunchConfiguration(name).perform(context) for name, *_ in ARGUMENTS}
    parameters = {key: number_or_text(given[name]) for name, _, _, key in ARGUMENTS if key and given[name]}
    if "train.minutes" in parameters:
        parameters["train.minutes"] = float(parameters["train.minutes"])
    elif "train.env_steps" in parameters:
        parameters["train.minutes"] = 0.0
    link, robots = given["link"], []
    if link:
        parameters["rollout.on_link"] = True
        parameters.setdefault("learner.update_mode", "async")  # an arm does not wait
        if link != "sim":
            robots = [name.strip().strip("/") for name in given["namespaces"].split(",")]
    elif given["namespaces"]:
        raise ValueError(f"namespaces:={given['namespaces']} needs a link, e.g. link:=isaac")
    shared = ([given["config"]] if given["config"] else []) + [parameters]
    # named as `./handoff train` names it; what a parameter file says is not looked up
    usual = {} if given["config"] else {"task": "reach", "algo": "hs_ppo", "seed": "1"}
    names = [given[name] or usual.get(name) for name in ("task", "algo", "seed")] + [str(int(time.time()))]
    run = given["run"] or os.path.join("runs", "__".join(filter(None, names)))
    rollouts, envs, first = len(robots) or int(given["rollouts"]), int(given["envs"]), int(given["first"])
    if link:
        envs = rollouts
    if given["learner"] not in ("true", "false"):
        raise ValueError(f"learner:={given['learner']} must be true or false")
    if given["peers"] and given["discovery_server"]:
        raise ValueError("peers and discovery_server are two ways to find the same hosts: give one")
    hosts = []
    if given["peers"]:
        hosts.append(SetEnvironmentVariable("ROS_STATIC_PEERS", given["peers"]))
    if given["discovery_server"]:
        hosts.append(SetEnvironmentVariable("ROS_DISCOVERY_SERVER", given["discovery_server"]))
    if not 1 <= rollouts <= envs:
        raise ValueError(f"rollouts:={rollouts} must be at least 1 and at most envs:={envs}")

    learner = Node(
        package="handoff",
        executable="learner",
        name="learner",
        parameters=shared + [{"learner.run_dir": os.path.abspath(run), "learner.min_rollouts": rollouts}],
        output="screen",
    )
    nodes = recorder(given["record"])
    for place in range(rollouts):
        index = first + place
        share = envs // rollouts + (place < envs % rollouts)
        own = {
            "rollout.id": f"r{index}",
            "rollout.index": index,
            "rollout.num_envs": share,
            "sim.threads": 1,
        }
        namespace = robots[place] if robots else f"r{index}"
        if link:
            own |= {"sim.mode": "paced", "sim.clock": place == 0}
        for name in ("rollout",) if robots else ("sim", "rollout"):
            nodes.append(
                Node(
                    package="handoff",
                    executable=name,
                    name=name,
                    namespace=namespace,
                    parameters=shared + [own],
                    output="screen",
                    respawn=True,
                    respawn_delay=1.0,
                )
            )
    if given["learner"] == "false":
        return [*hosts, *nodes]
    done = RegisterEventHandler(
        OnProcessExit(target_action=learner, on_exit=[EmitEvent(event=Shutdown(reason="the learner has finished"))])
    )
    return [*hosts, LogInfo(msg=f"run folder: {os.path.abspath(run)}"), done, learner, *nodes]


def generate_launch_description():
    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=description)
        for name, default, description, _ in ARGUMENTS
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=graph)])
