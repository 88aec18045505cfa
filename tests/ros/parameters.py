"""What `ros2 param` does, against the node of the test: list, get, describe, and a set that must be refused."""

import rclpy
from checks import require
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import DescribeParameters, GetParameters, ListParameters, SetParameters


def main():
    rclpy.init()
    node = rclpy.create_node("asker")

    def call(kind, name, **fields):
        client = node.create_client(kind, f"/cell/learner_1/{name}")
        client.wait_for_service()
        answer = client.call_async(kind.Request(**fields))
        rclpy.spin_until_future_complete(node, answer)
        return answer.result()

    listed = call(ListParameters, "list_parameters").result
    names = ["hidden", "learner.hs_ppo.gamma", "learner.run", "seed", "train.minutes"]
    require(sorted(listed.names), names, "names")
    values = call(GetParameters, "get_parameters", names=[*names, "unknown"]).values
    require(list(values[0].integer_array_value), [64, 32], "hidden")
    require((values[1].type, values[1].double_value), (ParameterType.PARAMETER_DOUBLE, 0.9), "gamma")
    require((values[3].type, values[3].integer_value), (ParameterType.PARAMETER_INTEGER, 7), "seed")
    require(values[5].type, ParameterType.PARAMETER_NOT_SET, "unknown")
    described = call(DescribeParameters, "describe_parameters", names=["seed"]).descriptors
    require([d.read_only for d in described], [True], "read_only")
    wish = Parameter(name="seed", value=ParameterValue(type=ParameterType.PARAMETER_INTEGER, integer_value=8))
    (result,) = call(SetParameters, "set_parameters", parameters=[wish]).results
    require((result.successful, "start it again" in result.reason), (False, True), "set")
    require(call(GetParameters, "get_parameters", names=["seed"]).values[0].integer_value, 7, "seed after set")


main()
