//! PingSIX's defaults, which serialisation omits.

/// Whether a value is its type's default.
pub(super) fn default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The default of a switch that is on by default.
pub(super) fn yes() -> bool {
    true
}

/// Whether a switch is on.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
pub(super) fn is_yes(switch: &bool) -> bool {
    *switch
}

/// The text `*`, the default of several CORS fields.
pub(super) fn star() -> String {
    "*".to_owned()
}

/// Whether a text is `*`.
pub(super) fn is_star(text: &str) -> bool {
    text == "*"
}
