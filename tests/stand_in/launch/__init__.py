"""Recording stand-in for the `launch` package: enough to execute this repository's launch files without ROS tools."""


class LaunchDescription:
    def __init__(self, entities=()):
        self.entities = list(entities)
