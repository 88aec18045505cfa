//! The protocol's rules as tests: scripted times, no clock, no network.

mod make;
mod perfect;
