// For tools that accept either parameter A or B
{
  name: "flexible_tool",
  description: "Tool description. Either 'paramA' or 'paramB' must be provided.",
  inputSchema: {
    type: "object",
    properties: {
      paramA: {
        type: "string",
        description: "Parameter A (optional if paramB provided)",
      },
      paramB: {
        type: "string", 
        description: "Parameter B (optional if paramA provided)",
      },
    },
    // No required array - validation handled server-side
  },
}
