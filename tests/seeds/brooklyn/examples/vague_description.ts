// BAD
description: "Does something with browser"

// GOOD  
description: "Navigate browser to a specific URL and wait for page load"
