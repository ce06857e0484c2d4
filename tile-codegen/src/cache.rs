//! Artifact cache.
