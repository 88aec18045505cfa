class DeclareLaunchArgument:
    def __init__(self, name, *, default_value, description):
        self.name, self.default_value, self.description = name, default_value, description


class OpaqueFunction:
    def __init__(self, *, function):
        self.function = function


class RegisterEventHandler:
    def __init__(self, event_handler):
        self.event_handler = event_handler


class EmitEvent:
    def __init__(self, *, event):
        self.event = event


class LogInfo:
    def __init__(self, *, msg):
        self.msg = msg


class SetEnvironmentVariable:
    def __init__(self, name, value):
        self.name, self.value = name, value
