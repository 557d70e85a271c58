//! Values with names, for URLs, logs and metrics.

/// An enum with a name for each value.
macro_rules! named_values {
    ($(#[$doc:meta])* $vis:vis enum $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        $vis enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// Every one, in declaration order.
            $vis const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Its name.
            $vis const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    };
}

pub(crate) use named_values;
