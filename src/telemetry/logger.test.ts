import { expect, it } from 'vitest'
import { createLogger } from './index.js'
import { humanLine } from './logger.js'

function recorded(level: 'info' | 'silent' = 'info') {
  const lines: string[] = []
  const logger = createLogger({ level, destination: { write: (line) => void lines.push(line) } })
  return { logger, lines, last: () => JSON.parse(lines.at(-1) ?? '{}') }
}

it('writes one JSON line with time, level, text and fields', () => {
  const { logger, last } = recorded()
  logger.child({ module: 'queue' }).info({ messageId: 'msg_1' }, 'delivered')
  expect(last()).toEqual({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    module: 'queue',
    messageId: 'msg_1',
    msg: 'delivered',
  })
})

it('omits lines below the level', () => {
  const { logger, lines } = recorded()
  logger.debug({}, 'detail')
  recorded('silent').logger.error({}, 'nothing')
  expect(lines).toEqual([])
})

it('replaces credentials on three levels', () => {
  const { logger, lines } = recorded()
  const secrets = { password: 'hunter2', authorization: 'Bearer hunter2', rest_token: 'hunter2', apiKey: 'hunter2' }
  logger.info(secrets, 'top')
  logger.info({ account: secrets }, 'one down')
  logger.info({ request: { headers: { ...secrets, 'Upstash-Signature': 'hunter2' } } }, 'two down')
  expect(lines).toHaveLength(3)
  expect(lines.join('')).not.toContain('hunter2')
})

it('writes an error with its stack, as JSON and for people', () => {
  const { logger, lines, last } = recorded()
  logger.error({ error: new TypeError('no'), databaseId: 'db 1' }, 'engine failed')
  expect(last().error).toMatchObject({ type: 'TypeError', message: 'no', stack: expect.stringContaining('TypeError') })
  expect(humanLine(lines[0] ?? '')).toMatch(
    /^\d\d:\d\d:\d\d\.\d{3} ERROR engine failed databaseId="db 1"\n {2}TypeError: no\n {6}at /,
  )
})

it('writes only type, message, code and stack of an error, because drivers attach the failed command', () => {
  const { logger, lines, last } = recorded()
  const command = { name: 'auth', args: ['default', 'hunter2'] }
  const failed = Object.assign(new Error('WRONGPASS'), { code: 'EAUTH', command })
  logger.error({ error: failed }, 'one')
  expect(last().error).toEqual({ type: 'Error', message: 'WRONGPASS', code: 'EAUTH', stack: expect.any(String) })
  logger.error({ error: new AggregateError([failed], 'several') }, 'several')
  expect(last().error.errors).toMatchObject([{ message: 'WRONGPASS' }])
  logger.error({ error: new Error('outer', { cause: failed }) }, 'with its cause')
  expect(last().error.message).toBe('outer: WRONGPASS')
  expect(lines.join('')).not.toContain('hunter2')
})
