//! Any text is demangled and shown in all styles.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mpp_symbolizer::{NameStyle, demangle, restyle};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for style in [NameStyle::Short, NameStyle::Normal, NameStyle::Full, NameStyle::Raw] {
        let shown = demangle(text, style);
        assert!(shown.len() <= text.len().max(128 << 10));
        restyle(&shown, NameStyle::Normal);
        restyle(text, style);
    }
});
