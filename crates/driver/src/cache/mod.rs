//! What was learnt once and is asked often: the account, containers, partition ranges.
