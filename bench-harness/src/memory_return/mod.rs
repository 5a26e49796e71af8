//! What comes back to the system: measured, and told.
