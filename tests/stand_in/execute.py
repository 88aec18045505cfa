"""Executes a launch file against the stand-in and prints its arguments and nodes as JSON.

python3 execute.py LAUNCH_FILE [name:=value ...]
"""

import importlib.util
import json
import sys

from launch.actions import DeclareLaunchArgument, OpaqueFunction, SetEnvironmentVariable
from launch_ros.actions import Node


def main(path, assignments):
    spec = importlib.util.spec_from_file_location("launch_file", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    entities = module.generate_launch_description().entities
    arguments = {entity.name: entity for entity in entities if isinstance(entity, DeclareLaunchArgument)}
    context = {name: argument.default_value for name, argument in arguments.items()}
    for name, value in (assignment.split(":=", 1) for assignment in assignments):
        if name not in arguments:
            sys.exit(f"{path} declares no argument {name}")
        context[name] = value
    for entity in list(entities):
        if isinstance(entity, OpaqueFunction):
            entities += entity.function(context)
    nodes = [vars(entity) for entity in entities if isinstance(entity, Node)]
    described = {name: argument.description for name, argument in arguments.items()}
    environment = {entity.name: entity.value for entity in entities if isinstance(entity, SetEnvironmentVariable)}
    json.dump({"arguments": described, "environment": environment, "nodes": nodes}, sys.stdout)


main(sys.argv[1], sys.argv[2:])
