//! Words as a shell takes them.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// An argument with the quotes that it needs; `None` with a zero byte, which no argument has.
pub(crate) fn quoted(word: &OsStr) -> Option<Vec<u8>> {
    let quoted = shlex::bytes::try_quote(word.as_bytes()).ok();
    quoted.map(Cow::into_owned)
}

/// A command line with the quotes that it needs; empty where a word has a zero.
pub(crate) fn joined(words: &[String]) -> String {
    let words: Option<Vec<Cow<'_, str>>> = words.iter().map(|word| option(word)).collect();
    words.unwrap_or_default().join(" ")
}

/// A word; that of `--name=value` stays bare where both parts may: the crate quotes every `=`.
fn option(word: &str) -> Option<Cow<'_, str>> {
    let quoted = shlex::try_quote(word).ok()?;
    let parts = word
        .split_once('=')
        .filter(|(name, _)| name.starts_with('-'));
    let bare = |part: &str| matches!(shlex::try_quote(part), Ok(Cow::Borrowed(_)));
    match parts {
        Some((name, value)) if bare(name) && (bare(value) || value.is_empty()) => {
            Some(Cow::Borrowed(word))
        }
        _ => Some(quoted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_same_words() {
        for words in [
            &["server", "-m", "/m/a b.gguf"][..],
            &["server", "--config", "{\"temperature\": 0}", ""],
            &["it's", "$(reboot)", "a;b", "~", "模型"],
        ] {
            let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
            assert_eq!(shlex::split(&joined(&words)), Some(words));
        }
    }

    #[test]
    fn plain_words_stay_as_they_are() {
        let words = ["vllm", "serve", "org/model", "--port=80"].map(str::to_owned);
        assert_eq!(joined(&words), "vllm serve org/model --port=80");
    }
}
