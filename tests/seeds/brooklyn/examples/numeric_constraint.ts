quality: {
  type: "number",
  description: "JPEG quality (1-100, ignored for PNG)",
  minimum: 1,      // Always specify ranges
  maximum: 100,
  default: 90,
}
