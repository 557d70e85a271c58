//! Delivery of documents to a target.
