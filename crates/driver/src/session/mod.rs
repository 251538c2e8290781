//! Which session token to send, and what to remember of the answers.
