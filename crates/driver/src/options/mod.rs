//! Settings, one concern per file: operation over driver over runtime over environment over default.
