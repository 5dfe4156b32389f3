import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { atCleanup, childEnv, commandHost, type RunningHomeport, tempDir } from '../support/index.js'

/** Runs the original's own tools, unmodified, against a server under test. */

const inPackages = (path: string): string =>
  fileURLToPath(new URL(`../../node_modules/@upstash/${path}`, import.meta.url))
const PRELOAD = new URL('../../examples/tools/to-homeport.mjs', import.meta.url).href
const CLI = inPackages('cli/dist/cli.js')
const MCP = inPackages('mcp-server/dist/index.js')

/** The environment that docs/tools.md has users set. */
function toolEnv({ apiUrl, restUrl, queueUrl, credentials }: RunningHomeport, apiKey: string): Record<string, string> {
  return {
    HOMEPORT_API_URL: apiUrl,
    HOMEPORT_PUBLIC_REST_URL: restUrl,
    QSTASH_URL: queueUrl,
    UPSTASH_EMAIL: credentials.email,
    UPSTASH_API_KEY: apiKey,
    UPSTASH_CONFIG_HOME: tempDir(),
    NODE_OPTIONS: `--import ${PRELOAD}`,
  }
}

/** What a command of the CLI printed: JSON, or its error. */
export interface CliAnswer {
  readonly code: number | null
  readonly printed: unknown
}

/** The CLI with the credentials of the first account. */
export function cliOf(homeport: RunningHomeport) {
  const run = commandHost({ main: CLI, env: toolEnv(homeport, homeport.credentials.apiKey) })
  return async (...args: string[]): Promise<CliAnswer> => {
    const { code, stdout, stderr } = await run(args, { cwd: tempDir() })
    const text = stdout.trim() === '' ? stderr.trim() : stdout.trim()
    try {
      return { code, printed: JSON.parse(text) }
    } catch {
      return { code, printed: text }
    }
  }
}

/** What a tool of the MCP server answered. */
export interface ToolAnswer {
  readonly isError: boolean
  /** The texts of its content. */
  readonly texts: readonly string[]
}

/** A running MCP server, spoken to as an agent does. */
export interface McpServer {
  readonly tools: readonly string[]
  call(tool: string, args?: object): Promise<ToolAnswer>
}

/** Starts the MCP server on standard input and output. */
export async function startMcp(homeport: RunningHomeport, apiKey = homeport.credentials.apiKey): Promise<McpServer> {
  const env = toolEnv(homeport, apiKey)
  const child = spawn(process.execPath, [MCP], {
    env: childEnv(env),
    cwd: tempDir(),
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  atCleanup(() => ended(child))
  const ask = conversation(child)
  const clientInfo = { name: 'test', version: '1' }
  await ask('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo })
  child.stdin?.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
  const { tools } = (await ask('tools/list', {})) as { tools: { name: string }[] }
  return {
    tools: tools.map(({ name }) => name),
    call: async (name, args = {}) => {
      const answer = (await ask('tools/call', { name, arguments: args })) as {
        isError?: boolean
        content: { text: string }[]
      }
      return { isError: answer.isError === true, texts: answer.content.map(({ text }) => text) }
    },
  }
}

function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
  return new Promise((resolve) => {
    child.once('exit', () => resolve())
    child.kill()
  })
}

interface Reply {
  readonly id: number
  readonly result?: unknown
  readonly error?: { readonly message: string }
}

/** JSON-RPC, one message a line. */
function conversation(child: ChildProcess) {
  const open = new Map<number, (reply: Reply) => void>()
  if (!child.stdout) throw new Error('the MCP server has no standard output')
  createInterface({ input: child.stdout }).on('line', (line) => {
    const reply = JSON.parse(line) as Reply
    open.get(reply.id)?.(reply)
  })
  let asked = 0
  const gone = new Promise<never>((_, reject) => {
    child.once('exit', (code) => reject(new Error(`the MCP server has ended with ${code}`)))
  })
  gone.catch(() => undefined)
  return (method: string, params: object): Promise<unknown> => {
    const id = ++asked
    const answered = new Promise<unknown>((resolve, reject) => {
      open.set(id, ({ result, error }) => (error ? reject(new Error(error.message)) : resolve(result)))
    })
    child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    return Promise.race([answered, gone])
  }
}
