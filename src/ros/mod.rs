//! ros
