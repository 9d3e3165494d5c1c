//! Sets the status column of the tables from the functions in `shim/core/src/api`, and prints the coverage.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use symbol_versions::{Library, Table, sources};

fn main() -> ExitCode {
    match Library::ALL.into_iter().try_for_each(sync) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sync: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Rewrites the table of `library` where it differs.
fn sync(library: Library) -> io::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tables")
        .join(library.file());
    let functions = sources::implemented(library)?;
    let old = fs::read_to_string(&path)?;
    let new = sources::with_status(&old, &functions);
    if new != old {
        fs::write(&path, &new)?;
    }
    // The program ends soon and the parser wants a text that lives as long as the built-in ones.
    let table = Table::parse(new.leak()).map_err(|error| io::Error::other(format!("{}: {error}", library.file())))?;
    let unknown: Vec<String> = sources::differences(&table, &functions)
        .into_iter()
        .filter(|line| !line.contains("but there"))
        .collect();
    if !unknown.is_empty() {
        return Err(io::Error::other(format!("{}: {}", library.file(), unknown.join("; "))));
    }
    let [done, missing, refused] = sources::coverage(&table);
    println!(
        "{}: {done} of {} implemented, {missing} missing, {refused} refused",
        library.file(),
        table.symbols().len()
    );
    Ok(())
}
