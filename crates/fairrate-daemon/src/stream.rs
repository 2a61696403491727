//! The byte stream of a connection, with TLS or without.

use tokio::io::{AsyncRead, AsyncWrite};

/// Bytes in both directions.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Number of bytes that are read at a time.
pub(crate) const READ: usize = 4 * 1024;

/// Approximate number of bytes that are written at a time.
pub(crate) const WRITE: usize = 8 * 1024;
