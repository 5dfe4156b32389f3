import { execFileSync } from 'node:child_process'
import { constants, existsSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { tempDir, waitFor } from '../../test/support/index.js'
import { LOG_EVENTS } from '../contract/logs/events.js'
import { LOG_FIELDS } from '../contract/logs/fields.js'
import { createLogger, type LogLevel } from './index.js'
import { humanLine, linesTo } from './logger.js'

function recorded(level: LogLevel = 'info') {
  const lines: string[] = []
  const logger = createLogger({ level, destination: { write: (line) => void lines.push(line) } })
  return { logger, lines, last: () => JSON.parse(lines.at(-1) ?? '{}') }
}

it('the logger writes one JSON line with time, level, event, fields and text', () => {
  const { logger, last } = recorded()
  logger.info('account_deleted', { accountId: 'acc_1' })
  expect(last()).toEqual({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    event: 'account_deleted',
    accountId: 'acc_1',
    msg: 'an account is deleted',
  })
})

it('the logger omits lines below the level', () => {
  const { logger, lines } = recorded()
  logger.debug('tls_handshake_failed', { error: new Error('x') })
  recorded('silent').logger.error('store_mark_not_written' as never, {} as never)
  expect(lines).toEqual([])
})

it('the logger passes each line on, exactly as written', () => {
  const [written, passed]: [string[], string[]] = [[], []]
  const destination = { write: (line: string) => void written.push(line) }
  const logger = createLogger({ level: 'info', destination, onLine: (line) => void passed.push(line) })
  logger.info('certificate_replaced', {})
  logger.debug('gateway_client_failed', { error: new Error('x') })
  expect([passed, passed.length]).toEqual([written, 1])
})

it('the logger inserts fields into the text, and does not repeat them for people', () => {
  const { logger, lines, last } = recorded()
  logger.error('gateway_ports_not_opened', { databases: 3, databaseId: 'db', error: new Error('EMFILE') })
  expect(last()).toMatchObject({ databases: 3, msg: 'the ports of 3 databases cannot be opened' })
  expect(humanLine(lines[0] ?? '')).toMatch(/ ERROR the ports of 3 databases cannot be opened databaseId=db\n/)
})

it('the logger shortens long texts, which may repeat what a client has sent', () => {
  const { logger, lines, last } = recorded()
  const long = `begins${'x'.repeat(1_000_000)}ends`
  logger.info('account_deleted', { accountId: long })
  logger.error('gateway_ports_not_opened', { databases: 3, databaseId: 'db', error: new Error(long, { cause: long }) })
  expect(lines.map((line) => line.length > 30_000)).toEqual([false, false])
  expect(last().error.message).toMatch(/^begins.*x \[[\d,]+ characters left out\] x.*ends$/)
})

it('the logger writes no field that the event does not declare, and nothing nested but errors', () => {
  const { logger, lines } = recorded()
  const secrets = { password: 'hunter2', authorization: 'Bearer hunter2', rest_token: 'hunter2' }
  const given: { accountId: string } = { accountId: 'acc_1', ...secrets }
  logger.info('account_deleted', given)
  logger.info('account_deleted', { accountId: secrets as unknown as string })
  expect(lines).toHaveLength(2)
  expect(lines.join('')).not.toContain('hunter2')
})

it('the logger leaves out optional fields without a value', () => {
  const { logger, last } = recorded()
  logger.warn('launcher_ended', { code: 0, signal: null })
  expect([last().code, 'signal' in last()]).toEqual([0, false])
})

it('the logger writes an error with its stack, as JSON and for people', () => {
  const { logger, lines, last } = recorded()
  logger.error('database_wake_failed', { error: new TypeError('no'), databaseId: 'db 1' })
  expect(last().error).toMatchObject({ type: 'TypeError', message: 'no', stack: expect.stringContaining('TypeError') })
  expect(humanLine(lines[0] ?? '')).toMatch(
    /^\d\d:\d\d:\d\d\.\d{3} ERROR a database cannot be woken databaseId="db 1"\n {2}TypeError: no\n {6}at /,
  )
})

it('the logger escapes characters that would control the terminal of a reader', () => {
  const { logger, lines } = recorded()
  const error = Object.assign(new Error('x'), { stack: 'Error: \u001b[2J\u009b1A\rx\n    at y' })
  logger.error('database_wake_failed', { error, databaseId: 'a\u009b1A' })
  const line = humanLine((lines[0] ?? '').replace('a database', 'a\\ndatabase\\u001b[2J'))
  expect(line.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
  expect(line.split('\n').slice(1)).toEqual(['  Error: \\u001b[2J\\u009b1A\\u000dx', '      at y', ''])
})

it('the logger writes only type, message, code and stack of an error, because drivers attach the failed command', () => {
  const { logger, lines, last } = recorded()
  const command = { name: 'auth', args: ['default', 'hunter2'] }
  const failed = Object.assign(new Error('WRONGPASS'), { code: 'EAUTH', command })
  const log = (error: unknown): void => logger.error('certificate_unusable', { error })
  log(failed)
  expect(last().error).toEqual({ type: 'Error', message: 'WRONGPASS', code: 'EAUTH', stack: expect.any(String) })
  log(new AggregateError([failed], 'several'))
  expect(last().error.errors).toMatchObject([{ message: 'WRONGPASS' }])
  log(new Error('outer', { cause: failed }))
  expect(last().error.message).toBe('outer: WRONGPASS')
  expect(lines.join('')).not.toContain('hunter2')
})

it('no field of the catalogue is named like a credential, and no event writes over a part of the line', () => {
  const parts = ['time', 'level', 'event', 'msg']
  const suspicious = Object.keys(LOG_FIELDS).filter(
    (name) => /secret|password|token|authorization|cookie|signature|key$/i.test(name) || parts.includes(name),
  )
  expect(suspicious).toEqual([])
  expect(Object.keys(LOG_EVENTS).filter((name) => !/^[a-z]+(_[a-z]+)+$/.test(name))).toEqual([])
})

it.skipIf(!existsSync('/dev/full'))('a disk without space costs lines, not the server', () => {
  const fd = openSync('/dev/full', 'w')
  const logger = createLogger({ level: 'info', destination: linesTo(fd) })
  for (let line = 0; line < 3; line++) logger.info('certificate_replaced', {})
})

it('a reader that hangs costs lines, not the server, and gets lines again when it reads', async () => {
  const path = join(tempDir(), 'pipe')
  execFileSync('mkfifo', [path])
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  const lines = linesTo(fd)
  // Write more than the pipe and the buffered lines hold.
  for (let line = 0; line < 20_000; line++) lines.write(`${'x'.repeat(99)}\n`)
  const bytes = Buffer.alloc(65_536)
  const read = (): string => {
    try {
      return bytes.toString('latin1', 0, readSync(fd, bytes))
    } catch {
      return ''
    }
  }
  let received = 0
  const hasReceivedAll = (): boolean => {
    received += read().length
    return received > 2 ** 20
  }
  await waitFor(hasReceivedAll, { what: 'what was kept' })
  lines.write('later\n')
  await waitFor(() => read().endsWith('later\n'), { what: 'a later line' })
})
