//! Whole bags, against other readers and against damage.

mod agreement;
mod cutting;
mod damage;
mod make;
mod noise;
pub(crate) mod recording;
mod surveying;
mod truncation;
