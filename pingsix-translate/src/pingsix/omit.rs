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

/// Declares the defaults of fields: a module for each, with the value and with a test of values.
macro_rules! defaults {
    ($($name:ident: $type:ty = $value:expr;)+) => {$(
        mod $name {
            const VALUE: &$type = $value;

            pub(super) fn value() -> <$type as ToOwned>::Owned {
                VALUE.to_owned()
            }

            pub(super) fn is<T: PartialEq<$type>>(value: &T) -> bool {
                *value == *VALUE
            }
        }
    )+};
}
pub(in crate::pingsix) use defaults;
