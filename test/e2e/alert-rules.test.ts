import { webcrypto } from 'node:crypto'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as x509 from '@peculiar/x509'
import { beforeAll, expect, it } from 'vitest'
import type { Alert } from '../../src/contract/alerts/alerts.js'
import { DEFAULT_PLANS } from '../../src/contract/databases/plans.js'
import { type Sink, startSink } from '../../src/queue/testing/sink.js'
import { atCleanup, call, enginesIn, tempDir, waitFor } from '../support/index.js'
import { type ClockedServer, startClocked } from './support/clocked.js'

/** Rules about states, on a whole server with real engines, backups and certificates, and with a clock that is turned. */

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const files = { certificate: join(tempDir(), 'server.crt'), key: join(tempDir(), 'server.key') }

let server: ClockedServer
let sink: Sink

beforeAll(async () => {
  sink = await startSink()
  atCleanup(() => sink.close())
  const plansFile = join(tempDir(), 'plans.json')
  // A dollar for each command.
  const payg = { ...DEFAULT_PLANS.payg, price_per_100k_commands: 100_000, price_per_gb_month: 0 }
  writeFileSync(plansFile, JSON.stringify({ payg }))
  await writeCertificate(10 * DAY)
  server = await startClocked({ plansFile, tlsCertFile: files.certificate, tlsKeyFile: files.key })
  const channel = { name: 'ops', url: `${sink.url}/alerts`, hourly_limit: 1_000 }
  expect((await server.api('POST', '/v2/alerts/channels', channel)).status).toBe(200)
})

/** Replaces the files of the server by those of a certificate that is valid for this long. */
async function writeCertificate(validMs: number): Promise<void> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const notBefore = new Date(Date.now() - HOUR)
  const notAfter = new Date(Date.now() + validMs)
  const made = await x509.X509CertificateGenerator.createSelfSigned({
    name: 'CN=localhost',
    serialNumber: '01',
    notBefore,
    notAfter,
    keys,
    signingAlgorithm: algorithm,
  })
  const key = x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY')
  for (const [path, text] of [
    [files.certificate, made.toString('pem')],
    [files.key, key],
  ] as const) {
    writeFileSync(`${path}.new`, text)
    renameSync(`${path}.new`, path)
  }
}

async function alertsOf(kind: string, subject?: string): Promise<Alert[]> {
  const { body } = await server.api('GET', `/v2/alerts/history?count=100&kind=${kind}`)
  const { alerts } = body as { alerts: Alert[] }
  return alerts.filter((alert) => subject === undefined || alert.subject === subject).reverse()
}

/** Turns the clock by steps until there are alerts with these statuses about a subject. */
async function reach(kind: string, statuses: readonly string[], subject?: string): Promise<Alert[]> {
  return await waitFor(
    async () => {
      server.clock.advanceTo(server.clock.now() + 30_000)
      const alerts = await alertsOf(kind, subject)
      return alerts.length >= statuses.length && alerts.at(-1)?.state !== 'pending' && alerts
    },
    { what: `alerts of ${kind}: ${statuses.join()}`, everyMs: 20 },
  ).then((alerts) => {
    expect(alerts.map(({ status }) => status)).toEqual(statuses)
    return alerts
  })
}

interface Made {
  readonly database_id: string
  readonly rest_token: string
}

async function createDatabase(name: string, some: object = {}): Promise<Made> {
  const body = { database_name: name, platform: 'aws', primary_region: 'us-east-1', ...some }
  const answer = await server.api('POST', '/v2/redis/database', body)
  expect(answer.status).toBe(200)
  return answer.body as Made
}

const command = ({ rest_token }: Made, ...json: string[]) =>
  call(`http://127.0.0.1:${server.place.restPort}`, {
    method: 'POST',
    json,
    headers: { authorization: `Bearer ${rest_token}` },
  })

it('an alert says that a certificate expires, that it has expired, and that it was replaced', async () => {
  const firing = await reach('certificate_expiring', ['firing'])
  expect(firing).toMatchObject([{ severity: 'warning', state: 'sent' }])
  server.clock.advanceTo(Date.now() + 11 * DAY)
  const expired = await reach('certificate_expiring', ['firing', 'firing'])
  expect(expired[1]).toMatchObject({ severity: 'error', title: expect.stringContaining('expired at') })
  await writeCertificate(100 * DAY)
  const [, , end] = await reach('certificate_expiring', ['firing', 'firing', 'resolved'])
  expect(end).toMatchObject({ state: 'sent', episode_id: firing[0]?.episode_id })
})

it('an alert says that an engine keeps ending, and that this is over', async () => {
  const database = await createDatabase('crashing')
  const folder = join(server.place.dataDir, 'databases', database.database_id)
  const killed = new Set<number>()
  for (let kill = 0; kill < 3; kill++) {
    const pid = await waitFor(
      async () => {
        await command(database, 'PING')
        return enginesIn(folder).find((engine) => !killed.has(engine.pid))?.pid
      },
      { what: 'a new engine' },
    )
    killed.add(pid)
    process.kill(pid, 'SIGKILL')
  }
  await waitFor(async () => (await command(database, 'PING')).status === 200, { what: 'the engine to serve again' })
  const [firing] = await reach('engine_restarting', ['firing'], database.database_id)
  expect(firing?.title).toMatch(/The engine of the database "crashing" keeps ending and is restarted: 3 times in/)
  await server.api('DELETE', `/v2/redis/database/${database.database_id}`)
  const [, end] = await reach('engine_restarting', ['firing', 'resolved'], database.database_id)
  expect(end?.title).toBe(`The database ${database.database_id} is gone.`)
})

/** Expects one delivered message for each of these alerts, and none for other alerts of the rule. */
async function expectMessages(kind: string, alerts: readonly Alert[]): Promise<void> {
  // Turning the clock may end the timeout of a delivery, which is then repeated with the same message id.
  const got = (): string[] => {
    const requests = sink.received.filter(({ target }) => target === '/alerts')
    const messages = new Map(requests.map(({ headers, body }) => [headers['upstash-message-id'], body]))
    const bodies = [...messages.values()].map((body) => JSON.parse(body) as Alert)
    return bodies.filter((body) => body.kind === kind).map(({ alert_id }) => alert_id)
  }
  await waitFor(() => got().length >= alerts.length, { what: 'the notifications' })
  expect(got().sort()).toEqual(alerts.map(({ alert_id }) => alert_id).sort())
}

it('an alert says that a budget has reached 70, 90 and 100 %, was raised, or has begun a new month', async () => {
  const database = await createDatabase('shop', { budget: 10, plan: 'payg' })
  const id = database.database_id
  const spend = async (dollars: number) => {
    for (let dollar = 0; dollar < dollars; dollar++) await command(database, 'SET', 'k', 'v')
  }
  await spend(7)
  await reach('budget', ['firing'], id)
  await spend(2)
  await reach('budget', ['firing', 'firing'], id)
  await spend(1)
  const [seventy, ninety, all] = await reach('budget', ['firing', 'firing', 'firing'], id)
  const titles = [seventy, ninety, all].map((alert) => /spent (\d+) %/.exec(alert?.title ?? '')?.[1])
  expect([titles, all?.severity]).toEqual([['70', '90', '100'], 'error'])
  expect((await command(database, 'GET', 'k')).status).toBe(400)
  await server.api('PATCH', `/v2/redis/update-budget/${id}`, { budget: 100 })
  const [, , , raised] = await reach('budget', ['firing', 'firing', 'firing', 'resolved'], id)
  expect(raised).toMatchObject({ title: 'The database "shop" is below the alert threshold of its budget again.' })
  await server.api('PATCH', `/v2/redis/update-budget/${id}`, { budget: 10 })
  await reach('budget', ['firing', 'firing', 'firing', 'resolved', 'firing'], id)
  const now = new Date(server.clock.now())
  server.clock.advanceTo(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1))
  const alerts = await reach('budget', ['firing', 'firing', 'firing', 'resolved', 'firing', 'resolved'], id)
  expect(new Set(alerts.map(({ episode_id }) => episode_id)).size).toBe(2)
  await expectMessages('budget', alerts)
  await server.api('DELETE', `/v2/redis/database/${id}`)
})

it('an alert says that daily backups fail or are old, and that one is completed again', async () => {
  const database = await createDatabase('kept')
  const id = database.database_id
  const blocked = join(server.place.dataDir, 'backups')
  rmSync(blocked, { recursive: true, force: true })
  writeFileSync(blocked, 'a file where the folder of backups should be')
  expect((await server.api('PATCH', `/v2/redis/enable-dailybackup/${id}`)).body).toBe('OK')
  server.clock.advanceTo(server.clock.now() + DAY)
  const [failed] = await reach('backup_failed', ['firing'], id)
  expect(failed).toMatchObject({ state: 'sent', examples: [{ text: expect.stringContaining(id) }] })
  server.clock.advanceTo(server.clock.now() + DAY)
  const [old] = await reach('backup_old', ['firing'], id)
  expect(old?.title).toBe('The database "kept" has no backup, although it has daily backups.')
  rmSync(blocked)
  server.clock.advanceTo(server.clock.now() + DAY)
  const ends = await waitFor(
    async () => {
      server.clock.advanceTo(server.clock.now() + 30_000)
      const all = [...(await alertsOf('backup_failed', id)), ...(await alertsOf('backup_old', id))]
      const found = all.filter(({ status }) => status === 'resolved')
      return found.length === 2 && found
    },
    { what: 'the ends of both states', everyMs: 20 },
  )
  expect(ends.map(({ episode_id }) => episode_id)).toEqual([failed?.episode_id, old?.episode_id])
})

it('an alert says that a fire of a schedule published nothing, and that a later one published', async () => {
  const at = { name: 'hourly', url: `${sink.url}/fine` }
  await server.queue('POST', '/v2/topics/watchers/endpoints', { endpoints: [at] })
  const made = await server.queue('POST', '/v2/schedules/watchers', undefined, { 'upstash-cron': '0 * * * *' })
  const { scheduleId } = made.body as { scheduleId: string }
  await server.queue('DELETE', '/v2/topics/watchers')
  const nextHour = () => server.clock.advanceTo(Math.ceil(server.clock.now() / HOUR) * HOUR - 1_000)
  nextHour()
  const [firing] = await reach('schedule_missed', ['firing'], scheduleId)
  expect(firing?.title).toContain('has published nothing at its last fire')
  await server.queue('POST', '/v2/topics/watchers/endpoints', { endpoints: [at] })
  nextHour()
  const [, end] = await reach('schedule_missed', ['firing', 'resolved'], scheduleId)
  expect(end?.state).toBe('sent')
})
