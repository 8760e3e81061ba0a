// ‚ùå FORBIDDEN - Will cause API Error 400
inputSchema: {
  type: "object",
  properties: { /* ... */ },
  anyOf: [{ required: ["fieldA"] }, { required: ["fieldB"] }], // ‚ùå Top-level constraint
}

// ‚úÖ CORRECT - Alternative approaches
inputSchema: {
  type: "object",
  properties: {
    fieldA: {
      type: "string",
      description: "Field A (optional if fieldB provided)",
    },
    fieldB: {
      type: "string", 
      description: "Field B (optional if fieldA provided)",
    },
  },
  // Move validation logic to server-side implementation
}
