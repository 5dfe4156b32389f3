/**
 * A minimal workflow program: it speaks the step protocol itself, because an SDK would cost more than the measured
 * service. Its workflows have five steps.
 */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Agent, request } from 'undici'

const STEPS = 5

/** A service that runs workflows by the step protocol. */
export interface StepService {
  readonly port: number
  readonly token: string
}

/** A running program. */
export interface StepProgram {
  /** Triggers a run on a service and waits until it has ended. */
  run(service: StepService): Promise<void>
  close(): Promise<void>
}

interface ActiveRun {
  readonly service: StepService
  readonly ended: () => void
}

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  let text = ''
  incoming.setEncoding('utf8')
  for await (const chunk of incoming) text += chunk
  return text
}

const headersOf = (url: string, runId: string, init: boolean): Record<string, string> => ({
  'content-type': 'application/json',
  'upstash-method': 'POST',
  'upstash-workflow-init': String(init),
  'upstash-workflow-runid': runId,
  'upstash-workflow-url': url,
  'upstash-workflow-sdk-version': '1',
  'upstash-forward-upstash-workflow-sdk-version': '1',
  'upstash-feature-set': 'LazyFetch,InitialBody,WF_DetectTrigger,WF_TriggerOnConfig',
})

/** Starts the program with this maximum number of connections to a service. */
export async function startStepProgram(connections: number): Promise<StepProgram> {
  const dispatcher = new Agent({ connections })
  const active = new Map<string, ActiveRun>()
  let made = 0

  const send = async ({ port, token }: StepService, method: 'POST' | 'DELETE', path: string, body: string) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
    // Otherwise undici closes the connection after each DELETE with a body, and every run would need a new one.
    const keptAlive = { reset: false }
    const target = `http://127.0.0.1:${port}${path}`
    const answer = await request(target, { dispatcher, method, headers, body, ...keptAlive })
    const text = await answer.body.text()
    if (answer.statusCode >= 300) throw new Error(`${method} ${path}: ${answer.statusCode} ${text}`)
  }
  const submit = (service: StepService, runId: string, body: string, init: boolean) =>
    send(
      service,
      'POST',
      '/v2/batch',
      JSON.stringify([{ destination: url, headers: headersOf(url, runId, init), body }]),
    )
  /** Handles a delivery as an SDK does: sends the next step, or the result. */
  const proceed = async (runId: string, list: readonly unknown[]) => {
    const run = active.get(runId)
    if (!run) return
    const stepId = list.length
    if (stepId <= STEPS) {
      const step = { stepId, stepName: `step ${stepId}`, stepType: 'Run', out: '"result"', concurrent: 1 }
      await submit(run.service, runId, JSON.stringify(step), false)
    } else {
      await send(run.service, 'DELETE', `/v2/workflows/runs/${runId}?cancel=false`, '"done"')
      run.ended()
    }
  }
  const server = createServer(async (incoming, outgoing) => {
    const list = JSON.parse(await bodyOf(incoming)) as unknown[]
    await proceed(String(incoming.headers['upstash-workflow-runid']), list)
    outgoing.writeHead(200, { 'content-length': 2, 'upstash-workflow-sdk-version': '1' })
    outgoing.end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/work`
  return {
    run: async (service) => {
      const runId = `wfr_bench-${++made}`
      const ended = new Promise<void>((resolve) => active.set(runId, { service, ended: resolve }))
      await submit(service, runId, '{"order":4711}', true)
      await ended
      active.delete(runId)
    },
    close: async () => {
      server.closeAllConnections()
      server.close()
      await dispatcher.close()
    },
  }
}
