use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
