//! Everything that needs more than one room, in one binary so that libtorch links once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail loudly; some features need none"
)]

#[cfg(all(feature = "ros", feature = "torch", feature = "sim"))]
mod bench;
mod described;
mod entry;
#[cfg(all(feature = "torch", feature = "sim"))]
mod offline;
#[cfg(feature = "torch")]
mod page;
#[cfg(feature = "ros")]
mod ros;
#[cfg(all(feature = "torch", feature = "sim"))]
mod serial;
mod shipped;
mod tidy;
#[cfg(all(feature = "ros", feature = "torch", feature = "sim"))]
mod train;
