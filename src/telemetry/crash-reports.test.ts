import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { tempDir } from '../../test/support/index.js'
import { describeCrash, lastCrash, writeCrashReport } from './crash-reports.js'

const SECRET = 'hunter2'
const NOW = Date.UTC(2026, 2, 1, 10, 20, 30, 400)

function thrown(stack: string, message = `no key for redis://me:${SECRET}@host`): Error {
  const error = new TypeError(message)
  error.stack = `TypeError: ${message}\n${stack}`
  return error
}

it('a crash report says where an error was thrown, but not its message', () => {
  const stack = `    at ${SECRET}
    at parse (${SECRET})
    at Sender.send (file:///srv/${SECRET}/src/queue/sending/sender.ts:12:3)
    at async Object.run (/srv/app/node_modules/@scope/pkg/index.js:1:2)
    at node:internal/process/task_queues:95:5`
  const error = thrown(stack, `two\n    at ${SECRET} lines`)
  error.cause = Object.assign(thrown(''), { code: 'ECONNRESET', [SECRET]: SECRET })
  const report = describeCrash('uncaughtException', error, NOW)
  expect(report).toMatchObject({
    at: '2026-03-01T10:20:30.400Z',
    kind: 'uncaughtException',
    module: 'queue',
    error: {
      type: 'TypeError',
      stack: [
        { in: 'Sender.send', at: 'src/queue/sending/sender.ts:12:3' },
        { in: 'Object.run', at: 'node_modules/@scope/pkg/index.js:1:2' },
        { in: '(anonymous)', at: 'node:internal/process/task_queues:95:5' },
      ],
      causes: [{ type: 'TypeError', code: 'ECONNRESET', stack: [] }],
    },
  })
  expect(JSON.stringify(report)).not.toContain(SECRET)
})

it('a crash report maps a line of the bundle to its source', () => {
  const dir = tempDir()
  const file = join(dir, 'main.js')
  const map = { version: 3, sources: ['../src/bulk/worker/worker.ts'], names: [], mappings: 'AAEA' }
  writeFileSync(`${file}.map`, JSON.stringify(map))
  const report = describeCrash('unhandledRejection', thrown(`    at work (${file}:1:1)`), NOW)
  expect([report.module, report.error.stack[0]?.at]).toEqual(['bulk', 'src/bulk/worker/worker.ts:3:1'])
})

it.each([[undefined], ['text'], [{ password: SECRET }], [thrown('')]])(
  'describes anything that is thrown (%#)',
  (what) => {
    const report = describeCrash('unhandledRejection', what, NOW)
    expect(report.module).toBe('unknown')
    expect(JSON.stringify(report)).not.toContain(SECRET)
  },
)

it('the newest ten crash reports are kept, readable only by their owner, and the last one is found', () => {
  const dir = tempDir()
  expect(lastCrash(dir)).toBeUndefined()
  for (let i = 0; i < 12; i++) writeCrashReport(dir, describeCrash('uncaughtException', new RangeError('x'), NOW + i))
  const names = readdirSync(join(dir, 'crashes')).sort()
  expect([names.length, names[0]]).toEqual([10, 'crash-2026-03-01T10-20-30-402Z.json'])
  const newest = join('crashes', names.at(-1) ?? '')
  expect([statSync(join(dir, 'crashes')).mode & 0o777, statSync(join(dir, newest)).mode & 0o777]).toEqual([
    0o700, 0o600,
  ])
  expect(lastCrash(dir)).toEqual({ file: newest, atMs: NOW + 11, module: 'telemetry', type: 'RangeError' })
  writeFileSync(join(dir, 'crashes', 'crash-2027-01-01T00-00-00-000Z.json'), 'null')
  expect(lastCrash(dir)).toBeUndefined()
})

it('writing a crash report fails silently when nothing can be written', () => {
  const dir = tempDir()
  writeFileSync(join(dir, 'crashes'), '')
  expect(writeCrashReport(dir, describeCrash('uncaughtException', new Error('x'), NOW))).toBeUndefined()
  expect(readFileSync(join(dir, 'crashes'), 'utf8')).toBe('')
})
