// BAD
browserId: {
  type: "string",
  description: "Browser ID", 
}

// GOOD
browserId: {
  type: "string", 
  description: "Optional. ID of the browser. If omitted or invalid, the server will resolve based on 'target'.",
}
