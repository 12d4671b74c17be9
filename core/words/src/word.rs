//! The names of a choice.

/// A choice whose values have a name each.
pub trait Word: Copy + Send + Sync + 'static {
    /// Every value, in the order of lists and tables.
    const VALUES: &'static [Self];

    /// Name on the command line and in files.
    fn name(self) -> &'static str;

    /// What the value means: the doc comment as it stands in the source.
    fn doc(self) -> &'static str;

    /// The value with a name.
    fn from_name(name: &str) -> Option<Self> {
        Self::VALUES.iter().copied().find(|value| value.name() == name)
    }

    /// What the value means, in one line without the last full stop: the first paragraph of [`Word::doc`].
    fn help(self) -> String {
        let lines = self.doc().lines().map(str::trim).take_while(|line| !line.is_empty());
        let line = lines.collect::<Vec<_>>().join(" ");
        line.strip_suffix('.').unwrap_or(&line).to_owned()
    }
}

/// Defines an enum whose values have a name each, with [`Word`] for it.
///
/// The enum has `ALL`, `name` and `from_name` of its own, so that callers need not import the trait. It can be printed, and
/// it turns into `&'static str`, so that `#[serde(into = "&'static str")]` writes the name.
#[macro_export]
macro_rules! words {
    (
        $(#[$($attribute:tt)*])*
        $vis:vis enum $name:ident {
            $($(#[$($of_value:tt)*])* $value:ident = $word:literal),+ $(,)?
        }
    ) => {
        $(#[$($attribute)*])*
        $vis enum $name {
            $($(#[$($of_value)*])* $value),+
        }

        impl $name {
            /// Every value, in the order of lists and tables.
            $vis const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];

            /// Name on the command line and in files.
            $vis const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $word),+
                }
            }

            /// The value with a name.
            $vis fn from_name(name: &str) -> Option<Self> {
                <Self as $crate::Word>::from_name(name)
            }
        }

        impl $crate::Word for $name {
            const VALUES: &'static [Self] = &Self::ALL;

            fn name(self) -> &'static str {
                Self::name(self)
            }

            fn doc(self) -> &'static str {
                match self {
                    $(Self::$value => $crate::words!(@doc $([$($of_value)*])*)),+
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(Self::name(*self))
            }
        }

        impl From<$name> for &'static str {
            fn from(value: $name) -> Self {
                $name::name(value)
            }
        }
    };
    (@doc) => {
        ""
    };
    (@doc [doc = $line:literal] $($rest:tt)*) => {
        concat!($line, "\n", $crate::words!(@doc $($rest)*))
    };
    (@doc [$($other:tt)*] $($rest:tt)*) => {
        $crate::words!(@doc $($rest)*)
    };
}

#[cfg(test)]
mod tests {
    use super::Word;

    words! {
        /// A choice.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub(super) enum Choice {
            /// The first of them,
            /// on two lines.
            ///
            /// A second paragraph.
            #[default]
            First = "first",
            Second = "the-second",
        }
    }

    #[test]
    fn names_values_and_help_come_from_one_list() {
        assert_eq!(Choice::ALL, [Choice::First, Choice::Second]);
        for value in Choice::ALL {
            assert_eq!(Choice::from_name(value.name()), Some(value));
            assert_eq!(<&str>::from(value), value.to_string());
        }
        assert_eq!(Choice::from_name("First"), None);
        assert_eq!(Choice::First.help(), "The first of them, on two lines");
        assert_eq!(Choice::Second.help(), "");
        assert_eq!(format!("[{:7}]", Choice::default()), "[first  ]");
    }
}
