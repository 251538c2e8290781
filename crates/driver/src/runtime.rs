//! What drivers of one process share: client factories, limits and background tasks.
