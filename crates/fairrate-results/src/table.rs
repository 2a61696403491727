//! The declaration of a table, from which follows everything that has to agree with its columns.

use crate::ResultsError;
use crate::columns::TableWriter;
use crate::read::Group;
use crate::rows::TableWriters;
use crate::value::{Cell, Type, Value};

/// A table of results, `NAME.parquet`.
#[derive(Clone, Copy, Debug)]
pub struct TableSpec {
    /// The name.
    pub name: &'static str,
    /// The meaning of a row, as sentences that begin with "A row of".
    pub meaning: &'static str,
    /// The columns in the order of the file, without the [tags](crate::Tag) that every table has.
    pub columns: &'static [ColumnSpec],
    /// Largest number of rows of a row group.
    pub(super) most_rows_per_group: usize,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct ColumnSpec {
    /// The name.
    pub name: &'static str,
    /// The unit of the values.
    pub unit: &'static str,
    /// The meaning of the values, as a sentence.
    pub meaning: &'static str,
    pub(super) kind: Type,
    /// `true` if values may be absent.
    pub(super) is_optional: bool,
}

impl ColumnSpec {
    /// Returns the column `name` with values of type `V`.
    pub(super) const fn of<V: Value>(name: &'static str, unit: &'static str, doc: &'static str) -> Self {
        Self { name, unit, meaning: doc.trim_ascii_start(), kind: V::TYPE, is_optional: V::IS_OPTIONAL }
    }
}

/// A row of a table, declared by [`tables!`].
pub(super) trait Row: Sized {
    const TABLE: TableSpec;

    /// Returns the writer of this table.
    fn writer(tables: &mut TableWriters) -> &mut TableWriter;
    /// Returns the values in the order of the columns.
    fn cells(self) -> impl IntoIterator<Item = Cell>;
    /// Calls `f` with each row of `group`.
    fn read(group: &Group<'_>, f: impl FnMut(Self)) -> Result<(), ResultsError>;
}

/// Declares all tables of results. A table is
///
/// ```text
/// /// Description of a row.
/// name: RowType, by 4_096 {
///     /// Meaning of the column.
///     column: u64, "unit";
///     /// Meaning of a column that tables of older programs lack; it is then `None` in all rows.
///     added: Option<u64> = None, "unit";
/// }
/// ```
///
/// with the largest number of rows of a row group behind `by`. From it follow the struct, [`Row`] for it, the table's
/// [`TableSpec`] in `TABLES`, its writer in `TableWriters` and the function `name` of [`Results`](crate::Results).
/// `tests/docs.rs` writes the columns into `docs/results.md`, and the functions of the Python package into
/// `python/fairrate/_tables.py`.
macro_rules! tables {
    ($(
        $(#[doc = $row_doc:literal])+
        $table:ident: $Row:ident, by $most_rows:literal {$(
            $(#[doc = $doc:literal])+
            $column:ident: $Value:ty $(= $default:expr)?, $unit:literal;
        )+}
    )+) => {
        /// The tables, in the order of their declaration.
        pub const TABLES: &[TableSpec] = &[$($Row::TABLE),+];

        /// The writers of all tables.
        pub(super) struct TableWriters {
            $($table: TableWriter,)+
        }

        impl TableWriters {
            /// Creates each table by `create`.
            pub fn create<E>(create: impl Fn(&TableSpec) -> Result<TableWriter, E>) -> Result<Self, E> {
                Ok(Self { $($table: create(&$Row::TABLE)?,)+ })
            }

            /// Returns the writers in the order of [`TABLES`].
            pub fn all(&mut self) -> [&mut TableWriter; TABLES.len()] {
                [$(&mut self.$table),+]
            }
        }

        impl Results {$(
            #[doc = concat!("Returns the rows of `", stringify!($table), ".parquet` in order; see [`", stringify!($Row), "`].")]
            ///
            /// # Errors
            /// If the table is damaged or cannot be read.
            pub fn $table(&self) -> Result<Vec<$Row>, ResultsError> {
                let mut rows = Vec::new();
                self.each(|row| rows.push(row))?;
                Ok(rows)
            }
        )+}

        $(
            $(#[doc = $row_doc])+
            #[derive(Clone, Debug, Default, PartialEq)]
            pub struct $Row {
                $($(#[doc = $doc])+ pub $column: $Value,)+
            }

            impl Row for $Row {
                const TABLE: TableSpec = TableSpec {
                    name: stringify!($table),
                    meaning: concat!($($row_doc),+).trim_ascii_start(),
                    columns: &[$(ColumnSpec::of::<$Value>(stringify!($column), $unit, concat!($($doc),+))),+],
                    most_rows_per_group: $most_rows,
                };

                fn writer(tables: &mut TableWriters) -> &mut TableWriter {
                    &mut tables.$table
                }

                fn cells(self) -> impl IntoIterator<Item = Cell> {
                    [$(self.$column.cell()),+]
                }

                fn read(group: &Group<'_>, f: impl FnMut(Self)) -> Result<(), ResultsError> {
                    $(
                        let $column = group.column::<$Value>(stringify!($column));
                        $(let $column = group.or($column, $default);)?
                        let mut $column = $column?.into_iter();
                    )+
                    std::iter::from_fn(|| Some(Self { $($column: $column.next()?,)+ })).for_each(f);
                    Ok(())
                }
            }
        )+
    };
}

pub(super) use tables;
