//! The page of an analysis in a real browser, wide and narrow, light and dark.

mod browser;
mod recording;

use browser::Browser;
use handoff::analysis::{Setup, analyse};
use handoff::bag::Bag;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is on the page.
const LOOK: &str = r##"(() => {
  const size = (one, of) => { const { width, height } = one.getBoundingClientRect(); return of(width, height); };
  const colour = (one, what) => getComputedStyle(one)[what];
  const link = a => document.getElementById(a.getAttribute("href").slice(1)) ? null : a.getAttribute("href");
  const all = what => [...document.querySelectorAll(what)];
  return {
    plots: all("figure").map(one => one.querySelector("figcaption").firstChild.data),
    smallest: Math.min(...all("figure svg").map(one => size(one, Math.min))),
    empty: all("figure svg").filter(one => !one.querySelector("polyline, polygon, rect + rect")).length,
    lettering: Math.min(...all("figure svg text").map(one => size(one, Math.max))),
    written_over: all("figure svg").flatMap(svg => {
      const texts = [...svg.querySelectorAll("text")].map(text => [text.textContent.trim(), text.getBoundingClientRect()]);
      const over = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
      return texts.flatMap(([one, a], at) => texts.slice(at + 1).filter(([_, b]) => over(a, b)).map(([two]) => one + " | " + two));
    }),
    dead: all("a").map(link).filter(href => href),
    links: all("a").length,
    sideways: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    back: colour(document.body, "backgroundColor"), ink: colour(document.body, "color"),
    plotted: [...new Set(all("figure svg text").map(one => colour(one, "fill")))],
  };
})()"##;

/// Runs a script of tests/bags.
fn python(script: &str, arguments: &[&str]) {
    let python = std::env::var("HANDOFF_PYTHON").unwrap_or_else(|_| "python3".into());
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/bags").join(script);
    assert!(Command::new(python).arg(script).args(arguments).status().unwrap().success());
}

fn page(bag: &Path, setup: &Setup) -> String {
    let found = analyse(&Bag::open(bag).unwrap(), setup, &mut |_| {}, &mut |_| {}).unwrap();
    handoff::report::analysis::page(&found).unwrap()
}

#[test]
fn a_page_with_everything_is_whole_on_a_desk_and_on_a_phone_by_day_and_by_night() {
    let Some(mut browser) = Browser::start() else {
        eprintln!("skipped: there is no chromium, which would open the page");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (bag, setup) = recording::everything(folder.path());
    let file = folder.path().join("page.html");
    std::fs::write(&file, page(&bag, &setup)).unwrap();
    for (width, dark) in [(1200, false), (1200, true), (390, false), (390, true)] {
        let opened = browser.open(&file, width, dark);
        assert!(opened.complaints.is_empty(), "{:?}", opened.complaints);
        assert_eq!(opened.requests, [format!("file://{}", file.display())], "the page alone");
        let found = browser.evaluate(LOOK);
        let plots: Vec<&str> = found["plots"].as_array().unwrap().iter().filter_map(|name| name.as_str()).collect();
        let expected = [
            "return of episodes",
            "success of episodes",
            "which option ran when",
            "lengths of runs",
            "KL of action and option together over time [s]: the recorded policy || the present one",
            "KL of action and option together over time [s]: the present policy || the other",
            "value of the option that acted",
            "TD errors",
            "from a state to its command",
            "largest distance of a joint from its command",
            "versions behind the newest",
        ];
        assert!(plots.len() == expected.len(), "{plots:?}");
        assert!(plots.iter().zip(expected).all(|(plot, expected)| plot.starts_with(expected)), "{plots:?}");
        assert!(found["empty"] == 0 && 60.0 < found["smallest"].as_f64().unwrap(), "{found}");
        assert!(9.0 <= found["lettering"].as_f64().unwrap(), "letters that cannot be read: {found}");
        assert_eq!(found["written_over"], serde_json::json!([]), "letters over letters");
        assert!(found["dead"].as_array().unwrap().is_empty() && 6 < found["links"].as_u64().unwrap(), "{found}");
        assert_eq!(found["sideways"], 0, "it scrolls sideways: {found}");
        assert_eq!(found["plotted"].as_array().unwrap()[..], [found["ink"].clone()], "plots have the page's ink");
        assert_eq!(found["back"], if dark { "rgb(20, 23, 26)" } else { "rgb(255, 255, 255)" });
    }
}

#[test]
fn every_link_of_a_page_leads_somewhere_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let bag = folder.path().join("bag <&> of an arm");
    python("arm.py", &[bag.to_str().unwrap()]);
    let page = page(&bag, &Setup::default());
    let after = |mark: &str| -> Vec<String> {
        page.split(mark).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    };
    let (links, names) = (after("href=\"#"), after("id=\""));
    assert!(6 < links.len() && links.iter().all(|link| names.contains(link)), "{links:?} {names:?}");
    assert!(!page.contains("http") && !page.contains("src="), "nothing comes from elsewhere");
    assert!(page.contains("bag &lt;&amp;&gt; of an arm") && !page.contains("bag <&>"));
    assert!(page.contains("<line id=\"tracking-1\" class=\"moment\""), "a moment has its place in the plot");
}
