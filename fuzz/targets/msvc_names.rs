//! Any text is a name of Visual C++'s kind.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mpp_symbolizer::{NameStyle, demangle};

fuzz_target!(|data: &[u8]| {
    let name = format!("?{}", String::from_utf8_lossy(data));
    for style in [NameStyle::Full, NameStyle::Normal, NameStyle::Short] {
        let shown = demangle(&name, style);
        assert!(shown.len() <= name.len().max(64 << 10));
    }
});
