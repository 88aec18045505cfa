//! What reading may allocate at its highest.

use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Panics where `read` takes more than this at its highest. What SQLite itself takes is not counted.
pub fn within(bytes: usize, read: impl FnOnce()) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    read();
    let most = MEMORY.peak_usage() - before;
    assert!(most <= bytes, "{most} bytes of memory where {bytes} are the limit");
}
