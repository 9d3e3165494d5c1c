//! Sizes as users write them.

/// `64G`, `512MiB`, `1048576`: bytes with an optional power of 1024.
///
/// # Errors
/// A sentence for the user.
pub fn parse(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text}: not a number of bytes with an optional K, M, G or T");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
    let unit = text[digits..].to_ascii_lowercase();
    let power = match unit.trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return Err(wrong()),
    };
    number.checked_mul(1 << (10 * power)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn binary_suffixes_count() {
        assert_eq!(parse("64G"), Ok(64 << 30));
        assert_eq!(parse("512MiB"), Ok(512 << 20));
        assert_eq!(parse("4096"), Ok(4096));
        for wrong in ["", "G", "64X", "99999999999999999999", "99999999999T"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
