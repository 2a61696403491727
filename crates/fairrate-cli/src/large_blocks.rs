//! Allocation of large blocks of memory.

/// Sets the allocator to map every block of 128 KiB or more on its own: the block returns to the system when it is
/// freed, and grows without being copied. Otherwise the allocator of glibc would raise that limit up to 32 MiB during a
/// run, and keep the holes that growing tables leave behind: a tenth of the memory of a large run on two threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)] // There is no safe way to ask.
pub(crate) fn are_mapped() {
    // SAFETY: called before there are other threads; it affects the allocation of later blocks, and no existing block.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn are_mapped() {}
