// BAD - Mixed naming conventions
category: "Browser_Lifecycle"  // PascalCase
category: "content capture"    // spaces
category: "nav"               // abbreviation

// GOOD - Consistent kebab-case  
category: "browser-lifecycle"
category: "content-capture"
category: "navigation"
