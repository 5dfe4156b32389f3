import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { auditRow, newAccountRows } from '../accounts/testing/rows.js'
import * as accounts from '../accounts/transactions/accounts.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { creationOf } from '../databases/testing/rows.js'
import * as backups from '../databases/transactions/backups.js'
import * as databaseRows from '../databases/transactions/databases.js'
import { messageRow } from '../queue/testing/rows.js'
import type { PendingRow } from '../queue/transactions/messages.js'
import * as messages from '../queue/transactions/messages.js'
import { settle } from '../queue/transactions/messages-settle.js'
import * as schedules from '../queue/transactions/schedules.js'
import type { Store } from '../store/index.js'
import { describeOnSampledStore } from '../store/testing/index.js'
import { Problems, silentLogger } from '../telemetry/index.js'
import type { WatchedDatabase } from './conditions.js'
import { channelRow } from './testing/rows.js'
import * as channels from './transactions/alerts-channels.js'
import * as conditions from './transactions/alerts-conditions.js'
import * as history from './transactions/alerts-history.js'
import * as rules from './transactions/alerts-rules.js'
import * as silences from './transactions/alerts-silences.js'
import { AlertWatch } from './watch.js'

const T = Date.parse('2026-03-01T12:00:00Z')
const LOOK = 5_000
const MINUTE = 60_000
const DAY = 86_400_000
const LATE = {
  cron: '* * * * *',
  destination: 'http://e.test',
  headers: '{}',
  body: null,
  queue: null,
  caller_ip: null,
}

describeOnSampledStore('alerts', (openStore) => {
  let shared: Store | undefined
  let store: Store
  /** When the current test begins: after all that is before it. */
  let start = T
  let clock: ManualClock
  let watch: AlertWatch
  let problems: Problems
  let accountId: string
  let first: string | undefined
  let made = 0
  let databases: WatchedDatabase[]
  let disk: { freeBytes: number; totalBytes: number }
  let offered: PendingRow[]
  const startWatch = async (): Promise<void> => {
    watch = new AlertWatch({
      store,
      clock,
      problems,
      logger: silentLogger,
      link: 'http://h.test/alerts',
      queue: { offer: (rows) => void offered.push(...rows) },
      sources: { databases: () => databases, disk: async () => disk, certificateExpiresAt: () => undefined },
    })
    await watch.start()
  }

  beforeEach(async () => {
    shared ??= await openStore()
    store = shared
    start += 10 * DAY
    clock = new ManualClock(start)
    problems = new Problems(clock, silentLogger)
    databases = []
    disk = { freeBytes: 50, totalBytes: 100 }
    offered = []
    accountId = await newAccount()
    first ??= accountId
    await startWatch()
  })
  afterEach(() => watch.stop())

  const audit = () => auditRow(accountId, start)

  async function newAccount(): Promise<string> {
    const id = randomUUID()
    await store.run(accounts.create, newAccountRows(id, start - MINUTE + ++made))
    return id
  }

  async function addChannel(some: Partial<channels.ChannelRow> = {}): Promise<string> {
    const channel = channelRow({ account_id: accountId, created_at: start + ++made, ...some })
    expect(await store.run(channels.create, { channel, limit: 20, audit: audit() })).toBe('created')
    return channel.channel_id
  }

  /** A message that has become a dead letter at a time. */
  async function deadLetter(some: { at?: number; host?: string; config?: string } = {}): Promise<string> {
    const { at = clock.now(), host = 'x.test', config = '{}' } = some
    const id = `msg_${randomUUID()}`
    const row = {
      message_id: id,
      account_id: accountId,
      created_at: start,
      url: `http://${host}/a`,
      host,
      config,
      next_at: T,
    }
    const [seq = 0] = await store.run(messages.insert, [messageRow(row)])
    const end = { kind: 'failed' as const, dlqId: `${at}-${seq}` }
    const attempt = { startedAt: at, status: 500, headers: '{}', body: null, error: null }
    await store.run(settle, { seq, retried: 0, at, end, follow: [], turn: undefined, attempt })
    return id
  }

  /** Advances the clock, with one look at the end and, if the time is longer, one before it. */
  async function pass(ms: number): Promise<void> {
    for (const step of [ms - LOOK, LOOK]) {
      clock.advance(step)
      await watch.looked
    }
  }
  const alerts = async (of = accountId) =>
    (await store.run(history.list, { accountId: of, before: Number.MAX_SAFE_INTEGER, limit: 99 })).reverse()
  const brief = async () => (await alerts()).map(({ kind, subject, count, state }) => [kind, subject, count, state])
  const bodies = () => offered.map(({ message_id, url }) => ({ message_id, url }))

  it('sends the first dead letter at once and groups what follows within five minutes', async () => {
    await addChannel()
    const id = await deadLetter()
    await pass(LOOK)
    expect(await alerts()).toMatchObject([{ kind: 'dead_letter', subject: 'x.test', count: 1, state: 'sent' }])
    expect(history.examplesOf((await alerts())[0] ?? { examples: '[]' })).toEqual([
      { at: start, id, text: 'x.test: answered 500' },
    ])
    expect(bodies()).toMatchObject([{ url: 'http://a.test/hook' }])
    for (let i = 0; i < 3; i++) {
      await deadLetter()
      await pass(LOOK)
    }
    await deadLetter({ host: 'y.test' })
    await pass(LOOK)
    const grouped = ['dead_letter', 'x.test', 3]
    const others = ['dead_letter', 'y.test', 1, 'sent']
    expect(await brief()).toEqual([['dead_letter', 'x.test', 1, 'sent'], [...grouped, 'pending'], others])
    await pass(5 * MINUTE)
    expect(await brief()).toEqual([['dead_letter', 'x.test', 1, 'sent'], [...grouped, 'sent'], others])
    expect(offered).toHaveLength(3)
  })

  it('counts every dead letter once, also one whose commit was late, and after a restart', async () => {
    await addChannel()
    await pass(6 * MINUTE)
    await deadLetter()
    await pass(LOOK)
    await watch.stop()
    await deadLetter({ at: clock.now() - 2 * MINUTE })
    await startWatch()
    await pass(20 * MINUTE)
    expect((await alerts()).map(({ count, state }) => [count, state])).toEqual([
      [1, 'sent'],
      [1, 'sent'],
    ])
  })

  it('raises no alert of a notification that became a dead letter', async () => {
    await addChannel()
    await deadLetter({ config: '{"x-alert":true}' })
    await deadLetter({ config: '{"callback":{"url":"http://x-alert","headers":{"a":"\\"x-alert\\":"}}}' })
    await pass(LOOK)
    expect(await brief()).toEqual([['dead_letter', 'x.test', 1, 'sent']])
  })

  it('counts many subjects together', async () => {
    for (let i = 0; i < 25; i++) await deadLetter({ host: `h${i}.test` })
    await pass(LOOK)
    const rows = await alerts()
    expect(rows).toHaveLength(21)
    expect(rows.find(({ subject }) => subject === 'others')).toMatchObject({ count: 5, state: 'no_channel' })
  })

  it('holds notifications back beyond the limit of a channel, and counts them in the next', async () => {
    await addChannel({ hourly_limit: 1 })
    for (const host of ['a.test', 'b.test', 'c.test']) await deadLetter({ host })
    await pass(LOOK)
    expect((await brief()).map(([, , , state]) => state)).toEqual(['sent', 'held_back', 'held_back'])
    expect(await store.run(channels.list, { accountId })).toMatchObject([{ held_back: 2 }])
    await pass(60 * MINUTE)
    await deadLetter({ host: 'd.test' })
    await pass(LOOK)
    expect(await store.run(channels.list, { accountId })).toMatchObject([{ held_back: 0 }])
    expect(offered).toHaveLength(2)
  })

  it('keeps what is silenced or not wanted in the history, and nothing of a rule that is off', async () => {
    await addChannel({ kinds: '["budget"]' })
    await deadLetter()
    await pass(LOOK)
    const silence = {
      silence_id: randomUUID(),
      account_id: accountId,
      kind: null,
      subject: 'z.test',
      until: start + 3_600_000,
    }
    const made = {
      silence: { ...silence, reason: '', actor: 'a', created_at: start },
      limit: 9,
      now: start,
      audit: audit(),
    }
    await store.run(silences.create, made)
    await deadLetter({ host: 'z.test' })
    await pass(LOOK)
    await store.run(rules.update, { accountId, kind: 'dead_letter', fields: { enabled: 0 }, audit: audit() })
    await deadLetter({ host: 'off.test' })
    await pass(LOOK)
    expect(await brief()).toEqual([
      ['dead_letter', 'x.test', 1, 'no_channel'],
      ['dead_letter', 'z.test', 1, 'silenced'],
    ])
    expect(offered).toEqual([])
  })

  it('alerts of a budget at each mark, once a day, and again after the alert had ended', async () => {
    const spend = (spent: number) => {
      databases = [{ accountId, databaseId: 'db', name: 'shop', budget: 10, spent }]
    }
    const titles = async () => (await alerts()).map(({ title }) => /spent (\d+) %/.exec(title)?.[1] ?? title)
    const ended = 'The database "shop" is below the alert threshold of its budget again.'
    for (const spent of [6, 7, 7.5, 9.4, 9.6, 10]) {
      spend(spent)
      await pass(6 * MINUTE)
    }
    expect(await titles()).toEqual(['70', '94', '100'])
    await pass(24 * 60 * MINUTE)
    expect(await titles()).toEqual(['70', '94', '100', '100'])
    spend(0)
    await pass(MINUTE)
    await pass(20 * MINUTE)
    spend(8)
    await pass(MINUTE)
    expect(await titles()).toEqual(['70', '94', '100', '100', ended, '80'])
  })

  it('alerts of a backup that failed', async () => {
    const databaseId = randomUUID()
    await store.run(accounts.identify, { freshId: 'store', at: 1 })
    await store.run(databaseRows.create, creationOf(databaseId, accountId, start))
    await store.run(databaseRows.finishCreate, { databaseId, audit: audit() })
    const backup = { backup_id: 'b', database_id: databaseId, name: 'n', kind: 'manual', created_at: start } as const
    const result = { kind: 'failed', failure: 'no space' } as const
    for (const one of [backup, { ...backup, backup_id: 'i', kind: 'import' } as const]) {
      await store.run(backups.begin, { backup: one, accountId })
      await store.run(backups.finish, { backupId: one.backup_id, result, at: clock.now() })
    }
    await pass(MINUTE)
    expect(await brief()).toEqual([['backup_failed', databaseId, 1, 'no_channel']])
    await pass(DAY)
    expect((await alerts()).at(-1)?.title).toBe('The newest backup of the database "shop" failed: no space')
    databases = [{ accountId, databaseId, name: 'shop', budget: 0, spent: 0 }]
    await store.run(backups.begin, { backup: { ...backup, backup_id: 'b2' }, accountId })
    const done = { kind: 'completed', sizeBytes: 1, keyCount: 1, dataBytes: 1, sha256: 'x' } as const
    await store.run(backups.finish, { backupId: 'b2', result: done, at: clock.now() })
    await pass(MINUTE)
    const [failed, , end] = await alerts()
    expect(end).toMatchObject({ status: 'resolved', title: 'The newest backup of the database "shop" has not failed.' })
    expect(end?.episode_id).toBe(failed?.episode_id)
  })

  it('notifies the first account of what concerns the server, and each account of its own', async () => {
    const other = await newAccount()
    disk = { freeBytes: 5, totalBytes: 100 }
    problems.report({ kind: 'store_damaged', subject: 'messages', severity: 'error', title: 'Bad.', advice: 'Look.' })
    databases = [{ accountId: other, databaseId: 'db', name: 'shop', budget: 0, spent: 0, restarts: '3 times' }]
    await store.run(schedules.put, {
      account_id: other,
      schedule_id: 'late',
      cron: '* * * * *',
      destination: 'http://e.test',
      headers: '{}',
      body: null,
      queue: null,
      caller_ip: null,
      created_at: start,
      next_at: start - 6 * MINUTE,
    })
    await pass(MINUTE)
    const server = (await alerts(first)).filter(({ first_at }) => first_at > start)
    expect(server.map(({ kind, subject }) => [kind, subject]).sort()).toEqual([
      ['disk_full', 'data directory'],
      ['store_corrupt', 'messages'],
    ])
    expect((await alerts(other)).map(({ kind, subject }) => [kind, subject]).sort()).toEqual([
      ['engine_restarting', 'db'],
      ['schedule_missed', 'late'],
    ])
  })

  it('does not count fires that a suspension skipped as missed', async () => {
    const times = { caller_ip: null, created_at: start, next_at: start }
    const put = async (id: string, error: string) => {
      await store.run(schedules.put, { account_id: accountId, schedule_id: id, ...LATE, ...times })
      const fired = { accountId, scheduleId: id, dueAt: start, nextAt: start + DAY, now: start, entries: [], error }
      await store.run(schedules.fire, fired)
    }
    await put('skipped', schedules.SUSPENDED_FIRE)
    await put('broken', 'The URL group is empty.')
    await pass(MINUTE)
    expect((await alerts()).map(({ kind, subject }) => [kind, subject])).toEqual([['schedule_missed', 'broken']])
  })

  it('sees the late schedules of each account, however many another one has', async () => {
    const other = await newAccount()
    const put = (account_id: string, schedule_id: string) =>
      store.run(schedules.put, { ...LATE, account_id, schedule_id, created_at: start, next_at: start - DAY })
    await Promise.all(Array.from({ length: 201 }, (_, place) => put(accountId, `s${place}`)))
    await put(other, 's')
    const found = await store.run(conditions.stored, { dueBefore: start, createdBefore: start, failing: [], known: [] })
    const of = (id: string) => found.schedules.filter(({ account_id }) => account_id === id).length
    expect([of(accountId), of(other)]).toEqual([200, 1])
    const all = found.schedules.map(({ account_id: accountId, schedule_id: scheduleId }) => ({ accountId, scheduleId }))
    await Promise.all([...all, { accountId, scheduleId: 's99' }].map((key) => store.run(schedules.remove, key)))
  })

  /** What each notification says, with the host that it went to. */
  const notices = () =>
    offered
      .filter(({ account_id }) => account_id === accountId)
      .map(({ url, body }) => {
        const { status, count, episode_id } = JSON.parse(Buffer.from(body ?? []).toString()) as Record<string, unknown>
        return { to: new URL(url).hostname, status, count, episode_id }
      })
  const briefNotices = () => notices().map(({ to, status, count }) => [to, status, count])

  it('groups for the time that each channel sets, and the history follows the shortest', async () => {
    await addChannel({ url: 'http://quick.test', group_minutes: 1 })
    await addChannel({ url: 'http://slow.test', group_minutes: 60 })
    for (let minute = 0; minute < 3; minute++) {
      await deadLetter()
      await deadLetter()
      await pass(MINUTE)
    }
    const quick = (count: number) => ['quick.test', 'event', count]
    expect(briefNotices()).toEqual([quick(2), ['slow.test', 'event', 2], quick(2), quick(2)])
    await watch.stop()
    await startWatch()
    await pass(60 * MINUTE)
    expect(briefNotices().slice(4)).toEqual([['slow.test', 'event', 4]])
    const late = offered.findLast(({ url }) => url === 'http://slow.test')?.message_id
    expect((await alerts()).map(({ messages }) => messages.includes(`"${late}"`))).toEqual([false, true, true])
    await pass(120 * MINUTE)
    expect(notices()).toHaveLength(5)
  })

  it('notifies the channels that know of a state of its end, once, also after a restart', async () => {
    await addChannel({ url: 'http://notified.test', hourly_limit: 1 })
    await addChannel({ url: 'http://uninterested.test', send_resolved: 0 })
    const off = await addChannel({ url: 'http://off.test' })
    databases = [{ accountId, databaseId: 'db', name: 'shop', budget: 10, spent: 8 }]
    await pass(MINUTE)
    await store.run(channels.update, { accountId, channelId: off, fields: { enabled: 0 }, audit: audit() })
    await addChannel({ url: 'http://late.test' })
    await watch.stop()
    databases = [{ accountId, databaseId: 'db', name: 'shop', budget: 100, spent: 8 }]
    await startWatch()
    await pass(MINUTE)
    await pass(30 * MINUTE)
    const firing = ['notified.test', 'uninterested.test', 'off.test'].map((to) => [to, 'firing', 1])
    expect(briefNotices()).toEqual([...firing, ['notified.test', 'resolved', 1]])
    expect(new Set(notices().map(({ episode_id }) => episode_id)).size).toBe(1)
    expect((await alerts()).map(({ status, state }) => [status, state])).toEqual([
      ['firing', 'sent'],
      ['resolved', 'sent'],
    ])
  })

  it('sends no notification of a state that ended before it was due, and none of an end that is silenced', async () => {
    await addChannel()
    const spend = async (spent: number) => {
      databases = [{ accountId, databaseId: 'db', name: 'shop', budget: 10, spent }]
      await pass(MINUTE)
    }
    for (const spent of [8, 0, 8, 0]) await spend(spent)
    await pass(20 * MINUTE)
    expect(briefNotices().map(([, status]) => status)).toEqual(['firing', 'resolved'])
    expect((await alerts()).at(-1)).toMatchObject({ status: 'resolved', state: 'no_channel' })
    await spend(8)
    const silence = { silence_id: randomUUID(), account_id: accountId, kind: 'budget', subject: null }
    await store.run(silences.create, {
      silence: { ...silence, until: clock.now() + DAY, reason: '', actor: 'a', created_at: start },
      limit: 9,
      now: start,
      audit: audit(),
    })
    await spend(0)
    expect(briefNotices().map(([, status]) => status)).toEqual(['firing', 'resolved', 'firing'])
    expect((await alerts()).at(-1)).toMatchObject({ status: 'resolved', state: 'silenced' })
  })
})
