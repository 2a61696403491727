//! Large pages for large tables, where a program can request them: tables that do not fit the caches are read at
//! scattered places, and each page needs an entry in the processor's translation lookaside buffer (TLB).

/// Least size of a table in large pages: smaller ones fit the nearer caches, or nearly so, and a large page would be
/// half empty.
#[cfg(target_os = "linux")]
const LARGE: usize = 2 << 20;

/// Requests large pages for the memory of a table, if that is large. Without such pages the program works the same.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)] // There is no safe way to request them, and the advice changes nothing that a program sees.
pub(crate) fn ask_for<T>(table: &[T], capacity: usize) {
    let bytes = capacity * size_of::<T>();
    if LARGE <= bytes {
        let page = 4_096;
        let start = table.as_ptr().addr().next_multiple_of(page);
        let end = (table.as_ptr().addr() + bytes) / page * page;
        // SAFETY: the pages belong to the table's allocation, and this advice leaves what they hold as it is.
        unsafe {
            libc::madvise(table.as_ptr().with_addr(start).cast_mut().cast(), end - start, libc::MADV_HUGEPAGE);
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn ask_for<T>(_: &[T], _: usize) {}
