//! Everything that needs more than one room, in one binary so that libtorch links once.

#[cfg(feature = "ros")]
mod ros;
#[cfg(feature = "sim")]
mod serial;
mod shipped;
mod tidy;
