/**
 * Runs of five steps, fifty at a time: triggers, deliveries, steps and ends over HTTP, with a lean program that speaks
 * the step protocol itself (an SDK would cost more than the service). Homeport on SQLite (synchronous=FULL) against the
 * floor: the same requests in both directions through a bare server that keeps nothing, in turns.
 *
 *   npm run bench workflow-steps
 */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Agent, request } from 'undici'
import { median } from './support/http-load.js'
import { startPeer } from './support/peers.js'

const RUNS = Number(process.env.HOMEPORT_BENCH_RUNS ?? 2_000)
const AT_A_TIME = 50
const STEPS = 5
const ROUNDS = 3

interface Service {
  readonly port: number
  readonly token: string
}

const dispatcher = new Agent({ connections: AT_A_TIME })
const waiting = new Map<string, () => void>()
let service: Service = { port: 0, token: '' }

async function send(method: 'POST' | 'DELETE', path: string, body: string): Promise<void> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${service.token}` }
  const answer = await request(`http://127.0.0.1:${service.port}${path}`, { dispatcher, method, headers, body })
  const text = await answer.body.text()
  if (answer.statusCode >= 300) throw new Error(`${method} ${path}: ${answer.statusCode} ${text}`)
}

const headersOf = (runId: string, init: boolean): Record<string, string> => ({
  'content-type': 'application/json',
  'upstash-method': 'POST',
  'upstash-workflow-init': String(init),
  'upstash-workflow-runid': runId,
  'upstash-workflow-url': url,
  'upstash-workflow-sdk-version': '1',
  'upstash-forward-upstash-workflow-sdk-version': '1',
  'upstash-feature-set': 'LazyFetch,InitialBody,WF_DetectTrigger,WF_TriggerOnConfig',
})

function submit(runId: string, body: string, init: boolean): Promise<void> {
  return send('POST', '/v2/batch', JSON.stringify([{ destination: url, headers: headersOf(runId, init), body }]))
}

/** What an SDK does with a delivery: the next step, or the end. */
async function proceed(runId: string, list: readonly unknown[]): Promise<void> {
  const done = list.length - 1
  if (done < STEPS) {
    const step = { stepId: done + 1, stepName: `step ${done + 1}`, stepType: 'Run', out: '"result"', concurrent: 1 }
    await submit(runId, JSON.stringify(step), false)
  } else {
    await send('DELETE', `/v2/workflows/runs/${runId}?cancel=false`, '"done"')
    waiting.get(runId)?.()
  }
}

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  let text = ''
  incoming.setEncoding('utf8')
  for await (const chunk of incoming) text += chunk
  return text
}

const program = createServer(async (incoming, outgoing) => {
  const list = JSON.parse(await bodyOf(incoming)) as unknown[]
  await proceed(String(incoming.headers['upstash-workflow-runid']), list)
  outgoing.writeHead(200, { 'content-length': 2, 'upstash-workflow-sdk-version': '1' })
  outgoing.end('{}')
})
await new Promise<void>((resolve) => program.listen(0, '127.0.0.1', resolve))
const url = `http://127.0.0.1:${(program.address() as AddressInfo).port}/work`

let made = 0
async function oneRun(): Promise<void> {
  const runId = `wfr_bench-${++made}`
  const ended = new Promise<void>((resolve) => waiting.set(runId, resolve))
  await submit(runId, '{"order":4711}', true)
  await ended
  waiting.delete(runId)
}

async function measure(on: Service): Promise<number> {
  service = on
  let left = RUNS
  const started = performance.now()
  const worker = async (): Promise<void> => {
    while (left-- > 0) await oneRun()
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, worker))
  return RUNS / ((performance.now() - started) / 1_000)
}

const homeport = await startPeer<Service>('workflow-server.ts')
const floor = await startPeer<Service>('workflow-floor.ts')
const rates: Record<'homeport' | 'floor', number[]> = { homeport: [], floor: [] }
for (let round = 0; round <= ROUNDS; round++) {
  const pair = { homeport: await measure(homeport.facts), floor: await measure(floor.facts) }
  if (round === 0) continue // warming up
  rates.homeport.push(pair.homeport)
  rates.floor.push(pair.floor)
}
const row = (of: readonly number[]) => ({
  'runs per second (median)': Math.round(median(of)),
  'steps per second': Math.round(median(of) * STEPS),
  rounds: of.map((rate) => Math.round(rate)).join(' '),
})
console.table({ homeport: row(rates.homeport), 'floor: bare HTTP, nothing kept': row(rates.floor) })
console.log(
  `ratio homeport / floor: ${(median(rates.homeport) / median(rates.floor)).toFixed(2)} (Restate 397 and DBOS 217 runs a second were seen here)`,
)
await Promise.all([homeport.stop(), floor.stop()])
program.closeAllConnections()
program.close()
await dispatcher.close()
