// ‚úÖ ALLOWED - oneOf/anyOf within property definitions
properties: {
  target: {
    oneOf: [ // ‚úÖ OK within property
      { enum: ["latest", "current"] },
      { pattern: "^browser-[a-zA-Z0-9]+$" }
    ]
  }
}
