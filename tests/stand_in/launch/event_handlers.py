class OnProcessExit:
    def __init__(self, *, target_action, on_exit):
        self.target_action, self.on_exit = target_action, on_exit
