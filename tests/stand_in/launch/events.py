class Shutdown:
    def __init__(self, *, reason):
        self.reason = reason
