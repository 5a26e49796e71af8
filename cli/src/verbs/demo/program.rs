//! The program of the demo: a web shop that serves requests from a list, and has three things to find.

use std::collections::HashMap;
use std::hint::black_box;

/// Requests that it serves.
const REQUESTS: u32 = 20_000;

struct Shop {
    catalogue: Vec<String>,
    sessions: HashMap<u32, Vec<u8>>,
}

/// Serves all requests, prints how many, and exits like any program.
pub(crate) fn run() -> std::process::ExitCode {
    let mut shop = Shop { catalogue: load_catalogue(), sessions: HashMap::new() };
    let mut served = 0_u64;
    for request in 0..REQUESTS {
        served += handle_request(&mut shop, request);
    }
    println!("the shop has served {} pages", served.min(u64::from(REQUESTS)));
    // What it still holds is what it leaks.
    std::mem::forget(shop);
    std::process::ExitCode::SUCCESS
}

/// What is needed up to the end.
#[inline(never)]
fn load_catalogue() -> Vec<String> {
    (0..20_000).map(|article| format!("article {article}: {}", "words that describe it ".repeat(5))).collect()
}

#[inline(never)]
fn handle_request(shop: &mut Shop, request: u32) -> u64 {
    remember_session(shop, request);
    let article = request as usize % shop.catalogue.len().max(1);
    u64::from(render_page(&shop.catalogue[article]) > 0)
}

/// A session for each request, and nobody who ends one.
#[inline(never)]
fn remember_session(shop: &mut Shop, request: u32) {
    shop.sessions.insert(request, black_box(vec![request as u8; 1500]));
}

/// A page in a buffer that is as large as the largest page could be.
#[inline(never)]
fn render_page(article: &str) -> usize {
    let mut page = Vec::<u8>::with_capacity(64 << 10);
    page.extend_from_slice(article.as_bytes());
    black_box(&page).len()
}
