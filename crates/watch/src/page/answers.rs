//! Answers in JSON.

use super::access::{Access, begin_session};
use super::board::{Board, Row};
use super::files;
use super::history::History;
use super::span::Span;
use crate::change;
use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;
use std::sync::{Arc, PoisonError};
use tailtrim_sys::clock;

/// So many requests for a target over time wait for the one that is answered; others are told to come again.
const WAITING: usize = 32;

/// Sources of answers.
pub(crate) struct Pages {
    pub(crate) board: Arc<Board>,
    pub(crate) history: History,
    changes: change::Board,
    /// Held by each request that waits.
    waiting: Arc<()>,
}

#[derive(Serialize)]
struct Targets {
    now_s: i64,
    targets: Vec<Row>,
}

impl Pages {
    pub(crate) fn new(board: Arc<Board>, history: History, changes: change::Board) -> Self {
        Self { board, history, changes, waiting: Arc::new(()) }
    }

    /// All targets, with their changes.
    fn all(&self) -> Vec<Row> {
        let mut rows = self.board.all();
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        for row in &mut rows {
            row.changes = changes.get(&row.name).cloned();
        }
        rows
    }
}

/// The page and its data.
pub(crate) fn routes(pages: Arc<Pages>, access: Arc<Access>) -> Router {
    files::routes()
        .route("/session", post(begin_session).with_state(access))
        .route("/api/targets", get(targets).with_state(Arc::clone(&pages)))
        .route("/api/targets/{name}", get(target).with_state(pages))
}

async fn targets(State(pages): State<Arc<Pages>>) -> Response {
    let targets = pages.all();
    match serde_json::to_string(&Targets { now_s: seconds(clock::realtime_ns()), targets }) {
        Ok(text) => json(text),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn target(
    State(pages): State<Arc<Pages>>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let told = |status: StatusCode, text: &'static str| (status, text).into_response();
    let Some(span) = Span::of_query(query.as_deref()) else {
        return told(StatusCode::BAD_REQUEST, "expected ?span=hour, day or week\n");
    };
    let Some(row) = pages.board.row(&name) else {
        return told(StatusCode::NOT_FOUND, "no target has this name\n");
    };
    let turn = Arc::clone(&pages.waiting);
    if Arc::strong_count(&turn) > WAITING + 1 {
        let again = [(header::RETRY_AFTER, "1")];
        return (StatusCode::SERVICE_UNAVAILABLE, again, "too many at once\n").into_response();
    }
    let read = tokio::task::spawn_blocking(move || {
        let now_ns = clock::realtime_ns();
        let until_s = seconds(now_ns - row.about.written_ns).div_euclid(60) * 60;
        let read = pages.history.tell(&row.name, span, until_s, now_ns);
        drop(turn);
        read
    });
    match read.await {
        Ok(Ok(text)) => json(text),
        Ok(Err(error)) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn json(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

fn seconds(ns: i64) -> i64 {
    ns.div_euclid(1_000_000_000)
}
