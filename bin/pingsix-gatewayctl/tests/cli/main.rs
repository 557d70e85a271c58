//! The program as it is used: arguments in, output and exit codes out, and `serve` over loopback.

mod check;
mod explain;
mod input;
mod pingsix;
mod pingsix_config;
mod quickstart;
mod serve;
mod support;
mod translate;
