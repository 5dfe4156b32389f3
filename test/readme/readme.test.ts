import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { childEnv, type RunningHomeport, startHomeport, waitFor } from '../support/index.js'

/** The README's shell blocks by their heading, as they stand. */
function blocks(): Map<string, string> {
  const text = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  const found = new Map<string, string>()
  for (const section of text.split(/^## /m).slice(1)) {
    const heading = section.slice(0, section.indexOf('\n'))
    const scripts = [...section.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1] ?? '')
    // The two commands themselves are what started this test and its server.
    const runnable = scripts.filter((script) => !script.startsWith('npm start'))
    found.set(heading, runnable.join('\n'))
  }
  return found
}

/** One shell in which the examples run one after the other, as a reader would run them. */
class Reader {
  readonly #shell
  #said = ''
  #marks = 0

  constructor(env: Record<string, string>) {
    this.#shell = spawn('bash', ['--noprofile', '--norc'], { env: childEnv(env), stdio: 'pipe', detached: true })
    for (const stream of [this.#shell.stdout, this.#shell.stderr]) stream.on('data', (chunk) => (this.#said += chunk))
  }

  /** Runs a block to its end; answers what it printed. */
  async run(script: string): Promise<string> {
    const start = this.#said.length
    const mark = `--done ${++this.#marks} `
    this.#shell.stdin.write(`${script}\necho "${mark}$?"\n`)
    await waitFor(() => this.#said.includes(mark, start), { what: `the end of: ${script}`, deadlineMs: 60_000 })
    return this.#said.slice(start)
  }

  /** Waits until something has been printed since the shell was opened. */
  async sees(text: string): Promise<void> {
    await waitFor(() => this.#said.includes(text), { what: `"${text}" in:\n${this.#said}`, deadlineMs: 30_000 })
  }

  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.#shell.once('exit', resolve))
    // The examples leave servers in the background: the whole group of the shell goes.
    if (this.#shell.pid !== undefined) process.kill(-this.#shell.pid, 'SIGKILL')
    await ended
  }
}

describe('the README, read from top to bottom', () => {
  const examples = blocks()
  let homeport: RunningHomeport
  let reader: Reader

  const follow = (heading: string): Promise<string> => {
    const script = examples.get(heading)
    if (!script) throw new Error(`the README has no examples under "${heading}"`)
    return reader.run(script)
  }

  beforeAll(async () => {
    homeport = await startHomeport()
    const { dataDir, apiPort, restPort, queuePort, redisPorts } = homeport.place
    reader = new Reader({
      HOMEPORT_DATA_DIR: dataDir,
      HOMEPORT_API_PORT: String(apiPort),
      HOMEPORT_REST_PORT: String(restPort),
      HOMEPORT_QUEUE_PORT: String(queuePort),
      HOMEPORT_REDIS_PORTS: redisPorts,
    })
  })
  afterAll(async () => {
    await reader?.close()
    await homeport?.kill('SIGTERM')
  })

  it('takes the credentials into the shell', async () => {
    expect(await follow('Start')).toContain('--done 1 0')
  })

  it('creates a database and uses it over TCP and REST', async () => {
    const said = await follow('A database')
    expect(said).toContain('"all_members":["us-east-1","eu-west-1"]')
    expect(said).toContain('OK\n{"result":"hello"}')
  })

  it('delivers a signed message', async () => {
    expect(await follow('A message')).toContain('"messageId":"msg_')
    await reader.sees('received first message')
  })

  it('runs a workflow', async () => {
    expect(await follow('A workflow')).toContain('"workflowRunId":"wfr_')
    await reader.sees('Hello, Ada!')
  })

  it('cancels runs in bulk', async () => {
    const said = await follow('Bulk cancel')
    expect(said).toMatch(/"cancelled":0,"matched":1,"sample":\["wfr_/)
    expect(said).toContain('{"cancelled":1}')
  })
})
