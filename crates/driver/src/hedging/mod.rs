//! A second attempt elsewhere when the first is slow.
