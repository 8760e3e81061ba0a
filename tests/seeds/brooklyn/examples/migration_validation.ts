   function validateInput(input: ToolInput): void {
     if (!input.paramA && !input.paramB) {
       throw new Error("Either paramA or paramB must be provided");
     }
   }
