import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { type Sendable, sendSnippets } from './snippets.js'

const run = promisify(execFile)
const HOSTILE = `'; touch /tmp/pwned; echo "$(id)" \`id\` $HOME \\ "\n'\\''@ü\u2028*/ \${x} --`
const TOKEN = 'a real token'

interface Received {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

const received: Received[] = []
const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    received.push({ method: request.method, url: request.url, headers: request.headers, body: Buffer.concat(chunks) })
    response.setHeader('content-type', 'application/json').end('{"messageId":"msg_1","workflowRunId":"wfr_1"}')
  })
})
let url = ''

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.close()
  server.closeAllConnections()
})

const env = { ...process.env, QSTASH_TOKEN: TOKEN, NODE_NO_WARNINGS: '1' }
const message: Sendable = {
  kind: 'message',
  destination: "https://x.test/a/../b?q='[1]#end",
  headers: {
    'content-type': 'text/plain',
    'upstash-method': 'PUT',
    'upstash-label': '$(id)',
    'upstash-forward-X-Quote': `it's "$HOME"`,
  },
  body: HOSTILE,
}
const codeOf = (what: Sendable, title: string): string => {
  const { code } = sendSnippets(what, url).find((one) => one.title === title) ?? { code: '' }
  expect(code).not.toContain(TOKEN)
  return code
}

async function sentBy(file: string, args: string[]): Promise<Received> {
  received.length = 0
  await run(file, args, { env })
  expect(received).toHaveLength(1)
  return received[0] as Received
}

/** A script that is too long for an argument. */
function scriptOf(code: string): string {
  const file = join(mkdtempSync(join(tmpdir(), 'snippet-')), 'script')
  writeFileSync(file, code)
  onTestFinished(() => rmSync(dirname(file), { recursive: true }))
  return file
}

const HEADERS = { authorization: `Bearer ${TOKEN}`, 'upstash-method': 'PUT', 'upstash-label': '$(id)' }

it('curl sends a hostile message as it is', async () => {
  const sent = await sentBy('sh', ['-c', codeOf(message, 'curl')])
  expect(sent).toMatchObject({ method: 'POST', url: `/v2/publish/${encodeURIComponent(message.destination)}` })
  expect(sent.headers).toMatchObject({ ...HEADERS, 'upstash-forward-x-quote': `it's "$HOME"` })
  expect(sent.body.toString()).toBe(HOSTILE)
})

it('curl sends bytes, a file name as text, and no body', async () => {
  const bytes: Sendable = { kind: 'run', destination: 'https://x.test/w', bodyBase64: 'AP8K', queue: 'ignored' }
  const sent = await sentBy('sh', ['-c', codeOf(bytes, 'curl')])
  expect([sent.url, sent.body.toString('base64')]).toEqual(['/v2/trigger/https://x.test/w', 'AP8K'])
  expect(sent.headers['content-type']).toBeUndefined()
  const file = await sentBy('sh', ['-c', codeOf({ ...message, queue: 'a b', body: '@/etc/passwd' }, 'curl')])
  expect([file.url, file.body.toString()]).toEqual([
    `/v2/enqueue/a%20b/${encodeURIComponent(message.destination)}`,
    '@/etc/passwd',
  ])
  const long = `\0${HOSTILE.repeat(2_000)}`
  expect((await sentBy('bash', [scriptOf(codeOf({ ...message, body: long }, 'curl'))])).body.toString()).toBe(long)
  const { body: _, ...empty } = message
  expect((await sentBy('sh', ['-c', codeOf(empty, 'curl')])).body).toHaveLength(0)
})

it('the shell passes the arguments of the command unchanged', async () => {
  const argumentsOf = async (what: Sendable) => {
    const { stdout } = await run('sh', ['-c', `homeport() { printf '%s\\0' "$@"; }\n${codeOf(what, 'CLI command')}`])
    return stdout.split('\0').slice(0, -1)
  }
  expect(await argumentsOf(message)).toEqual([
    ...['queue', 'publish', message.destination, '--header=content-type: text/plain', '--method=PUT'],
    ...['--label=$(id)', `--header=X-Quote: it's "$HOME"`, `--body=${HOSTILE}`],
  ])
  const bytes: Sendable = { kind: 'message', destination: 'group', queue: 'q', bodyBase64: 'AP8K' }
  expect(await argumentsOf(bytes)).toEqual(['queue', 'enqueue', 'q', 'group', '--file=-'])
})

it('the programs send the same with the npm clients', async () => {
  const program = (what: Sendable) => ['--input-type=module', '-e', codeOf(what, 'TypeScript')]
  const sent = await sentBy(process.execPath, program({ ...message, destination: 'https://x.test/a' }))
  expect(sent.url).toBe('/v2/publish/https://x.test/a')
  expect(sent.headers).toMatchObject({ ...HEADERS, 'upstash-forward-x-quote': `it's "$HOME"` })
  expect(sent.body.toString()).toBe(HOSTILE)
  const headers = { 'upstash-retries': '2', 'upstash-flow-control-key': HOSTILE, 'upstash-forward-x-one': '1' }
  const triggered = await sentBy(process.execPath, program({ ...message, kind: 'run', headers }))
  expect(JSON.parse(triggered.body.toString())).toMatchObject([{ body: HOSTILE, destination: message.destination }])
  expect(JSON.parse(triggered.body.toString())[0].headers).toMatchObject({ 'upstash-retries': '2' })
})
