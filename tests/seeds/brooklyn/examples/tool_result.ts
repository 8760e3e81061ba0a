{ success: true, browserId: "browser-123", metadata: {...} }
