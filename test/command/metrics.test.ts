import { readFileSync } from 'node:fs'
import { parser } from '@prometheus-io/lezer-promql'
import type { WorkflowContext } from '@upstash/workflow'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { METRICS } from '../../src/contract/metrics/metrics.js'
import { startSink } from '../../src/queue/testing/sink.js'
import { startApp } from '../../src/workflow/testing/harness.js'
import { createDatabase, useService } from '../e2e/support/service.js'
import { atCleanup, call, waitFor } from '../support/index.js'

/** Metrics as a scraper meets them, and the dashboard and the alerts that read them. */

const TOKEN = 'scraper-token-0123456789abcdef'
const service = useService({
  env: { HOMEPORT_METRICS_TOKEN: TOKEN, HOMEPORT_METRICS_DATABASES: '1', HOMEPORT_METRICS_ENDPOINTS: '1' },
})

/** Figures of a scrape by their name and labels, as the text form writes them. */
type Scrape = ReadonlyMap<string, number>

async function scrape(headers: Record<string, string> = { authorization: `Bearer ${TOKEN}` }): Promise<Scrape> {
  const answer = await fetch(`${service.homeport.apiUrl}/metrics`, { headers })
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  const lines = (await answer.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  )
}

/** The names of the series of a scrape, those of a histogram with their endings. */
const seriesOf = (seen: Scrape): Set<string> => new Set([...seen.keys()].map((key) => key.split('{', 1)[0] ?? key))

const basic = (login: string) => ({ authorization: `Basic ${Buffer.from(login).toString('base64')}` })

async function makeTraffic(): Promise<void> {
  const sink = await startSink()
  atCleanup(() => sink.close())
  sink.answer = ({ target }) => (target === '/dead' ? { status: 500 } : {})
  await service.queue.publishJSON({ url: `${sink.url}/fine`, body: {} })
  await service.queue.publishJSON({ url: `${sink.url}/dead`, body: {}, retries: 0 })
  const app = await startApp(service.app, {
    '/order': { route: async (context: WorkflowContext<unknown>) => context.run('one', () => 1) },
  })
  atCleanup(() => app.close())
  await service.workflow.trigger({ url: `${app.url}/order` })
  for (const name of ['one', 'two']) {
    const { rest_token: token } = await createDatabase(service, { database_name: name })
    const headers = { authorization: `Bearer ${token}` }
    await fetch(`${service.homeport.restUrl}/set/k/v`, { headers })
    await fetch(`${service.homeport.restUrl}/get/k`, { headers })
  }
}

beforeAll(makeTraffic)

describe('a scrape', () => {
  it('has a figure of every declared metric of a server, and of no other', async () => {
    const declared = Object.entries(METRICS).flatMap(([name, { kind }]) =>
      kind === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    )
    // Only nodes of a cluster have the others.
    const ofServer = declared.filter((name) => !name.startsWith('homeport_cluster_'))
    expect([...seriesOf(await scrape())].sort()).toEqual(ofServer.sort())
  })

  it('counts what happened', async () => {
    const isOver = (seen: Scrape) =>
      seen.get('homeport_workflow_runs_ended_total{state="success"}') === 1 &&
      seen.get('homeport_queue_deliveries_total{outcome="failed"}') === 1 &&
      seen.get('homeport_queue_published_total') === 2 &&
      seen.get('homeport_store_transactions_pending{access="write"}') === 0
    const seen = await waitFor(
      async () => {
        const now = await scrape()
        return isOver(now) && now
      },
      { what: 'the end of the run and of both messages' },
    )
    const expected = {
      homeport_queue_dead_letters_total: 1,
      'homeport_queue_delivery_attempts_bucket{le="1"}': seen.get('homeport_queue_delivery_attempts_count'),
      homeport_workflow_runs_started_total: 1,
      homeport_workflow_steps_total: 1,
      'homeport_databases{state="awake"}': 2,
      'homeport_gateway_commands_total{kind="reads"}': 2,
      'homeport_gateway_commands_total{kind="writes"}': 2,
      'homeport_gateway_command_duration_seconds_count{kind="writes"}': 2,
      homeport_engine_failures_total: 0,
      homeport_metrics_databases_omitted: 1,
    }
    for (const [name, value] of Object.entries(expected)) expect([name, seen.get(name)]).toEqual([name, value])
    expect(seen.get('homeport_workflow_step_duration_seconds_count')).toBeGreaterThanOrEqual(2)
    const hosts = [...seen.keys()].filter((key) => key.startsWith('homeport_endpoint_delivery_seconds_total'))
    expect(hosts).toEqual([
      expect.stringMatching(/\{host="127\.0\.0\.1:\d+"\}$/),
      'homeport_endpoint_delivery_seconds_total{host="other"}',
    ])
    const ended = (label: string) =>
      [...seen].flatMap(([key, value]) =>
        key.startsWith('homeport_endpoint_deliveries_total') && key.includes(label) ? [value] : [],
      )
    const sum = (values: number[]) => values.reduce((one, other) => one + other, 0)
    for (const outcome of ['delivered', 'failed'])
      expect(sum(ended(`outcome="${outcome}"`))).toBe(seen.get(`homeport_queue_deliveries_total{outcome="${outcome}"}`))
    expect([...seen.keys()].filter((key) => key.startsWith('homeport_database_keys'))).toHaveLength(1)
  })

  it('shows an account that is not the first one nothing of the server', async () => {
    const { body } = await service.homeport.api('POST', '/v2/team', { team_name: 'others', copy_cc: false })
    const { body: key } = await service.homeport.api('POST', '/v2/apikeys', {
      name: 'theirs',
      team_id: (body as { team_id: string }).team_id,
    })
    const { email } = service.homeport.credentials
    const seen = await scrape(basic(`${email}:${(key as { api_key: string }).api_key}`))
    expect([...seen.keys()]).toEqual(['homeport_metrics_databases_omitted'])
  })

  it('of one database takes its own tokens and needs its production pack', async () => {
    const { homeport } = service
    const one = await createDatabase(service, { database_name: 'scraped' })
    const two = await createDatabase(service, { database_name: 'neighbour' })
    const ask = async (id: string, token: string) => {
      const headers = { authorization: `Bearer ${token}` }
      const answer = await fetch(`${homeport.apiUrl}/metrics/databases/${id}`, { headers })
      return { status: answer.status, text: await answer.text() }
    }
    const { database_id: id, read_only_rest_token: token } = one
    expect(await ask(id, token)).toMatchObject({ status: 409, text: expect.stringContaining('enable-prodpack') })
    await homeport.api('POST', `/v2/redis/enable-prodpack/${id}`)
    const record = (await homeport.api('GET', `/v2/redis/database/${id}`)).body
    expect(record).toMatchObject({ prometheus_enabled: 'true' })
    for (const right of [token, one.rest_token]) {
      const { status, text } = await ask(id, right)
      expect([status, text]).toEqual([200, expect.stringContaining(`homeport_database_awake{database_id="${id}"`)])
      expect(text).not.toContain(two.database_id)
    }
    const key = basic(`${homeport.credentials.email}:${homeport.credentials.apiKey}`)
    expect((await fetch(`${homeport.apiUrl}/metrics/databases/${id}`, { headers: key })).status).toBe(200)
    const wrong = [await ask(id, two.read_only_rest_token), await ask(two.database_id, token), await ask(id, 'x')]
    expect(wrong.map(({ status }) => status)).toEqual([404, 404, 401])
    const elsewhere = await call(`${homeport.apiUrl}/v2/redis/database/${id}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    expect(elsewhere.status).toBe(401)
    await homeport.api('POST', `/v2/redis/update-allowlist/${id}`, { allowed_ips: ['203.0.113.7'] })
    expect((await ask(id, token)).status).toBe(403)
    for (const { database_id } of [one, two]) await homeport.api('DELETE', `/v2/redis/database/${database_id}`)
  })

  it('needs credentials, and the token of scrapers opens nothing else', async () => {
    const get = async (path: string, token: string) => {
      const { status } = await call(`${service.homeport.apiUrl}${path}`, {
        headers: { authorization: `Bearer ${token}` },
      })
      return status
    }
    expect(await get('/metrics', `${TOKEN}x`)).toBe(401)
    expect(await get('/v2/redis/databases', TOKEN)).toBe(401)
    expect(await get('/v2/auditlogs', TOKEN)).toBe(401)
    expect((await call(`${service.homeport.apiUrl}/metrics`)).status).toBe(401)
  })
})

const read = (path: string): string => readFileSync(new URL(`../../deploy/${path}`, import.meta.url), 'utf8')

/** Every expression of the dashboard and of the alerts. */
function expressions(): string[] {
  const rules: { groups: { rules: { expr: string }[] }[] } = parse(read('alerts.yaml'))
  const dashboard: { panels: { targets?: { expr: string }[] }[] } = JSON.parse(read('dashboard.json'))
  return [
    ...rules.groups.flatMap((group) => group.rules.map(({ expr }) => expr)),
    ...dashboard.panels.flatMap(({ targets = [] }) =>
      targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '5m')),
    ),
  ]
}

/** The metrics that an expression names. @throws Error where it is not PromQL. */
function metricsOf(expression: string): string[] {
  const names: string[] = []
  parser.parse(expression).iterate({
    enter: ({ type, from, to }) => {
      if (type.isError) throw new Error(`not PromQL at ${from}: ${expression}`)
      if (type.name === 'VectorSelector') names.push(/^\w+/.exec(expression.slice(from, to))?.[0] ?? '')
    },
  })
  return names
}

describe('the dashboard and the alerts', () => {
  it('parse, and name metrics that a server has', async () => {
    const series = seriesOf(await scrape()).add('up')
    const all = expressions()
    expect(all.length).toBeGreaterThan(80)
    for (const expression of all) {
      const names = metricsOf(expression)
      expect(names.length, expression).toBeGreaterThan(0)
      for (const name of names) expect(series, expression).toContain(name)
    }
  })

  it('are checked by a parser that notices mistakes', () => {
    for (const wrong of ['sum(rate(up[5m])', 'rate(up[5m)', 'up{job=homeport}', 'sum by instance (up)'])
      expect(() => metricsOf(wrong)).toThrow('not PromQL')
  })
})
