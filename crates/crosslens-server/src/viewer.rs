//! The page and its modules, as the browser loads them.

use crosslens_lab::analysis::page::{files, live_index};
use hyper::StatusCode;
use hyper::body::Bytes;

use crate::reply::{Refusal, Reply, whole};

const MAIN: &str = "<script type=\"module\"";

/// The page, told where its data are.
pub(crate) fn page(title: &str) -> Bytes {
    let index = live_index(title, "api/");
    let block = format!("<script type=\"application/json\" id=\"crosslens-index\">{index}</script>\n{MAIN}");
    let page = files().into_iter().find(|file| file.name == "index.html").map_or("", |file| file.text);
    page.replacen(MAIN, &block, 1).into()
}

/// One of the viewer's files by its name; no other file can be named.
pub(crate) fn file(name: &str) -> Result<Reply, Refusal> {
    let file = files().into_iter().find(|file| file.name == name && name != "index.html");
    let file = file.ok_or_else(|| Refusal::nothing("there is no such file"))?;
    Ok(whole(StatusCode::OK, file.media_type, Bytes::from_static(file.text.as_bytes())))
}
