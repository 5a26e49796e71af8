//! Link options of the preload library.
fn main() {
    // Code of ours may be on the stack of a thread that ends after a dlclose: the library stays mapped.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // A name that nobody defines is an error now, not in the program.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,defs");
    println!("cargo:rerun-if-changed=build.rs");
}
