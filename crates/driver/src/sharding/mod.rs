//! Many HTTP/2 connections per endpoint, and one HTTP/1.1 pool where that is all there is.
