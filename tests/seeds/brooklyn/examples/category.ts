// Category naming convention: lowercase-with-hyphens
export const contentCaptureTools: EnhancedTool[] = [
  {
    name: "take_screenshot",
    category: "content-capture", // Consistent category
    // ...
  },
];
