/* A library that audits the loader and is content with everything. */
unsigned la_version(unsigned version) { return version; }
