   description: "Tool description. Either 'paramA' or 'paramB' must be provided."
