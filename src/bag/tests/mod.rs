//! Whole bags, against other readers and against damage.

mod agreement;
mod cutting;
mod damage;
mod hostile;
mod make;
mod memory;
mod noise;
#[cfg_attr(not(feature = "torch"), expect(dead_code, reason = "some of it is for what decides"))]
pub(crate) mod recording;
mod surveying;
mod truncation;
mod written;
