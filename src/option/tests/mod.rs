//! Truth tests of the option process: an exact oracle, hand-computed fixtures, closed forms, published test vectors.

mod filter;
mod half_step;
pub(crate) mod off_policy;
pub(crate) mod oracle;
mod process;

/// Asserts closeness and names the place.
#[track_caller]
pub(crate) fn close(found: f64, want: f64, tolerance: f64) {
    assert!((found - want).abs() <= tolerance, "found {found}, want {want} within {tolerance}");
}

#[track_caller]
pub(crate) fn all_close(found: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(found.len(), want.len());
    for (index, (found, want)) in found.iter().zip(want).enumerate() {
        assert!((found - want).abs() <= tolerance, "[{index}]: found {found}, want {want} within {tolerance}");
    }
}
