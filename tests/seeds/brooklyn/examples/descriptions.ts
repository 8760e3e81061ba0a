// ‚úÖ GOOD - Clear action and context
"Navigate browser to a specific URL and wait for page load"
"Capture a screenshot and store as file to avoid MCP token limits"
"Extract text content from an element using CSS selector"

// ‚ùå AVOID - Vague or technical jargon
"URL navigation functionality"
"Screenshot utility"  
"Text extraction"
