//! Large pages for large tables, where a program can request them: tables that do not fit the caches are read at
//! scattered places, and each page needs an entry in the processor's translation lookaside buffer (TLB).

/// Least size of a table in large pages: smaller ones fit the nearer caches, or nearly so, and a large page would be
/// half empty.
#[cfg(target_os = "linux")]
const LARGE: usize = 2 << 20;

/// Returns an empty vector with room for `capacity` elements, in large pages if that is large. A page that is written
/// before large ones are requested stays a small one.
pub(crate) fn with_capacity<T>(capacity: usize) -> Vec<T> {
    let table = Vec::with_capacity(capacity);
    ask_for(&table, table.capacity());
    table
}

/// Gives `table` room for `capacity` elements, in large pages if that is large.
pub(crate) fn grow<T>(table: &mut Vec<T>, capacity: usize) {
    let mut grown = with_capacity(capacity);
    grown.append(table);
    *table = grown;
}

/// Requests large pages for the memory of a table, if that is large. Without such pages the program works the same.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)] // There is no safe way to request them, and the advice changes nothing that a program sees.
fn ask_for<T>(table: &[T], capacity: usize) {
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
fn ask_for<T>(_: &[T], _: usize) {}
