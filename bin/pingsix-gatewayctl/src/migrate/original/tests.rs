//! The models against the migrations of people, and the conversion against the models.

mod generate;
mod goldens;
mod random;
