//! `cargo xtask header`: writes `include/fairrate.h` from `fairrate-plugin/src/abi.rs`, or checks that it is up to
//! date.

use std::path::Path;

use cbindgen::{Builder, Config, DocumentationStyle, ExportConfig, Language, Style};
use clap::Args;

const SOURCE: &str = "crates/fairrate-plugin/src/abi.rs";
const HEADER: &str = "include/fairrate.h";

const OPENING: &str = "/* The interface for algorithms from shared libraries: docs/own-algorithm.md.
 *
 * Written by `cargo xtask header` from crates/fairrate-plugin/src/abi.rs: change it there. Times are picoseconds, rates bits
 * per second, sizes bytes. */";

/// Declaration of the variable that a library defines and fairrate looks up.
const CLOSING: &str = "/* The functions that a library defines. */
#ifdef __cplusplus
extern \"C\"
#else
extern
#endif
const FairrateAlgorithm fairrate_algorithm;
";

/// Options of `header`.
#[derive(Args)]
pub struct Options {
    /// Writes nothing, and fails if the header is not what it would write
    #[arg(long)]
    check: bool,
}

/// Writes or checks the header. Returns `false` if it is not up to date.
///
/// # Errors
/// If the source cannot be parsed, or the header cannot be read or written.
pub fn run(root: &Path, options: &Options) -> Result<bool, String> {
    let path = root.join(HEADER);
    let wanted = header(&root.join(SOURCE))?;
    if !options.check {
        return std::fs::write(&path, wanted).map(|()| true).map_err(|e| format!("cannot write `{HEADER}`: {e}"));
    }
    let found = std::fs::read_to_string(&path).map_err(|e| format!("cannot read `{HEADER}`: {e}"))?;
    if found != wanted {
        println!(
            "`{HEADER}` is not up to date; run `cargo xtask header`, and raise FAIRRATE_ABI if a type has changed"
        );
    }
    Ok(found == wanted)
}

fn header(source: &Path) -> Result<String, String> {
    let config = Config {
        language: Language::C,
        style: Style::Type,
        cpp_compat: true,
        pragma_once: true,
        header: Some(OPENING.to_owned()),
        trailer: Some(CLOSING.to_owned()),
        documentation_style: DocumentationStyle::C99,
        line_length: 120,
        no_includes: true,
        sys_includes: ["stdbool.h", "stddef.h", "stdint.h"].map(str::to_owned).into(),
        usize_is_size_t: true,
        // The header then includes all types that it is composed of.
        export: ExportConfig { include: vec!["FairrateAlgorithm".to_owned()], ..ExportConfig::default() },
        ..Config::default()
    };
    let bindings = Builder::new().with_config(config).with_src(source).generate();
    let mut text = Vec::new();
    bindings.map_err(|e| format!("`{SOURCE}`: {e}"))?.write(&mut text);
    String::from_utf8(text).map_err(|e| e.to_string())
}
