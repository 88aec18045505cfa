//! Mistakes that option code has been found with elsewhere, each behind a switch in the code itself that tests alone can
//! throw: `tests` throws one after the other, and a test that it names must notice.

/// Whether that mistake is made. Outside tests none is: the compiler leaves its branch out.
#[cfg(not(test))]
pub(crate) const fn defect(_name: &str) -> bool {
    false
}

/// Whether that mistake is made, as the environment variable [`tests::VARIABLE`] says.
#[cfg(test)]
pub(crate) fn defect(name: &str) -> bool {
    static THROWN: std::sync::LazyLock<Option<String>> =
        std::sync::LazyLock::new(|| std::env::var(tests::VARIABLE).ok());
    THROWN.as_deref() == Some(name)
}

#[cfg(test)]
mod tests;
