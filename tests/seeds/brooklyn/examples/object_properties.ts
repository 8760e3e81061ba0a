viewport: {
  type: "object",
  properties: {
    width: { type: "number", default: 1280 },
    height: { type: "number", default: 720 },
  },
  description: "Browser viewport dimensions",
  // additionalProperties: false, // Consider for strict validation
}
