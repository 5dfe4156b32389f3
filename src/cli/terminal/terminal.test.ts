import { PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import type { Io, Terminal } from '../io.js'
import { confirm } from './ask.js'
import { bytes, duration, fromNow, sparkline } from './figures.js'
import { progressOf } from './progress.js'
import { type Column, renderFacts, renderTable } from './table.js'

/** A terminal of a width, and what was written to it. */
function stage(terminal: Partial<Terminal> | undefined) {
  const said: string[] = []
  const input = new PassThrough() as unknown as NodeJS.ReadStream
  const known = { out: false, err: false, asks: false, noColor: false, columns: () => 80, input }
  const io: Io = {
    out: (text) => void said.push(text),
    err: (text) => void said.push(text),
    ...(terminal && { terminal: { ...known, ...terminal } }),
  }
  return { io, said, input }
}

const COLUMNS: Column<{ id: string; url: string; count: number }>[] = [
  { title: 'ID', value: (one) => one.id },
  { title: 'URL', value: (one) => one.url, cuts: true },
  { title: 'COUNT', value: (one) => one.count, align: 'right', tone: () => 'red' },
]
const ROWS = [
  { id: 'msg_1', url: 'https://example.com/a/long/path/that/does/not/fit', count: 7 },
  { id: 'msg_22', url: 'x', count: 1234 },
]

it('aligns columns and leaves every value whole in a pipe', () => {
  expect(renderTable(stage(undefined).io, COLUMNS, ROWS)).toBe(
    'ID      URL                                                COUNT\n' +
      'msg_1   https://example.com/a/long/path/that/does/not/fit      7\n' +
      'msg_22  x                                                   1234\n',
  )
})

it('cuts on a terminal only what may be cut, so that ids can be copied', () => {
  const { io } = stage({ out: true, noColor: true, columns: () => 40 })
  const lines = renderTable(io, COLUMNS, ROWS).trimEnd().split('\n')
  expect(lines.map(({ length }) => length)).toEqual([40, 40, 40])
  expect(lines[1]).toBe('msg_1   https://example.com/a/lo…      7')
})

it('colours on a terminal, and not with NO_COLOR or in a pipe', () => {
  const coloured = renderTable(stage({ out: true }).io, COLUMNS, ROWS)
  expect(coloured).toContain('\u001b[31m7\u001b[0m')
  for (const terminal of [{ out: true, noColor: true }, { out: false }])
    expect(renderTable(stage(terminal).io, COLUMNS, ROWS)).not.toContain('\u001b')
})

it('writes out control characters that others have put into a text', () => {
  const row = { id: 'a\u001b[2J\nb', url: '\u202e', count: 1 }
  expect(renderTable(stage(undefined).io, COLUMNS, [row])).toContain('a\\u001b[2J\\nb  \\u202e')
  expect(renderFacts(stage(undefined).io, [['name', 'a\rb']])).toBe('name  a\\u000db\n')
})

it('says sizes, times and series as people read them', () => {
  expect([bytes(0), bytes(1536), bytes(3 * 2 ** 30), bytes(Number.MAX_SAFE_INTEGER)]).toEqual([
    '0 B',
    '1.5 KB',
    '3 GB',
    'no limit',
  ])
  expect([duration(350), duration(61_400), duration(93_784_000)]).toEqual(['350ms', '1m1s', '1d2h'])
  expect([fromNow(1_000, 6_000), fromNow(7_206_000, 6_000), fromNow(undefined)]).toEqual(['5s ago', 'in 2h', undefined])
  expect([sparkline([0, 1, 2, 4]), sparkline([0, 0])]).toEqual(['▁▃▅█', '▁▁'])
})

it('moves a bar on a terminal, and writes lines elsewhere', () => {
  const moving = stage({ err: true })
  const bar = progressOf(moving.io, 'runs')
  bar.at(50, 100)
  bar.end()
  expect(moving.said.join('')).toContain(' 50 %  50 of 100 runs')
  const plain = stage({})
  const lines = progressOf(plain.io, 'runs')
  for (const done of [0, 1, 2, 50, 51, 100]) lines.at(done, 100)
  expect(plain.said).toEqual(['0 %: 0 of 100 runs\n', '50 %: 50 of 100 runs\n', '100 %: 100 of 100 runs\n'])
})

it('asks before what cannot be taken back, and refuses where nobody can be asked', async () => {
  await expect(confirm(stage(undefined).io, { question: 'Delete?', isGiven: false })).rejects.toThrow('say --yes')
  await confirm(stage(undefined).io, { question: 'Delete?', isGiven: true })
  for (const [typed, answer, isDone] of [
    [undefined, 'y', true],
    [undefined, '', false],
    ['shop', 'y', false],
    ['shop', 'shop', true],
  ] as const) {
    const { io, input } = stage({ asks: true })
    const asked = confirm(io, { question: 'Delete?', isGiven: false, ...(typed && { typed }) })
    input.push(`${answer}\n`)
    if (isDone) await asked
    else await expect(asked).rejects.toThrow('Nothing was done')
  }
})
