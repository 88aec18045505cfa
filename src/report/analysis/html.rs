//! What a page is made of: tables, figures, lists of moments.

use super::plots::{self, Line};
use crate::analysis::trace::Moment;
use crate::error::Result;
use std::fmt::Write as _;

/// A page in the making.
pub(super) struct Page {
    pub(super) text: String,
    /// Length of the bag.
    pub(super) secs: f64,
    /// Its path.
    pub(super) bag: String,
}

impl Page {
    /// Begins a part, by anchor and title.
    pub(super) fn part(&mut self, (anchor, title): (&str, &str)) {
        let _ = writeln!(self.text, "<h2 id=\"{anchor}\">{title}</h2>");
    }

    /// Words beside the matter.
    pub(super) fn soft(&mut self, words: &str) {
        let _ = writeln!(self.text, "<p class=\"soft\">{}</p>", escape(words));
    }

    /// Names and values.
    pub(super) fn facts(&mut self, rows: &[[String; 2]]) {
        self.text += "<div class=\"wide\"><table>\n";
        for [name, value] in rows {
            let _ = writeln!(self.text, "<tr><td>{}</td><td class=\"words\">{}</td></tr>", escape(name), escape(value));
        }
        self.text += "</table></div>\n";
    }

    pub(super) fn table(&mut self, header: &[&str], rows: &[Vec<String>]) {
        let cells = |tag: &str, cells: &mut dyn Iterator<Item = &str>| {
            cells.map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect::<String>()
        };
        let _ =
            writeln!(self.text, "<div class=\"wide\"><table>\n<tr>{}</tr>", cells("th", &mut header.iter().copied()));
        for row in rows {
            let _ = writeln!(self.text, "<tr>{}</tr>", cells("td", &mut row.iter().map(String::as_str)));
        }
        self.text += "</table></div>\n";
    }

    pub(super) fn figure(&mut self, svg: &str, caption: &str, keys: &[&str]) {
        let keys: String = keys
            .iter()
            .enumerate()
            .map(|(index, key)| {
                format!("<span class=\"key\" style=\"background:{}\"></span>{}", plots::colour(index), escape(key))
            })
            .collect();
        let _ = writeln!(self.text, "<figure>{svg}<figcaption>{}{keys}</figcaption></figure>", escape(caption));
    }

    /// Quantities over time, if there is something.
    pub(super) fn lines(
        &mut self,
        title: &str,
        caption: &str,
        lines: &[Line<'_>],
        moments: (&str, &[Moment]),
    ) -> Result<()> {
        let said: Vec<Line<'_>> = lines.iter().filter(|(_, trace)| !trace.is_empty()).copied().collect();
        if said.is_empty() {
            return Ok(());
        }
        let keys: Vec<&str> = if said.len() == 1 { vec![] } else { said.iter().map(|(name, _)| *name).collect() };
        self.figure(&plots::lines(self.secs, title, &said, moments)?, caption, &keys);
        Ok(())
    }

    /// Moments, each with a link to its place in the plot and the command that cuts it out.
    pub(super) fn moments(&mut self, name: &str, moments: &[Moment]) {
        if moments.is_empty() {
            return;
        }
        self.text += "<ol>\n";
        for (index, moment) in moments.iter().enumerate() {
            let (at, what) = (moment.at_secs, escape(&moment.what));
            let (from, to, bag) = ((at - 1.0).max(0.0), at + 1.0, escape(&quoted(&self.bag)));
            let _ = writeln!(
                self.text,
                "<li><a href=\"#{name}-{}\">{at:.3} s</a>: {what}. <code>handoff bag cut {bag} --from {from:.2} --to {to:.2} --out part</code></li>",
                index + 1
            );
        }
        self.text += "</ol>\n";
    }
}

/// As one word of a shell.
fn quoted(text: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "/._-".contains(letter);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// Text in HTML.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        assert_eq!(quoted("/data/run_1/b-0.mcap"), "/data/run_1/b-0.mcap");
        assert_eq!(quoted("/data/my run; rm x"), "'/data/my run; rm x'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
