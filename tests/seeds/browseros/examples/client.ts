import { spawn } from 'child_process';
import * as readline from 'readline';

class MCPJsonRpcClient {
  private process: any;
  private rl: readline.Interface;
  private requestId = 0;
  private pendingRequests = new Map();

  constructor(command: string, args: string[]) {
    this.process = spawn(command, args);

    this.rl = readline.createInterface({
      input: this.process.stdout
    });

    this.rl.on('line', (line) => {
      const response = JSON.parse(line);
      const callback = this.pendingRequests.get(response.id);
      if (callback) {
        this.pendingRequests.delete(response.id);
        if (response.error) {
          callback.reject(new Error(response.error.message));
        } else {
          callback.resolve(response.result);
        }
      }
    });
  }

  async callTool(toolName: string, arguments: any): Promise<any> {
    const id = String(++this.requestId);

    return new Promise((resolve, reject) => {
      this.pendingRequests.set(id, { resolve, reject });

      const request = {
        jsonrpc: '2.0',
        method: 'tools/call',
        params: {
          name: toolName,
          arguments: arguments
        },
        id: id
      };

      this.process.stdin.write(JSON.stringify(request) + '\n');
    });
  }

  async listTools(): Promise<any[]> {
    const id = String(++this.requestId);

    return new Promise((resolve, reject) => {
      this.pendingRequests.set(id, { resolve, reject });

      const request = {
        jsonrpc: '2.0',
        method: 'tools/list',
        id: id
      };

      this.process.stdin.write(JSON.stringify(request) + '\n');
    });
  }
}

// Usage
const client = new MCPJsonRpcClient('python', ['-m', 'browseros.mcp.server']);

const tools = await client.listTools();
console.log('Available tools:', tools);

const result = await client.callTool('browser', {
  url: 'https://example.com'
});
console.log('Result:', result);
