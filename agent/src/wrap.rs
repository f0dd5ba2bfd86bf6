//! Sentences on lines as wide as the terminal. Pure.

/// How wide a line may be where nobody tells.
const USUAL: usize = 80;

/// Narrower, there would be a word a line; wider, eyes lose the next line's start.
const SENSIBLE: std::ops::RangeInclusive<usize> = 40..=120;

/// How wide a line may be, columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wrap(usize);

impl Wrap {
    /// For a terminal of so many columns; `None` is a file or a pipe.
    pub(crate) fn of(columns: Option<usize>) -> Self {
        let width = columns.unwrap_or(USUAL);
        Self(width.clamp(*SENSIBLE.start(), *SENSIBLE.end()))
    }

    /// Words after `start`, on as many lines as they need; a word that is longer than a line has one of its own.
    pub(crate) fn text(self, start: &str, words: &str, indent: usize) -> String {
        let mut text = String::new();
        let mut line = start.to_owned();
        let mut has_word = false;
        for word in words.split_whitespace() {
            let length = line.chars().count() + usize::from(has_word) + word.chars().count();
            if has_word && length > self.0 {
                text.push_str(line.trim_end());
                text.push('\n');
                line = " ".repeat(indent);
                has_word = false;
            }
            if has_word {
                line.push(' ');
            }
            line.push_str(word);
            has_word = true;
        }
        text.push_str(line.trim_end());
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_longer_than_a_line_is_not_lost() {
        let word = "x".repeat(100);
        let text = Wrap::of(None).text("WARN  ", &format!("a {word} b"), 6);
        assert_eq!(text, format!("WARN  a\n      {word}\n      b\n"));
    }

    #[test]
    fn lines_are_as_wide_as_the_terminal_within_reason() {
        // A blank and a letter each: an even number of columns has room for one less.
        let words = "a ".repeat(200);
        for (columns, longest) in [
            (None, 79),
            (Some(81), 81),
            (Some(100), 99),
            (Some(10), 39),
            (Some(300), 119),
        ] {
            let text = Wrap::of(columns).text("", &words, 0);
            let found = text.lines().map(str::len).max();
            assert_eq!(found, Some(longest), "{columns:?}");
        }
    }
}
