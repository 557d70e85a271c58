//! The answers PingSIX cannot give itself.
