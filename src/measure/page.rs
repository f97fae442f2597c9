//! What every HTML page of this room has in common: nothing is fetched, it follows light and dark, and it fits a
//! phone. Knows nothing of what a page shows.

use super::evaluate::plot::escape;

const STYLE: &str = "\
:root{color-scheme:light dark;--page:#fbfaf7;--ink:#1d2326;--soft:#5b656a;--line:#d9d6cc;--a:#1f6f8b;--b:#c9772b}
@media(prefers-color-scheme:dark){:root{--page:#15191b;--ink:#e8e6df;--soft:#9aa5a9;--line:#343b3e;--a:#5bb3cf;--b:#e6a15c}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:62rem;padding:1rem;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.6rem;margin:.5rem 0}p,li{color:var(--soft)}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums;overflow-wrap:normal}
th,td{padding:.3rem .6rem;border-bottom:1px solid var(--line);text-align:right;vertical-align:top}
svg{display:block;width:100%;height:auto}
";

/// A whole page. `title` is text; `style` (more CSS) and `body` are taken as they are.
pub fn page(title: &str, style: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{title}</title><style>\n{STYLE}{style}</style></head><body>\n<h1>{title}</h1>\n{body}</body></html>\n",
        title = escape(title),
    )
}
