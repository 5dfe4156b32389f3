import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { readCredentials } from '../../accounts/index.js'
import type { Config } from '../../config/index.js'
import { HomeportError } from '../../contract/errors.js'

/** The part of a run's log that the command shows; everything else is let pass. */
const RunSchema = Type.Object({
  workflowRunId: Type.String(),
  workflowUrl: Type.String(),
  workflowState: Type.String(),
  workflowRunCreatedAt: Type.Integer(),
  because: Type.Optional(Type.Array(Type.Object({ kind: Type.String(), text: Type.String() }))),
})
const PageSchema = Type.Object({ runs: Type.Array(RunSchema), cursor: Type.Optional(Type.String()) })

/** A run as the running server shows it. */
export type SeenRun = Static<typeof RunSchema>

/** The runs of a running server, with the credentials of its data directory. */
export class RunsClient {
  readonly #url: string
  readonly #token: string

  private constructor(url: string, token: string) {
    this.#url = url
    this.#token = token
  }

  /** @throws HomeportError `cli_failed` when the server has never been started. */
  static async of(config: Config): Promise<RunsClient> {
    const credentials = await readCredentials(config.dataDir)
    if (credentials) return new RunsClient(localQueueUrl(config), credentials.queueToken)
    throw failed(`There are no credentials in ${config.dataDir}. Start the server once, or name its --data-dir.`)
  }

  /** Runs, newest first, by the filters of `GET /v2/workflows/logs`. */
  async list(query: Readonly<Record<string, string>>): Promise<SeenRun[]> {
    const body = await this.#ask('GET', `/v2/workflows/logs?${new URLSearchParams(query)}`)
    if (Value.Check(PageSchema, body)) return body.runs
    throw failed(`The server at ${this.#url} answered what this command does not understand. Are both of one version?`)
  }

  /** @throws HomeportError `cli_failed` when there is no such run. */
  async find(runId: string): Promise<SeenRun> {
    const [run] = await this.list({ workflowRunId: runId })
    if (run) return run
    throw failed(`There is no workflow run "${runId}". See: homeport runs list.`)
  }

  /** Cancels a run for ever. */
  async cancel(runId: string): Promise<void> {
    await this.#ask('DELETE', `/v2/workflows/runs/${encodeURIComponent(runId)}`)
  }

  async #ask(method: string, target: string): Promise<unknown> {
    const headers = { authorization: `Bearer ${this.#token}` }
    const answer = await fetch(this.#url + target, { method, headers }).catch((cause: unknown) => {
      throw failed(`The server does not answer at ${this.#url}. Start it first: npm start.`, cause)
    })
    const body: unknown = await answer.json().catch(() => undefined)
    if (answer.ok) return body
    const refusal = Value.Check(Type.Object({ error: Type.String() }), body) ? body.error : `status ${answer.status}`
    throw failed(`The server refused: ${refusal}`)
  }
}

/** The listener itself, because the public URL may lead through a proxy that this machine cannot reach. */
function localQueueUrl({ host, queuePort }: Config): string {
  const address = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  return `http://${address.includes(':') ? `[${address}]` : address}:${queuePort}`
}

const failed = (problem: string, cause?: unknown) => new HomeportError('cli_failed', { problem }, { cause })
