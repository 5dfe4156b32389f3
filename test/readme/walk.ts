import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { childEnv, type RunningHomeport, startHomeport, waitFor } from '../support/index.js'

/** Where a reader follows the README: the program that was installed and the folder of their shell. */
export interface ReaderOptions {
  /** The file that `homeport` runs. */
  readonly program: string
  /** The folder in which `npx homeport` finds the program and `examples/` the examples. */
  readonly folder: string
}

/** Follows the README from top to bottom in one shell, as a new user does. */
export function followReadme(name: string, prepare: () => Promise<ReaderOptions>): void {
  describe(name, () => {
    const examples = shellBlocks()
    let homeport: RunningHomeport
    let shell: Shell

    const follow = (heading: string): Promise<string> => {
      const script = examples.get(heading)
      if (!script) throw new Error(`the README has no examples under "${heading}"`)
      return shell.run(script)
    }

    beforeAll(async () => {
      const { program, folder } = await prepare()
      homeport = await startHomeport({ program })
      const { dataDir, apiPort, restPort, queuePort, redisPorts } = homeport.place
      shell = new Shell(folder, {
        HOMEPORT_DATA_DIR: dataDir,
        HOMEPORT_API_PORT: String(apiPort),
        HOMEPORT_REST_PORT: String(restPort),
        HOMEPORT_QUEUE_PORT: String(queuePort),
        HOMEPORT_REDIS_PORTS: redisPorts,
      })
    })
    afterAll(async () => {
      await shell?.close()
      await homeport?.kill('SIGTERM')
    })

    it('loads the credentials into the shell', async () => {
      expect(await follow('Start')).toContain('--done 1 0')
    })

    it('creates a database and uses it over TCP and REST', async () => {
      const output = await follow('A database')
      expect(output).toContain('"all_members":["us-east-1","eu-west-1"]')
      expect(output).toContain('OK\n{"result":"hello"}')
    })

    it('delivers a signed message', async () => {
      expect(await follow('A message')).toContain('"messageId":"msg_')
      await shell.sees('received first message')
    })

    it('runs a workflow', async () => {
      expect(await follow('A workflow')).toContain('"workflowRunId":"wfr_')
      await shell.sees('Hello, Ada!')
    })

    it('cancels runs in bulk', async () => {
      const output = await follow('Bulk cancel')
      expect(output).toMatch(/"cancelled":0,"matched":1,"sample":\["wfr_/)
      expect(output).toContain('{"cancelled":1}')
    })
  })
}

/** The README's shell blocks by their heading, unchanged. */
function shellBlocks(): Map<string, string> {
  const text = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  const found = new Map<string, string>()
  for (const section of text.split(/^## /m).slice(1)) {
    const heading = section.slice(0, section.indexOf('\n'))
    const scripts = [...section.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1] ?? '')
    // `npm start` itself has started this test's server.
    const runnable = scripts.filter((script) => !script.startsWith('npm start'))
    found.set(heading, runnable.join('\n'))
  }
  return found
}

/** One shell that runs the examples one after the other. */
class Shell {
  readonly #shell
  #output = ''
  #marks = 0

  constructor(folder: string, env: Record<string, string>) {
    const stdio = 'pipe' as const
    this.#shell = spawn('bash', ['--noprofile', '--norc'], { cwd: folder, env: childEnv(env), stdio, detached: true })
    for (const stream of [this.#shell.stdout, this.#shell.stderr]) stream.on('data', (chunk) => (this.#output += chunk))
  }

  /** Runs a block to its end and resolves with its output. */
  async run(script: string): Promise<string> {
    const start = this.#output.length
    const mark = `--done ${++this.#marks} `
    this.#shell.stdin.write(`${script}\necho "${mark}$?"\n`)
    await waitFor(() => this.#output.includes(mark, start), { what: `the end of: ${script}`, deadlineMs: 60_000 })
    return this.#output.slice(start)
  }

  /** Waits until the shell has printed a text. */
  async sees(text: string): Promise<void> {
    await waitFor(() => this.#output.includes(text), { what: `"${text}" in:\n${this.#output}`, deadlineMs: 60_000 })
  }

  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.#shell.once('exit', resolve))
    // The examples leave servers in the background: end the whole process group of the shell.
    if (this.#shell.pid !== undefined) process.kill(-this.#shell.pid, 'SIGKILL')
    await ended
  }
}
