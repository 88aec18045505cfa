//! Whole bags, against other readers and against damage.

mod agreement;
