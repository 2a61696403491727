//! The job of another tool as a scenario, as importers return it.

/// A job of another tool as a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedJob {
    /// The scenario, which names the list `operations.csv`.
    pub scenario: String,
    /// The operations of all ranks.
    pub operations: String,
    /// The content in words, a line each: ranks, operations, groups with their bytes, and units.
    pub content: Vec<String>,
    /// Parts of the job that the scenario lacks, a sentence each.
    pub left_out: Vec<String>,
}
