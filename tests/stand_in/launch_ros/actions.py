class Node:
    def __init__(
        self,
        *,
        package,
        executable,
        name,
        namespace="",
        parameters=(),
        output="log",
        respawn=False,
        respawn_delay=None,
    ):
        self.package, self.executable, self.name, self.namespace = package, executable, name, namespace
        self.parameters = list(parameters)
