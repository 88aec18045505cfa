"""Stable-Baselines3 PPO on reach, as src/task/reach.rs has it, with MuJoCo's Python and model/panda.xml.

Usage: ppo_reach.py SETTINGS, a JSON object; prints one JSON object. `handoff bench train --peers` calls it.
The hyperparameters that are not told are those tuned for this task: 16 environments x 128 steps, batches of 512,
lr 7e-4, gamma .95, lambda .95, log std -.5 at the start, observations and rewards normalised.
"""

import json
import sys
import time
from collections import deque
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import stable_baselines3
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

ENVS, STEPS, BATCH = 16, 128, 512
EPISODE_STEPS = 50
GOAL_MIN, GOAL_MAX = np.array([0.30, -0.30, 0.10]), np.array([0.65, 0.30, 0.60])
START_SPREAD_RAD = 0.1
SUCCESS_M, STRICT_M = 0.05, 0.01
RECENT, LEARNED = 100, (0.99, 0.97)
HAND_FROM_TCP_M = 0.1034


class Reach(gymnasium.Env):
    """Bring the tool centre point to a goal position; the action moves the commanded joint positions."""

    def __init__(self, settings):
        self.model = mujoco.MjModel.from_xml_path(str(Path(__file__).with_name("panda.xml")))
        period = 1 / settings["control_rate_hz"]
        self.substeps = round(period / settings["timestep_secs"])
        self.model.opt.timestep = period / self.substeps
        self.low, self.high = (np.array(settings[f"position_{end}_rad"]) for end in ("min", "max"))
        self.model.jnt_range[:7] = self.model.actuator_ctrlrange[:7] = np.stack([self.low, self.high], axis=1)
        self.data = mujoco.MjData(self.model)
        self.hand = self.model.body("panda_hand").id
        self.ready, self.scale = np.array(settings["ready_rad"]), settings["scale_rad"]
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (7,), np.float32)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (30,), np.float32)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        mujoco.mj_resetData(self.model, self.data)
        start = self.ready + self.np_random.uniform(-START_SPREAD_RAD, START_SPREAD_RAD, 7)
        self.reference = np.clip(start, self.low, self.high)
        self.data.qpos[:7], self.data.qpos[7:9] = self.reference, 0.04
        self.data.ctrl[:7], self.data.ctrl[7:9] = self.reference, 0.04
        self.goal = self.np_random.uniform(GOAL_MIN, GOAL_MAX)
        self.ticks = 0
        return self.observe(), {}

    def step(self, action):
        action = np.clip(action, -1, 1)
        self.reference = np.clip(self.reference + self.scale * action, self.low, self.high)
        self.data.ctrl[:7] = self.reference
        mujoco.mj_step(self.model, self.data, self.substeps)
        self.ticks += 1
        observation = self.observe()
        distance = float(np.linalg.norm(observation[27:30]))
        near = 0.5 * np.exp(-((distance / np.array([SUCCESS_M, STRICT_M])) ** 2)).sum()
        reward = -distance - 0.005 * float(action @ action) + float(near)
        return observation, reward, False, EPISODE_STEPS <= self.ticks, {"distance": distance}

    def observe(self):
        mujoco.mj_kinematics(self.model, self.data)
        position, velocity = self.data.qpos[:7], self.data.qvel[:7]
        tcp = self.data.xpos[self.hand] + HAND_FROM_TCP_M * self.data.xmat[self.hand].reshape(3, 3)[:, 2]
        parts = [position, velocity, self.reference - position, tcp, self.goal, self.goal - tcp]
        return np.concatenate(parts).astype(np.float32)


class Watch(BaseCallback):
    """Success of the last episodes with sampled actions, after each batch of steps; stops when the time is over."""

    def __init__(self, secs):
        super().__init__()
        self.secs, self.recent, self.curve, self.learned = secs, deque(maxlen=RECENT), [], [None, None]

    def _on_training_start(self):
        self.start = time.monotonic()

    def _on_step(self):
        for done, info in zip(self.locals["dones"], self.locals["infos"]):
            if done:
                self.recent.append([info["distance"] < SUCCESS_M, info["distance"] < STRICT_M])
        return time.monotonic() - self.start < self.secs

    def _on_rollout_end(self):
        if not self.recent:
            return
        secs, shares = time.monotonic() - self.start, np.mean(self.recent, axis=0)
        self.curve.append([self.num_timesteps, round(secs, 2), *map(float, shares)])
        for index, share in enumerate(LEARNED):
            if self.learned[index] is None and share <= shares[index]:
                self.learned[index] = [self.num_timesteps, round(secs, 2)]


def main():
    settings = json.loads(sys.argv[1])
    envs = VecNormalize(DummyVecEnv([lambda: Reach(settings)] * ENVS), gamma=0.95)
    envs.seed(settings["seed"])
    network = dict(net_arch=settings["hidden"], activation_fn=torch.nn.Tanh, log_std_init=-0.5)
    agent = PPO(
        "MlpPolicy", envs, learning_rate=7e-4, n_steps=STEPS, batch_size=BATCH, n_epochs=settings["epochs"],
        gamma=0.95, gae_lambda=0.95, policy_kwargs=network, seed=settings["seed"], device="cpu",
    )
    watch = Watch(60 * settings["minutes"])
    agent.learn(10**9, callback=watch)
    secs = time.monotonic() - watch.start
    print(json.dumps({
        "name": f"Stable-Baselines3 {stable_baselines3.__version__} PPO, MuJoCo {mujoco.__version__}",
        "env_steps_per_sec": agent.num_timesteps / secs,
        "curve": watch.curve,
        "learned": watch.learned,
    }))


main()
