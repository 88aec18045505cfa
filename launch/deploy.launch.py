"""A trained policy on an arm, guarded. It decides as soon as it has weights and a goal, and moves once ~/arm was called.

ros2 launch handoff deploy.launch.py run:=runs/RUN link:=isaac
"""

import os

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

# name, default, description, parameter
ARGUMENTS = [
    ("config", "", "ROS parameter file; the arguments below override it where they are given", None),
    ("run", "", "run folder or checkpoint; without it, weights come from a learner", "policy.run"),
    ("link", "sim", "how the robot speaks: sim (which starts, too), isaac, isaac_moveit, crisp, franka_fr3", "policy.link"),
    ("robot", "", "the arm: panda or fr3", "robot"),
    ("scale", "", "share of the arm's limits, at most 1; default: 1 in simulation, 0.2 on hardware", "guard.scale"),
    ("robot_description", "", "latched topic of the URDF, whose tighter joint limits hold; it is waited for", "policy.robot_description"),
    ("describe", "false", "true: robot_state_publisher publishes robot_description (model/) and tf, for RViz and Foxglove", None),
    ("namespace", "", "namespace of the robot's topics", None),
    ("autostart", "true", "configure and activate by itself; false: by ros2 lifecycle", "policy.autostart"),
    ("record", "", "bag to record into, by configs/record.yaml (needs rosbag2)", None),
]


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


def describer(arm, namespace):
    """What draws an arm of which nobody else tells."""
    path = os.path.join(os.path.dirname(__file__), "..", "model", f"{arm}.urdf")
    with open(path, encoding="utf-8") as urdf:
        description = ParameterValue(urdf.read(), value_type=str)
    return Node(
        package="robot_state_publisher",
        executable="robot_state_publisher",
        name="robot_state_publisher",
        namespace=namespace,
        parameters=[{"robot_description": description}],
        output="screen",
    )


def graph(context):
    given = {name: LaunchConfiguration(name).perform(context) for name, *_ in ARGUMENTS}
    parameters = {key: given[name] for name, _, _, key in ARGUMENTS if key and given[name]}
    if "policy.run" in parameters:
        parameters["policy.run"] = os.path.abspath(parameters["policy.run"])
    if "guard.scale" in parameters:
        parameters["guard.scale"] = float(parameters["guard.scale"])
    parameters["policy.autostart"] = given["autostart"].lower() == "true"
    if given["link"] == "franka_fr3":
        parameters.setdefault("robot", "fr3")
    shared = ([given["config"]] if given["config"] else []) + [parameters]

    def node(executable, *own):
        return Node(
            package="handoff",
            executable=executable,
            name=executable,
            namespace=given["namespace"],
            parameters=shared + list(own),
            output="screen",
        )

    paced = [node("sim", {"sim.mode": "paced"})] if given["link"] == "sim" else []
    described = given["describe"].lower() == "true"
    drawn = [describer(parameters.get("robot", "panda"), given["namespace"])] if described else []
    return [*recorder(given["record"]), *drawn, *paced, node("policy")]


def generate_launch_description():
    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=description)
        for name, default, description, _ in ARGUMENTS
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=graph)])
