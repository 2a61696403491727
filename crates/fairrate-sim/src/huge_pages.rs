//! Large tables in large pages, where the system lets a program ask for them: tables that do not fit the caches are read all
//! over, and each page needs an entry of its own in the processor's small table of pages.

/// Tables smaller than this stay as they are: they fit the nearer caches, or nearly so, and a large page would be half empty.
#[cfg(target_os = "linux")]
const LARGE: usize = 8 << 20;

/// Asks for large pages for the memory of a table, if that is large. Nothing is different if there are none.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)] // There is no safe way to ask, and the advice changes nothing that a program sees.
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
