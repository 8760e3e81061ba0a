// In your VS Code extension
import { spawn } from 'child_process';

const mcpServer = spawn('python', ['-m', 'browseros.mcp.server']);

// Send request
const request = {
  jsonrpc: '2.0',
  method: 'tools/call',
  params: {
    name: 'browser',
    arguments: { url: 'https://example.com' }
  },
  id: '1'
};

mcpServer.stdin.write(JSON.dumps(request) + '\n');
