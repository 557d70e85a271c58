//! The fields that a type decodes. PingSIX ignores all other fields.

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};

/// The fields of a struct, also in the body of a document; none for a type that decodes from any value.
pub(super) fn known_fields<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut fields = &[][..];
    // The decoder names the fields when it asks for the struct, and gets an error.
    let _ = T::deserialize(FieldNames(&mut fields));
    fields
}

struct FieldNames<'f>(&'f mut &'static [&'static str]);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        Err(Error::custom("there is no value"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("there is no value"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
