//! The models against the migrations of people, and the conversion against the models.

mod class;
mod explained;
mod generate;
mod goldens;
mod ingresses;
mod random;
mod served;
