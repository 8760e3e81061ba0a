interface EnhancedTool extends Tool {
  name: string;                    // Tool identifier
  category: string;                // Organizational category
  description: string;             // Clear, action-oriented description
  inputSchema: JSONSchema7;        // Claude Code compatible schema
  examples?: ToolExample[];        // Usage examples (highly recommended)
  errors?: ToolError[];           // Common error scenarios
}
