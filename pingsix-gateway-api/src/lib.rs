//! The bridge from translation to delivery.
