//! Files of the page, which are in the program.

use axum::Router;
use axum::http::header;
use axum::routing::get;

const FILES: [(&str, &str, &str); 8] = [
    ("/", "text/html; charset=utf-8", include_str!("files/index.html")),
    ("/page.css", "text/css; charset=utf-8", include_str!("files/page.css")),
    ("/page.js", SCRIPT, include_str!("files/page.js")),
    ("/table.js", SCRIPT, include_str!("files/table.js")),
    ("/target.js", SCRIPT, include_str!("files/target.js")),
    ("/chart.js", SCRIPT, include_str!("files/chart.js")),
    ("/words.js", SCRIPT, include_str!("files/words.js")),
    ("/icon.svg", "image/svg+xml", include_str!("files/icon.svg")),
];

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A route for each file.
pub(super) fn routes() -> Router {
    FILES.into_iter().fold(Router::new(), |router, (path, kind, text)| {
        router.route(path, get(move || async move { ([(header::CONTENT_TYPE, kind)], text) }))
    })
}
