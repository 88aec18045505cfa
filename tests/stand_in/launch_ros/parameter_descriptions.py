class ParameterValue(dict):
    """Shown as its value."""

    def __init__(self, value, *, value_type):
        assert isinstance(value, value_type)
        super().__init__(value=value)
