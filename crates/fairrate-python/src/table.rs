//! Tables of results as Arrow, which other libraries read without conversion.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatch, RecordBatchIterator};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use fairrate_results::Results;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;
use pyo3::exceptions::{PyKeyError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors;

/// A table in memory, in one piece.
#[pyclass(frozen, module = "fairrate._native")]
pub struct Table {
    schema: SchemaRef,
    rows: Option<RecordBatch>,
}

#[pymethods]
impl Table {
    /// Reads a table of a results directory that is unchanged since it was written: `flows`, `ports`, `rates`, `pfc` or
    /// `convergence`.
    #[staticmethod]
    fn of_results(py: Python<'_>, dir: PathBuf, name: &str) -> PyResult<Self> {
        let verified = py.detach(|| Results::open(&dir)?.verify_table(name));
        verified.map_err(|e| errors::of_results(py, &e))?;
        Self::read(py, dir.join(format!("{name}.parquet")))
    }

    /// Reads a Parquet file.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let fail = |e: ParquetError| PyOSError::new_err(format!("{}: {e}", path.display()));
        py.detach(|| read(&path)).map_err(fail)
    }

    /// Returns Arrow's C stream.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol allows a producer to ignore the requested schema.
        drop(requested_schema);
        let rows: Vec<Result<RecordBatch, ArrowError>> = self.rows.iter().cloned().map(Ok).collect();
        let reader = RecordBatchIterator::new(rows, Arc::clone(&self.schema));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }

    /// Returns Arrow's C schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema).map_err(|e| PyOSError::new_err(e.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    fn __len__(&self) -> usize {
        self.rows.as_ref().map_or(0, RecordBatch::num_rows)
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|f| f.name().clone()).collect()
    }

    /// Name and unit of the columns that have one.
    #[getter]
    fn units(&self) -> Vec<(String, String)> {
        units(&self.schema)
    }

    /// Returns name and unit of the columns of a Parquet file that have one, without its rows.
    #[staticmethod]
    fn units_of(path: PathBuf) -> PyResult<Vec<(String, String)>> {
        let fail = |e: ParquetError| PyOSError::new_err(format!("{}: {e}", path.display()));
        let found = File::open(&path).map_err(ParquetError::from);
        let found = found.and_then(|file| ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()));
        Ok(units(found.map_err(fail)?.schema()))
    }

    /// Returns the addresses of a column's buffers, so that a test can check that they were not copied.
    fn addresses(&self, column: &str) -> PyResult<Vec<usize>> {
        let rows = self.rows.as_ref().and_then(|rows| rows.column_by_name(column));
        let column = rows.ok_or_else(|| PyKeyError::new_err(column.to_owned()))?;
        Ok(column.to_data().buffers().iter().map(|b| b.as_ptr() as usize).collect())
    }
}

/// Returns name and unit of the columns that have one.
fn units(schema: &Schema) -> Vec<(String, String)> {
    let facts = schema.metadata().iter();
    facts.filter_map(|(key, unit)| Some((key.strip_prefix("unit:")?.to_owned(), unit.clone()))).collect()
}

/// Reads a file in one piece. Texts are views, which polars uses without conversion.
fn read(path: &Path) -> Result<Table, ParquetError> {
    let file = File::open(path)?;
    let found = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())?;
    let view = |field: &Arc<Field>| match field.data_type() {
        DataType::Utf8 => field.as_ref().clone().with_data_type(DataType::Utf8View),
        _ => field.as_ref().clone(),
    };
    let fields: Vec<Field> = found.schema().fields().iter().map(view).collect();
    let wanted = Arc::new(Schema::new_with_metadata(fields, found.schema().metadata().clone()));
    let metadata = ArrowReaderMetadata::try_new(
        Arc::clone(found.metadata()),
        ArrowReaderOptions::new().with_schema(Arc::clone(&wanted)),
    )?;
    let n_rows = usize::try_from(metadata.metadata().file_metadata().num_rows()).unwrap_or(0);
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
    let mut batches = reader.with_batch_size(n_rows.max(1)).build()?;
    let rows = batches.next().transpose()?;
    Ok(Table { schema: wanted, rows })
}
