"""Stable-Baselines3 SAC, learning alone: gradient steps on made-up transitions, on one thread.

Usage: sac_learner.py SETTINGS, a JSON object. Prints its name; then reads numbers of gradient steps, one a line, and
answers each with its seconds on the processor. `handoff bench learner --peers` calls it.
"""

import json
import sys
import time

import gymnasium
import numpy as np
import stable_baselines3
import torch
from stable_baselines3 import SAC
from stable_baselines3.common.logger import Logger


class Nothing(gymnasium.Env):
    """Has sizes, and is never stepped."""

    def __init__(self, obs, action):
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (obs,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (action,), np.float32)


def main():
    settings = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    steps, obs, action, batch = (settings[key] for key in ("steps", "obs", "action", "batch"))
    agent = SAC(
        "MlpPolicy", Nothing(obs, action), buffer_size=steps, batch_size=batch, gamma=0.95, seed=settings["seed"],
        policy_kwargs=dict(net_arch=settings["hidden"]), device="cpu",
    )
    agent.set_logger(Logger(folder=None, output_formats=[]))
    draw = np.random.default_rng(settings["seed"])
    for _ in range(steps):
        seen, led = draw.standard_normal((2, 1, obs), np.float32)
        carried_out = np.tanh(draw.standard_normal((1, action), np.float32))
        agent.replay_buffer.add(seen, led, carried_out, draw.standard_normal(1), np.zeros(1), [{}])
    print(f"Stable-Baselines3 {stable_baselines3.__version__}, torch {torch.__version__}", flush=True)
    for line in sys.stdin:
        start = time.process_time()
        agent.train(gradient_steps=int(line), batch_size=batch)
        print(time.process_time() - start, flush=True)


main()
