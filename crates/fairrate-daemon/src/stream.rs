//! A connection's bytes, with TLS or without.

use tokio::io::{AsyncRead, AsyncWrite};

/// Bytes in both directions.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Bytes that are read at a time.
pub(crate) const READ: usize = 4 * 1024;

/// Bytes that are written at a time, about.
pub(crate) const WRITE: usize = 8 * 1024;
