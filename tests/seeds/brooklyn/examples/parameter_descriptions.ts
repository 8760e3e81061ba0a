properties: {
  selector: {
    type: "string",
    description: "CSS selector for element to capture (optional)", // Clear purpose and optionality
  },
  timeout: {
    type: "number",
    description: "Timeout in milliseconds", // Include units
    default: 5000,                        // Show defaults
    minimum: 100,                         // Include constraints
    maximum: 30000,
  },
}
