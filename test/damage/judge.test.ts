import { describe, expect, it } from 'vitest'
import { type Baseline, judge, type Verdict } from './judge.js'
import type { Files, Observation } from './observe.js'
import type { Answer, Answers } from './probes.js'

const value = (text: string): Answer => ({ kind: 'value', text })
const answers = (text: string): Answers => new Map([['message 1', value(text)]])
const baseline: Baseline = { answers: answers('body'), warnings: new Set(['usual']), complaints: async () => new Set() }
const BACKUP = 'backups/db/bak.rdb'
const files = (content: Record<string, string>): Files => new Map(Object.entries(content))
const whole = files({ [BACKUP]: 'whole' })

const calm: Observation = {
  start: { kind: 'serves' },
  answers: answers('body'),
  warnings: ['usual'],
  problems: 0,
  ended: 'as requested',
  writes: { publish: true },
  filesPristine: whole,
  filesBefore: whole,
  filesAfter: whole,
  log: '',
}

const judged = (seen: Partial<Observation>, complaints: readonly string[] = []): Promise<Verdict> =>
  judge(baseline, { ...calm, ...seen }, async () => complaints)

const outcomeOf = async (seen: Partial<Observation>, complaints?: readonly string[]) =>
  (await judged(seen, complaints)).outcome

describe('a damage', () => {
  it('without effect is distinguished from a reported one', async () => {
    expect(await outcomeOf({})).toBe('no effect')
    expect(await outcomeOf({ warnings: ['usual', 'something new'] })).toBe('reported')
    expect(await outcomeOf({ problems: 1 })).toBe('reported')
  })

  it('that changes an answer must be reported by the log, by /health or by the doctor', async () => {
    const changed = { answers: answers('bodY') }
    expect(await outcomeOf(changed)).toBe('silently changed')
    expect(await outcomeOf({ answers: new Map([['message 1', value('404')]]) })).toBe('silently changed')
    expect(await outcomeOf({ ...changed, warnings: ['a restore cannot be ended'] })).toBe('silently changed')
    expect(await outcomeOf({ ...changed, warnings: ['the body of 1 is damaged'] })).toBe('reported')
    expect(await outcomeOf({ ...changed, problems: 1 })).toBe('reported')
    expect(await outcomeOf(changed, ['fail store: a page is broken'])).toBe('reported')
  })

  it('that causes an error response, or stops writes, counts as refused', async () => {
    expect(await outcomeOf({ answers: new Map([['message 1', { kind: 'refusal', text: '503' }]]) })).toBe('refused')
    expect(await outcomeOf({ writes: { publish: false } })).toBe('refused')
  })

  it('that keeps the server from starting needs an error sentence', async () => {
    const refused = (output: string, code = '1') => outcomeOf({ start: { kind: 'refused', code, output } })
    expect(await refused('error: the store is damaged')).toBe('refused')
    expect(await refused('error: [object Object]')).toBe('unreadable text')
    expect(await refused('error: x\n    at read (file.js:1:2)')).toBe('unreadable text')
    expect(await refused('error: killed', 'null')).toBe('unreadable text')
  })

  it('must not hang or end the server, or leave a request unanswered', async () => {
    expect(await outcomeOf({ start: { kind: 'hangs', output: '' } })).toBe('ended')
    expect(await outcomeOf({ ended: 'by itself' })).toBe('ended')
    expect(await outcomeOf({ answers: new Map([['message 1', { kind: 'none', text: 'timed out' }]]) })).toBe('ended')
  })

  it('must not delete a file; a quarantined or repaired file is not deleted', async () => {
    expect(await outcomeOf({ filesAfter: files({}) })).toBe('deleted')
    expect(await outcomeOf({ filesAfter: files({ 'quarantine/bak.rdb': 'whole' }) })).toBe('no effect')
    const filesBefore = files({ [BACKUP]: 'damaged' })
    expect(await outcomeOf({ filesBefore, filesAfter: files({ [BACKUP]: 'new' }) })).toBe('deleted')
    expect(await outcomeOf({ filesBefore })).toBe('no effect')
  })
})
