//! Whole bags, against other readers and against damage.

mod agreement;
mod damage;
mod make;
mod truncation;
