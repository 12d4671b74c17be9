//! The trait of a row type and the macro that writes its implementation from one list of columns.

use std::cmp::Ordering;

use crate::{batch::Batch, columns::Columns, error::Result, spec::TableSpec};

/// A row of a table. Implemented by the `record!` macro only.
pub trait Record: Sized {
    /// The table that the row belongs to.
    const TABLE: &'static TableSpec;

    /// The table that the row belongs to.
    fn table() -> &'static TableSpec {
        Self::TABLE
    }

    /// Order of the rows in a file: by the sort key.
    fn compare(&self, other: &Self) -> Ordering;

    /// Whether both rows have the same first key column, so that a row group should not end between them.
    fn same_group(&self, other: &Self) -> bool;

    /// The sort key of the row, for messages.
    fn key(&self) -> String;

    /// Adds the columns of some rows.
    #[doc(hidden)]
    fn write(rows: &[&Self], batch: &mut Batch<'_>) -> Result<()>;

    /// Takes the rows out of some columns.
    #[doc(hidden)]
    fn read(columns: &Columns<'_>) -> Result<Vec<Self>>;

    /// A row for tests.
    #[cfg(test)]
    fn sample(random: &mut crate::testing::Random) -> Self;
}

/// Declares a record: the struct, its table and columns, the conversions, and the tests that every record must pass.
///
/// `unique by` makes a second row of the same key an error; `sorted by` does not. After `=>` stands the column's
/// [`Role`](crate::role::Role), made by one of the functions of that module.
macro_rules! record {
    (
        $(#[doc = $table_doc:literal])+
        $vis:vis struct $Record:ident in $table:literal, version $major:literal $minor:literal,
            $order:ident by ($first_key:ident $(, $other_key:ident)*);
        $(
            $(#[doc = $doc:literal])+
            $field:ident: $Type:ty => $role:expr,
        )+
    ) => {
        $(#[doc = $table_doc])+
        #[derive(Clone, Debug, Default, PartialEq)]
        $vis struct $Record {
            $( $(#[doc = $doc])+ pub $field: $Type, )+
        }

        const _: () = {
            use $crate::{batch::Batch, cell::Cell, columns::Columns, error::Result, role::*, spec::*};

            const COUNT: usize = [$(stringify!($field)),+].len();

            static COLUMNS: [ColumnSpec; COUNT] = [$(
                ColumnSpec {
                    name: stringify!($field),
                    kind: <$Type as Cell>::KIND,
                    nullable: <$Type as Cell>::NULLABLE,
                    per_layer: <$Type as Cell>::PER_LAYER,
                    role: $role,
                    doc: concat!($($doc),+),
                },
            )+];

            static TABLE: TableSpec = TableSpec {
                name: $table,
                version: Version { major: $major, minor: $minor },
                doc: concat!($($table_doc),+),
                columns: &COLUMNS,
                sort_key: &[stringify!($first_key) $(, stringify!($other_key))*],
                unique: $crate::record::record!(@ $order),
            };

            // In these functions the name of a field stands for its column first and for its values later.
            impl $crate::record::Record for $Record {
                const TABLE: &'static TableSpec = &TABLE;

                fn compare(&self, other: &Self) -> std::cmp::Ordering {
                    self.$first_key.cmp(&other.$first_key) $(.then_with(|| self.$other_key.cmp(&other.$other_key)))*
                }

                fn same_group(&self, other: &Self) -> bool {
                    self.$first_key == other.$first_key
                }

                fn key(&self) -> String {
                    [
                        format!("{}={:?}", stringify!($first_key), self.$first_key),
                        $( format!("{}={:?}", stringify!($other_key), self.$other_key), )*
                    ]
                    .join(", ")
                }

                fn write(rows: &[&Self], batch: &mut Batch<'_>) -> Result<()> {
                    let [$($field),+] = &COLUMNS;
                    $( Cell::write($field, &rows.iter().map(|row| &row.$field).collect::<Vec<_>>(), batch)?; )+
                    Ok(())
                }

                fn read(columns: &Columns<'_>) -> Result<Vec<Self>> {
                    let [$($field),+] = &COLUMNS;
                    $( let mut $field = <$Type as Cell>::read($field, columns)?.into_iter(); )+
                    let mut rows = Vec::with_capacity(columns.rows());
                    while let ($(Some($field),)+) = ($($field.next(),)+) {
                        rows.push(Self { $($field),+ });
                    }
                    Ok(rows)
                }

                #[cfg(test)]
                fn sample(random: &mut $crate::testing::Random) -> Self {
                    let [$($field),+] = &COLUMNS;
                    Self { $( $field: Cell::sample($field, random), )+ }
                }
            }
        };

        #[cfg(test)]
        mod contract {
            #[test]
            fn holds() -> $crate::testing::TestResult {
                $crate::testing::contract::<super::$Record>()
            }
        }
    };
    (@ unique) => { true };
    (@ sorted) => { false };
}
pub(crate) use record;
