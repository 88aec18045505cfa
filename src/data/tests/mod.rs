//! The protocol's rules as tests: scripted times, no clock, no network.

mod delivery;
mod make;
mod network;
mod perfect;
mod synchronous;
