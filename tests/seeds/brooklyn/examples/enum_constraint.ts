// ‚úÖ GOOD - Explicit allowed values
browserType: {
  type: "string",
  enum: ["chromium", "firefox", "webkit"],
  description: "Browser engine to launch",
  default: "chromium",
}

// ‚ùå AVOID - Open-ended strings without validation
browserType: {
  type: "string",
  description: "Browser type", // Too vague, no constraints
}
