import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { ManualClock } from '../base/testing/manual-clock.js'
import { PROBLEM_KINDS, Problems } from './problems.js'
import { recordedLog } from './testing/recorded-log.js'

const DAMAGE = {
  kind: 'store_damaged',
  subject: 'messages',
  severity: 'error',
  title: 'The table messages cannot be read.',
  advice: 'Restore a backup.',
} as const

it('a problem is logged once, counted each time, and keeps the time of its first report', () => {
  const clock = new ManualClock(1_000)
  const { lines, logger } = recordedLog()
  const problems = new Problems(clock, logger)
  problems.report(DAMAGE)
  clock.advance(5_000)
  problems.report(DAMAGE)
  expect(lines).toMatchObject([
    { event: 'problem_error', text: 'The table messages cannot be read. Restore a backup.' },
  ])
  expect(problems.visibleTo('anybody')).toEqual([{ ...DAMAGE, sinceMs: 1_000, count: 2 }])
})

it('a solved problem is removed, and is new when it is reported again', () => {
  const { lines, logger } = recordedLog()
  const problems = new Problems(new ManualClock(), logger)
  problems.report(DAMAGE)
  problems.resolve('store_damaged', 'messages')
  problems.resolve('store_damaged', 'messages')
  expect(problems.count).toBe(0)
  problems.report(DAMAGE)
  expect(lines.filter((line) => line.level === 'error')).toHaveLength(2)
  expect(problems.visibleTo('anybody')).toMatchObject([{ count: 1 }])
})

it('a problem without an observable end ends when it was not reported for a while', () => {
  const clock = new ManualClock()
  const problems = new Problems(clock, recordedLog().logger)
  problems.reportUntilCalm(DAMAGE, 1_000)
  clock.advance(900)
  problems.reportUntilCalm(DAMAGE, 1_000)
  clock.advance(900)
  expect(problems.all()).toMatchObject([{ count: 2 }])
  clock.advance(100)
  expect(problems.count).toBe(0)
})

it('an account sees its own problems and those of the server', () => {
  const problems = new Problems(new ManualClock(), recordedLog().logger)
  problems.report(DAMAGE)
  problems.report({ ...DAMAGE, kind: 'data_missing', subject: 'db-1', accountId: 'one' })
  expect(problems.visibleTo('one').map(({ subject }) => subject)).toEqual(['messages', 'db-1'])
  expect(problems.visibleTo('other').map(({ subject }) => subject)).toEqual(['messages'])
})

it('the number of problems in memory is limited', () => {
  const { lines, logger } = recordedLog()
  const problems = new Problems(new ManualClock(), logger)
  for (let index = 0; index < 1_500; index++) problems.report({ ...DAMAGE, subject: `table ${index}` })
  expect(problems.count).toBe(1_000)
  expect(lines).toHaveLength(1_500)
})

it('the documentation explains every kind of problem', () => {
  const page = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8')
  const rows = page.match(/^\| (?:`\w+`(?:, )?)+ \|/gm) ?? []
  expect(PROBLEM_KINDS.filter((kind) => !rows.some((row) => row.includes(`\`${kind}\``)))).toEqual([])
})
