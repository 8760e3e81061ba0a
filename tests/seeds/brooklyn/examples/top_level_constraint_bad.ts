// FORBIDDEN
inputSchema: {
  anyOf: [{ required: ["path"] }, { required: ["auditId"] }]
}
