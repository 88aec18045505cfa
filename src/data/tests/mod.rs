//! The protocol's rules as tests: scripted times, no clock, no network.

mod admission;
mod asynchronous;
mod check;
mod delivery;
mod follow;
mod gather;
mod make;
mod network;
mod perfect;
mod phase;
mod stream;
mod synchronous;
