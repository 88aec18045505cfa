"""Isaac Sim's service that resets the simulation, before a simulator that is reset by std_srvs/Trigger. Writes a line for each."""

import rclpy
from rclpy.callback_groups import ReentrantCallbackGroup
from simulation_interfaces.srv import ResetSimulation
from std_srvs.srv import Trigger


def main():
    rclpy.init()
    node = rclpy.create_node("isaac")
    apart = ReentrantCallbackGroup()
    simulator = node.create_client(Trigger, "/sim/reset", callback_group=apart)

    async def reset(_, answer):
        done = await simulator.call_async(Trigger.Request())
        answer.result.result = 1 if done.success else 4
        answer.result.error_message = done.message
        print("reset", flush=True)
        return answer

    node.create_service(ResetSimulation, "/reset_simulation", reset, callback_group=apart)
    rclpy.spin(node)


main()
