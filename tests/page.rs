//! The page of an analysis in a real browser, wide and narrow, light and dark.

use handoff::analysis::{Setup, analyse};
use handoff::bag::Bag;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the page says of itself once it is laid out: put behind it by the test, and read out of its title.
const LOOK: &str = r##"<script>
addEventListener("load", () => {
  const box = svg => { const { width, height } = svg.getBoundingClientRect(); return Math.min(width, height); };
  const colour = (one, what) => getComputedStyle(one)[what];
  const link = a => document.getElementById(a.getAttribute("href").slice(1)) ? null : a.getAttribute("href");
  const text = document.querySelector("figure svg text");
  document.title = "FOUND" + JSON.stringify({
    plots: [...document.querySelectorAll("figure svg")].map(box),
    dead: [...document.querySelectorAll("a")].map(link).filter(href => href),
    links: document.querySelectorAll("a").length,
    page: document.documentElement.scrollWidth, window: innerWidth,
    back: colour(document.body, "backgroundColor"), ink: colour(document.body, "color"), plotted: colour(text, "fill"),
    loaded: performance.getEntriesByType("resource").map(entry => entry.name),
  }) + "END";
});
</script></body>"##;

fn python() -> String {
    std::env::var("HANDOFF_PYTHON").unwrap_or_else(|_| "python3".into())
}

/// The page of a small bag.
fn page(folder: &Path) -> String {
    let bag = folder.join("bag <&> of an arm");
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/bags/arm.py");
    assert!(Command::new(python()).arg(script).arg(&bag).status().unwrap().success());
    let found = analyse(&Bag::open(&bag).unwrap(), &Setup::default(), &mut |_| {}, &mut |_| {}).unwrap();
    handoff::report::analysis::page(&found).unwrap()
}

#[test]
fn a_page_is_whole_on_a_desk_and_on_a_phone_by_day_and_by_night() {
    if Command::new("chromium").arg("--version").output().is_err() {
        eprintln!("skipped: there is no chromium");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.html");
    std::fs::write(&path, page(folder.path()).replace("</body>", LOOK)).unwrap();
    let look = |width: u32, dark: bool| -> Value {
        let mut browser = Command::new("chromium");
        browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "--virtual-time-budget=5000"]);
        browser.arg(format!("--user-data-dir={}", folder.path().join("profile").display()));
        browser.arg(format!("--window-size={width},900"));
        browser.arg(format!("--blink-settings=preferredColorScheme={}", if dark { 0 } else { 1 }));
        let output = browser.arg(format!("file://{}", path.display())).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let found = text.split("FOUND").nth(1).and_then(|rest| rest.split("END").next());
        let found = found.unwrap_or_else(|| panic!("{text}\n{}", String::from_utf8_lossy(&output.stderr)));
        serde_json::from_str(&found.replace("&quot;", "\"").replace("&amp;", "&")).unwrap()
    };
    let (day, night) = (look(1200, false), look(500, true));
    for found in [&day, &night] {
        let plots = found["plots"].as_array().unwrap();
        assert!(2 <= plots.len() && plots.iter().all(|size| 60.0 < size.as_f64().unwrap()), "{found}");
        assert_eq!(found["dead"], Value::Array(vec![]));
        assert!(6 < found["links"].as_u64().unwrap() && found["loaded"] == Value::Array(vec![]), "{found}");
        assert!(found["page"].as_u64() <= found["window"].as_u64(), "wider than its window: {found}");
        assert_eq!(found["plotted"], found["ink"], "plots have the page's ink");
    }
    assert_eq!((&day["back"], &night["back"]), (&"rgb(255, 255, 255)".into(), &"rgb(20, 23, 26)".into()));
}

#[test]
fn every_link_of_a_page_leads_somewhere_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path());
    let after = |mark: &str| -> Vec<String> {
        page.split(mark).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    };
    let (links, names) = (after("href=\"#"), after("id=\""));
    assert!(6 < links.len() && links.iter().all(|link| names.contains(link)), "{links:?} {names:?}");
    assert!(!page.contains("http") && !page.contains("src="), "nothing comes from elsewhere");
    assert!(page.contains("bag &lt;&amp;&gt; of an arm") && !page.contains("bag <&>"));
    assert!(page.contains("<line id=\"tracking-1\" class=\"moment\""), "a moment has its place in the plot");
}
