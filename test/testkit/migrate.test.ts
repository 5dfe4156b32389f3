import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { Client } from '@upstash/qstash'
import { beforeAll, describe, expect, it } from 'vitest'
import { atCleanup, run } from '../support/index.js'
import { startTestServer } from './load.js'

/** `examples/migrate.mjs` from one server to another and back. */

const SCRIPT = fileURLToPath(new URL('../../examples/migrate.mjs', import.meta.url))
const HOUR_MS = 3_600_000

type Server = Awaited<ReturnType<typeof startTestServer>>

const clientOf = ({ env }: Server) => new Client({ baseUrl: env.QSTASH_URL, token: env.QSTASH_TOKEN })

async function migrate(from: Server, to: Server, ...args: string[]): Promise<string> {
  const env = {
    FROM_QSTASH_URL: from.env.QSTASH_URL,
    FROM_QSTASH_TOKEN: from.env.QSTASH_TOKEN,
    TO_QSTASH_URL: to.env.QSTASH_URL,
    TO_QSTASH_TOKEN: to.env.QSTASH_TOKEN,
  }
  const { code, stdout, stderr } = await run(process.execPath, [SCRIPT, ...args], { env })
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}

/** The settings of a server, without the ids and times that differ between servers. */
async function settingsOf(server: Server) {
  const client = clientOf(server)
  const groups = (await client.urlGroups.list()).map(({ name, endpoints }) => ({ name, endpoints }))
  const queues = (await client.queue().list()).map(({ name, parallelism, paused }) => ({ name, parallelism, paused }))
  const schedules = (await client.schedules.list()).map(
    ({ createdAt, isPaused, callerIP, nextScheduleTime, lastScheduleTime, lastScheduleStates, ...rest }) =>
      ({ ...rest, callerIp: undefined }) as Record<string, unknown>,
  )
  return { groups, queues, schedules }
}

describe('examples/migrate.mjs', () => {
  let [cloud, home]: Server[] = []
  let url = ''
  const servers = () => [cloud ?? expect.fail('not started'), home ?? expect.fail('not started')] as const

  beforeAll(async () => {
    cloud = await startTestServer()
    home = await startTestServer()
    // Half past, so that the schedule fires once within the next hour, whatever its delay and the time of day.
    const untilHalfPast = 1.5 * HOUR_MS - (Date.now() % HOUR_MS)
    await Promise.all([cloud, home].map((server) => server.advanceTime(untilHalfPast)))
    const sink = createServer((request, response) => request.resume().on('end', () => response.end()))
    await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve))
    atCleanup(() => void sink.close())
    url = `http://127.0.0.1:${(sink.address() as AddressInfo).port}`
    await fill(cloud, url)
  })

  it('copies URL groups, queues and schedules with their settings, and says what it leaves', async () => {
    const [cloud, home] = servers()
    const output = await migrate(cloud, home)
    expect(output).toContain('schedule secret: NOT COPIED, because its body or headers are redacted')
    expect(output).toContain('check the settings of its callbacks')
    const [wanted, found] = [await settingsOf(cloud), await settingsOf(home)]
    expect(found.schedules).toHaveLength(3)
    expect(found).toEqual({ ...wanted, schedules: wanted.schedules.filter((one) => one.scheduleId !== 'secret') })
    await migrate(cloud, home)
    expect(await settingsOf(home)).toEqual(found)
  })

  it('lets a schedule fire at one of the two servers only', async () => {
    const [cloud, home] = servers()
    const fires = async (server: Server) => {
      await server.advanceTime(HOUR_MS)
      return (await server.deliveries({ url: '/report' })).length
    }
    expect([await fires(cloud), await fires(home)]).toEqual([1, 0])
    expect(await migrate(cloud, home, '--switch')).toContain('schedule report: paused at the source, resumed')
    expect([await fires(cloud), await fires(home)]).toEqual([1, 1])
    await migrate(home, cloud)
    await migrate(home, cloud, '--switch')
    expect([await fires(cloud), await fires(home)]).toEqual([2, 1])
  })

  it('says what is missing, and what a server refused', async () => {
    const [cloud, home] = servers()
    const { code, stderr } = await run(process.execPath, [SCRIPT], { env: { FROM_QSTASH_URL: 'http://localhost' } })
    expect([code, stderr]).toEqual([1, 'error: FROM_QSTASH_TOKEN is not set.\n'])
    const env = {
      FROM_QSTASH_URL: cloud.env.QSTASH_URL,
      FROM_QSTASH_TOKEN: 'wrong',
      TO_QSTASH_URL: home.env.QSTASH_URL,
      TO_QSTASH_TOKEN: home.env.QSTASH_TOKEN,
    }
    const refused = await run(process.execPath, [SCRIPT], { env })
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/^error: GET .* at FROM: status 401/)])
    const nobody = await run(process.execPath, [SCRIPT], { env: { ...env, FROM_QSTASH_URL: 'http://127.0.0.1:2' } })
    expect(nobody.stderr).toBe('error: FROM_QSTASH_URL does not answer at http://127.0.0.1:2: ECONNREFUSED\n')
  })
})

/** Makes one of everything that the script copies, and one schedule that it cannot. */
async function fill(server: Server, url: string): Promise<void> {
  const client = clientOf(server)
  const endpoints = [{ name: 'first', url: `${url}/one` }, { url: `${url}/two?a=b` }]
  await client.urlGroups.addEndpoints({ name: 'everybody', endpoints })
  await client.queue({ queueName: 'mails' }).upsert({ parallelism: 3, paused: true })
  await client.schedules.create({
    scheduleId: 'report',
    destination: `${url}/report?x=1`,
    cron: '0 * * * *',
    body: '{"n":1}',
    method: 'PUT',
    headers: { 'X-Team': 'red' },
    retries: 7,
    delay: 60,
    timeout: 30,
    label: 'night',
    retryDelay: '1000 * retried',
    callback: `${url}/done`,
    failureCallback: `${url}/failed`,
    flowControl: { key: 'reports', parallelism: 2, rate: 5, period: '1m' },
  })
  await client.schedules.create({
    scheduleId: 'all',
    destination: 'everybody',
    cron: 'CRON_TZ=Europe/Berlin 0 9 1 1 *',
    headers: { 'Homeport-Priority': '30', 'Homeport-Singleton': 'all', 'Homeport-Singleton-Mode': 'cancel' },
  })
  await client.schedules.create({
    scheduleId: 'calm',
    destination: url,
    cron: '0 9 1 1 *',
    headers: { 'Homeport-Debounce': 'c', 'Homeport-Debounce-Delay': '1500ms', 'Homeport-Debounce-Max-Delay': '1m' },
  })
  const redact = { body: true } as const
  await client.schedules.create({ scheduleId: 'secret', destination: url, cron: '0 0 1 1 *', body: 'x', redact })
}
