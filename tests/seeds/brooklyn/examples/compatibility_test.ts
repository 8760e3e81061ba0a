// Test schema compatibility
describe("MCP Schema Compatibility", () => {
  test("tools should not use top-level anyOf/oneOf/allOf", () => {
    const tools = getAllTools();
    
    tools.forEach(tool => {
      const schema = tool.inputSchema;
      expect(schema).not.toHaveProperty("anyOf");
      expect(schema).not.toHaveProperty("oneOf"); 
      expect(schema).not.toHaveProperty("allOf");
    });
  });
  
  test("all tools should have valid JSON schema", () => {
    const tools = getAllTools();
    const validator = ajv.compile(metaSchema);
    
    tools.forEach(tool => {
      const isValid = validator(tool.inputSchema);
      expect(isValid).toBe(true);
    });
  });
});
