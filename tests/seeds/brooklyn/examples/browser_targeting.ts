// Standard pattern for browser-related tools
{
  properties: {
    browserId: {
      type: "string",
      description: "Optional. ID of the browser. If omitted or invalid, the server will resolve based on 'target'.",
    },
    target: {
      type: "string",
      enum: ["latest", "current", "byId"],
      description: "Optional targeting strategy when browserId is omitted or invalid.",
      default: "latest",
    },
  },
}
