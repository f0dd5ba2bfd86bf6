//! Text of an exact width: padded, shortened or wrapped by what the terminal will show.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Stands for what was left out.
const ELLIPSIS: char = '…';

/// The same without control characters: a process may name itself anything.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '·' } else { c })
        .collect()
}

/// The columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// At most `width` columns; what is cut ends in `…`, at a word's end where one is near.
pub(crate) fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide + 1 > width {
            break;
        }
        used += wide;
        kept.push(c);
    }
    if let Some(space) = kept.rfind(' ')
        && space * 2 >= kept.len()
    {
        kept.truncate(space);
    }
    if width > 0 {
        kept.push(ELLIPSIS);
    }
    kept
}

/// Exactly `width` columns, text at the left.
pub(crate) fn left(text: &str, width: usize) -> String {
    let text = fit(text, width);
    let pad = width.saturating_sub(text.width());
    format!("{text}{:pad$}", "")
}

/// Exactly `width` columns, text at the right.
pub(crate) fn right(text: &str, width: usize) -> String {
    let text = fit(text, width);
    let pad = width.saturating_sub(text.width());
    format!("{:pad$}{text}", "")
}

/// The longest form that fits (they are longest first), else the last one shortened.
pub(crate) fn first_fitting(forms: &[String], width: usize) -> String {
    forms
        .iter()
        .find(|f| f.width() <= width)
        .cloned()
        .or_else(|| forms.last().map(|f| fit(f, width)))
        .unwrap_or_default()
}

/// Lines of at most `width` columns, broken between words; a longer word is broken where it must.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    // Kept beside the line: a command line may be a hundred kilobytes.
    let mut used = 0;
    for word in text.split_whitespace() {
        let wide = word.width();
        if !line.is_empty() && used + 1 + wide <= width {
            line.push(' ');
            line.push_str(word);
            used += 1 + wide;
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        for c in word.chars() {
            let wide = c.width().unwrap_or(0);
            if used + wide > width && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            line.push(c);
            used += wide;
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// The same, at most so many lines; the last says by `…` that there was more.
pub(crate) fn wrap_into(text: &str, width: usize, most: usize) -> Vec<String> {
    let mut lines = wrap(text, width);
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            *last = fit(&format!("{last} {ELLIPSIS}"), width);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_as_wide_as_asked() {
        for text in ["", "a", "llama-3-70b", "模型", "two words here"] {
            for w in 0..20 {
                assert_eq!(left(text, w).width(), w, "{text} in {w}");
                assert_eq!(right(text, w).width(), w, "{text} in {w}");
            }
        }
    }

    #[test]
    fn words_stay_whole_where_they_can() {
        assert_eq!(fit("two words here", 11), "two words…");
        assert_eq!(wrap("two words here", 9), ["two words", "here"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("", 3), [""; 0]);
        assert_eq!(
            wrap_into("one two three", 7, 1),
            ["one two"].map(|_| "one…")
        );
    }

    #[test]
    fn control_characters_are_shown_as_dots() {
        assert_eq!(clean("a\x1b[31mb\n"), "a·[31mb·");
    }
}
