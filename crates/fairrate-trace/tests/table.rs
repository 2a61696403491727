//! Tables of steps, held against what the runs count.

mod common;

use std::fs::File;
use std::path::Path;

use common::{Traced, config, trace_into};
use fairrate_trace::{End, Filter, Format, Table};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Row, RowAccessor as _};

fn traced(transport: &str, limit: u64) -> Traced {
    let begin = |network, out| Box::new(Table::new(network, out, "a test").unwrap()) as Box<dyn Format>;
    trace_into(&config(transport), begin, Filter::ALL, limit)
}

/// Returns the rows of a file, the number of its row groups, and what its footer says. `name` is that of the test.
fn rows(name: &str, file: &[u8]) -> (Vec<Row>, usize, Vec<String>) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.parquet"));
    std::fs::write(&path, file).expect("the target directory can be written");
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).expect("the file is whole");
    let facts = reader.metadata().file_metadata().key_value_metadata().cloned().unwrap_or_default();
    let facts = facts.into_iter().map(|fact| format!("{}: {}", fact.key, fact.value.unwrap_or_default())).collect();
    let groups = reader.num_row_groups();
    (reader.get_row_iter(None).unwrap().map(Result::unwrap).collect(), groups, facts)
}

const TIME: usize = 0;
const EVENT: usize = 1;
const PORT: usize = 2;
const SIZE: usize = 8;
const QUEUE: usize = 10;
const CAUSE: usize = 12;

#[test]
fn queues_add_up_to_what_joins_and_leaves() {
    let traced = traced("cc = \"cubic\"\nkind = \"tcp\"", u64::MAX);
    let (rows, groups, facts) = rows("queues", &traced.file);
    assert_eq!((groups, &facts[..]), (1, &["run: a test".to_owned()][..]));
    let n = |name: &str| rows.iter().filter(|row| row.get_string(EVENT).unwrap() == name).count() as u64;
    assert_eq!((n("sent"), n("dropped")), (traced.totals.packet_hops, traced.totals.drops.total()));
    assert!(rows.is_sorted_by_key(|row| row.get_long(TIME).unwrap()));
    let mut queue = 0;
    for row in rows.iter().filter(|row| row.get_string(PORT).unwrap() == "sw0->h0") {
        match row.get_string(EVENT).unwrap().as_str() {
            "queued" => queue += row.get_long(SIZE).unwrap(),
            "sent" => queue -= row.get_long(SIZE).unwrap(),
            _ => assert_eq!(row.get_string(CAUSE).unwrap(), "ingress_threshold"),
        }
        assert_eq!(row.get_long(QUEUE).unwrap(), queue, "{row}");
    }
    assert_eq!(queue, 0);
}

#[test]
fn a_limit_is_kept_and_told() {
    let whole = traced("cc = \"dcqcn\"", u64::MAX);
    let traced = traced("cc = \"dcqcn\"", 30_000);
    let (some, groups, facts) = rows("limit", &traced.file);
    assert!(traced.file.len() <= 30_000 && traced.end == End::Limit && 1 < groups, "{} {groups}", traced.file.len());
    assert_eq!(facts.last().map(String::as_str), Some("end: the file has reached its largest size"));
    assert!(!some.is_empty() && rows("whole", &whole.file).0[..some.len()] == some[..]);
}
