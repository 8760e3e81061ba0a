function toMCPResponse(toolResult: any): MCPToolResponse {
  return {
    content: [
      {
        type: "text",
        text: JSON.stringify(toolResult),
      },
    ],
  };
}
